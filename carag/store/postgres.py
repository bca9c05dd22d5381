"""Keep the corpus in PostgreSQL, so that several processes share one store: the same tables, statements and promises.

The administrator who sets it up (:func:`set_up`) owns the tables. The application's account may add rows, and change
the few columns that a store ever changes; it may not delete or alter anything else. So documents are erased over a
connection of the administrator (:meth:`PostgresStore.administered`). An advisory lock admits one writing transaction at
a time across all processes, just as a file has one writer; readers never wait for it.

Notes about one process's files, such as its index, have names of their own (:meth:`own_note`).
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from carag.errors import BackendUnavailable, CaragError, CorruptFile, InvalidArgument, StoreLocked
from carag.postgres.address import driver
from carag.postgres.connection import check_same_database, connected, described
from carag.postgres.dialect import InPostgres, in_postgres, table_in_postgres
from carag.postgres.freed import BEYOND, STATISTICS, clears_statistics, free
from carag.postgres.locks import lock
from carag.postgres.pool import Pool
from carag.postgres.rights import grant
from carag.store._audiences import AUDIENCE_TABLES
from carag.store._group_tables import GROUP_TABLES
from carag.store._label_history import system_clock
from carag.store._schema import SCHEMA_VERSION, TABLES
from carag.store.erasures import ERASURE_TABLES
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_FORMAT: Final = f"corpus of CARAG, schema {SCHEMA_VERSION}"
_ADDED: Final = {
    "corpus of CARAG, schema 3": (*GROUP_TABLES, *AUDIENCE_TABLES, *ERASURE_TABLES),
    "corpus of CARAG, schema 4": ERASURE_TABLES,
}
"""The tables that a store of an earlier schema lacks."""
_MAY: Final = {
    "meta": "SELECT, INSERT, UPDATE (value)",
    "filings": "SELECT, INSERT, UPDATE (superseded_by_version, content_hash, facts, quarantine_code, "
    "quarantine_text, history)",
    "filing_ciks": "SELECT, INSERT",
    "entity_sets": "SELECT, INSERT",
    "chunks": "SELECT, INSERT, UPDATE (word)",
    "changes": "SELECT, INSERT, UPDATE (opened, closed)",
    "labels": "SELECT, INSERT, UPDATE (known_to)",
    "vectors": "SELECT, INSERT",
    "embedded": "SELECT, INSERT",
    "group_changes": "SELECT, INSERT",
    "groups": "SELECT, INSERT, UPDATE (since)",
    "memberships": "SELECT, INSERT, UPDATE (known_to)",
    "audiences": "SELECT, INSERT",
    "principals": "SELECT, INSERT",
    "document_audiences": "SELECT, INSERT",
    "label_audiences": "SELECT, INSERT",
    "erased": "SELECT",
    "erased_labels": "SELECT",
    "current_filings": "SELECT",
}
"""Rights of the application's account."""
_ERASED_FROM: Final = (
    "meta",
    "filings",
    "filing_ciks",
    "entity_sets",
    "chunks",
    "labels",
    "vectors",
    "embedded",
    "audiences",
    "principals",
    "document_audiences",
    "label_audiences",
)
"""Tables from which an erasure removes something."""
_ROWS: Final = 2000
"""Rows fetched at a time when rows are streamed."""
_PATIENCE: Final = "60s"
"""How long to wait for another writer's transaction."""
_CONNECTIONS: Final = 4
"""Most connections that a process has at once, besides those that stream rows and the one for a turn."""
_WRITES, _TURNS, _CHANGES = 0, 1, 2
"""Seeds of a store's advisory locks: for one transaction, for a whole run that writes, and for what is in force."""


def set_up(db: Any, schema: str, role: str) -> None:
    """Make the tables of an empty store for an application's account; existing tables stay.

    A store of an earlier schema gets the tables that it lacks.

    ``db`` is an administrator's connection of psycopg; the administrator will own the tables. ``schema`` and ``role``
    have been checked to be plain names. Raises CorruptFile if the schema holds something else.
    """
    with db.transaction():
        if (said := _comment(db, schema)) is None or said in _ADDED:
            if said is None:
                db.execute(f"CREATE SCHEMA {schema}")
            db.execute(f"SET LOCAL search_path TO {schema}")
            for statement in TABLES if said is None else _ADDED[said]:
                db.execute(table_in_postgres(statement))
            db.execute(f"COMMENT ON SCHEMA {schema} IS '{_FORMAT}'")
        elif said != _FORMAT:
            raise CorruptFile(
                f"schema {schema} holds {said or 'something'!r}, not a {_FORMAT}; name another schema"
            )
        grant(db, schema, role, _MAY)


class PostgresStore(CorpusStore):
    """An open store in PostgreSQL. Safe to share between threads, and between processes.

    Raises CorruptFile if there is no store of this version; BackendUnavailable if the server cannot be reached;
    CaragError if the account could delete or alter what is stored.

    Parameters
    ----------
    url : str
        The address of the store's database.
    schema : str
    path : Path
        The file that says where the store is; messages name the store by it.
    own : str
        Distinguishes the notes about this process's files from those of other processes.
    clock : callable
        Returns microseconds since 1970: when a transaction becomes known.
    """

    def __init__(
        self,
        url: str,
        schema: str,
        path: Path,
        *,
        own: str = "",
        clock: Callable[[], int] = system_clock,
    ) -> None:
        super().__init__(path, None, timeout=0, clock=clock)
        self._schema, self._own = schema, own
        self._pool = Pool(
            url, {"search_path": f"{schema}, pg_temp", "lock_timeout": _PATIENCE}, most=_CONNECTIONS
        )
        self._write_lock, self._turn_lock = threading.RLock(), threading.RLock()
        self._turns = 0
        self._mine = threading.local()  # the connection of a thread that is reading or writing
        self._is_writing, self._closed = False, False
        self._admin: Any = None
        try:
            with self._translating(), self._pool.lent() as db:
                _check(db, schema, path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections; idempotent."""
        with self._write_lock:
            self._closed = True
            self._pool.close()

    places = ("postgresql",)

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may hold erased rows: in addition, a process's own files until its next question or opening."""
        clears = self._admin is None or clears_statistics(self._admin)
        return (*BEYOND, "other-engines", *(() if clears else (STATISTICS,)))

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write."""
        return True

    def purge(self) -> None:
        """Do nothing: the tables are written again at the end of :meth:`administered`."""

    @contextmanager
    def administered(self, admin: str | None) -> Iterator[None]:
        """As in the base class; at the end, the tables are written again, for which readers wait.

        Raises InvalidArgument, and does nothing, if no address is given, or it is another database's or account's;
        StoreLocked if others keep the tables, or can still read what was erased.
        """
        if admin is None:
            raise InvalidArgument(
                f"{self.path} is a store in PostgreSQL, whose application's account may not erase; nothing was erased: "
                "give the address of the administrator that set the store up, with admin=URL (on the command line, "
                "--admin URL)"
            )
        settings = {"search_path": f"{self._schema}, pg_temp", "lock_timeout": _PATIENCE}
        with self._translating(admin), closing(connected(admin, settings)) as db:
            with self._pool.lent() as own:
                check_same_database(own, db)
            _check_owner(db, self._schema)
            self._admin = db
            try:
                yield
                free(db, [f"{self._schema}.{table}" for table in _ERASED_FROM])
            finally:
                self._admin = None

    @contextmanager
    def _erasing(self) -> Iterator[Any]:
        if self._admin is None:
            raise CaragError(f"{self.path}: documents are erased by the administrator alone")
        with self._write_lock, self._translating(), self._admin.transaction():
            sql = InPostgres(self._admin)
            lock(sql, self._schema, _WRITES)
            yield sql
        self.forget()

    def own_note(self, name: str) -> str:
        """Return the name of a note about this process's own files."""
        return f"{name} of {self._own}" if self._own else name

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one process at a time do what takes several transactions; others wait. A thread may enter again."""
        with self._turn_lock, ExitStack() as held:
            if not self._turns:
                with self._translating():
                    db = held.enter_context(closing(self._pool.new()))
                    db.execute("SET lock_timeout TO 0")
                    lock(db, self._schema, _TURNS, session=True)
            self._turns += 1
            try:
                yield
            finally:
                self._turns -= 1

    @contextmanager
    def changing(self) -> Iterator[None]:
        """As in the base class; StoreLocked if another live process keeps the lock for a minute."""
        with self._translating(), closing(self._pool.new()) as db:
            lock(db, self._schema, _CHANGES, session=True)
            yield

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        if (sql := getattr(self._mine, "sql", None)) is not None:
            yield sql
            return
        with self._translating(), self._pool.lent() as db:
            self._mine.sql = InPostgres(db)
            try:
                yield self._mine.sql
            finally:
                self._mine.sql = None

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._noting() as sql:
            lock(sql, self._schema, _WRITES)
            yield sql

    @contextmanager
    def _noting(self) -> Iterator[Any]:
        with self._write_lock:
            if self._is_writing:
                raise CaragError("this thread has a transaction of the store open already; end it first")
            self._is_writing = True
            try:
                with self._reading() as sql, sql.transaction():
                    yield sql
            finally:
                self._is_writing = False

    def _snapshot(self, query: str, parameters: Any = ()) -> Iterator[Any]:
        """Stream rows over a separate connection."""
        with (
            self._translating(),
            closing(self._pool.new()) as db,
            db.transaction(),
            db.cursor(name="rows") as cursor,
        ):
            cursor.itersize = _ROWS
            cursor.execute(in_postgres(query), parameters or None)
            yield from cursor

    @contextmanager
    def _translating(self, url: str | None = None) -> Iterator[None]:
        if self._closed:
            raise CaragError(f"the store {self.path} is closed; open it again")
        try:
            yield
        except driver().errors.LockNotAvailable as error:
            raise StoreLocked(f"{self.path} is in use by another writer; wait until it is done") from error
        except driver().OperationalError as error:
            said = described(error, url or self._pool.url)
            raise BackendUnavailable(f"the store of {self.path} cannot be reached: {said}") from error
        except driver().Error as error:
            said = described(error, url or self._pool.url)
            raise CaragError(f"{self.path}: {said}; nothing was stored") from error


def _comment(db: Any, schema: str) -> str | None:
    query = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s"
    row = db.execute(query, (schema,)).fetchone()
    return None if row is None else str(row[0])


def _check_owner(db: Any, schema: str) -> None:
    query = (
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s "
        "AND c.relname = ANY(%s) AND NOT pg_has_role(current_user, c.relowner, 'MEMBER')"
    )
    if db.execute(query, (schema, list(_MAY))).fetchone()[0]:
        raise InvalidArgument(
            "the account in the administrator's address does not own the store's tables; nothing was erased: give the "
            "address of the administrator that set the store up"
        )


def _check(db: Any, schema: str, path: Path) -> None:
    """Raise an error for tables of another version, and for an account that owns them or could delete."""
    if (said := _comment(db, schema)) != _FORMAT:
        raise CorruptFile(
            f"{path}: schema {schema} holds {said or 'nothing'!r}, but this CARAG reads {_FORMAT!r}; set the store up: "
            "carag share --admin"
        )
    query = (
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s "
        "AND c.relname = ANY(%s) AND (pg_has_role(current_user, c.relowner, 'MEMBER') "
        "OR has_table_privilege(c.oid, 'DELETE, TRUNCATE') OR NOT has_table_privilege(c.oid, 'SELECT'))"
    )
    for (table,) in db.execute(query, (schema, list(_MAY))).fetchall():
        raise CaragError(
            f"{path}: the account may delete or alter what is in {table}, or cannot read it; connect with the "
            "account that carag share --admin made, which does not own the tables"
        )
