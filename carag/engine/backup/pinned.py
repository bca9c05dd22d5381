"""Hold the databases of a store at one instant, while their writer goes on writing.

A record is written in an order: labels are committed before the record that names their state; private values before
the record that commits to them. So the snapshots are taken the other way round: the log first, then what its records
refer to. Each is then at least as new as what refers to it, as after a kill, and opening knows what to do with what is
newer: nobody was told of it yet.

Only an operation that is recorded first and carried out after that would come between: an erasure or a hold changes
private values, an ingest or a gate notes its record's number beside the labels. If the log has got such a record, or a
key was changed, while the snapshots were taken, they are taken again. That takes milliseconds: nothing is copied yet.

SQLite's online backup (https://sqlite.org/backup.html) then copies from a snapshot that is held. Connections are
read-only and never checkpoint: before version 3.51.3 SQLite could corrupt a write-ahead log that two connections
checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, Final, Self

from carag.audit import RecordKind
from carag.audit._postgres import SHARED_AT
from carag.audit.records.record import Record
from carag.engine.backup.manifest import KEYS
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from carag.visible import logger

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Pinned"]

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
"""Kinds of record after which nothing but the log changes, or whose values were stored before."""
_PATIENCE: Final = 60.0
"""Seconds until a store is given up that changes all the time."""
_PAUSE: Final = 0.02
"""Seconds between two tries."""
_WAIT_MS: Final = 10_000
"""Milliseconds for which SQLite waits for a lock, as while another process recovers a write-ahead log."""


class Pinned:
    """The databases of a store, each as of one commit, that together are one state; close it soon.

    While it is open, the write-ahead logs grow, and an erasure cannot finish.

    Parameters
    ----------
    home : Path
        The store.

    Attributes
    ----------
    keys : dict of str to bytes
        The key files that belong to this state.
    checkpoint : str
        The newest checkpoint of the log.

    Raises
    ------
    InvalidArgument
        If there is no store.
    AuditUnavailable
        If it cannot be read.
    StoreLocked
        If it changes so often that it has no moment's rest.
    """

    def __init__(self, home: Path) -> None:
        names = ("audit.db", "private.db", "corpus.db")
        if (home / SHARED_AT).exists():
            raise InvalidArgument(
                f"the store of {home} is in PostgreSQL: back up its database there, and audit.key, vkey and private.key"
            )
        if missing := [name for name in (*names, "vkey", *KEYS) if not (home / name).is_file()]:
            raise InvalidArgument(f"{home} holds no whole store: {missing[0]} is missing; name another")
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
                    f"{home} has changed for {_PATIENCE:.0f} s without a pause; back it up when less is brought in"
                )
            _logger.info("the store changed meanwhile; taking its snapshots again")
            time.sleep(_PAUSE)

    @property
    def names(self) -> tuple[str, ...]:
        """The databases."""
        return self._names

    def copy(self, name: str, target: Path) -> None:
        """Copy one database as it was, into a new file.

        Raises
        ------
        AuditUnavailable
            If it cannot be read or written.
        CorruptFile
            If it fails SQLite's own checks.
        """
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
                # One step: between two steps a writer would have it begin again.
                self._held[name].backup(copy, pages=-1)
                # Copied pages bring along that the file has a write-ahead log, of which the copy needs none.
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
        """Let the databases go; idempotent."""
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
        """Tell whether nothing but questions came to the log since it was held."""
        with contextlib.closing(self._snapshot("audit.db")) as now:
            bodies = now.execute("SELECT body FROM rec WHERE seq >= ? ORDER BY seq", (self.size,))
            return all(Record.parse(body).kind in _PASSING for (body,) in bodies)

    def _read_keys(self) -> dict[str, bytes]:
        return {name: (self._home / name).read_bytes() for name in (*KEYS, "vkey")}
