"""SQLite files behind the log: the evidence here and, apart from it, the private values (``private.py``).

Evidence and personal data live in separate files so that they can be backed up, handed out and destroyed
separately. One connection writes and checkpoints each file, and nobody else may: before version 3.51.3 SQLite could
corrupt a WAL that two connections write or checkpoint. Proofs are read over a second, read-only connection,
which does neither. ``synchronous=FULL`` makes COMMIT return after fsync; with NORMAL a power cut takes
acknowledged records along.

The two files must not cost two waits for the disk. The private values are written first and their sync is left
to :meth:`_Store.sync`, which runs beside the COMMIT of the evidence: whatever kills the process, the values of a
record in the file are in theirs; a power cut between the two can only take values of a record that nobody was
told of.

A store never guesses. If COMMIT fails, what reached the disk is unknown, so every later write is refused
until the file is opened again and read. If the file's name stops leading to the open file, writes are refused
too: they would go where no reader finds them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from carag.audit.merkle import stored_hash_count, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from carag.audit.evidence import Batch

__all__ = ["EvidenceStore"]

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: fsync alone stops at the drive's cache
    "PRAGMA secure_delete=ON",  # deleted salts and values do not stay in free pages
    "PRAGMA cell_size_check=ON",
    "PRAGMA trusted_schema=OFF",
)
_READING: Final = ("PRAGMA query_only=ON", "PRAGMA cell_size_check=ON", "PRAGMA trusted_schema=OFF")
_MOST_ROWS: Final = 128
_NO_END: Final = (1 << 63) - 1
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class _Store:
    """One SQLite file with a fixed schema, one connection and all-or-nothing writes.

    Parameters
    ----------
    path : Path
    create : bool
        Make the file if it is missing; otherwise that is corruption.
    first : iterable of (statement, parameters)
        Run in the transaction that makes the tables.
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
            if create:  # the owner's alone; SQLite gives its side files the same mode
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
        """Close the file; harmless when repeated."""
        self._db.close()
        if self._wal is not None:
            os.close(self._wal)
            self._wal = None

    def sync(self) -> None:
        """Make durable what a transaction with ``sync=False`` has written.

        Raises
        ------
        AuditUnavailable
            If the disk reports an error; nothing more is written until the file is opened again, because the
            kernel may have dropped what it could not write.
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
        """Raise AuditUnavailable if this connection must not write any more."""
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
            raise CorruptFile(f"{self._path} does not have the tables of an audit log")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                raise CorruptFile(f"{self._path} is damaged: {error}; restore it from a backup") from error
            raise AuditUnavailable(f"{self._path} cannot be read: {error}") from error

    @contextlib.contextmanager
    def _transaction(self, *, sync: bool = True) -> Iterator[sqlite3.Connection]:
        """Run statements, all or none; with ``sync=False`` they are durable only after :meth:`sync`."""
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


class EvidenceStore(_Store):
    """Records, tree nodes, the newest checkpoint and the open begins, as :class:`~carag.audit.evidence.Evidence`.

    ``node.i`` is :func:`~carag.audit.merkle.stored_hash_index`, so a proof is a few look-ups by key.
    """

    SCHEMA = (
        "CREATE TABLE rec (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE node (i INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
        "CREATE TABLE cp (size INTEGER PRIMARY KEY, note TEXT NOT NULL)",
        "CREATE TABLE begun (seq INTEGER PRIMARY KEY)",
    )

    def __init__(self, path: Path, *, create: bool, empty: str) -> None:
        super().__init__(path, create=create, first=[("INSERT INTO cp VALUES (0, ?)", (empty,))])
        try:
            with self._reading():
                self._reader = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode=ro",
                    uri=True,
                    isolation_level=None,
                    check_same_thread=False,
                )
                for pragma in _READING:
                    self._reader.execute(pragma)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()
        super().close()  # last, because the last connection checkpoints

    def append(self, batch: Batch) -> None:
        """Add a batch and replace the checkpoint, or change nothing."""
        bodies = list(enumerate(batch.bodies, batch.first))
        nodes = list(enumerate((node.hash for node in batch.nodes), stored_hash_count(batch.first)))
        with self._transaction() as db:
            size = db.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec").fetchone()[0]
            if size != batch.first:
                raise AuditUnavailable(
                    f"{self._path} no longer ends where this process left it; open the log again"
                )
            insert(db, "rec", bodies)
            insert(db, "node", nodes)
            insert(db, "begun", [(seq,) for seq in batch.begun])
            for seq in batch.ended:
                db.execute("DELETE FROM begun WHERE seq = ?", (seq,))
            db.execute("DELETE FROM cp")
            db.execute("INSERT INTO cp VALUES (?, ?)", (batch.size, batch.note))

    def size(self) -> int:
        """Return one more than the last sequence number."""
        return int(self._one("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec")[0])

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is not there."""
        return self._bytes(self._one("SELECT body FROM rec WHERE seq = ?", seq), f"record {seq}")

    def bodies(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        query = "SELECT seq, body FROM rec WHERE seq >= ? AND seq < ? ORDER BY seq"
        for row in self._rows(query, start, stop):
            if type(row[1]) is not bytes:
                self._bytes(None, f"record {row[0]}")
            yield row

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is not there."""
        row = self._one("SELECT hash FROM node WHERE i = ?", stored_hash_index(level, n))
        return self._bytes(row, f"tree node ({level}, {n})")

    def nodes(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the nodes with ``start <= index < stop``, in order."""
        yield from self._rows("SELECT i, hash FROM node WHERE i >= ? AND i < ? ORDER BY i", start, stop)

    def checkpoint(self) -> str:
        """Return the newest checkpoint; CorruptFile if there is none."""
        row = self._one("SELECT note FROM cp ORDER BY size DESC LIMIT 1")
        if row is None or not isinstance(row[0], str):
            raise CorruptFile(f"{self._path} has no checkpoint; restore it from a backup")
        return row[0]

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        with self._reading():
            return tuple(seq for (seq,) in self._reader.execute("SELECT seq FROM begun ORDER BY seq"))

    def _one(self, query: str, *parameters: object) -> Any:
        with self._reading():
            return self._reader.execute(query, parameters).fetchone()

    def _rows(self, query: str, start: int, stop: int | None) -> Iterator[Any]:
        with self._reading():
            rows = self._reader.execute(query, (start, _NO_END if stop is None else stop))
            yield from rows if stop is None else rows.fetchall()

    def _bytes(self, row: tuple[object, ...] | None, what: str) -> bytes:
        if row is None or not isinstance(row[0], bytes):
            raise CorruptFile(f"{self._path}: {what} is missing; restore the file from a backup")
        return row[0]


def insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many to a statement.

    The interpreter's lock changes hands at every step of a statement, and beside busy threads each time costs
    milliseconds; ``executemany`` steps once a row. Powers of two are few statements, which stay in the connection's
    cache.
    """
    at = 0
    while rest := len(rows) - at:
        count = min(_MOST_ROWS, 1 << rest.bit_length() - 1)
        marks = ", ".join([f"({', '.join('?' * len(rows[at]))})"] * count)
        values = [value for row in rows[at : at + count] for value in row]
        db.execute(f"INSERT INTO {table} VALUES {marks}", values)  # noqa: S608 - the tables of this file
        at += count


def _sync(descriptor: int) -> None:
    """Have the drive itself, not only the kernel, keep a file's bytes."""
    if sys.platform == "darwin":  # there fsync stops at the drive's cache
        import fcntl  # POSIX only, and verifying a receipt works everywhere

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)
