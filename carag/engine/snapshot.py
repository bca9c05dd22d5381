"""Hold a store's databases at one instant while their writer goes on writing, and state what was copied from them.

Snapshots are taken in the reverse of the order of writing, the log first, so that each is at least as new as what
refers to it; all are taken again if an erasure, a hold, an ingest or a gate came between. Connections never checkpoint:
before version 3.51.3 SQLite could corrupt a write-ahead log that two connections checkpoint.

``manifest.json`` states what a backup holds::

    {"checkpoint": "...",              the newest signed checkpoint of audit.db
     "files":      [{"name": "audit.db", "sha256": "...", "size": 4096}, ...],
     "format":     "carag-backup/v1",
     "keys":       [{"name": "audit.key", "sha256": "...", "size": 110}, ...],
     "made":       1763755557000000}   microseconds since 1970 UTC

Canonical JSON and one newline, written last: a directory without it is not a backup. Index, words and state are made
from ``corpus.db`` again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from carag.audit import RecordKind
from carag.audit._notes import SHARED_AT
from carag.audit.private.earlier import EARLIER
from carag.audit.records.record import Record
from carag.audit.tlog import encoding
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from carag.limits import quoted
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from carag.audit.tlog.encoding import Json


FORMAT: Final = "carag-backup/v1"
MANIFEST: Final = "manifest.json"
KEYS: Final = ("audit.key", "private.key")
"""Key files, kept apart from the data: one signs a store's log, one opens its private values."""
NEEDED: Final = frozenset({"audit.db", "corpus.db", "vkey"})
"""Files that every backup has; those of versions up to 0.3 also have ``private.db``."""
ANCHORS: Final = "anchors"
"""The directory with the evidence from anchors."""
_MAX_BYTES: Final = 64 << 20
"""Greatest size of a manifest, enough for about 300,000 pieces of evidence, each a file."""
_PIECE: Final = 1 << 20
"""Bytes copied at a time."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_KNOWN: Final = re.compile(
    r"audit\.db|private\.db|audit\.key|private\.key|corpus\.db|jobs\.db|vkey|evidence\.url|anchors/\d{20}-[a-z0-9]+-[0-9a-f]{8}"
)
"""The only names in a manifest; any other, including a path that leaves the directory, was not written by a backup."""


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
    """What a backup holds: its log's checkpoint, files by path, keys by name; ``made`` in microseconds since 1970."""

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
                f"{backup} is not a backup: {path.name} cannot be read ({error.strerror}); name what carag backup "
                "has made"
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


_logger = logger(__name__)

_PASSING: Final = frozenset(
    {
        RecordKind.QUERY,
        RecordKind.RETRIEVE,
        RecordKind.EXPLAIN,
        RecordKind.BEGIN,
        RecordKind.DENIAL,
        RecordKind.DISCLOSURE,
        RecordKind.ANCHOR,
    }
)
"""Kinds of record after which only the log changes, or whose values are stored before the record."""
_PATIENCE: Final = 60.0
"""Seconds after which the attempt is given up, if a store changes without a pause."""
_PAUSE: Final = 0.02
"""Seconds between two tries."""
_WAIT_MS: Final = 10_000
"""Milliseconds for which SQLite waits for a lock, such as while another process recovers a write-ahead log."""


class Pinned:
    """The databases of a store, each as of one commit, that form one state together; close it soon.

    While it is open, write-ahead logs grow, and an erasure cannot finish.
    """

    def __init__(self, home: Path) -> None:
        if (home / SHARED_AT).exists():
            raise InvalidArgument(
                f"the store of {home} is in PostgreSQL; back up its database there, and audit.key, vkey and private.key"
            )
        if missing := [name for name in (*sorted(NEEDED), *KEYS) if not (home / name).is_file()]:
            raise InvalidArgument(
                f"{home} does not hold a complete store: {missing[0]} is missing; name another directory"
            )
        self._home = home
        known = ("jobs.db", "audit.db", EARLIER, "corpus.db")
        self._names = tuple(name for name in known if (home / name).is_file())
        until = time.monotonic() + _PATIENCE
        while True:
            self._held: dict[str, sqlite3.Connection] = {}
            try:
                self.keys = self._read_keys()
                # A job is done only after its documents are stored, so its state is read before theirs.
                for name in self._names:
                    self._held[name] = self._snapshot(name)
                self.size, self.checkpoint = self._end()
                is_one_state = self._is_quiet() and self._read_keys() == self.keys
            except BaseException as error:
                self.close()
                if isinstance(error, (sqlite3.Error, OSError)):
                    raise AuditUnavailable(f"{home} cannot be read for a backup: {error}") from error
                raise
            if is_one_state:
                return
            self.close()
            if time.monotonic() > until:
                raise StoreLocked(
                    f"{home} has changed for {_PATIENCE:.0f} s without a pause; back up the store when it is less busy"
                )
            _logger.info("the store changed meanwhile; taking its snapshots again")
            time.sleep(_PAUSE)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the databases."""
        return self._names

    def copy(self, name: str, target: Path) -> None:
        """Copy one database, as of the held instant, into a new file."""
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
                # Copied in one step, because a writer between two steps would make the copy start over.
                self._held[name].backup(copy, pages=-1)
                # The copied header says that the file has a write-ahead log, which the copy does not need.
                copy.execute("PRAGMA journal_mode=DELETE")
                (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise AuditUnavailable(f"{name} cannot be copied to {target}: {error}") from error
        if verdict != "ok":
            raise CorruptFile(
                f"{self._home / name} is damaged: {verdict}; nothing was backed up: restore it from an earlier backup"
            )
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Release the databases; idempotent."""
        for one in self._held.values():
            one.close()
        self._held = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self, name: str) -> sqlite3.Connection:
        uri = f"{(self._home / name).absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            db.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
            db.execute("PRAGMA trusted_schema=OFF")
            db.execute("BEGIN")
            db.execute(
                "SELECT count(*) FROM sqlite_schema"
            ).fetchone()  # a snapshot begins with the first read
        except BaseException:
            db.close()
            raise
        return db

    def _end(self) -> tuple[int, str]:
        log = self._held["audit.db"]
        (size,) = log.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec").fetchone()
        row = log.execute("SELECT note FROM cp ORDER BY size DESC LIMIT 1").fetchone()
        if row is None or not isinstance(row[0], str):
            raise CorruptFile(f"{self._home / 'audit.db'} has no checkpoint; restore it from a backup")
        return int(size), row[0]

    def _is_quiet(self) -> bool:
        """Tell whether nothing but questions was added to the log since it was held."""
        with contextlib.closing(self._snapshot("audit.db")) as now:
            bodies = now.execute("SELECT body FROM rec WHERE seq >= ? ORDER BY seq", (self.size,))
            return all(Record.parse(body).kind in _PASSING for (body,) in bodies)

    def _read_keys(self) -> dict[str, bytes]:
        return {name: (self._home / name).read_bytes() for name in (*KEYS, "vkey")}
