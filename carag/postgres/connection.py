"""Open a connection to PostgreSQL, in one place for every room, and say what went wrong without showing its address."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.postgres.address import driver, fields_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


DURABLE: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
"""Settings a server needs so that what it acknowledges survives a power cut."""
LATE: Final = "no answer in time"
_ALIVE: Final = {
    "connect_timeout": 10,  # seconds
    # A silent network becomes an error within a minute; libpq, "Parameter Key Words".
    "keepalives_idle": 30,  # seconds
    "keepalives_interval": 10,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_SESSION: Final = {
    "synchronous_commit": "on",  # confirmed changes survive a crash
    "TimeZone": "UTC",
    # The server notices a lost client, and releases its locks, within a minute; in seconds, seconds, tries.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_UNLIMITED: Final = float("inf")
_SECRET: Final = {"password", "host", "hostaddr", "user", "sslpassword"}


def connected(
    url: str,
    settings: Mapping[str, str] | None = None,
    *,
    limit: float = _UNLIMITED,
    autocommit: bool = True,
    **more: Any,
) -> Any:
    """Connect to a server; by default every statement is a transaction of its own.

    ``settings`` are the session's settings, such as ``search_path``; ``limit`` is the most seconds for a statement,
    even if the server hangs; ``more`` goes to libpq or psycopg, unless the URL says otherwise.
    """
    db = _connection_type().connect(autocommit=True, **{**_ALIVE, **more, **fields_of(url)})
    with ExitStack() as undo:
        undo.callback(db.close)
        wanted = {**_SESSION, **(settings or {})}
        db.limit = limit
        db.execute(
            "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS s (name, value)",
            (list(wanted), list(wanted.values())),
        )
        db.autocommit = autocommit
        undo.pop_all()
    return db


def not_durable(db: Any) -> str | None:
    """Return what keeps a server from syncing to disk, or None."""
    for name, wanted in DURABLE.items():
        (found,) = db.execute(f"SHOW {name}").fetchone()
        if found != wanted:
            return (
                f"has {name} = {found}, so a power cut can lose acknowledged records; want {name} = {wanted}"
            )
    return None


def check_same_database(own: Any, admin: Any) -> None:
    """Check that a store's connection and its administrator's lead to one database, because two would be two stores.

    Raises InvalidArgument if they do not.
    """
    query = (
        "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "FROM pg_control_system()"
    )
    if own.execute(query).fetchone() != admin.execute(query).fetchone():
        raise InvalidArgument(
            "the administrator's address leads to a different database from the store's address; name the same "
            "database in both"
        )


def described(error: Any, url: str) -> str:
    """Return what went wrong, without host, port and account."""
    if error.sqlstate and error.diag.message_primary:
        said = f"{error.diag.message_primary} ({error.sqlstate})"
    else:
        said = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2] or type(error).__name__
    for name, value in fields_of(url).items():
        if name in _SECRET and len(str(value)) > 1:
            said = said.replace(str(value), "...")
    return said


def _connection_type() -> Any:
    """Define a connection with a time limit of its own, because a server that hangs does not keep its limits."""
    psycopg = driver()

    class Timed(psycopg.Connection):  # type: ignore[misc, name-defined]
        limit = _UNLIMITED

        def wait(self, gen: Any, interval: float = 0.1) -> Any:
            if self.limit < _UNLIMITED:  # psycopg waits for its own generators in C
                gen = _limited(gen, self.limit, psycopg.OperationalError)
            return super().wait(gen, interval)

    return Timed


def _limited(gen: Any, limit: float, error: type[Exception]) -> Generator[Any, Any, Any]:
    """Run one of psycopg's generators for a limited time."""
    until = time.monotonic() + limit
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > until:
                gen.close()
                raise error(LATE)
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value
