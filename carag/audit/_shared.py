"""Hold the connections of one process to a log that several write: one for its turns to write, one to read.

Turns are taken one after another, under an advisory lock that ends with the turn's transaction; so a process that is
killed leaves nothing behind, and the next one goes on. While it is open, every process is *seated*: it has a number of
its own and holds an advisory lock under it, by which others see that it lives; and it shares another lock, which
nobody can have alone (:meth:`SharedLink.alone`) before all others have left.
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
"""What stands behind the store's schema in the names of the log's, and of that of its sealed values."""
_TURN, _OPEN = 0, 1
"""Seeds of two advisory locks: of a turn, and of all that have the log open. A process's own is under its number."""
_WAITS: Final = {"lock_timeout": "30s", "idle_in_transaction_session_timeout": "30s"}
"""How long a turn is waited for, and how long one may stand still: a process that hangs must not stop all others."""


def reading(place: Place, part: str, first: str) -> Any:
    """Connect to read a part of a log, :data:`LOG` or :data:`VALUES`, as of the moment of the first statement."""
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
    """Let nobody else have a log open until the transaction of an administrator ends.

    Raises
    ------
    StoreLocked
        If a process has it open.
    """
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
    if db.execute(query, (schema, _OPEN)).fetchone() != (True,):
        raise StoreLocked(f"{what} needs schema {schema} alone; end the processes that have it open")


class SharedLink:
    """The connections of one process to a log.

    Parameters
    ----------
    place : Place
    check : callable
        Given a connection and the log's schema, raises if the log may not be written there.

    Raises
    ------
    StoreLocked
        If another process has the log alone.
    AuditUnavailable
        If the server cannot be reached, or does not sync to disk.
    """

    def __init__(self, place: Place, check: Callable[[Any, str], None]) -> None:
        self.place, self._check = place, check
        # Also what its locks are named by: those of the documents are others.
        self._schema = f"{place.schema}_{LOG}"
        self.mutex, self._reading = threading.RLock(), threading.RLock()
        self.undone: Callable[[], None] = lambda: None
        """Called when a turn was undone."""
        self._owner: int | None = None  # the thread whose turn it is
        self._alone, self._closed = 0, False
        self.number = -1
        """That of this process, since it was connected last."""
        self._where = "PostgreSQL"
        self._reader = self._connected()
        try:
            self._writer = self._seated()
        except BaseException:
            self._reader.close()
            raise

    @property
    def where(self) -> str:
        """The server, the database and the schema; never a password."""
        return self._where

    def close(self) -> None:
        """Close both connections, which gives up all that they hold; idempotent."""
        self._closed = True
        self._reader.close()
        writer = getattr(self, "_writer", None)
        if writer is not None:
            if not writer.closed and writer.info.transaction_status == 0:
                # The server may release a closed connection's locks later; who comes next must find them free.
                with contextlib.suppress(psycopg_driver().Error):
                    writer.execute("SELECT pg_advisory_unlock_all()")
            writer.close()

    def execute(self, query: str, parameters: Any = (), *, binary: bool = False) -> Any:
        """Read, with a statement of its own; its rows are here when it returns. Within a turn, as the turn sees it."""
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
        """Write in one transaction, while nobody else does; within a turn, in that one.

        Raises
        ------
        AuditUnavailable
            If it is not certain that the transaction is durable: the next turn sees.
        """
        with self.mutex:
            if self._owner is not None:  # the thread's own, for it has the mutex
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
        """Do what no other process may have the log open for.

        Raises
        ------
        StoreLocked
            If another process has it open.
        """
        with self.mutex, self._talking():
            query = "SELECT pg_try_advisory_lock(hashtextextended(%s, %s))"
            if self._writer.execute(query, (self._schema, _OPEN)).fetchone() != (True,):
                raise StoreLocked(
                    f"{what} needs {self._where} alone; end the other processes that have it open"
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
        """Tell, within a turn, whether the process of a number has left."""
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
                f"{self._where} was lost by a process that had it alone; open the log again"
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
                raise StoreLocked(f"another process has {self._where} alone; wait until it is done")
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
