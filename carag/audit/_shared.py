"""Hold one process's connections to a log that several processes write: one to write in turns, one to read.

A turn is one transaction under an advisory lock that ends with it; so a process that is killed leaves nothing behind,
and the next one continues. While the log is open, every process is *seated*: it has its own number and holds an
advisory lock on it, which shows the others that it lives; it also shares a lock that :meth:`SharedLink.alone` takes
exclusively, which is possible only once all others have left.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from carag.audit._postgres import check_durable, connected, keep_alive, psycopg_driver, talking
from carag.errors import AuditUnavailable, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.audit._postgres import Place

__all__ = ["LOG", "VALUES", "SharedLink", "check_alone", "reading"]

LOG: Final = "log"
VALUES: Final = "values"
"""Suffixes of the store's schema: the schemas of the log and of its sealed values."""
_TURN, _OPEN = 0, 1
"""Seeds of two advisory locks: a turn's, and that of all processes that have the log open."""
_WAITS: Final = {"lock_timeout": "30s", "idle_in_transaction_session_timeout": "30s"}
"""How long to wait for a turn, and how long one may idle: a process that hangs must not stop the others."""


def reading(place: Place, part: str, first: str) -> Any:
    """Connect to read a part of a log, :data:`LOG` or :data:`VALUES`, as of the first statement."""
    db = connected(place.url)
    try:
        db.execute(f"SET search_path TO {place.schema}_{part}, pg_temp")
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        db.execute(first)
    except BaseException:
        db.close()
        raise
    return db


def check_alone(db: Any, schema: str, what: str) -> None:
    """Keep processes from opening a log until the administrator's transaction ends; StoreLocked if one has it open."""
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
    if db.execute(query, (schema, _OPEN)).fetchone() != (True,):
        raise StoreLocked(
            f"{what} needs exclusive use of schema {schema}; end the processes that have it open"
        )


class SharedLink:
    """One process's connections to a log; ``check(connection, schema)`` raises if the log must not be written there.

    Raises StoreLocked if another process has exclusive use of the log; AuditUnavailable if the server cannot be reached
    or does not sync to disk.
    """

    def __init__(self, place: Place, check: Callable[[Any, str], None]) -> None:
        self.place, self._check = place, check
        # Also the name of its locks, apart from those of the documents.
        self._schema = f"{place.schema}_{LOG}"
        self.mutex, self._reading = threading.RLock(), threading.RLock()
        self.undone: Callable[[], None] = lambda: None
        """Called after a turn was rolled back."""
        self._owner: int | None = None  # the thread whose turn it is
        self._alone, self._closed = 0, False
        self.number = -1
        """This process's number since its last connection."""
        self._where = "PostgreSQL"
        self._reader = self._connected()
        try:
            self._writer = self._seated()
        except BaseException:
            self._reader.close()
            raise

    @property
    def where(self) -> str:
        """The server, the database and the schema, without any password."""
        return self._where

    def close(self) -> None:
        """Close both connections and release their locks; idempotent."""
        self._closed = True
        self._reader.close()
        writer = getattr(self, "_writer", None)
        if writer is not None:
            if not writer.closed and writer.info.transaction_status == 0:
                # The server may release a closed connection's locks later; the next process must find them free.
                with contextlib.suppress(psycopg_driver().Error):
                    writer.execute("SELECT pg_advisory_unlock_all()")
            writer.close()

    def execute(self, query: str, parameters: Any = (), *, binary: bool = False) -> Any:
        """Read with one statement and fetch all its rows; within a turn, as the turn sees them."""
        if self._owner == threading.get_ident():
            return self._writer.execute(query, parameters or None, binary=binary)
        with self._reading, self._talking():
            self._check_open()
            try:
                return self._reader.execute(query, parameters or None, binary=binary)
            except psycopg_driver().OperationalError:
                if not self._reader.closed:
                    raise
            self._reader = self._connected()  # it was lost, and a read can be made again
            return self._reader.execute(query, parameters or None, binary=binary)

    @contextlib.contextmanager
    def turn(self) -> Iterator[Any]:
        """Write in one transaction while no other process writes; a turn within a turn belongs to the outer one.

        Raises AuditUnavailable if it is not certain that the transaction is durable; the next turn finds out.
        """
        with self.mutex:
            if self._owner is not None:  # this thread's own turn: it holds the mutex
                yield self._writer
                return
            self._check_open()
            with self._talking():
                if self._writer.closed:
                    self._writer = self._seated()
                try:
                    self._owner = threading.get_ident()
                    with self._writer.transaction():
                        lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))"
                        self._writer.execute(lock, (self._schema, _TURN))
                        yield self._writer
                except BaseException:
                    self.undone()
                    raise
                finally:
                    self._owner = None

    @contextlib.contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Do something while no other process has the log open; StoreLocked if one does."""
        with self.mutex, self._talking():
            query = "SELECT pg_try_advisory_lock(hashtextextended(%s, %s))"
            if self._writer.execute(query, (self._schema, _OPEN)).fetchone() != (True,):
                raise StoreLocked(
                    f"{what} needs exclusive use of {self._where}; end the other processes that have it open"
                )
            self._alone += 1
        try:
            yield
        finally:
            with self.mutex, self._talking():
                self._alone -= 1
                if not self._writer.closed:
                    done = "SELECT pg_advisory_unlock(hashtextextended(%s, %s))"
                    self._writer.execute(done, (self._schema, _OPEN))

    def is_gone(self, number: int) -> bool:
        """Tell, within a turn, whether the process with this number has left."""
        query = "SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)"
        mine = number == self.number
        return not mine and self._writer.execute(query, (self._schema, number)).fetchone() == (True,)

    def _connected(self) -> Any:
        with talking(self.place.url), contextlib.ExitStack() as undo:
            db = connected(self.place.url)
            undo.callback(db.close)
            at = f"{db.info.host}:{db.info.port}/{db.info.dbname}"
            self._where = f"PostgreSQL {at}, schema {self.place.schema}"
            db.execute(f"SET search_path TO {self._schema}, {self.place.schema}_{VALUES}, pg_temp")
            undo.pop_all()
        return db

    def _seated(self) -> Any:
        if self._alone:
            raise AuditUnavailable(
                f"{self._where}: the connection was lost during exclusive use; open the log again"
            )
        db = self._connected()
        with self._talking(), contextlib.ExitStack() as undo:
            undo.callback(db.close)
            keep_alive(db)
            check_durable(db, self._where)
            self._check(db, self._schema)
            for name, value in _WAITS.items():
                db.execute(f"SET {name} TO '{value}'")
            query = "SELECT pg_try_advisory_lock_shared(hashtextextended(%s, %s))"
            if db.execute(query, (self._schema, _OPEN)).fetchone() != (True,):
                raise StoreLocked(
                    f"another process has exclusive use of {self._where}; wait until it is done"
                )
            (self.number,) = db.execute("SELECT nextval('process')::integer").fetchone()
            db.execute("SELECT pg_advisory_lock(hashtext(%s), %s)", (self._schema, self.number))
            undo.pop_all()
        return db

    def _check_open(self) -> None:
        if self._closed:
            raise AuditUnavailable(f"{self._where} is closed; open the log again")

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        with talking(self.place.url, self._where):
            yield
