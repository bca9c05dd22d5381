"""Connect a backend to its server: the session's settings and time limits, and errors of its room.

No error contains an address, account or password, and nothing is logged.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.backends.postgres.wire import adapt_vectors
from carag.errors import BackendUnavailable
from carag.postgres.address import check_name, driver
from carag.postgres.connection import described
from carag.postgres.freed import free
from carag.postgres.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_SETTINGS: Final = {
    "jit": "off",  # compiling would take longer than the statements, which take a few milliseconds
    "row_security": "on",
}

_Made = TypeVar("_Made")


class PostgresLink:
    """A backend's pool; ``schema`` holds the tables, ``timeout`` is in seconds a statement, ``most`` connections.

    Raises InvalidArgument if the address or the schema is not valid; MissingExtra if psycopg is not installed.
    """

    def __init__(self, url: str, schema: str, *, timeout: float = 30.0, most: int = 16) -> None:
        check_name(schema)
        self.schema = schema
        limit = f"{timeout * 1000:.0f}ms"
        settings = {
            **_SETTINGS,
            # No other user's tables come after our own, and temporary tables come last.
            "search_path": f"{schema}, public, pg_temp",
            "statement_timeout": limit,
            "lock_timeout": limit,
            "idle_in_transaction_session_timeout": f"{2 * timeout * 1000:.0f}ms",
        }
        self._pool = Pool(
            url,
            settings,
            timeout=timeout,
            limit=timeout + 1,  # the server's own limit should come first
            most=most,
            prepare=adapt_vectors,
            connect_timeout=max(2, min(10, int(timeout))),  # seconds
            prepare_threshold=None,
        )

    def read(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work in one read-only snapshot."""
        with self._reported():
            return self._pool.read(work)

    def write(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work that may be repeated in one transaction."""
        with self._reported():
            return self._pool.write(work)

    def unhurried(self, work: Callable[[Any], _Made]) -> _Made:
        """Do some work once, in one transaction without a time limit, on a connection of its own."""
        with self._reported():
            return self._pool.unhurried(work)

    def free(self, tables: Sequence[str]) -> None:
        """Write tables of the schema again without deleted rows, without a time limit."""
        with self._reported(), closing(self._pool.new()) as db:
            db.limit = float("inf")
            db.execute("SET statement_timeout TO 0")
            free(db, [f"{self.schema}.{table}" for table in tables])

    def close(self) -> None:
        """Close all connections; idempotent."""
        self._pool.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except driver().Error as error:
            said = described(error, self._pool.url)
            raise BackendUnavailable(
                f"PostgreSQL did not answer, and nothing was changed in part: {said}"
            ) from None
