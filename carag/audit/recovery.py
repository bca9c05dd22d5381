"""The log itself had unfinished business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit import _fields
from carag.audit.kinds import RecordKind

if TYPE_CHECKING:
    from carag.audit.canonical import Json

__all__ = ["Recovery"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """The log found unfinished business when it was opened; ``why`` says which."""

    why: str

    kind: ClassVar = RecordKind.RECOVERY
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.RECOVERY,)
    COMMITS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the form that is encoded."""
        return {"why": self.why}

    @classmethod
    def from_json(cls, fields: Any) -> Recovery:
        """Read what :meth:`to_json` returns."""
        return cls(fields["why"])
