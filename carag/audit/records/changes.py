"""Define the events that record changes in what answers depend on: documents, policy table, models, index, backend.

Each record of a change names the new and the previous value, so that a reader of the log knows without a gap which
values were in use. An evaluation records that these were tested, with the thresholds and the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from carag.audit.records.access import Models
from carag.audit.records.codec import Code, Count, Digest, Fields, Key, Label, Micro, Name, Number
from carag.audit.records.event import Event
from carag.audit.records.kinds import RecordKind
from carag.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest(Event):
    """Documents or labels were added or changed.

    Parameters
    ----------
    started, ended : int
        Microseconds since 1970 UTC.
    documents, chunks, quarantined : int
        Documents and chunks added, and documents quarantined.
    rows : int
        Number of rows in the index afterwards.
    snapshot : bytes
        Root hash of the index state afterwards.
    table : bytes
        SHA-256 of the role and purpose table in force.
    embed : str or None
        The embedding model.
    why : str
        A stable code, such as ``"INGESTED"``.
    """

    started: Annotated[Count, Key("t0")]
    ended: Annotated[Count, Key("t1")]
    documents: Count
    chunks: Count
    quarantined: Count
    rows: Count
    snapshot: Digest
    table: Digest
    embed: Label | None
    why: Code

    KINDS: ClassVar = (RecordKind.INGEST,)
    COMMITS: ClassVar = ("subject",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange(Event):
    """The role and purpose table has changed.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC.
    table : bytes
        SHA-256 of the table.
    before : bytes or None
        SHA-256 of the previous table; ``None`` for the first.
    """

    at: Count
    table: Digest
    before: Digest | None
    why: Code

    KINDS: ClassVar = (RecordKind.POLICY,)
    COMMITS: ClassVar = ("subject",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange(Event):
    """Models, prompts or thresholds have changed.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC.
    gate, before_gate : int
        Similarity below which a question is declined, in millionths.
    before : Models or None
        ``None`` for the first.
    """

    at: Count
    models: Models
    gate: Micro
    before: Models | None
    before_gate: Micro | None
    why: Code

    KINDS: ClassVar = (RecordKind.MODEL,)
    COMMITS: ClassVar = ("subject",)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange(Event):
    """The index state changed without an ingest: its format changed, it was rebuilt, or it was altered externally.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC.
    snapshot, before : bytes
        Root hashes of the index state and of the last recorded state.
    rows : int
        Number of rows in the index.
    """

    at: Count
    snapshot: Digest
    before: Digest
    rows: Count
    why: Code

    KINDS: ClassVar = (RecordKind.INDEX,)
    COMMITS: ClassVar = ("subject",)


@dataclass(frozen=True, slots=True)
class RowsIn(Fields):
    """A backend that holds a store's rows.

    Parameters
    ----------
    name : str
        The backend's kind; for the new place, also its version.
    collection : str
        The rows within it; never an address or a credential.
    epoch : int
        The backend's last epoch when the rows were compared, or when the store last wrote there.
    """

    name: Label
    collection: Label
    epoch: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Move(Event):
    """A store's rows are now searched in another place, where they were first compared with those of the store.

    The record is written before the store notes the new place. A run that was killed in between is repeated, and so is
    its record; later answers, each of which names the backend that was searched, show which of the two took effect.
    They also show a place that was filled again from the store without comparison, as when the native index is opened
    again.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC.
    before, after : RowsIn or None
        ``None`` for the index of the process that answers; not both.
    root : bytes
        The rows' state root, to which both the new place and the store itself led.
    """

    at: Count
    before: RowsIn | None
    after: RowsIn | None
    rows: Count
    root: Digest
    why: Code

    KINDS: ClassVar = (RecordKind.MOVE,)
    COMMITS: ClassVar = ("subject",)

    def _check(self) -> None:
        if self.before is None and self.after is None:
            raise InvalidArgument(
                "rows cannot move from the index to the index; want a backend on at least one side"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange(Event):
    """Memberships of groups are about to change, by an import that the record commits to.

    The record is written before the change takes effect, and the change only if that succeeds. A run that was killed in
    between is repeated, and so is its record; later answers, each of which names the memberships that it rests on, show
    which of the two took effect.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC: the instant from which the store knows the change.
    opened, closed : int
        Memberships that begin to be known, and that no longer are; one with another window than before is both.
    added : int
        Groups stated for the first time.
    """

    at: Count
    opened: Count
    closed: Count
    added: Count
    why: Code

    KINDS: ClassVar = (RecordKind.GROUPS,)
    COMMITS: ClassVar = ("statement", "subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Event):
    """A suite of questions or checks was run.

    Parameters
    ----------
    started, ended : int
        Microseconds since 1970 UTC.
    suite : str
        Name of the suite, a code.
    suite_hash : bytes
        SHA-256 of its questions and settings.
    snapshot : bytes
        Root hash of the tested index state.
    table : bytes
        SHA-256 of the role and purpose table in force.
    thresholds : mapping of str to int
        Required results by measure: integers, such as millionths.
    result : bytes
        SHA-256 of the whole result, which is stored elsewhere.
    """

    started: Annotated[Count, Key("t0")]
    ended: Annotated[Count, Key("t1")]
    suite: Code
    suite_hash: Digest
    snapshot: Digest
    table: Digest
    result: Digest
    passed: bool
    thresholds: Mapping[Name, Number] = field(default_factory=dict)

    KINDS: ClassVar = (RecordKind.EVALUATION,)
    COMMITS: ClassVar = ("subject",)
