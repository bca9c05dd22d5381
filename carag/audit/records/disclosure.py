"""Define the `disclosure` event: a person opened a record's private values, or tried to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from carag.audit.records import _fields
from carag.audit.records.kinds import Outcome, RecordKind
from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["OPENERS", "Disclosure"]

OPENERS: Final = ("auditor", "privacy_officer")
"""The roles that may open private values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """A person opened a record's private values, or tried to.

    Parameters
    ----------
    fields : tuple of str
        The fields asked for; empty means all.
    role : str or None
        ``None`` if the role may not open any.
    outcome : Outcome
        ANSWER or REFUSE.
    why : str
        The purpose, as a code.
    """

    record: int
    fields: tuple[str, ...]
    role: str | None
    outcome: Outcome
    why: str

    kind: ClassVar = RecordKind.DISCLOSURE
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.DISCLOSURE,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor",)

    def __post_init__(self) -> None:
        _fields.integer("opened record", self.record, 0)
        for name in self.fields:
            _fields.code("opened field", name)
        object.__setattr__(self, "outcome", _fields.member(Outcome, self.outcome))
        if (self.outcome is Outcome.ANSWER) != (self.role in OPENERS) or self.outcome not in (
            Outcome.ANSWER,
            Outcome.REFUSE,
        ):
            raise InvalidArgument(f"{' or '.join(OPENERS)} may open values, all other roles are refused")
        if self.outcome is Outcome.REFUSE and self.role is not None:
            raise InvalidArgument(
                f"a refused role is {quoted(self.role)}; want None, because it was not verified"
            )
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "fields": list(self.fields),
            "outcome": self.outcome.value,
            "record": int(self.record),
            "role": self.role,
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Disclosure:
        """Read the JSON form."""
        return cls(
            record=fields["record"],
            fields=tuple(fields["fields"]),
            role=fields["role"],
            outcome=fields["outcome"],
            why=fields["why"],
        )
