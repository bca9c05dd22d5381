"""Keep a second copy of the records in PostgreSQL, for teams, with an append-only table of requests.

PostgreSQL commits first, then ``audit.db``; nothing is released before both. A crash between the two leaves PostgreSQL
ahead by one batch, which :mod:`carag.audit.log.catch_up` takes over: the only state there is to recover.

The server is not trusted. The application's role can insert and read, and a trigger stops everybody else, including
the owner of the tables; but an administrator can lift both. So what is there is compared with the signed log: triggers,
grants and end at each opening, everything by ``carag audit verify``.

One connection writes, under an advisory lock that it keeps while the log is open (one writer, also across machines)
and, in every transaction, under another one that keeps the end unchanged while it is compared with the batch. The next
batch replaces a lost connection. Needs ``psycopg`` 3 (``pip install carag-engine[postgres]``).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit._postgres import (
    Place,
    check_durable,
    connected,
    keep_alive,
    psycopg_driver,
    talking,
)
from carag.audit.log.postgres_tables import COLUMNS, wrong_with
from carag.audit.log.requests import RequestRow, request_rows
from carag.errors import AuditUnavailable, CorruptFile, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from carag.audit.log.backend import Batch
    from carag.audit.records.draft import Draft

__all__ = ["End", "EvidenceReader", "Place", "PostgresEvidence"]

_MAX_BIGINT: Final = (1 << 63) - 1
_PAGE_ROWS: Final = 1000
"""Rows fetched at a time."""


class End(NamedTuple):
    """Where the records on the server end."""

    size: int
    note: str
    """The newest checkpoint."""


class EvidenceReader:
    """Reads the evidence over one connection, which needs only the SELECT privilege, in one fixed state.

    Raises AuditUnavailable if the server cannot be reached or there are no tables.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._db = self._connected()
        try:
            with self._talking():
                self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except BaseException:
            self.close()
            raise

    @property
    def where(self) -> str:
        """The server, the database and the schema, without any password."""
        return self._where

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._db.close()

    def wrong(self) -> list[str]:
        """Return what differs from how tables, triggers and grants were set up."""
        with self._talking():
            return list(wrong_with(self._db, self.place.schema))

    def newest(self) -> End | None:
        """Return the end, or None if all is empty; CorruptFile if the newest checkpoint does not cover all records."""
        with self._talking():
            (size,) = self._db.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM record").fetchone()
            row = self._db.execute("SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1").fetchone()
        if (0 if row is None else row[0]) != size:
            raise CorruptFile(
                f"{self._where}: there are records up to {size}, but the newest checkpoint covers "
                f"{'none' if row is None else row[0]}; restore the database from a backup"
            )
        return None if row is None else End(*row)

    def bodies(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        for seq, body in self._pages("record", start, stop):
            yield seq, bytes(body)

    def requests(self) -> Iterator[RequestRow]:
        """Yield all rows of the table of requests, in order."""
        for row in self._pages("request", 0, _MAX_BIGINT):
            yield RequestRow(*row)

    def checkpoints(self) -> Iterator[End]:
        """Yield all checkpoints, in order."""
        for row in self._pages("checkpoint", 0, _MAX_BIGINT):
            yield End(*row)

    def _pages(self, table: str, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
        key = next(iter(COLUMNS[table]))
        query = (
            f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE {key} >= %s AND {key} < %s "  # noqa: S608 - ours
            f"ORDER BY {key} LIMIT {_PAGE_ROWS}"
        )
        while True:
            with self._talking():
                rows = self._db.execute(query, (start, stop), binary=True).fetchall()
            if not rows:
                return
            yield from rows
            start = rows[-1][0] + 1

    def _connected(self) -> Any:
        with talking(self.place.url), contextlib.ExitStack() as undo:
            db = connected(self.place.url)
            undo.callback(db.close)
            self._where = (
                f"PostgreSQL {db.info.host}:{db.info.port}/{db.info.dbname}, schema {self.place.schema}"
            )
            db.execute(f"SET search_path TO {self.place.schema}")
            db.execute("SET TimeZone TO 'UTC'")
            undo.pop_all()
        return db

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        with talking(self.place.url, self._where):
            yield


class PostgresEvidence(EvidenceReader):
    """Writes the evidence, as the one writer.

    Raises StoreLocked if another writer has the log open, here or on another machine; AuditUnavailable if the server
    cannot be reached, tables, triggers or grants are not as they were set up, the role may do more or less than insert
    and read, or the server does not sync to disk.
    """

    def __init__(self, place: Place) -> None:
        self.place, self._closed = place, False
        self._end: End | None = None  # None if it is not known
        self._db = self._connected()
        try:
            self.is_empty = self.newest() is None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._closed = True
        driver = psycopg_driver()
        if not self._db.closed and self._db.info.transaction_status == driver.pq.TransactionStatus.IDLE:
            # The server may release a closed connection's lock later; the next writer must find it free.
            with contextlib.suppress(driver.Error):
                self._db.execute("SELECT pg_advisory_unlock_all()")
        self._db.close()

    def end(self) -> End:
        """Return where the records end, after connecting again if the connection was lost.

        Raises CorruptFile if the tables were emptied, or the log was never copied there; AuditUnavailable if the server
        cannot be reached, or is no longer set up correctly.
        """
        if self._closed:
            raise AuditUnavailable(f"{self._where} is closed; open the log again")
        if self._end is None:
            if self._db.closed:
                self._db = self._connected()
            self._end = self.newest()
        if self._end is None:
            raise CorruptFile(
                f"{self._where} is empty, but it held the log's evidence; restore it from a backup, or keep the "
                "evidence in another schema, which is filled: carag audit postgres"
            )
        return self._end

    def append(self, batch: Batch, drafts: Iterable[Draft]) -> None:
        """Add a batch and the rows of its requests, in one transaction, or change nothing.

        Empty tables stay empty: :meth:`fill` gives them the whole log at once. Raises AuditUnavailable if the server
        does not end at ``batch.first``, or it is not certain that the batch is durable; :meth:`end` finds out, once the
        server can be reached.
        """
        if not self.is_empty:
            rows = request_rows(batch.bodies, drafts)
            self._write([(batch.first, batch.bodies, rows)], batch.first, End(batch.size, batch.note))

    def fill(
        self, pages: Iterable[tuple[int, Sequence[bytes], Sequence[RequestRow]]], size: int, note: str
    ) -> None:
        """Add a whole log to empty tables, in one transaction; errors as :meth:`append`."""
        self._write(pages, 0, End(size, note))
        self.is_empty = False

    def _write(
        self, pages: Iterable[tuple[int, Sequence[bytes], Sequence[RequestRow]]], before: int, after: End
    ) -> None:
        if self._closed:
            raise AuditUnavailable(f"{self._where} is closed; open the log again")
        self._end = None
        marks = ", ".join(["%s"] * len(COLUMNS["request"]))
        with self._talking(), self._db.transaction():
            execute = self._db.execute
            execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (self.place.schema,))
            if (self.newest() or End(0, "")).size != before:
                raise AuditUnavailable(
                    f"{self._where} no longer ends where this process left it; open the log again"
                )
            for first, bodies, requests in pages:
                execute(
                    "INSERT INTO record SELECT %s::bigint + place - 1, item "
                    "FROM unnest(%b::bytea[]) WITH ORDINALITY AS t (item, place)",
                    (first, list(bodies)),
                )
                if requests:
                    insert = f"INSERT INTO request VALUES ({marks})"  # noqa: S608 - marks
                    self._db.cursor().executemany(insert, requests)
            execute("INSERT INTO checkpoint VALUES (%s, %s)", after)
        self._end = after

    def _connected(self) -> Any:
        db, driver = super()._connected(), psycopg_driver()
        with self._talking(), contextlib.ExitStack() as undo:
            undo.callback(db.close)
            db.isolation_level = driver.IsolationLevel.READ_COMMITTED
            keep_alive(db)
            check_durable(db, self._where)
            if wrong := list(wrong_with(db, self.place.schema)):
                raise AuditUnavailable(
                    f"{self._where} is not as it was set up: {'; '.join(wrong)}. Find out who did that; then set it up "
                    "again as an administrator: carag audit postgres --admin"
                )
            for table in COLUMNS:
                query = "SELECT has_table_privilege(%s, 'SELECT') AND has_table_privilege(%s, 'INSERT')"
                if db.execute(query, (table, table)).fetchone() != (True,):
                    raise AuditUnavailable(
                        f"{self._where}: role {self.place.role} lacks SELECT or INSERT on {table}; connect as the "
                        "role that carag audit postgres --admin created"
                    )
            held = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
            if db.execute(held, (self.place.schema,)).fetchone() != (True,):
                raise StoreLocked(f"another writer holds {self._where}; close it first")
            undo.pop_all()
        return db
