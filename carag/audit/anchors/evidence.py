"""Store evidence that anchors confirmed checkpoints: one file per confirmation, in ``anchors/`` of a log's directory.

::

    {"checkpoint": "...",               the signed note, with cosignatures if it has any
     "format":     "carag-anchor/v1",
     "kind":       "s3" | "tsa" | "witness",
     "place":      "s3://bucket/prefix",  address of the anchor
     "proof":      {...},               specific to the kind: a timestamp token, an object's version, ...
     "seen":       1763755557000000}    when the anchor saw it by its own clock, microseconds since 1970 UTC

Canonical JSON and one newline; the log's ``anchor`` record pins its SHA-256. Files are named
``<size, 20 digits>-<kind>-<8 hex digits of the place's hash>``, so the newest sorts last.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from carag.audit._files import sync_directory, write_atomically
from carag.audit.records import _fields
from carag.audit.tlog import encoding
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.log_verifier import signed_by_known
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from carag.audit.tlog.encoding import Json
    from carag.audit.tlog.note import NoteKey


EVIDENCE_FORMAT: Final = "carag-anchor/v1"
"""Name and version of the format."""
MAX_EVIDENCE_BYTES: Final = 1 << 20
"""Largest size of an evidence file."""
_NAME: Final = re.compile(r"(\d{20})-([a-z0-9]+)-([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One confirmation of one checkpoint.

    Parameters
    ----------
    proof : mapping
        Proof specific to the kind.
    seen : int
        Microseconds since 1970 UTC, by the anchor's clock.
    """

    kind: str
    place: str
    checkpoint: Note
    seen: int
    proof: Mapping[str, Json] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _fields.code("kind", self.kind)
        _fields.integer("seen", self.seen, 0)

    @property
    def tree(self) -> Checkpoint:
        """The checkpoint's origin, size and root."""
        return Checkpoint.parse(self.checkpoint.text)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the file, which the log's record holds."""
        return hashlib.sha256(self.to_bytes()).digest()

    @property
    def name(self) -> str:
        """The file's name."""
        place = hashlib.sha256(self.place.encode()).hexdigest()[:8]
        return f"{self.tree.size:020d}-{self.kind}-{place}"

    def to_bytes(self) -> bytes:
        """Write the file."""
        fields: dict[str, Json] = {
            "checkpoint": self.checkpoint.to_text(),
            "format": EVIDENCE_FORMAT,
            "kind": self.kind,
            "place": self.place,
            "proof": self.proof,
            "seen": int(self.seen),
        }
        return encoding.encode(fields) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Evidence:
        """Read the file; CorruptFile if it is not evidence in its canonical form."""
        if len(data) > MAX_EVIDENCE_BYTES or not data.endswith(b"\n"):
            raise CorruptFile(f"evidence has at most {MAX_EVIDENCE_BYTES} bytes and ends in a newline")
        fields: Any = encoding.decode(data[:-1])
        match fields:
            case {
                "checkpoint": str(checkpoint),
                "format": "carag-anchor/v1",
                "kind": str(kind),
                "place": str(place),
                "proof": dict(proof),
                "seen": int(seen),
                **rest,
            } if not rest:
                pass
            case _:
                raise CorruptFile(f"not evidence of format {EVIDENCE_FORMAT}")
        try:
            evidence = cls(kind, place, Note.parse(checkpoint), seen, proof)
        except InvalidArgument as error:
            raise CorruptFile(f"not evidence: {error}") from error
        Checkpoint.parse(evidence.checkpoint.text)
        return evidence

    def check_signed(self, keys: Sequence[NoteKey]) -> Checkpoint:
        """Check that the log signed the checkpoint; the anchor's ``confirm`` checks the proof.

        Raises
        ------
        CorruptFile
            If none of the keys signed it, or a signature by one of them is not valid.
        """
        if not signed_by_known(self.checkpoint, keys):
            raise CorruptFile(f"the checkpoint confirmed at {self.place} is not signed by {keys[0].name}")
        if self.tree.origin != keys[0].name:
            raise CorruptFile(
                f"the checkpoint confirmed at {self.place} belongs to the log {self.tree.origin}"
            )
        return self.tree


class Shelf:
    """The directory of evidence, created if it is missing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            if not directory.exists():
                directory.mkdir(mode=0o700)
                sync_directory(directory.parent)
        except OSError as error:
            raise AuditUnavailable(f"{directory} cannot be created: {error}") from error

    def put(self, evidence: Evidence) -> None:
        """Store a confirmation durably."""
        try:
            write_atomically(self.directory / evidence.name, evidence.to_bytes())
        except OSError as error:
            raise AuditUnavailable(f"{self.directory} cannot be written: {error}") from error

    def newest(self) -> Evidence | None:
        """Return the confirmation of the largest tree."""
        return next(iter(self), None)

    def __iter__(self) -> Iterator[Evidence]:
        for name in sorted(self._names(), reverse=True):
            path = self.directory / name
            try:
                evidence = Evidence.parse(path.read_bytes())
            except CorruptFile as error:
                raise CorruptFile(f"{path}: {error}") from error
            except OSError as error:
                raise AuditUnavailable(f"{path} cannot be read: {error}") from error
            if evidence.name != name:
                raise CorruptFile(
                    f"{path} holds evidence that belongs in {evidence.name}; restore it from a copy"
                )
            yield evidence

    def _names(self) -> list[str]:
        try:
            return [path.name for path in self.directory.iterdir() if _NAME.fullmatch(path.name)]
        except OSError as error:
            raise AuditUnavailable(f"{self.directory} cannot be read: {error}") from error
