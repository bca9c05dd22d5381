"""Hold the end of a log: the tree's right edge, the newest checkpoint, and which begins have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from carag.audit.tlog.merkle import Frontier
    from carag.audit.tlog.note import Note

__all__ = ["Tip"]


class Tip(NamedTuple):
    """The end of a log. Replaced as a whole, after a commit."""

    frontier: Frontier
    note: Note
    """The newest checkpoint."""
    committed: int
    """Commit time of the last record, in microseconds since 1970 UTC."""
    unended: frozenset[int]
    """Sequence numbers of begin records without an end."""
