"""Store records in PostgreSQL, for teams: the same bytes and the same proofs as in ``audit.db``.

The server is not trusted. Grants prevent the application from altering what it wrote, and :func:`set_up` creates a role
that can only insert and read; but an administrator of the server can lift any grant or trigger without a trace, so
alterations are detected by the signed checkpoint, as everywhere else.

Keys and private values stay in the log's local directory: the database holds no personal data. One connection
writes, under an advisory lock that it keeps while the log is open (one writer, also across machines) and, in every
transaction, under another one that keeps the store's end unchanged while it is compared with the batch.
Needs ``psycopg`` 3 (``pip install carag-engine[postgres]``).
"""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, Any, Final

from carag.audit.tlog.merkle import stored_hash_count, stored_hash_index
from carag.errors import AuditUnavailable, CaragError, CorruptFile, InvalidArgument, MissingExtra, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit.log.backend import Backend, BackendOpener, Batch

__all__ = [
    "COLUMNS",
    "CONNECT_SECONDS",
    "DEFAULT_SCHEMA",
    "PostgresBackend",
    "PostgresReader",
    "backend_at",
    "check_name",
    "failing",
    "psycopg_driver",
]

DEFAULT_SCHEMA: Final = "carag_audit"
"""The schema of a log, unless another is given."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
COLUMNS: Final = {
    "rec": {"seq": "bigint", "body": "bytea"},
    "node": {"i": "bigint", "hash": "bytea"},
    "cp": {"size": "bigint", "note": "text"},
    "begun": {"seq": "bigint"},
    "ended": {"seq": "bigint"},
}
_MAX_BIGINT: Final = (1 << 63) - 1
_PAGE_ROWS: Final = 1000
"""Rows fetched at a time."""
CONNECT_SECONDS: Final = 10
"""Time to connect to the server."""
_KEEPALIVE: Final = {"idle": 30, "interval": 10, "count": 3}  # seconds, seconds, tries
"""TCP keepalive, by which the server drops a writer whose machine is gone, and its lock, within a minute."""
_SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


def backend_at(url: str, *, schema: str = DEFAULT_SCHEMA) -> BackendOpener:
    """Return an opener for the ``backend`` argument of :meth:`AuditLog.open <carag.audit.AuditLog.open>`.

    Parameters
    ----------
    url : str
        ``postgresql://...`` with the role given to :func:`set_up`. Keep a password in ``~/.pgpass`` or a service file
        rather than here.
    schema : str

    Examples
    --------
    >>> opener = backend_at("postgresql://carag_app@db.example/audit")
    >>> AuditLog.open("keys-and-private-values", backend=opener)  # doctest: +SKIP
    """
    check_name(schema)

    def opened(create: bool, empty: str) -> Backend:
        return PostgresBackend(url, schema=schema, create=create, empty=empty)

    return opened


class PostgresReader:
    """Reads a log for an auditor over one read-only connection, which needs only the SELECT privilege.

    Parameters
    ----------
    url, schema : str
        As in :func:`backend_at`.

    Raises
    ------
    CorruptFile
        If the tables are not there or not those of an audit log.
    AuditUnavailable
        If the server cannot be reached.
    """

    def __init__(self, url: str, *, schema: str = DEFAULT_SCHEMA, create: bool = False) -> None:
        check_name(schema)
        self._schema, self._reading = schema, threading.Lock()
        with contextlib.ExitStack() as undo, failing(url):
            self._reader = psycopg_driver().connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
            undo.callback(self._reader.close)
            info = self._reader.info
            self._where = f"PostgreSQL {info.host}:{info.port}/{info.dbname}, schema {schema}"
            self._reader.execute(f"SET search_path TO {schema}")
            self._reader.execute("SET default_transaction_read_only TO on")
            self._check_tables(create=create)
            undo.pop_all()

    @property
    def where(self) -> str:
        """The server, the database and the schema; never a password."""
        return self._where

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._reader.close()

    def size(self) -> int:
        """Return one more than the last sequence number."""
        return int(self._one("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec")[0])

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is missing."""
        return self._bytes(self._one("SELECT body FROM rec WHERE seq = %s", seq), f"record {seq}")

    def bodies(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        return self._pages("SELECT seq, body FROM rec WHERE seq >= %s AND seq < %s ORDER BY seq", start, stop)

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is missing."""
        row = self._one("SELECT hash FROM node WHERE i = %s", stored_hash_index(level, n))
        return self._bytes(row, f"tree node ({level}, {n})")

    def nodes(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the nodes with ``start <= index < stop``, in order."""
        return self._pages("SELECT i, hash FROM node WHERE i >= %s AND i < %s ORDER BY i", start, stop)

    def checkpoint(self) -> str:
        """Return the newest checkpoint; CorruptFile if there is none."""
        row = self._one("SELECT note FROM cp ORDER BY size DESC LIMIT 1")
        if row is None:
            raise CorruptFile(f"{self._where} has no checkpoint; restore the database from a backup")
        return str(row[0])

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        query = "SELECT seq FROM begun WHERE seq NOT IN (SELECT seq FROM ended) ORDER BY seq"
        return tuple(seq for (seq,) in self._all(query))

    def _check_tables(self, *, create: bool) -> None:
        query = (
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
        )
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in self._all(query, self._schema):
            found.setdefault(table, {})[column] = kind
        if {name: found.get(name) for name in COLUMNS} == COLUMNS:
            if create or self._one("SELECT 1 FROM cp LIMIT 1") is not None:
                return
            raise CorruptFile(f"{self._where} is empty though the log exists; restore it from a backup")
        if found or not create:
            raise CorruptFile(f"{self._where} does not have the tables of an audit log; restore them")
        raise AuditUnavailable(
            f"{self._where} has no tables yet; as an administrator run carag.audit.log.postgres_setup.set_up first"
        )

    # -- SQL

    def _one(self, query: str, *parameters: object) -> Any:
        rows = self._all(query, *parameters)
        return rows[0] if rows else None

    def _all(self, query: str, *parameters: object) -> list[Any]:
        with self._reading:
            try:
                rows: list[Any] = self._reader.execute(query, parameters, binary=True).fetchall()
            except Exception as error:
                if _is_of(error):
                    raise AuditUnavailable(f"{self._where} cannot be read: {_first_line(error)}") from error
                raise
        return rows

    def _pages(self, query: str, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
        end = _MAX_BIGINT if stop is None else stop
        while rows := self._all(f"{query} LIMIT {_PAGE_ROWS}", start, end):
            for number, value in rows:
                yield number, bytes(value)
            start = rows[-1][0] + 1

    def _bytes(self, row: Any, what: str) -> bytes:
        if row is None:
            raise CorruptFile(f"{self._where}: {what} is missing; restore the database from a backup")
        return bytes(row[0])


class PostgresBackend(PostgresReader):
    """Records, tree nodes, checkpoints and begins on a server, as :class:`~carag.audit.log.backend.Backend`.

    Checkpoints and ends of begins are rows that are added, because nothing may be deleted or updated.

    Parameters
    ----------
    url, schema : str
        As in :func:`backend_at`.
    create : bool
        Whether an empty store may be created.
    empty : str
        The checkpoint of the empty log.

    Raises
    ------
    StoreLocked
        If another writer has the log open, here or on another machine.
    CorruptFile
        If the tables are not there or not those of an audit log.
    AuditUnavailable
        If the server cannot be reached, gives this role more privileges than needed, or does not sync to disk.
    """

    def __init__(self, url: str, *, schema: str, create: bool, empty: str) -> None:
        driver = psycopg_driver()
        super().__init__(url, schema=schema, create=create)
        self._broken, self._closed = "", False
        with contextlib.ExitStack() as undo, failing(url):
            undo.callback(self._reader.close)
            self._db = driver.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
            undo.callback(self._db.close)
            self._db.isolation_level = driver.IsolationLevel.READ_COMMITTED
            self._db.execute(f"SET search_path TO {schema}")
            self._db.execute("SET synchronous_commit TO on")
            for name, value in _KEEPALIVE.items():
                self._db.execute(f"SET tcp_keepalives_{name} TO {value}")
            self._check_server()
            self._check_grants()
            self._lock()
            if create and self._one("SELECT 1 FROM cp LIMIT 1") is None:
                self._db.execute("INSERT INTO cp VALUES (0, %s)", (empty,))
            undo.pop_all()

    def close(self) -> None:
        """Close both connections; idempotent."""
        self._closed = True
        self._reader.close()
        driver = psycopg_driver()
        if not self._db.closed and self._db.info.transaction_status == driver.pq.TransactionStatus.IDLE:
            # The server may release a closed connection's lock later; the next writer must find it free.
            with contextlib.suppress(driver.Error):
                self._db.execute("SELECT pg_advisory_unlock_all()")
        self._db.close()

    def check_writable(self) -> None:
        """Raise AuditUnavailable if the store must no longer be written."""
        if self._closed or self._db.closed:
            self._broken = self._broken or "the connection is closed"
        if self._broken:
            raise AuditUnavailable(
                f"{self._where}: {self._broken}; open the log again, which reads what is there"
            )

    def append(self, batch: Batch) -> None:
        """Add a batch and its checkpoint, or change nothing."""
        self.check_writable()
        inserted = False
        try:
            with self._db.transaction():
                self._insert(batch)
                inserted = True
        except CaragError:
            raise
        except BaseException as error:
            if inserted or self._db.closed or self._db.broken:  # it is unknown what reached the disk
                self._broken = f"an earlier commit failed ({_first_line(error)})"
            if _is_of(error):
                raise AuditUnavailable(f"{self._where} cannot be written: {_first_line(error)}") from error
            raise

    # -- opening

    def _check_server(self) -> None:
        for name, wanted in _SETTINGS.items():
            (found,) = self._row(f"SHOW {name}")
            if found != wanted:
                raise AuditUnavailable(
                    f"{self._where} has {name} = {found}, so a power cut takes acknowledged records; "
                    f"want {name} = {wanted}"
                )

    def _check_grants(self) -> None:
        for table in COLUMNS:
            query = (
                "SELECT current_user, has_table_privilege(%s, 'SELECT') AND has_table_privilege(%s, 'INSERT'), "
                "has_table_privilege(%s, 'UPDATE, DELETE, TRUNCATE')"
            )
            name = f"{self._schema}.{table}"
            role, enough, too_much = self._row(query, name, name, name)
            if not enough or too_much:
                raise AuditUnavailable(
                    f"{self._where}: role {role} may {'alter or delete' if enough else 'not read and insert'} in "
                    f"{table}; connect as the role that carag.audit.log.postgres_setup.set_up made, which may only "
                    "insert and read"
                )

    def _lock(self) -> None:
        (held,) = self._row("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", self._schema)
        if not held:
            raise StoreLocked(f"another writer holds {self._where}; close it first")

    def _insert(self, batch: Batch) -> None:
        execute = self._db.execute
        execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (self._schema,))
        (size,) = self._row("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec")
        if size != batch.first:
            raise AuditUnavailable(
                f"{self._where} no longer ends where this process left it; open the log again"
            )
        rows = (
            "SELECT %s::bigint + place - 1, item FROM unnest(%b::bytea[]) WITH ORDINALITY AS t (item, place)"
        )
        execute(f"INSERT INTO rec {rows}", (batch.first, list(batch.bodies)))
        hashes = [node.hash for node in batch.nodes]
        execute(f"INSERT INTO node {rows}", (stored_hash_count(batch.first), hashes))
        for table, numbers in (("begun", batch.begun), ("ended", batch.ended)):
            if numbers:
                execute(f"INSERT INTO {table} SELECT unnest(%s::bigint[])", (list(numbers),))
        execute("INSERT INTO cp VALUES (%s, %s)", (batch.size, batch.note))

    def _row(self, query: str, *parameters: object) -> Any:
        return self._db.execute(query, parameters).fetchone()


def psycopg_driver() -> Any:
    """Import psycopg; MissingExtra if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("evidence in PostgreSQL needs: pip install carag-engine[postgres]") from error
    return psycopg


def _is_of(error: BaseException) -> bool:
    return isinstance(error, psycopg_driver().Error)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextlib.contextmanager
def failing(url: str) -> Iterator[None]:
    """Translate errors while connecting into AuditUnavailable, without the URL, which may hold a password."""
    try:
        yield
    except Exception as error:
        if not _is_of(error):
            raise
        said = _first_line(error).replace(url, "the server")
        raise AuditUnavailable(f"PostgreSQL cannot be used for the audit log: {said}") from None


def check_name(name: str) -> None:
    """Check that a name is safe, because it becomes part of statements."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InvalidArgument(
            f"{name!r} is no schema or role; want lower case letters, digits and underscores"
        )
