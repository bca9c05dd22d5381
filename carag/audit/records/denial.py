"""Define the `denial` event: tokens were refused because they were forged, expired or for another audience.

No claim of a refused token can be trusted, so nothing of it is recorded, not even as a hash. Many refusals of one kind
are one record with their number, so that strangers cannot fill the log.
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
    """Tokens that were refused for one reason.

    Parameters
    ----------
    first, last : int
        Times of the first and the last, in microseconds since 1970 UTC.
    why : str
        A stable code, such as ``"TOKEN_SIGNATURE"``.
    issuer, audience : str or None
        Issuer and audience that the verifier accepts; those of the refused tokens are not recorded.
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
                f"{self.count} denials from {self.first} to {self.last}; want first <= last, equal for one denial"
            )
        _fields.code("why", self.why)
        for name in ("issuer", "audience"):
            if getattr(self, name) is not None:
                _fields.label(name, getattr(self, name))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
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
        """Read the JSON form."""
        return cls(
            first=fields["t0"],
            last=fields["t1"],
            count=fields["count"],
            why=fields["why"],
            issuer=fields["issuer"],
            audience=fields["audience"],
        )
