"""Hold where a log ends: its tree's right edge, newest checkpoint, last commit time and open begin records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from carag.audit.tlog.merkle import Frontier
    from carag.audit.tlog.note import Note

__all__ = ["Tip"]


class Tip(NamedTuple):
    """Where a log ends. Replaced as a whole, after the commit."""

    frontier: Frontier
    note: Note
    """The newest checkpoint."""
    committed: int
    """When the last record was."""
    unended: frozenset[int]
    """Begin records without an end."""
