"""Hold one process's connections to a SQLite file: one to write in turns, one to read.

A turn is one transaction, as in :mod:`carag.audit._shared`. Only one connection writes and checkpoints the file: before
version 3.51.3 SQLite could corrupt a WAL that two connections write or checkpoint. ``synchronous=FULL`` makes COMMIT
return after fsync; NORMAL can lose acknowledged records in a power cut. If COMMIT fails, it is unknown what reached the
disk, so later writes are refused until the file is opened again and read. The same holds if the file's name no longer
refers to the open file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_PAGE: Final = 4096
"""SQLite's own page size."""
_WAL_BYTES: Final = 4 << 20
"""Size of the write-ahead log at which a commit also writes it back into the file."""
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
"""SQLite's error codes for a damaged file."""


class SqliteLink:
    """One process's connections to a file with fixed tables.

    Without ``create`` a missing file is CorruptFile. ``tables`` are the statements that make its tables, and ``later``
    are those whose tables a file of an earlier version lacks. ``first`` are statements with their parameters for the
    transaction that creates the tables, ``page`` is the page size of a new file.
    """

    def __init__(
        self,
        path: Path,
        tables: Sequence[str],
        *,
        create: bool,
        page: int = _PAGE,
        first: Sequence[tuple[str, Sequence[object]]] = (),
        later: Sequence[str] = (),
    ) -> None:
        self.path = path
        self._names = (path, Path(f"{path}-wal"))
        self._tables, self._later = tables, later
        self.mutex = threading.RLock()
        self.undone: Callable[[], None] = lambda: None
        """Called after a turn was rolled back."""
        self._broken: str | None = None
        self._is_turn = False
        if sqlite3.threadsafety < 3:
            raise AuditUnavailable(
                f"threads cannot share this Python's SQLite (threadsafety {sqlite3.threadsafety}); "
                "use one built in serialized mode, which is the default"
            )
        if not create and not path.exists():
            raise CorruptFile(f"{path} is missing though the log exists; restore it from a backup")
        with contextlib.ExitStack() as undo, self.reading():
            if create:  # readable only by its owner; SQLite gives its side files the same mode
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            undo.callback(self._db.close)
            self._prepare(page, create, first)
            self._reader = read_only(path, wal=True, held=False)
            undo.pop_all()

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self.path)

    def close(self) -> None:
        """Close the file; idempotent."""
        self._reader.close()
        self._db.close()  # last, because the last connection checkpoints

    def read(self, query: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Read what is committed, even while another thread is writing; use within :meth:`reading`."""
        return self._reader.execute(query, parameters)

    def execute(self, query: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run a statement on the connection that writes, within :attr:`mutex`; it sees what its own turn wrote."""
        return self._db.execute(query, parameters)

    @contextlib.contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction; a turn within a turn belongs to the outer one.

        Raises AuditUnavailable if the transaction may not be durable; after that, nothing more is written.
        """
        with self.mutex:
            if self._is_turn:  # this thread's own turn: it holds the mutex
                yield self._db
                return
            self.check_writable()
            self._is_turn, committing = True, False
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                committing = True
                self._db.execute("COMMIT")
            except BaseException as error:
                if committing:
                    self._broken = f"an earlier commit failed ({error})"
                self._roll_back()
                self.undone()
                if isinstance(error, sqlite3.Error):
                    raise AuditUnavailable(f"{self.path} cannot be written: {error}") from error
                raise
            finally:
                self._is_turn = False

    def purge(self) -> None:
        """Remove all traces of deleted rows from the write-ahead log."""
        with self.mutex, self.reading():
            busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise AuditUnavailable(
                f"{self.path} is being read by another program, so its write-ahead log still has what was "
                "erased; end that program and open the log again"
            )

    def check_writable(self) -> None:
        """Raise AuditUnavailable if this connection must no longer write."""
        if self._broken:
            raise AuditUnavailable(
                f"{self.path}: {self._broken}; open the log again, which reads what is there"
            )
        if self._identity() != self._files:
            raise AuditUnavailable(
                f"{self.path} was moved or replaced while open; close the log and restore it"
            )

    def _prepare(self, page: int, create: bool, first: Sequence[tuple[str, Sequence[object]]]) -> None:
        for pragma in (f"PRAGMA page_size={page}", *_PRAGMAS):
            self._db.execute(pragma)
        if self._db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raise AuditUnavailable(f"{self.path} cannot use a write-ahead log; put it on a local file system")
        (page,) = self._db.execute("PRAGMA page_size").fetchone()  # which an existing file keeps
        self._db.execute(f"PRAGMA wal_autocheckpoint={_WAL_BYTES // page}")
        found = self._found()
        self._files = self._identity()
        if not found and create:
            with self.turn() as db:
                for statement in self._tables:
                    db.execute(statement)
                for statement, parameters in first:
                    db.execute(statement, parameters)
        elif found not in (set(self._tables), set(self._tables) - set(self._later)):
            raise CorruptFile(
                f"{self.path} does not have the tables of an audit log; restore it from a backup"
            )

    def lacks_later(self) -> bool:
        """Tell whether an earlier version made the file, so that it lacks the ``later`` tables."""
        return not self._found() >= set(self._later)

    def _found(self) -> set[str]:
        return {sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Translate SQLite's errors in the block."""
        try:
            yield
        except (
            sqlite3.Error,
            OSError,
            UnicodeDecodeError,
        ) as error:  # the last if a message quotes damaged bytes
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _DAMAGED or isinstance(error, UnicodeDecodeError) or self.path.is_dir():
                raise CorruptFile(f"{self.path} is damaged: {error}; restore it from a backup") from error
            raise AuditUnavailable(f"{self.path} cannot be read: {error}") from error

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
            raise AuditUnavailable(f"{self.path} is gone: {error}; close the log and restore it") from error
        return [(stat.st_dev, stat.st_ino) for stat in stats]


def read_only(path: Path, *, wal: bool, held: bool = True) -> sqlite3.Connection:
    """Open a file to read it, in one state if it is ``held``; nothing is written, and no writer is kept waiting.

    Without a write-ahead log, the file alone is complete, and ``immutable`` creates not even a lock file. With a
    write-ahead log, SQLite must read both files, and keeps the state as of this BEGIN while the writer continues.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'' if wal else '&immutable=1'}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        for statement in (
            "PRAGMA trusted_schema=OFF",
            "PRAGMA cell_size_check=ON",
            *(["BEGIN"] if held else []),
        ):
            db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many per statement.

    Python releases its interpreter lock at every step of a statement, and if other threads are busy, getting it back
    takes milliseconds; ``executemany`` steps once per row. Batches are powers of two, so that the few different
    statements stay in the connection's cache.
    """
    at = 0
    while rest := len(rows) - at:
        count = min(_MAX_ROWS_A_STATEMENT, 1 << rest.bit_length() - 1)
        marks = ", ".join([f"({', '.join('?' * len(rows[at]))})"] * count)
        values = [value for row in rows[at : at + count] for value in row]
        db.execute(f"INSERT INTO {table} VALUES {marks}", values)  # noqa: S608 - the tables of this file
        at += count
