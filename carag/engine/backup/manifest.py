"""State in ``manifest.json`` what a backup holds: its files with size and SHA-256, and the checkpoint of its log.

::

    {"checkpoint": "...",              the newest signed checkpoint of audit.db
     "files":      [{"name": "audit.db", "sha256": "...", "size": 4096}, ...],
     "format":     "carag-backup/v1",
     "keys":       [{"name": "audit.key", "sha256": "...", "size": 110}, ...],
     "made":       1763755557000000}   microseconds since 1970 UTC

Canonical JSON and one newline, written last: a directory without it is not a backup. Index, words and state are made
from ``corpus.db`` again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from carag.audit.tlog import encoding
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.note import Note
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from carag.audit.tlog.encoding import Json


FORMAT: Final = "carag-backup/v1"
MANIFEST: Final = "manifest.json"
KEYS: Final = ("audit.key", "private.key")
"""Key files, kept apart from the data: one signs a store's log, one opens its private values."""
NEEDED: Final = frozenset({"audit.db", "private.db", "corpus.db", "vkey"})
"""Files that every backup has."""
ANCHORS: Final = "anchors"
"""The directory with the evidence from anchors."""
_MAX_BYTES: Final = 64 << 20
"""Greatest size of a manifest: about 300,000 pieces of evidence, each a file."""
_PIECE: Final = 1 << 20
"""Bytes copied at a time."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_KNOWN: Final = re.compile(
    r"audit\.db|private\.db|audit\.key|private\.key|corpus\.db|jobs\.db|vkey|evidence\.url|anchors/\d{20}-[a-z0-9]+-[0-9a-f]{8}"
)
"""Anything else in a manifest, including a path that leaves the directory, was not written by a backup."""


class Held(NamedTuple):
    """One file of a backup."""

    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Held:
        """Read a file that nothing is writing."""
        with path.open("rb") as file:
            return cls(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)

    @classmethod
    def of_bytes(cls, data: bytes) -> Held:
        """Hash data in memory."""
        return cls(hashlib.sha256(data).hexdigest(), len(data))


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds: checkpoint of its log, files by path, keys by name; ``made`` in microseconds since 1970."""

    checkpoint: str
    files: Mapping[str, Held]
    keys: Mapping[str, Held]
    made: int

    @property
    def tree(self) -> Checkpoint:
        """Origin, size and root of its log."""
        return Checkpoint.parse(Note.parse(self.checkpoint).text)

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        fields: dict[str, Json] = {
            "checkpoint": self.checkpoint,
            "files": _listed(self.files),
            "format": FORMAT,
            "keys": _listed(self.keys),
            "made": self.made,
        }
        return encoding.encode(fields) + b"\n"

    @classmethod
    def read(cls, backup: Path) -> Self:
        """Read the manifest of a backup, and check that exactly the files it names are there."""
        path = backup / MANIFEST
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            raise InvalidArgument(
                f"{backup} is not a backup: {path.name} cannot be read ({error.strerror}); name what carag backup made"
            ) from error
        try:
            found = cls._parsed(data)
        except CorruptFile as error:
            raise CorruptFile(f"{path} is not a valid manifest: {error}; take another backup") from error
        there = {one.relative_to(backup).as_posix() for one in backup.rglob("*") if not one.is_dir()}
        if there != {*found.files, MANIFEST}:
            odd = sorted(there ^ {*found.files, MANIFEST})
            raise CorruptFile(
                f"{backup} does not hold exactly the files of its manifest: {quoted(odd[0])} is missing or was "
                "added; take "
                "another backup"
            )
        return found

    @classmethod
    def _parsed(cls, data: bytes) -> Self:
        if len(data) > _MAX_BYTES or not data.endswith(b"\n"):
            raise CorruptFile("it is too long, or does not end in a newline")
        fields: Any = encoding.decode(data[:-1])
        match fields:
            case {
                "checkpoint": str(checkpoint),
                "files": list(files),
                "format": "carag-backup/v1",
                "keys": list(keys),
                "made": int(made),
                **rest,
            } if not rest:
                pass
            case _:
                raise CorruptFile(f"it does not have the format {FORMAT}")
        held, secret = (dict(_held(one) for one in listed) for listed in (files, keys))
        if (
            len(held) < len(files)
            or not held.keys() >= NEEDED
            or held.keys() & set(KEYS)
            or set(secret) != set(KEYS)
        ):
            raise CorruptFile(
                "it names a file twice, or lacks one that every backup has, or names a key as data"
            )
        found = cls(checkpoint, held, secret, made)
        _ = found.tree
        return found


def copied(source: Path, target: Path) -> Held:
    """Copy a file that nothing is writing, durably, readable by its owner only."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as reading, os.fdopen(descriptor, "wb") as writing:
        shutil.copyfileobj(reading, writing, _PIECE)
        writing.flush()
        os.fsync(writing.fileno())
    return Held.of(target)


def _listed(files: Mapping[str, Held]) -> list[Json]:
    return [{"name": name, "sha256": one.sha256, "size": one.size} for name, one in files.items()]


def _held(one: Any) -> tuple[str, Held]:
    match one:
        case {"name": str(name), "sha256": str(sha256), "size": int(size), **rest} if (
            not rest and size >= 0 and _DIGEST.fullmatch(sha256) and _KNOWN.fullmatch(name)
        ):
            return name, Held(sha256, size)
    raise CorruptFile(
        f"it names {quoted(one)}, which does not belong in a backup, or lacks its size and SHA-256"
    )
