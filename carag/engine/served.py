"""Offer the engine to services: calls to await, its condition, and search plans whose time reveals nothing."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from carag.generation import Extractive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from carag.audit.anchors import Anchoring, Exposure
    from carag.engine.collection import Collection
    from carag.engine.results import AddReport, Answer, Retrieval
    from carag.generation import GuardedGenerator
    from carag.labelling.document import Document
    from carag.policy import Session
    from carag.retrieval import Retriever

__all__ = ["Served"]


class Served(ABC):
    """Asynchronous versions of :class:`carag.Engine`'s calls; a cancelled call continues to its record."""

    _anchoring: Anchoring
    _collection: Collection
    _guarded: GuardedGenerator
    _retriever: Retriever

    @abstractmethod
    def ask(self, question: str, session: Session, *, where: Mapping[str, Any] | None = None) -> Answer:
        """Answer a question."""

    @abstractmethod
    def retrieve(
        self, question: str, session: Session, k: int = 8, *, where: Mapping[str, Any] | None = None
    ) -> Retrieval:
        """Find evidence."""

    @abstractmethod
    def add(self, documents: Iterable[Document]) -> AddReport:
        """Store documents."""

    async def aask(
        self, question: str, session: Session, *, where: Mapping[str, Any] | None = None
    ) -> Answer:
        """Await :meth:`carag.Engine.ask`."""
        return await asyncio.to_thread(self.ask, question, session, where=where)

    async def aretrieve(
        self, question: str, session: Session, k: int = 8, *, where: Mapping[str, Any] | None = None
    ) -> Retrieval:
        """Await :meth:`carag.Engine.retrieve`."""
        return await asyncio.to_thread(self.retrieve, question, session, k, where=where)

    async def aadd(self, documents: Iterable[Document]) -> AddReport:
        """Await :meth:`carag.Engine.add`; the documents are read in the thread."""
        return await asyncio.to_thread(self.add, documents)

    @property
    def exposure(self) -> Exposure:
        """How much of the log no anchor has confirmed yet."""
        return self._anchoring.exposure()

    @property
    def paces(self) -> tuple[str, str]:
        """How long searching takes, and with answering: ``quick``, ``local`` (a model here reads all) or ``remote``."""
        generator, reranker = self._guarded.generator, self._retriever.reranker
        is_remote = self._collection.embedder.remote or (reranker is not None and reranker.remote)
        searching = "remote" if is_remote else "quick" if reranker is None else "local"
        answering = (
            "remote" if generator.remote else "quick" if isinstance(generator, Extractive) else "local"
        )
        return searching, max(searching, answering, key=("quick", "local", "remote").index)

    def keep_to_admissible_rows(self) -> None:
        """Search no graph for sessions that may not know what is hidden, so that hidden rows cannot make it slower."""
        self._retriever.certifies = True
