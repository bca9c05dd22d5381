"""Define the `denial` event: tokens were refused because they were forged, had expired or were for others.

Who it was is not known, for nothing a refused token says can be believed; so nothing of it is recorded, neither as it
stands nor as a hash. Many of one kind are one record with their number, because strangers must not be able to fill
the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["Denial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Tokens refused for one reason.

    Parameters
    ----------
    first, last : int
        When, in microseconds since 1970 UTC.
    count : int
        How many.
    why : str
        A stable code, such as ``"TOKEN_SIGNATURE"``.
    issuer, audience : str or None
        Whose tokens are believed here and for whom they must be; what the refused ones said is not recorded.
    """

    first: int
    last: int
    count: int
    why: str
    issuer: str | None = None
    audience: str | None = None

    kind: ClassVar = RecordKind.DENIAL
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.DENIAL,)
    COMMITS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _fields.integer("first", self.first, 0)
        _fields.integer("last", self.last, 0)
        _fields.integer("count", self.count, 1)
        if self.first > self.last or (self.count == 1 and self.first != self.last):
            raise InvalidArgument(
                f"{self.count} denials from {self.first} to {self.last}; want first <= last, and one instant for one"
            )
        _fields.code("why", self.why)
        for name in ("issuer", "audience"):
            if getattr(self, name) is not None:
                _fields.label(name, getattr(self, name))

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {
            "audience": self.audience,
            "count": int(self.count),
            "issuer": self.issuer,
            "t0": int(self.first),
            "t1": int(self.last),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Denial:
        """Read what :meth:`to_json` returns."""
        return cls(
            first=fields["t0"],
            last=fields["t1"],
            count=fields["count"],
            why=fields["why"],
            issuer=fields["issuer"],
            audience=fields["audience"],
        )
