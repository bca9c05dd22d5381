"""Keep the sealed values of a log that several processes write, in the same transaction as its records.

They are sealed as in a log's file, under keys that are in no database: every process has a copy of ``private.key``.
An erasure replaces that key. It leaves the new key on the server, sealed under the old one; every other process takes
over the new key, and destroys the old one in its own file, before it next reads or writes a value.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from carag.audit.private.keys import SUCCESSORS, PrivateKeys
from carag.audit.private.store import PrivateStore
from carag.errors import AuditUnavailable, CorruptFile
from carag.postgres.dialect import InPostgres
from carag.postgres.rights import grant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.audit._shared import SharedLink


_TABLES: Final = {
    "shelf": "id bigint PRIMARY KEY, wrapped bytea NOT NULL",
    "holder": "id bigint PRIMARY KEY, pseudonym bytea NOT NULL UNIQUE, wrapped bytea NOT NULL",
    "value": "seq bigint, field text, holder bigint NOT NULL, box bytea NOT NULL, PRIMARY KEY (seq, field)",
    "erased": "seq bigint, field text, record bigint NOT NULL, PRIMARY KEY (seq, field)",
    "planned": "seq bigint, field text, PRIMARY KEY (seq, field)",
    "hold": "placed bigint PRIMARY KEY, holder bigint, first bigint, last bigint",
    "successor": "old bytea PRIMARY KEY, wrapped bytea NOT NULL",
    "state": "id bigint PRIMARY KEY CHECK (id = 0), wrapping bytea NOT NULL, settled bigint NOT NULL",
}
"""Columns as in :data:`~carag.audit.private.store.VALUE_TABLES`, and each wrapping key by the one before it."""


def make_values(db: Any, schema: str, role: str) -> None:
    """Create whatever is missing among the tables and grants; run by an administrator, who owns them."""
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for table, columns in _TABLES.items():
        db.execute(f"CREATE TABLE IF NOT EXISTS {schema}.{table} ({columns})")
    db.execute(f"CREATE INDEX IF NOT EXISTS value_holder ON {schema}.value (holder)")
    grant(db, schema, role, dict.fromkeys(_TABLES, "SELECT, INSERT, UPDATE, DELETE"))


class SharedValues(PrivateStore):
    """Sealed openings in PostgreSQL; ``directory`` holds ``private.key``."""

    def __init__(self, link: SharedLink, directory: Path, *, may_lose: bool) -> None:
        self._shared, self._path = link, directory / "private.key"
        self._db: Any = InPostgres(link)
        self.is_lost = not link.execute("SELECT EXISTS (SELECT FROM state)").fetchone()[0]
        if self.is_lost and not may_lose:
            raise CorruptFile(
                f"{link.where} has records but not their values; restore the newest backup of the database"
            )
        self._begin()
        # This comes before anything takes the lock of a turn: a holder of one of the two locks never waits for the
        # other.
        self._mutex, link.undone = link.mutex, self._forget
        makes = self.is_lost and not self._path.exists()
        self._keys = PrivateKeys(self._path, new=makes)
        if self.is_lost:
            with link.turn() as db:
                db.execute("INSERT INTO state VALUES (0, %s, 0) ON CONFLICT DO NOTHING", (self._keys.newest,))
        self._take_key()

    def start_over(self) -> None:
        """Do nothing: its tables are empty."""

    @contextlib.contextmanager
    def settling(self) -> Iterator[None]:
        """As in the base class, but for all processes."""
        with self._shared.operating(), super().settling():
            yield

    def settle(self, size: int, *, durably: bool = True) -> None:  # noqa: ARG002 - the base class has it
        """As in the base class, but always durably, because no batch notes it."""
        super().settle(size)

    def _note_settled(self, db: Any, batch: range) -> None:
        """Do nothing: another process's operation may be recorded but not carried out yet."""

    def _hand_on(self, db: Any, newest: bytes) -> None:
        """Leave the new key to the other processes, within the transaction that puts it in force."""
        db.execute(
            "INSERT INTO successor VALUES (?, ?)",
            (self._wrapping_id, self._keys.sealed(newest, self._wrapping)),
        )

    def _take_key(self) -> None:
        if self._shared.execute("SELECT to_regclass('successor') IS NULL").fetchone()[0]:
            raise AuditUnavailable(
                f"{self._shared.where} was set up by an earlier version; set it up again as an administrator, with "
                "carag share --admin, which keeps what is there"
            )
        self._wrapping_id = b""
        with self._shared.turn():
            self._follow_keys()

    def _follow_keys(self) -> None:
        """Within a turn, take over the key that the last erasure, by any process, put in force."""
        wrapping = bytes(self._shared.execute("SELECT wrapping FROM state").fetchone()[0])
        if wrapping != self._wrapping_id:
            self._keys.follow(self._shared.execute(SUCCESSORS).fetchall())
            self._wrapping_id, self._wrapping = wrapping, self._keys.wrapping(wrapping)
            self._keys.keep_only(wrapping)
            self._forget()

    def _purge(self) -> None:
        """Do nothing: any remains of a row on the server are sealed under a key that is gone."""

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._shared.turn() as db:
            self._follow_keys()
            yield InPostgres(db)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with self._shared.turn():  # so that no erasure replaces keys in between
            self._follow_keys()
            yield
