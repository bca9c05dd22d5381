"""Define the `anchor` event: an anchor confirmed a checkpoint of this log, with the digest of the evidence.

The evidence itself is in ``anchors/`` of the log's directory: it can be lost but not exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import Json, b64url, unb64url

__all__ = ["Anchored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """An anchor confirmed a checkpoint.

    Parameters
    ----------
    anchor : str
        The kind: ``"s3"``, ``"tsa"``, ``"witness"``.
    size : int
        Number of records that the confirmed checkpoint covers.
    evidence : bytes
        SHA-256 of the evidence file.
    seen : int
        Microseconds since 1970 UTC, by the anchor's clock.
    """

    anchor: str
    size: int
    evidence: bytes
    seen: int

    kind: ClassVar = RecordKind.ANCHOR
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.ANCHOR,)
    COMMITS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _fields.code("anchor", self.anchor)
        _fields.integer("anchored size", self.size, 0)
        _fields.digest("evidence digest", self.evidence)
        _fields.integer("seen", self.seen, 0)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "anchor": self.anchor,
            "evidence": b64url(self.evidence),
            "seen": int(self.seen),
            "size": int(self.size),
        }

    @classmethod
    def from_json(cls, fields: Any) -> Anchored:
        """Read the JSON form."""
        return cls(
            anchor=fields["anchor"],
            size=fields["size"],
            evidence=unb64url(fields["evidence"], _fields.DIGEST_SIZE),
            seen=fields["seen"],
        )
