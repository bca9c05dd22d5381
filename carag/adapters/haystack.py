"""Retrieve from Haystack: ``CaragRetriever`` is a component bound to an engine and a session.

Haystack sends usage data to its makers unless ``HAYSTACK_TELEMETRY_ENABLED=False``, and passes questions and passages
to a tracer if ``HAYSTACK_CONTENT_TRACING_ENABLED`` is set. This module sets neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from carag.adapters.binding import UNBOUND, Binding, metadata_of
from carag.errors import InvalidArgument
from carag.extras import require
from carag.limits import quoted

require(__name__, "haystack")

from haystack import Document, component, default_to_dict  # noqa: E402 - after the message that says what to install

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.adapters.binding import Source
    from carag.engine import Retrieval
    from carag.policy import Session

__all__ = ["CaragRetriever"]


@component
class CaragRetriever:
    """Returns the passages that a session may use as documents, in the engine's order.

    Besides ``documents`` it returns ``outcome``, ``why`` and ``record``, the number of the record, even if the result
    is empty. ``to_dict`` writes only ``k`` and ``strict``. A copied, pickled or loaded component has neither engine nor
    session, and refuses to run; to load a pipeline give both in a ``component_pre_init`` callback.

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
        """Return the contents for a pipeline's file."""
        written: dict[str, Any] = default_to_dict(self, k=self.k, strict=self.strict)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a component that refuses to run, unless a ``component_pre_init`` callback binds it.

        A file that gives anything but ``k`` and ``strict`` is an InvalidArgument: no file may name an engine or a
        session.
        """
        given = data.get("init_parameters", {})
        if others := [*given.keys() - {"k", "strict"}]:
            raise InvalidArgument(f"the file gives {', '.join(map(quoted, others))}; want only k and strict")
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
