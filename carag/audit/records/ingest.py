"""Define the `ingest` event: documents or labels were added or changed, so that searches find other passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import Json, b64url, unb64url

__all__ = ["Ingest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """Documents or labels were added or changed.

    Parameters
    ----------
    started, ended : int
        Microseconds since 1970 UTC.
    documents, chunks, quarantined : int
        Documents and chunks added, and documents quarantined.
    rows : int
        Number of rows in the index afterwards.
    snapshot : bytes
        Root hash of the index state afterwards.
    table : bytes
        SHA-256 of the role and purpose table in force.
    embed : str or None
        The embedding model.
    why : str
        A stable code, such as ``"INGESTED"``.
    """

    started: int
    ended: int
    documents: int
    chunks: int
    quarantined: int
    rows: int
    snapshot: bytes
    table: bytes
    embed: str | None
    why: str

    kind: ClassVar = RecordKind.INGEST
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.INGEST,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        for name in ("started", "ended", "documents", "chunks", "quarantined", "rows"):
            _fields.integer(name, getattr(self, name), 0)
        _fields.digest("index snapshot", self.snapshot)
        _fields.digest("policy table hash", self.table)
        if self.embed is not None:
            _fields.label("embed", self.embed)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "chunks": int(self.chunks),
            "documents": int(self.documents),
            "embed": self.embed,
            "quarantined": int(self.quarantined),
            "rows": int(self.rows),
            "snapshot": b64url(self.snapshot),
            "t0": int(self.started),
            "t1": int(self.ended),
            "table": b64url(self.table),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> Ingest:
        """Read the JSON form."""
        return cls(
            started=fields["t0"],
            ended=fields["t1"],
            documents=fields["documents"],
            chunks=fields["chunks"],
            quarantined=fields["quarantined"],
            rows=fields["rows"],
            snapshot=unb64url(fields["snapshot"], _fields.DIGEST_SIZE),
            table=unb64url(fields["table"], _fields.DIGEST_SIZE),
            embed=fields["embed"],
            why=fields["why"],
        )
