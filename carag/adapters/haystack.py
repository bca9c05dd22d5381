"""Retrieve from Haystack: ``CaragRetriever`` is a component bound to an engine and a session.

Haystack reports its use to its makers unless ``HAYSTACK_TELEMETRY_ENABLED=False``, and gives questions and passages to
a tracer where ``HAYSTACK_CONTENT_TRACING_ENABLED`` is set. Nothing here sets either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from carag.adapters.binding import UNBOUND, Binding, metadata_of
from carag.errors import InvalidArgument
from carag.extras import require
from carag.limits import quoted

require(__name__, "haystack")

from haystack import Document, component, default_to_dict  # noqa: E402 - after the message what to install

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.adapters.binding import Source
    from carag.engine import Retrieval
    from carag.policy import Session

__all__ = ["CaragRetriever"]


@component
class CaragRetriever:
    """Returns the passages that a session may use as documents, in the engine's order.

    Besides ``documents`` it gives ``outcome``, ``why`` and ``record``, the number of the record, of empty results too.
    ``to_dict`` writes ``k`` and ``strict`` alone. What is copied, pickled or loaded has neither engine nor session, and
    refuses to run; to load a pipeline give both in a ``component_pre_init`` callback.

    Parameters
    ----------
    engine, client, session, k, strict, sink
        As :class:`carag.adapters.Binding` takes them: one of the first two, and a session that server code made.
    """

    def __init__(
        self,
        *,
        engine: Source | None = None,
        client: Source | None = None,
        session: Session | None = None,
        k: int = 8,
        strict: bool = False,
        sink: Callable[[Retrieval], object] | None = None,
    ) -> None:
        self._binding = Binding(
            self, engine=engine, client=client, session=session, k=k, strict=strict, sink=sink
        )
        self.k, self.strict = k, strict

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline's file holds."""
        written: dict[str, Any] = default_to_dict(self, k=self.k, strict=self.strict)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make what :meth:`to_dict` wrote: it refuses to run, unless a ``component_pre_init`` callback binds it.

        Raises
        ------
        InvalidArgument
            If a file states anything but ``k`` and ``strict``: no file may name an engine or a session.
        """
        given = data.get("init_parameters", {})
        if others := [*given.keys() - {"k", "strict"}]:
            raise InvalidArgument(f"a file gives {', '.join(map(quoted, others))}; want k and strict alone")
        return cls(session=UNBOUND, **given)

    @component.output_types(documents=list[Document], outcome=str, why=str, record=int)
    def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """Retrieve; ``top_k`` may be up to the component's ``k``."""
        return _outputs(self._binding.retrieve(self, query, top_k))

    @component.output_types(documents=list[Document], outcome=str, why=str, record=int)
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """Await :meth:`run`."""
        return _outputs(await self._binding.aretrieve(self, query, top_k))


def _outputs(found: Retrieval) -> dict[str, Any]:
    documents = [
        Document(id=one.chunk_id, content=one.text, score=one.similarity, meta=metadata_of(found, one))
        for one in found.passages
    ]
    return {
        "documents": documents,
        "outcome": found.outcome.value,
        "why": found.why,
        "record": found.receipt.seq,
    }
