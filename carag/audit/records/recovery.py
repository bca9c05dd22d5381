"""Define the `recovery` event: work that a crash left unfinished, or the log's files were backed up or put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind

if TYPE_CHECKING:
    from carag.audit.tlog.encoding import Json

__all__ = ["Recovery"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """Unfinished work was found when the log was opened, or its files were filled, backed up or restored.

    Parameters
    ----------
    why : str
        A stable code for the work; a restore adds the number of records, as ``RESTORED:17``.
    begins : tuple of int
        Sequence numbers of begin records without an end: a remote model may have been called.
    """

    why: str
    begins: tuple[int, ...] = ()

    kind: ClassVar = RecordKind.RECOVERY
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.RECOVERY,)
    COMMITS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _fields.code("why", self.why)
        for seq in self.begins:
            _fields.integer("begin record", seq, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        begins: dict[str, Json] = {"begins": [int(seq) for seq in self.begins]} if self.begins else {}
        return {"why": self.why, **begins}

    @classmethod
    def from_json(cls, fields: Any) -> Recovery:
        """Read the JSON form."""
        return cls(fields["why"], tuple(fields.get("begins", ())))
