"""Keep a few connections to a PostgreSQL server, and retry where that is safe.

Work that is retried is a read, or a batch identified by its name. If a connection breaks, the work is retried on a new
one after a random pause, and all idle connections are closed, because they led to the same server. After a few failures
in a row the server is left alone for a second, so that callers are refused at once instead of waiting.

Errors are psycopg's own, which each room translates. ``psycopg-pool`` 3.3 is not used: while a server cannot be
reached, its callers wait for the whole time limit and get an error without the reason, and the reason is logged, with
the address.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.postgres.address import driver, fields_of
from carag.postgres.connection import LATE, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_TRIES: Final = 3
"""Most attempts."""
_PAUSE: Final = 0.05
"""Longest pause before the second try, in seconds; it is doubled before the third."""
_FAILURES: Final = 3
"""Failures in a row after which the server is left alone."""
_REST: Final = 1.0
"""Seconds for which the server is left alone."""
_PASSING: Final = {"40001", "40P01"}
"""Serialization failure, deadlock (PostgreSQL, Appendix A: Error Codes)."""
_ENDED: Final = ("08", "57P", "25P03")
"""Prefixes of codes that end a connection: it broke, the server shut down or ended it, or it was idle too long."""

_Made = TypeVar("_Made")


class Pool:
    """Connections to one database, of which only a server that accepts writes is used: a standby may be behind.

    - ``settings``: of each session.
    - ``timeout``: seconds to wait for a free connection.
    - ``limit``: most seconds for a statement, even if the server hangs.
    - ``most``: most connections at once.
    - ``prepare``: called with each new connection.
    - ``more``: for libpq or psycopg, unless the URL says otherwise.

    Raises InvalidArgument if ``url`` is not an address; MissingExtra if psycopg is not installed.
    """

    def __init__(
        self,
        url: str,
        settings: Mapping[str, str],
        *,
        timeout: float = 60.0,
        limit: float = float("inf"),
        most: int = 16,
        prepare: Callable[[Any], None] = lambda _: None,
        **more: Any,
    ) -> None:
        fields_of(url)  # so that an invalid address is reported here
        self.url = url
        self._how = {"limit": limit, "target_session_attrs": "read-write", **more}
        self._settings, self._prepare, self._timeout = dict(settings), prepare, timeout
        self._idle: list[Any] = []
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._failures, self._until, self._closed = 0, 0.0, False

    def __repr__(self) -> str:
        return "<Pool>"  # without the address

    def read(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work in one read-only snapshot."""
        return self._patiently(lambda db: _within(db, work, driver().IsolationLevel.REPEATABLE_READ, True))

    def write(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work that may be repeated in one transaction."""
        return self._patiently(lambda db: _within(db, work, driver().IsolationLevel.READ_COMMITTED, False))

    def query(self, statement: str, parameters: Any = None, *, binary: bool = False) -> Any:
        """Read with one statement, and fetch all its rows."""
        return self._patiently(lambda db: db.execute(statement, parameters or None, binary=binary))

    def unhurried(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work once, in one transaction without a time limit, on a connection of its own."""
        with contextlib.closing(self.new()) as db:
            db.limit = float("inf")
            db.execute("SET statement_timeout TO 0")
            with db.transaction():
                return work(db)

    def new(self) -> Any:
        """Make a connection of the caller's own."""
        if self._closed:
            raise driver().OperationalError("its connections are closed; open it again")
        db = connected(self.url, self._settings, **self._how)
        with contextlib.ExitStack() as undo:
            undo.callback(db.close)
            self._prepare(db)
            undo.pop_all()
        return db

    @contextlib.contextmanager
    def lent(self) -> Iterator[Any]:
        """Lend a connection, which is closed afterwards if it broke or if a transaction is still open."""
        if not self._room.acquire(timeout=self._timeout):
            raise driver().errors.TooManyConnections(
                f"all connections have been in use for {self._timeout:g} s; try again later"
            )
        try:
            with self._lock:
                db = self._idle.pop() if self._idle else None
            if db is None:
                db = self.new()
            try:
                yield db
            except driver().Error as error:
                if _is_lost(error) or db.closed:
                    db.close()
                    self._give_up()
                raise
            finally:
                is_clean = not db.closed and db.info.transaction_status == 0
                if is_clean and not self._closed:
                    with self._lock:
                        self._idle.append(db)
                else:
                    db.close()
        finally:
            self._room.release()

    def close(self) -> None:
        """Close all connections; idempotent."""
        self._closed = True
        self._give_up()

    def _patiently(self, work: Callable[[Any], _Made]) -> _Made:
        error_type = driver().Error
        for attempt in range(_TRIES):
            self._check_rest()
            try:
                with self.lent() as db:
                    made = work(db)
            except error_type as error:
                self._failures += _is_lost(error)
                if attempt + 1 == _TRIES or self._closed or not _may_pass(error):
                    raise
                # Not cryptographic: it keeps callers that failed together from coming back together.
                time.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311
            else:
                self._failures = 0
                return made
        raise AssertionError

    def _give_up(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _check_rest(self) -> None:
        now = time.monotonic()
        if self._failures >= _FAILURES and now >= self._until:
            self._until = now + _REST  # this caller tries; others do not within the next second
        elif now < self._until and self._failures >= _FAILURES:
            raise driver().OperationalError(
                f"it could not be reached {self._failures} times in a row; try again in {_REST:g} s"
            )


def _within(db: Any, work: Callable[[Any], _Made], isolation: Any, is_read: bool) -> _Made:
    db.isolation_level, db.read_only = isolation, is_read
    with db.transaction():
        return work(db)


def _is_lost(error: Any) -> bool:
    """Return whether the connection itself failed, rather than a statement run over it."""
    if error.sqlstate is None:
        return isinstance(error, (driver().OperationalError, driver().InterfaceError))
    return bool(error.sqlstate.startswith(_ENDED))


def _may_pass(error: Any) -> bool:
    if str(error) == LATE or isinstance(error, driver().errors.ConnectionTimeout):
        return False  # the caller has waited long enough already
    return _is_lost(error) or error.sqlstate in _PASSING
