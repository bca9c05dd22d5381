"""Keep one SQLite file with a fixed schema: one connection writes, in atomic transactions.

Only one connection writes and checkpoints each file: before version 3.51.3 SQLite could corrupt a WAL that two
connections write or checkpoint. ``synchronous=FULL`` makes COMMIT return after fsync; NORMAL can lose acknowledged
records in a power cut. If COMMIT fails, it is unknown what reached the disk, so later writes are refused until the file
is opened again and read; likewise if the file's name no longer refers to the open file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: fsync alone stops at the drive's cache
    "PRAGMA secure_delete=ON",  # deleted salts and values do not stay in free pages
    "PRAGMA cell_size_check=ON",
    "PRAGMA trusted_schema=OFF",
)
_MAX_ROWS_A_STATEMENT: Final = 128
"""Most rows that one INSERT statement adds."""
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""SQLite's error codes of a damaged file."""


class SqliteStore:
    """One SQLite file with a fixed schema, one connection and atomic writes.

    Without ``create`` a missing file is CorruptFile; ``first`` are statements with their parameters for the transaction
    that creates the tables.
    """

    SCHEMA: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, path: Path, *, create: bool, first: Iterable[tuple[str, Sequence[object]]] = ()
    ) -> None:
        self._path = path
        self._names = (path, Path(f"{path}-wal"))
        self._broken: str | None = None
        self._wal: int | None = None
        self._unsynced = self._lazy = False
        if sqlite3.threadsafety < 3:
            raise AuditUnavailable(
                f"this Python's SQLite must not be shared by threads (threadsafety {sqlite3.threadsafety}); "
                "use one that was built serialized, as is the default"
            )
        if not create and not path.exists():
            raise CorruptFile(f"{path} is missing though the log exists; restore it from a backup")
        with self._reading():
            if create:  # readable by its owner only; SQLite gives its side files the same mode
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with self._reading():
                self._prepare(create, first)
        except BaseException:
            self.close()
            raise

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def close(self) -> None:
        """Close the file; idempotent."""
        self._db.close()
        if self._wal is not None:
            os.close(self._wal)
            self._wal = None

    def sync(self) -> None:
        """Make the transactions with ``sync=False`` durable.

        After AuditUnavailable nothing more is written until the file is opened again: after a disk error the kernel may
        have dropped the pages that it could not write.
        """
        if self._broken:
            self.check_writable()
        if not self._unsynced:
            return
        if self._wal is None:
            raise AuditUnavailable(f"{self._path} was closed before it was synced; open the log again")
        try:
            _sync(self._wal)
        except OSError as error:
            self._broken = f"an earlier sync failed ({error})"
            raise AuditUnavailable(f"{self._path} cannot be synced: {error}") from error
        self._unsynced = False

    def check_writable(self) -> None:
        """Raise AuditUnavailable if this connection must no longer write."""
        if self._broken:
            raise AuditUnavailable(
                f"{self._path}: {self._broken}; open the log again, which reads what is there"
            )
        if self._identity() != self._files:
            raise AuditUnavailable(
                f"{self._path} was moved or replaced while open; close the log and restore it"
            )

    def _prepare(self, create: bool, first: Iterable[tuple[str, Sequence[object]]]) -> None:
        for pragma in _PRAGMAS:
            self._db.execute(pragma)
        if self._db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raise AuditUnavailable(
                f"{self._path} cannot use a write-ahead log; put it on a local file system"
            )
        found = {sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        self._files = self._identity()
        self._wal = os.open(self._names[1], os.O_RDONLY | os.O_CLOEXEC)
        if not found and create:
            with self._transaction() as db:
                for statement in self.SCHEMA:
                    db.execute(statement)
                for statement, parameters in first:
                    db.execute(statement, parameters)
        elif found != set(self.SCHEMA):
            raise CorruptFile(
                f"{self._path} does not have the tables of an audit log; restore it from a backup"
            )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED or self._path.is_dir():
                raise CorruptFile(f"{self._path} is damaged: {error}; restore it from a backup") from error
            raise AuditUnavailable(f"{self._path} cannot be read: {error}") from error

    @contextlib.contextmanager
    def _transaction(self, *, sync: bool = True) -> Iterator[sqlite3.Connection]:
        """Run statements in one transaction; with ``sync=False`` they are durable only after :meth:`sync`."""
        self.check_writable()
        committing = False
        try:
            if sync is self._lazy:
                self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                self._lazy = not sync
            self._unsynced = self._unsynced or not sync
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            committing = True
            self._db.execute("COMMIT")
        except BaseException as error:
            if committing:
                self._broken = f"an earlier commit failed ({error})"
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise AuditUnavailable(f"{self._path} cannot be written: {error}") from error
            raise

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._broken = f"an earlier transaction could not be rolled back ({error})"

    def _identity(self) -> list[tuple[int, int]]:
        try:
            stats = [path.stat() for path in self._names]
        except OSError as error:
            raise AuditUnavailable(f"{self._path} is gone: {error}; close the log and restore it") from error
        return [(stat.st_dev, stat.st_ino) for stat in stats]


def read_only(path: Path, *, wal: bool) -> sqlite3.Connection:
    """Open a file to read one state of it until it is closed; nothing is written, and no writer is kept waiting.

    Without a write-ahead log the file alone is complete, and ``immutable`` creates not even a lock file. With one,
    SQLite must read both files, and keeps the state of this BEGIN while the writer continues.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'' if wal else '&immutable=1'}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "BEGIN"):
            db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many per statement.

    Python releases its interpreter lock at every step of a statement, and with other busy threads it takes milliseconds
    to get it back; ``executemany`` steps once per row. Batches are powers of two, so that the few different statements
    stay in the connection's cache.
    """
    at = 0
    while rest := len(rows) - at:
        count = min(_MAX_ROWS_A_STATEMENT, 1 << rest.bit_length() - 1)
        marks = ", ".join([f"({', '.join('?' * len(rows[at]))})"] * count)
        values = [value for row in rows[at : at + count] for value in row]
        db.execute(f"INSERT INTO {table} VALUES {marks}", values)  # noqa: S608 - the tables of this file
        at += count


def _sync(descriptor: int) -> None:
    """Flush a file to the drive, not only to the kernel."""
    if sys.platform == "darwin":  # where fsync stops at the drive's cache
        import fcntl  # POSIX only, and receipts are verified everywhere

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)
