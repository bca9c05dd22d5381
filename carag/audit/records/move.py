"""Define the `move` event: a copy of a store's rows was compared with the store, and is searched from now on.

It is written before the store notes the new place. A run that was killed in between is repeated, and so is its record;
the answers after it, each of which names the backend that was searched, show which of the two took effect. They also
show a place that was filled again from the store without comparison, as when the native index is opened again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Move", "RowsIn"]


@dataclass(frozen=True, slots=True)
class RowsIn:
    """A backend that holds a store's rows.

    Parameters
    ----------
    name : str
        Its kind; for the new place also its version.
    collection : str
        The rows within it; never an address or a credential.
    epoch : int
        Its last epoch when the rows were compared, or when the store last wrote there.
    """

    name: str
    collection: str
    epoch: int

    def __post_init__(self) -> None:
        _fields.label("backend", self.name)
        _fields.label("collection", self.collection)
        _fields.integer("epoch", self.epoch, 0)

    def to_json(self) -> Json:
        """Return the JSON form."""
        return {"collection": self.collection, "epoch": int(self.epoch), "name": self.name}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read the JSON form."""
        return cls(fields["name"], fields["collection"], fields["epoch"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A store's rows are searched in another place.

    Parameters
    ----------
    at : int
        Microseconds since 1970 UTC.
    before, after : RowsIn or None
        ``None`` for the index of the process that answers; not both.
    root : bytes
        Their state root, which the new place and the store itself led to.
    """

    at: int
    before: RowsIn | None
    after: RowsIn | None
    rows: int
    root: bytes
    why: str

    kind: ClassVar = RecordKind.MOVE
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.MOVE,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        _fields.integer("at", self.at, 0)
        if self.before is None and self.after is None:
            raise InvalidArgument(
                "rows cannot move from the index to the index; want a backend on at least one side"
            )
        _fields.integer("rows", self.rows, 0)
        _fields.digest("state root", self.root)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "after": None if self.after is None else self.after.to_json(),
            "at": int(self.at),
            "before": None if self.before is None else self.before.to_json(),
            "root": b64url(self.root),
            "rows": int(self.rows),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Read the JSON form."""
        before, after = (
            None if fields[name] is None else RowsIn.from_json(fields[name]) for name in ("before", "after")
        )
        root = unb64url(fields["root"], _fields.DIGEST_SIZE)
        return cls(
            at=fields["at"], before=before, after=after, rows=fields["rows"], root=root, why=fields["why"]
        )
