"""Define the `begin` event: a request is about to disclose question and passages to a remote model.

The record of a request is written when its answer is known, so a process that crashes after calling a remote model
would have disclosed question and passages without a record. Therefore a begin record becomes durable before the call,
and the request's own record names it. Begin records without an end are reported by a recovery record when the log is
next opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.access import Models
from carag.audit.records.kinds import RecordKind, SessionSource
from carag.audit.records.policy_applied import PolicyApplied
from carag.limits import MAX_MINUTE

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["Begin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A remote model is about to be called. The record commits to question and subject.

    The fields are those of :class:`Access`; ``policy`` is the one that admits the passages given to the model.
    """

    started: int
    role: str | None
    purpose: str | None
    source: SessionSource
    as_of: int
    policy: PolicyApplied
    models: Models

    kind: ClassVar = RecordKind.BEGIN
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.BEGIN,)
    COMMITS: ClassVar[tuple[str, ...]] = ("query", "subject")

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _fields.member(SessionSource, self.source))
        _fields.integer("started", self.started, 0)
        _fields.integer("as_of", self.as_of, 0, MAX_MINUTE)
        for name in ("role", "purpose"):
            if getattr(self, name) is not None:
                _fields.code(name, getattr(self, name))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "as_of": int(self.as_of),
            "models": self.models.to_json(),
            "policy": self.policy.to_json(),
            "purpose": self.purpose,
            "role": self.role,
            "source": self.source.value,
            "t0": int(self.started),
        }

    @classmethod
    def from_json(cls, fields: Any) -> Begin:
        """Read the JSON form."""
        return cls(
            started=fields["t0"],
            role=fields["role"],
            purpose=fields["purpose"],
            source=fields["source"],
            as_of=fields["as_of"],
            policy=PolicyApplied.from_json(fields["policy"]),
            models=Models.from_json(fields["models"]),
        )
