"""Connect to a PostgreSQL server: a few pooled connections, time limits, and retries where they are safe.

Work here is either a read, or a batch identified by its name, so both may be repeated. If a connection breaks, the work
is retried on a new one after a random pause, and all pooled connections are closed, for they led to the same server.
After a few failures in a row the server is not asked for a second, so that callers are refused at once instead of
waiting.

No error contains an address, account or password, and nothing is logged.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from carag.backends.postgres.wire import adapt_vectors
from carag.errors import BackendUnavailable, InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = ["PostgresLink", "collection_in", "driver"]

_TRIES: Final = 3
"""Most attempts of a transaction."""
_PAUSE: Final = 0.05
"""Longest pause before the second try, in seconds; doubled before the third."""
_FAILURES: Final = 3
"""Failures in a row after which the server is left alone."""
_REST: Final = 1.0
"""Seconds for which it is left alone."""
_PASSING: Final = {"40001", "40P01"}
"""Serialization failure, deadlock (PostgreSQL, Appendix A: Error Codes)."""
_ENDED: Final = ("08", "57P", "25P03")
"""Prefixes of codes that end a connection: it broke, the server shut down or ended it, it was idle too long."""
_LATE: Final = "no answer in time"
_LOCAL: Final = {"", "localhost", "127.0.0.1", "::1"}
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_ALIVE: Final = {
    # A silent network becomes an error within a minute; libpq, "Parameter Key Words".
    "keepalives_idle": 30,  # seconds
    "keepalives_interval": 10,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_SETTINGS: Final = {
    "search_path": "",  # set by __init__
    "TimeZone": "UTC",
    "synchronous_commit": "on",  # confirmed changes survive a crash
    "jit": "off",  # compiling takes longer than statements of a few milliseconds
    "row_security": "on",
}

_Made = TypeVar("_Made")


class PostgresLink:
    """Connections to one database.

    - ``dsn``: as libpq reads it; the rest comes from the environment, ``~/.pgpass`` and the service file. To another
      machine, or if only the service file names the host, the connection is encrypted and the certificate verified,
      unless ``sslmode`` says otherwise here or in the environment. Only a server that accepts writes is used, because a
      standby may be behind.
    - ``schema``: holds the tables.
    - ``timeout``: seconds for a statement.
    - ``most``: most connections at once.

    Raises InvalidArgument if the address is not valid; it is not quoted, because it may contain a password;
    MissingExtra if psycopg is not installed.
    """

    def __init__(self, dsn: str, schema: str, *, timeout: float = 30.0, most: int = 16) -> None:
        if not (isinstance(schema, str) and _SCHEMA.fullmatch(schema)):
            raise InvalidArgument(f"schema is {schema!r}; want lower-case letters, digits and underscores")
        self._fields = {"connect_timeout": max(2, min(10, int(timeout))), **_fields_of(dsn)}  # seconds
        self._settings = {
            **_SETTINGS,
            # No other user's tables after our own, and temporary ones last.
            "search_path": f"{schema}, public, pg_temp",
            "statement_timeout": f"{timeout * 1000:.0f}ms",
            "lock_timeout": f"{timeout * 1000:.0f}ms",
            "idle_in_transaction_session_timeout": f"{2 * timeout * 1000:.0f}ms",
        }
        self.schema = schema
        self._timeout = timeout
        self._idle: list[Any] = []
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._failures, self._until, self._closed = 0, 0.0, False

    def __repr__(self) -> str:
        return f"<PostgresLink, schema {self.schema}>"

    def read(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work in one read-only snapshot."""
        return self._patiently(work, driver().IsolationLevel.REPEATABLE_READ, is_read=True)

    def write(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work that may be repeated in one transaction."""
        return self._patiently(work, driver().IsolationLevel.READ_COMMITTED, is_read=False)

    def unhurried(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work once, in one transaction without a time limit, on a connection of its own."""
        with self.own() as db:
            db.limit = float("inf")
            db.execute("SET statement_timeout TO 0")
            with db.transaction():
                return work(db)

    def close(self) -> None:
        """Close all connections; idempotent."""
        self._closed = True
        self._give_up()

    @contextlib.contextmanager
    def own(self) -> Iterator[Any]:
        """Lend a new connection; closing it afterwards releases everything that it holds."""
        with self._reported():
            db = self._connected()
        try:
            with self._reported():
                yield db
        finally:
            db.close()

    def _patiently(self, work: Callable[[Any], _Made], isolation: Any, *, is_read: bool) -> _Made:
        error_type = driver().Error
        with self._reported():
            for attempt in range(_TRIES):
                self._check_rest()
                try:
                    made = self._once(work, isolation, is_read)
                except error_type as error:
                    self._failures += _is_lost(error)
                    if attempt + 1 == _TRIES or not _may_pass(error):
                        raise
                    # Not cryptographic: it keeps callers that failed together from coming back together.
                    time.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311
                else:
                    self._failures = 0
                    return made
        raise AssertionError

    def _once(self, work: Callable[[Any], _Made], isolation: Any, is_read: bool) -> _Made:
        with self._lent() as db:
            db.isolation_level, db.read_only = isolation, is_read
            with db.transaction():
                return work(db)

    @contextlib.contextmanager
    def _lent(self) -> Iterator[Any]:
        if not self._room.acquire(timeout=self._timeout):
            raise BackendUnavailable(
                f"all connections to PostgreSQL have been in use for {self._timeout:g} s; try again later"
            )
        try:
            with self._lock:
                db = self._idle.pop() if self._idle else None
            if db is None:
                db = self._connected()
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

    def _connected(self) -> Any:
        if self._closed:
            raise BackendUnavailable("this backend is closed; open it again")
        db = _connection_type().connect(autocommit=True, prepare_threshold=None, **self._fields)
        with contextlib.ExitStack() as undo:
            undo.callback(db.close)
            db.limit = self._timeout + 1  # the server's own limit should come first
            names = list(self._settings)
            db.execute(
                "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS s (name, value)",
                (names, [self._settings[name] for name in names]),
            )
            adapt_vectors(db)
            undo.pop_all()
        return db

    def _give_up(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _check_rest(self) -> None:
        now = time.monotonic()
        if self._failures >= _FAILURES and now >= self._until:
            self._until = now + _REST  # this caller tries; others within the next second do not
        elif now < self._until and self._failures >= _FAILURES:
            raise BackendUnavailable(
                f"PostgreSQL could not be reached {self._failures} times in a row; try again in {_REST:g} s"
            )

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except driver().Error as error:
            raise BackendUnavailable(
                f"PostgreSQL did not answer, and nothing was changed in part: {self._described(error)}"
            ) from None

    def _described(self, error: Any) -> str:
        """Return what went wrong, without host, port and account."""
        if error.sqlstate:
            said = f"{error.diag.message_primary or type(error).__name__} ({error.sqlstate})"
        else:
            said = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2] or type(error).__name__
        for name, value in self._fields.items():
            if name in {"password", "host", "hostaddr", "user", "sslpassword"} and len(str(value)) > 1:
                said = said.replace(str(value), "...")
        return said


def collection_in(dsn: str) -> tuple[str, str | None]:
    """Take the collection, ``?collection=NAME``, out of an address, since libpq does not know it.

    Examples
    --------
    >>> collection_in("postgresql://carag_app@db.example/vectors?collection=filings&sslmode=require")
    ('postgresql://carag_app@db.example/vectors?sslmode=require', 'filings')
    """
    try:
        parts = urlsplit(dsn)
        asked = parse_qsl(parts.query, keep_blank_values=True)
        named = [value for name, value in asked if name == "collection"]
        rest = urlencode([one for one in asked if one[0] != "collection"])
        return (parts._replace(query=rest).geturl(), named[-1]) if named else (dsn, None)
    except (AttributeError, TypeError, ValueError):
        return dsn, None  # not an address, which is reported where it is used


def driver() -> Any:
    """Import psycopg; raise MissingExtra if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("vectors in PostgreSQL need: pip install 'carag-engine[postgres]'") from error
    return psycopg


def _fields_of(dsn: str) -> dict[str, Any]:
    is_url = isinstance(dsn, str) and dsn.startswith(("postgresql://", "postgres://"))
    try:
        fields: dict[str, Any] = driver().conninfo.conninfo_to_dict(dsn if is_url else "")
    except driver().Error:
        fields = {}
    if not is_url or not fields:
        raise InvalidArgument(
            "this is not the address of a PostgreSQL database; want postgresql://ACCOUNT@HOST/DATABASE, with the "
            "password in ~/.pgpass or PGPASSWORD"
        )
    fields = {"target_session_attrs": "read-write", **_ALIVE, **fields}
    address = fields.get("hostaddr") or os.environ.get("PGHOSTADDR")
    hosts = str(address or fields.get("host") or os.environ.get("PGHOST", "")).split(",")
    has_service = "service" in fields or "PGSERVICE" in os.environ  # whose file may name any host
    is_local = not has_service and all(host in _LOCAL or host.startswith(("/", "@")) for host in hosts)
    if not is_local and "sslmode" not in fields and "PGSSLMODE" not in os.environ:
        fields["sslmode"] = "verify-full"
    return fields


def _connection_type() -> Any:
    """Define a connection with a time limit of its own: a server that hangs does not keep its limits."""
    psycopg = driver()

    class Timed(psycopg.Connection):  # type: ignore[misc, name-defined]
        limit = float("inf")

        def wait(self, gen: Any, interval: float = 0.1) -> Any:
            return super().wait(_limited(gen, self.limit, psycopg.OperationalError), interval)

    return Timed


def _limited(gen: Any, limit: float, error: type[Exception]) -> Generator[Any, Any, Any]:
    """Run a generator of psycopg for a limited time."""
    until = time.monotonic() + limit
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > until:
                gen.close()
                raise error(_LATE)
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def _is_lost(error: Any) -> bool:
    """Return whether the connection itself failed, rather than a statement run over it."""
    if error.sqlstate is None:
        return isinstance(error, (driver().OperationalError, driver().InterfaceError))
    return bool(error.sqlstate.startswith(_ENDED))


def _may_pass(error: Any) -> bool:
    if str(error) == _LATE or isinstance(error, driver().errors.ConnectionTimeout):
        return False  # the caller has waited long enough already
    return _is_lost(error) or error.sqlstate in _PASSING
