"""SQLite files behind the log: the evidence here and, apart from it, the private values (``private.py``).

Evidence and personal data live in separate files so that they can be backed up, handed out and destroyed
separately. One connection writes each file and nobody else does; before version 3.51.3 SQLite could corrupt a
WAL that two connections checkpoint. ``synchronous=FULL`` makes COMMIT return after fsync; with NORMAL a power
cut takes acknowledged records along.

A store never guesses. If COMMIT fails, what reached the disk is unknown, so every later write is refused
until the file is opened again and read. If the file's name stops leading to the open file, writes are refused
too: they would go where no reader finds them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from carag.audit.merkle import Node, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["EvidenceStore"]

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: fsync alone stops at the drive's cache
    "PRAGMA secure_delete=ON",  # deleted salts and values do not stay in free pages
    "PRAGMA cell_size_check=ON",
    "PRAGMA trusted_schema=OFF",
)
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
        self._broken: str | None = None
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
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._db.close()

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
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.check_writable()
        committing = False
        try:
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
            stats = [path.stat() for path in (self._path, Path(f"{self._path}-wal"))]
        except OSError as error:
            raise AuditUnavailable(f"{self._path} is gone: {error}; close the log and restore it") from error
        return [(stat.st_dev, stat.st_ino) for stat in stats]


class EvidenceStore(_Store):
    """Records, tree nodes and the newest checkpoint.

    ``node.i`` is :func:`~carag.audit.merkle.stored_hash_index`, so a proof is a few look-ups by key.
    """

    SCHEMA = (
        "CREATE TABLE rec (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE node (i INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
        "CREATE TABLE cp (size INTEGER PRIMARY KEY, note TEXT NOT NULL)",
    )

    def __init__(self, path: Path, *, create: bool, empty: str) -> None:
        super().__init__(path, create=create, first=[("INSERT INTO cp VALUES (0, ?)", (empty,))])

    def append(self, seq: int, body: bytes, nodes: Sequence[Node], note: str) -> None:
        """Add a record, the nodes it completes and the checkpoint that covers it, or nothing.

        Raises
        ------
        AuditUnavailable
            If it is not certain that all of it is durable.
        """
        rows = [(stored_hash_index(node.level, node.n), node.hash) for node in nodes]
        with self._transaction() as db:
            db.execute("INSERT INTO rec VALUES (?, ?)", (seq, body))
            db.executemany("INSERT INTO node VALUES (?, ?)", rows)
            db.execute("DELETE FROM cp")
            db.execute("INSERT INTO cp VALUES (?, ?)", (seq + 1, note))

    def size(self) -> int:
        """Return one more than the last sequence number."""
        with self._reading():
            row = self._db.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec").fetchone()
        return int(row[0])

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is not there."""
        with self._reading():
            row = self._db.execute("SELECT body FROM rec WHERE seq = ?", (seq,)).fetchone()
        return self._bytes(row, f"record {seq}")

    def bodies(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) from ``start`` on."""
        with self._reading():
            for seq, body in self._db.execute(
                "SELECT seq, body FROM rec WHERE seq >= ? ORDER BY seq", (start,)
            ):
                yield seq, self._bytes((body,), f"record {seq}")

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is not there."""
        with self._reading():
            query = "SELECT hash FROM node WHERE i = ?"
            row = self._db.execute(query, (stored_hash_index(level, n),)).fetchone()
        return self._bytes(row, f"tree node ({level}, {n})")

    def nodes(self) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the whole tree in storage order."""
        with self._reading():
            yield from self._db.execute("SELECT i, hash FROM node ORDER BY i")

    def checkpoint(self) -> str:
        """Return the newest checkpoint; CorruptFile if there is none."""
        with self._reading():
            row = self._db.execute("SELECT note FROM cp ORDER BY size DESC LIMIT 1").fetchone()
        if row is None or not isinstance(row[0], str):
            raise CorruptFile(f"{self._path} has no checkpoint; restore it from a backup")
        return row[0]

    def _bytes(self, row: tuple[object, ...] | None, what: str) -> bytes:
        if row is None or not isinstance(row[0], bytes):
            raise CorruptFile(f"{self._path}: {what} is missing; restore the file from a backup")
        return row[0]
