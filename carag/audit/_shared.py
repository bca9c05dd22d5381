"""Hold one process's connections to a log that several processes write: one to write in turns, a few to read.

A turn is one transaction under an advisory lock that ends with the transaction, so a process that is killed leaves
nothing behind, and the next process continues. While the log is open, every process is *seated*: it has its own number
and holds an advisory lock on that number, which shows the others that it lives. It also shares a lock that
:meth:`SharedLink.alone` takes exclusively, which is possible only once all others have left.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from carag.errors import AuditUnavailable, StoreLocked
from carag.postgres.address import driver
from carag.postgres.connection import connected, described, not_durable
from carag.postgres.dialect import InPostgres, in_postgres
from carag.postgres.locks import lock, try_lock, unlock
from carag.postgres.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.postgres.address import Address


LOG: Final = "log"
VALUES: Final = "values"
"""Suffixes of the store's schema: the schemas of the log and of its sealed values."""
_TURN, _OPEN, _OPERATION = 0, 1, 2
"""Seeds of the advisory locks: for a turn, for all processes that have the log open, for an erasure or a hold."""
_ROWS_A_FETCH: Final = 500
_READERS: Final = 4
"""Most connections that read at once."""
_WAITS: Final = {"lock_timeout": "30s", "idle_in_transaction_session_timeout": "30s"}
"""How long to wait for a turn, and how long a turn may idle: a process that hangs must not stop the others."""


@contextlib.contextmanager
def talking(url: str, where: str = "PostgreSQL") -> Iterator[None]:
    """Translate the driver's errors into AuditUnavailable, without the URL."""
    try:
        yield
    except driver().Error as error:
        raise AuditUnavailable(f"{where} cannot be used for the audit log: {described(error, url)}") from None


class Snapshot:
    """A part of a log, :data:`LOG` or :data:`VALUES`, read as of its first statement, with the statements for files.

    It needs only the SELECT privilege. Raises AuditUnavailable if the server cannot be reached, or has no such log.
    """

    def __init__(self, address: Address, part: str, first: str) -> None:
        self.where = f"PostgreSQL, schema {address.schema}"
        self._url, self._streams = address.url, 0
        with self._talking(), contextlib.ExitStack() as undo:
            self._db = connected(address.url, {"search_path": f"{address.schema}_{part}, pg_temp"})
            undo.callback(self._db.close)
            self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._db.execute(first)
            undo.pop_all()

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Run a statement; return its rows."""
        with self._talking():
            return InPostgres(self._db).execute(statement, parameters)

    def stream(self, statement: str, parameters: Any = ()) -> Iterator[Any]:
        """Run a statement whose rows are fetched as they are used; several may be read in turn."""
        self._streams += 1
        with self._talking(), self._db.cursor(f"stream_{self._streams}") as stream:
            stream.itersize = _ROWS_A_FETCH
            yield from stream.execute(in_postgres(statement), parameters or None)

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._db.close()

    def _talking(self) -> contextlib.AbstractContextManager[None]:
        return talking(self._url, self.where)


def check_alone(db: Any, schema: str, what: str) -> None:
    """Keep processes from opening a log until the administrator's transaction ends; StoreLocked if one has it open."""
    if not try_lock(db, schema, _OPEN):
        raise StoreLocked(
            f"{what} needs exclusive use of schema {schema}; end the processes that have it open"
        )


class SharedLink:
    """One process's connections to a log; ``check(connection, schema)`` raises if the log must not be written there.

    Raises StoreLocked if another process has exclusive use of the log; AuditUnavailable if the server cannot be reached
    or does not sync to disk.
    """

    def __init__(self, address: Address, check: Callable[[Any, str], None]) -> None:
        self.address, self._check = address, check
        # This is also the name of the log's locks, which are separate from those of the documents.
        self._schema = f"{address.schema}_{LOG}"
        self.mutex = threading.RLock()
        self.undone: Callable[[], None] = lambda: None
        """Called after a turn was rolled back."""
        self._owner: int | None = None  # the thread that has the turn
        self._alone, self._closed = 0, False
        self.number = -1
        """This process's number since its last connection."""
        self._where = "PostgreSQL"
        path = f"{self._schema}, {address.schema}_{VALUES}, pg_temp"
        self._pool = Pool(address.url, {"search_path": path}, most=_READERS)
        self._writer = self._seated()

    @property
    def where(self) -> str:
        """The server, the database and the schema, without any password."""
        return self._where

    def close(self) -> None:
        """Close the connections and release their locks; idempotent."""
        self._closed = True
        self._pool.close()
        if not self._writer.closed and self._writer.info.transaction_status == 0:
            # The server may release a closed connection's locks later; the next process must find them free.
            with contextlib.suppress(driver().Error):
                self._writer.execute("SELECT pg_advisory_unlock_all()")
        self._writer.close()

    def execute(self, query: str, parameters: Any = (), *, binary: bool = False) -> Any:
        """Read with one statement and fetch all its rows; within a turn, as the turn sees them."""
        if self._owner == threading.get_ident():
            return self._writer.execute(query, parameters or None, binary=binary)
        self._check_open()
        with self._talking():
            return self._pool.query(query, parameters, binary=binary)

    @contextlib.contextmanager
    def turn(self) -> Iterator[Any]:
        """Write in one transaction while no other process writes; a turn within a turn belongs to the outer one.

        Raises AuditUnavailable if the transaction may not be durable; the next turn finds out whether it is.
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
                        lock(self._writer, self._schema, _TURN)
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
            if not try_lock(self._writer, self._schema, _OPEN, session=True):
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
                    unlock(self._writer, self._schema, _OPEN)

    @contextlib.contextmanager
    def operating(self) -> Iterator[None]:
        """Let one process at a time erase, or place or release a hold, in several turns; others append meanwhile."""
        with self._talking(), contextlib.closing(self._pool.new()) as db:
            db.execute(f"SET lock_timeout TO '{_WAITS['lock_timeout']}'")
            lock(db, self._schema, _OPERATION, session=True)
            yield

    def is_gone(self, number: int) -> bool:
        """Tell, within a turn, whether the process with this number has left."""
        query = "SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)"
        mine = number == self.number
        return not mine and self._writer.execute(query, (self._schema, number)).fetchone() == (True,)

    def _seated(self) -> Any:
        if self._alone:
            raise AuditUnavailable(
                f"{self._where}: the connection was lost during exclusive use; open the log again"
            )
        with self._talking(), contextlib.ExitStack() as undo:
            db = self._pool.new()
            undo.callback(db.close)
            at = f"{db.info.host}:{db.info.port}/{db.info.dbname}"
            self._where = f"PostgreSQL {at}, schema {self.address.schema}"
            if (wrong := not_durable(db)) is not None:
                raise AuditUnavailable(f"{self._where} {wrong}")
            self._check(db, self._schema)
            for name, value in _WAITS.items():
                db.execute(f"SET {name} TO '{value}'")
            if not try_lock(db, self._schema, _OPEN, session=True, shared=True):
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
        with talking(self.address.url, self._where):
            yield
