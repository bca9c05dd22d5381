"""Define the `policy`, `model` and `index` events: the policy table, the models or the index state has changed.

Each record names the new and the previous value, so that a reader of the log knows without a gap which were in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.access import Models
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import b64url, unb64url

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["IndexChange", "ModelChange", "PolicyChange"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
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

    at: int
    table: bytes
    before: bytes | None
    why: str

    kind: ClassVar = RecordKind.POLICY
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.POLICY,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        _fields.integer("at", self.at, 0)
        _fields.digest("policy table hash", self.table)
        if self.before is not None:
            _fields.digest("hash of the table before", self.before)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {"at": int(self.at), "before": _b64(self.before), "table": b64url(self.table), "why": self.why}

    @classmethod
    def from_json(cls, fields: Any) -> PolicyChange:
        """Read the JSON form."""
        table = unb64url(fields["table"], _fields.DIGEST_SIZE)
        return cls(at=fields["at"], table=table, before=_digest(fields["before"]), why=fields["why"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
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

    at: int
    models: Models
    gate: int
    before: Models | None
    before_gate: int | None
    why: str

    kind: ClassVar = RecordKind.MODEL
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.MODEL,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        _fields.integer("at", self.at, 0)
        _fields.integer("gate in millionths", self.gate, -_fields.MILLION, _fields.MILLION)
        if self.before_gate is not None:
            _fields.integer("gate before, in millionths", self.before_gate, -_fields.MILLION, _fields.MILLION)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "at": int(self.at),
            "before": None if self.before is None else self.before.to_json(),
            "before_gate": None if self.before_gate is None else int(self.before_gate),
            "gate": int(self.gate),
            "models": self.models.to_json(),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> ModelChange:
        """Read the JSON form."""
        before = fields["before"]
        return cls(
            at=fields["at"],
            models=Models.from_json(fields["models"]),
            gate=fields["gate"],
            before=None if before is None else Models.from_json(before),
            before_gate=fields["before_gate"],
            why=fields["why"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange:
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

    at: int
    snapshot: bytes
    before: bytes
    rows: int
    why: str

    kind: ClassVar = RecordKind.INDEX
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.INDEX,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        _fields.integer("at", self.at, 0)
        _fields.integer("rows", self.rows, 0)
        _fields.digest("index snapshot", self.snapshot)
        _fields.digest("index snapshot before", self.before)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "at": int(self.at),
            "before": b64url(self.before),
            "rows": int(self.rows),
            "snapshot": b64url(self.snapshot),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> IndexChange:
        """Read the JSON form."""
        snapshot, before = (unb64url(fields[name], _fields.DIGEST_SIZE) for name in ("snapshot", "before"))
        return cls(at=fields["at"], snapshot=snapshot, before=before, rows=fields["rows"], why=fields["why"])


def _b64(digest: bytes | None) -> str | None:
    return None if digest is None else b64url(digest)


def _digest(text: object) -> bytes | None:
    return None if text is None else unb64url(text, _fields.DIGEST_SIZE)
