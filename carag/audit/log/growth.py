"""Collect the records that a batch appends to a log, and compute the log's new end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.log.backend import Batch, Tip
from carag.audit.records.access import Access, Begin
from carag.audit.records.upkeep import Recovery
from carag.audit.tlog.merkle import leaf_hash
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.records.event import Event
    from carag.audit.tlog.merkle import Node
    from carag.audit.tlog.note import Note


class Growth:
    """Records added to the end of a log, with the tree nodes that they complete; the old end is not changed."""

    def __init__(self, tip: Tip) -> None:
        self.first, self.frontier = tip.frontier.size, tip.frontier.copy()
        self.nodes: list[Node] = []
        self.bodies: list[bytes] = []
        self._unended = set(tip.unended)
        self._begun: list[int] = []
        self._ended: list[int] = []

    @property
    def size(self) -> int:
        """Number of records, including those added."""
        return self.frontier.size

    def refusal(self, event: Event) -> InvalidArgument | None:
        """Return why an event cannot come next: it would end a request that has not begun."""
        ends = _ends(event)
        if self._unended.issuperset(ends):
            return None
        return InvalidArgument(f"{ends} are not open begin records of this log")

    def add(self, event: Event, body: bytes) -> None:
        """Add a record."""
        ends = _ends(event)
        self._unended.difference_update(ends)
        self._ended += ends
        if isinstance(event, Begin):
            self._unended.add(self.size)
            self._begun.append(self.size)
        self.nodes += self.frontier.append(leaf_hash(body))
        self.bodies.append(body)

    def batch(self, note: Note) -> Batch:
        """Return what was added, with the checkpoint that covers it."""
        return Batch(self.first, self.bodies, self.nodes, note.to_text(), self._begun, self._ended)

    def tip(self, note: Note, committed: int) -> Tip:
        """Return the new end."""
        return Tip(self.frontier, note, committed, frozenset(self._unended))


def _ends(event: Event) -> tuple[int, ...]:
    if isinstance(event, Access) and event.begun is not None:
        return (event.begun,)
    return event.begins if isinstance(event, Recovery) else ()
