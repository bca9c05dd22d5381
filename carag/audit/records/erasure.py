"""Define the `erasure` event: committed values were destroyed, and on which legal basis.

The event names the affected records or, if they are one person's, only their number: a list would permanently link a
person's records together. The record commits to the list, so that an operator can show which they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog import encoding
from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.audit.tlog.encoding import Json

__all__ = ["Basis", "Erasure", "Target", "read_targets", "write_targets"]


class Target(NamedTuple):
    """One value to erase: that of the commitment ``field`` of record ``seq``."""

    seq: int
    field: str


class Basis(StrEnum):
    """The legal basis of an erasure. The first two yield to a duty to keep the values, the others do not."""

    REQUEST = "GDPR_17_1"
    """The person requests it, or withdraws consent: GDPR Art. 17(1)(a) to (c); yields to Art. 17(3)(b)."""
    STORAGE_LIMIT = "GDPR_5_1_E"
    """The values are no longer needed: GDPR Art. 5(1)(e)."""
    UNLAWFUL = "GDPR_17_1_D"
    """The values should never have been recorded: GDPR Art. 17(1)(d)."""
    LEGAL_OBLIGATION = "GDPR_17_1_E"
    """A law, or a court or authority under a law, orders it: GDPR Art. 17(1)(e), 58(2)(g)."""

    @property
    def waits(self) -> bool:
        """Whether a duty to keep the values has priority."""
        return self in (Basis.REQUEST, Basis.STORAGE_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Committed values were destroyed. The record commits to the two people who did it and to the list of values.

    Parameters
    ----------
    count : int
        Number of records that lost a value.
    fields : tuple of str
        Names of the commitments that can no longer be opened.
    records : tuple of int
        The records; empty if they are one person's, or too many to name.
    """

    basis: Basis
    count: int
    fields: tuple[str, ...]
    records: tuple[int, ...] = ()

    kind: ClassVar = RecordKind.ERASURE
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.ERASURE,)
    COMMITS: ClassVar[tuple[str, ...]] = ("actor", "approver", "targets")

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", _fields.member(Basis, self.basis))
        _fields.integer("erased records", self.count, 1)
        for name in self.fields:
            _fields.code("erased field", name)
        if not self.fields or list(self.fields) != sorted(set(self.fields)):
            raise InvalidArgument(f"erased fields are {quoted(self.fields)}; want each once, in order")
        for seq in self.records:
            _fields.integer("erased record", seq, 0)
        if list(self.records) != sorted(set(self.records)) or len(self.records) not in (0, self.count):
            raise InvalidArgument("the erased records must be as many as counted, each named once, ascending")

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "basis": self.basis.value,
            "count": int(self.count),
            "fields": list(self.fields),
            "records": [int(seq) for seq in self.records],
        }

    @classmethod
    def from_json(cls, fields: Any) -> Erasure:
        """Read the JSON form."""
        return cls(
            basis=fields["basis"],
            count=fields["count"],
            fields=tuple(fields["fields"]),
            records=tuple(fields["records"]),
        )


def write_targets(targets: Iterable[Target]) -> str:
    """Write the list that an erasure record commits to."""
    return encoding.encode([list(target) for target in targets]).decode()


def read_targets(text: str) -> list[Target]:
    """Read the list that an erasure record commits to."""
    return [Target(seq, field) for seq, field in encoding.decode(text.encode())]
