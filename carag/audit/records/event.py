"""Define the base of events: kind, names of commitments, and the fields of each class.

An event holds what the caller of the log knows about one request or one change; the log wraps it into a record
(:mod:`carag.audit.records.record`). It must not contain personal data or free text, because a record is kept for years
and never altered: values that name people are committed to, reasons are codes, and a role or purpose that is not in the
policy table is ``None``, not the text that was typed.
"""

from typing import ClassVar, Final

from carag.audit.records.codec import Fields
from carag.audit.records.kinds import RecordKind

UNDISCLOSED: Final = frozenset({"authority", "conversation", "entities", "principals", "targets"})
"""Commitments whose values no receipt contains, because the asker holds the receipt: lists of companies are inside
information, an authority's verdicts name documents, and principals, a conversation and lists of erased records link
records together. Their values stay sealed, for auditors."""


class Event(Fields):
    """The event of a record."""

    __slots__ = ()

    KINDS: ClassVar[tuple[RecordKind, ...]]
    """The kinds of record that may have this event."""
    COMMITS: ClassVar[tuple[str, ...]] = ()
    """Names of the commitments that such a record may have."""

    @property
    def kind(self) -> RecordKind:
        """The kind of this event."""
        return self.KINDS[0]
