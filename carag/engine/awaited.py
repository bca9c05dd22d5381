"""Await the engine from an event loop: each call runs in a thread, so the loop never waits for a search or a disk."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from carag.engine.results import AddReport, Answer, Retrieval
    from carag.labelling.document import Document
    from carag.policy import Session

__all__ = ["Awaited"]


class Awaited(ABC):
    """The twins of :class:`carag.Engine`'s calls for asynchronous code.

    A call that is cancelled goes on in its thread, to its record; its result is lost.
    """

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
