"""Define what the log needs of an event: its kind, what it commits to, its JSON. One class of event a file.

An event is what the caller of the log knows about one request or one change. The log wraps it into a record
(``record.py``, which lists the classes), which adds what only the log knows.

Nothing personal and no prose may stand in an event, because a record is kept for years and never altered: values
that name people are committed to beside the event, reasons are codes, and a role or purpose that the policy
table does not know is ``None`` rather than what somebody typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

if TYPE_CHECKING:
    from carag.audit.records.kinds import RecordKind
    from carag.audit.tlog.encoding import Json

__all__ = ["UNDISCLOSED", "Event"]

UNDISCLOSED: Final = frozenset({"entities", "targets"})
"""Commitments whose values no receipt opens: lists of companies are inside information, and the asker holds the
receipt; lists of erased records tie a person's records together. They stay in the log's private half, for
auditors."""


class Event(Protocol):
    """What a record can be about."""

    KINDS: ClassVar[tuple[RecordKind, ...]]
    """The kinds of record that this is the event of."""
    COMMITS: ClassVar[tuple[str, ...]]
    """What may be committed to beside it."""

    @property
    def kind(self) -> RecordKind:
        """Which of these it is."""

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Read what :meth:`to_json` returns; InvalidArgument or KeyError for anything else."""
