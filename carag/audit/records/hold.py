"""Define the `hold` event: a legal hold was placed or released (GDPR Art. 17(3)(e))."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["Hold", "HoldAction", "HoldScope"]


class HoldAction(StrEnum):
    """Whether a hold was placed or released."""

    PLACED = "placed"
    RELEASED = "released"


class HoldScope(StrEnum):
    """The values that a hold covers."""

    ALL = "all"
    RECORDS = "records"
    SUBJECT = "subject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold was placed or released.

    Parameters
    ----------
    matter : str
        A code for the matter; no names.
    scope : HoldScope
        With SUBJECT, the record commits to the subject.
    first, last : int or None
        Range of records, with RECORDS.
    placed : int or None
        The record that placed the hold, if it is released.
    """

    action: HoldAction
    matter: str
    scope: HoldScope
    first: int | None = None
    last: int | None = None
    placed: int | None = None

    kind: ClassVar = RecordKind.HOLD
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.HOLD,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor", "approver", "subject")

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", _fields.member(HoldAction, self.action))
        object.__setattr__(self, "scope", _fields.member(HoldScope, self.scope))
        _fields.code("matter", self.matter)
        ranged = self.scope is HoldScope.RECORDS
        for name in ("first", "last"):
            if ranged:
                _fields.integer(f"{name} record", getattr(self, name), 0)
            elif getattr(self, name) is not None:
                raise InvalidArgument(f"a hold on {self.scope} must not name records")
        if ranged and (self.first or 0) > (self.last or 0):
            raise InvalidArgument(
                f"records {self.first} to {self.last} are not a range; want the lower number first"
            )
        if (self.action is HoldAction.RELEASED) != (self.placed is not None):
            raise InvalidArgument("a release must name the record that placed the hold, a placement must not")
        if self.placed is not None:
            _fields.integer("placing record", self.placed, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "action": self.action.value,
            "first": self.first,
            "last": self.last,
            "matter": self.matter,
            "placed": self.placed,
            "scope": self.scope.value,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Hold:
        """Read the JSON form."""
        names = ("action", "first", "last", "matter", "placed", "scope")
        return cls(**{name: fields[name] for name in names})
