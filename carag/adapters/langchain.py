"""Retrieve from LangChain: ``CaragRetriever`` is a ``BaseRetriever`` bound to an engine and a session.

LangChain passes the question to callbacks before it is on record, and the documents after. This module does not turn
tracing on; where the environment turns it on (``LANGSMITH_TRACING``), question and passages leave the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.adapters.binding import Binding, metadata_of, unbound
from carag.extras import require

require(__name__, "langchain")

from langchain_core.documents import Document  # noqa: E402 - after the message that says what to install
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from pydantic import PrivateAttr  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.adapters.binding import Source
    from carag.engine import Retrieval
    from carag.policy import Session

__all__ = ["CaragRetriever"]


class CaragRetriever(BaseRetriever):
    """Returns, as documents, the passages that a session may use, in the engine's order.

    A call takes the question and ``k``, at most the retriever's own; any other argument is a ``TypeError``. A copied,
    pickled or loaded retriever has neither engine nor session, and refuses. As a tool for a model use
    ``langchain_core.tools.create_retriever_tool``, whose only parameter is the question.

    Parameters
    ----------
    engine, client, session, k, strict, sink
        As :class:`carag.adapters.Binding` takes them: one of the first two, and a session that server code made.
    """

    k: int = 8
    strict: bool = False
    _binding: Binding = PrivateAttr(default_factory=unbound)

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
        binding = Binding(self, engine=engine, client=client, session=session, k=k, strict=strict, sink=sink)
        super().__init__(k=k, strict=strict)
        self._binding = binding

    def _get_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        del run_manager  # LangChain itself calls it
        return _documents(self._binding.retrieve(self, query, k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return _documents(await self._binding.aretrieve(self, query, k))


def _documents(found: Retrieval) -> list[Document]:
    return [
        Document(id=one.chunk_id, page_content=one.text, metadata=metadata_of(found, one))
        for one in found.passages
    ]
