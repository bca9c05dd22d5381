"""Hold the databases of a store at one instant, while their writer goes on writing.

Snapshots are taken in the opposite order of writing, the log first, so that each is at least as new as what refers to
it; they are taken again if an erasure, a hold, an ingest or a gate came between. Connections never checkpoint: before
version 3.51.3 SQLite could corrupt a write-ahead log that two connections checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, Final, Self

from carag.audit import RecordKind
from carag.audit._notes import SHARED_AT
from carag.audit.records.record import Record
from carag.engine.backup.manifest import KEYS
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from carag.visible import logger

if TYPE_CHECKING:
    from pathlib import Path


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
"""Kinds of record after which only the log changes, or whose values were stored before."""
_PATIENCE: Final = 60.0
"""Seconds after which a store that changes without a pause is given up."""
_PAUSE: Final = 0.02
"""Seconds between two tries."""
_WAIT_MS: Final = 10_000
"""Milliseconds for which SQLite waits for a lock, such as while another process recovers a write-ahead log."""


class Pinned:
    """The databases of a store, each as of one commit, that form one state together; close it soon.

    While it is open, write-ahead logs grow, and an erasure cannot finish.
    """

    def __init__(self, home: Path) -> None:
        names = ("audit.db", "private.db", "corpus.db")
        if (home / SHARED_AT).exists():
            raise InvalidArgument(
                f"the store of {home} is in PostgreSQL; back up its database there, and audit.key, vkey and private.key"
            )
        if missing := [name for name in (*names, "vkey", *KEYS) if not (home / name).is_file()]:
            raise InvalidArgument(
                f"{home} does not hold a complete store: {missing[0]} is missing; name another directory"
            )
        self._home = home
        self._names = (*(["jobs.db"] if (home / "jobs.db").is_file() else []), *names)
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
                    f"{home} has changed for {_PATIENCE:.0f} s without a pause; back it up when it is less busy"
                )
            _logger.info("the store changed meanwhile; taking its snapshots again")
            time.sleep(_PAUSE)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the databases."""
        return self._names

    def copy(self, name: str, target: Path) -> None:
        """Copy one database as of the held instant into a new file."""
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
                # One step, because a writer between two steps would make it start over.
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
        """Tell whether the log has got nothing but questions since it was held."""
        with contextlib.closing(self._snapshot("audit.db")) as now:
            bodies = now.execute("SELECT body FROM rec WHERE seq >= ? ORDER BY seq", (self.size,))
            return all(Record.parse(body).kind in _PASSING for (body,) in bodies)

    def _read_keys(self) -> dict[str, bytes]:
        return {name: (self._home / name).read_bytes() for name in (*KEYS, "vkey")}
