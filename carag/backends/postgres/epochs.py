"""Keep the epochs of sharded collections in a PostgreSQL database.

A turn is a lock held by one connection, over which its writer also records and publishes: a writer that has lost its
connection has lost its turn, and cannot publish.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from carag.backends.epochs import Published, WriteIntent, check_new, check_same, names_of
from carag.backends.postgres.link import PostgresLink
from carag.errors import InvalidArgument
from carag.limits import check_label, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.backends.epochs import Turn
    from carag.backends.protocol import IndexState

__all__ = ["PostgresEpochs"]

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS sharded (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL UNIQUE,
    shards text[] NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS published (
    sharded integer NOT NULL REFERENCES sharded,
    epoch bigint NOT NULL,
    batch text NOT NULL,
    parts text NOT NULL,
    PRIMARY KEY (sharded, epoch),
    UNIQUE (sharded, batch)
);
CREATE TABLE IF NOT EXISTS intent (
    sharded integer PRIMARY KEY REFERENCES sharded,
    number bigint NOT NULL,
    batch text NOT NULL,
    kind text NOT NULL,
    keys bigint[] NOT NULL,
    words bigint[] NOT NULL
);
"""
_REMEMBERED: Final = 64
"""Epochs that are cached."""
_KEEPALIVE: Final = {"idle": 30, "interval": 10, "count": 3}  # seconds, seconds, tries
"""Settings with which the server passes the turn of a vanished machine to the next writer within a minute."""


class PostgresEpochs:
    """Epochs of one sharded collection, in a database that may also be one of its shards.

    Parameters
    ----------
    dsn, timeout
        As of :class:`~carag.backends.PostgresBackend`.
    collection : str
    schema : str
        Holds the tables, which are created if missing.
    """

    def __init__(
        self, dsn: str, *, collection: str = "carag", schema: str = "carag_epochs", timeout: float = 30.0
    ) -> None:
        check_label("collection", collection)
        self._collection = collection
        self._link = PostgresLink(dsn, schema, timeout=timeout)
        self._id = -1
        self._seen: dict[int, Published] = {}

    def __repr__(self) -> str:
        return f"<PostgresEpochs {self._collection!r}>"

    def close(self) -> None:
        """See :class:`~carag.backends.epochs.Epochs`."""
        self._link.close()

    def bind(self, shards: tuple[IndexState, ...]) -> Published:
        """See :class:`~carag.backends.epochs.Epochs`."""

        def work(db: Any) -> int:
            find = (
                "SELECT id, shards, epoch = 0 AND NOT EXISTS (SELECT FROM intent WHERE sharded = id) FROM sharded "
                "WHERE name = %s"
            )
            self._make_tables(db)
            row = db.execute(find, (self._collection,)).fetchone()
            if row is None:
                made = "INSERT INTO sharded (name, shards) VALUES (%s, %s) RETURNING id, shards, true"
                row = db.execute(made, (self._collection, names_of(shards))).fetchone()
                first = "INSERT INTO published VALUES (%s, 0, '', %s)"
                db.execute(first, (row[0], Published(0, shards).text()))
            check_same(row[1], shards)
            if row[2]:
                check_new(shards)
            return int(row[0])

        self._id = self._link.write(work)
        return self.at(None)

    def at(self, epoch: int | None) -> Published:
        """See :class:`~carag.backends.epochs.Epochs`."""
        if epoch is not None and epoch in self._seen:  # a published epoch never changes
            return self._seen[epoch]
        found = self._link.read(lambda db: self.read(db, epoch))
        kept = self._seen if len(self._seen) < _REMEMBERED else {}
        self._seen = {**kept, found.epoch: found}
        return found

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """See :class:`~carag.backends.epochs.Epochs`."""
        with self._link.own() as db:
            for name, value in _KEEPALIVE.items():
                db.execute(f"SET tcp_keepalives_{name} TO {value}")
            # No limit for waiting: the previous writer's time is limited.
            db.execute("SELECT pg_advisory_lock(hashtextextended(%s, %s))", (self._link.schema, self._id))
            yield _PostgresTurn(self, db, self._id)

    def _make_tables(self, db: Any) -> None:
        from psycopg import sql

        schema = self._link.schema
        if db.execute("SELECT to_regnamespace(%s) IS NULL", (schema,)).fetchone()[0]:
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    db.execute(statement)

    def read(self, db: Any, epoch: int | None) -> Published:
        """Read an epoch within a transaction, by default the last."""
        last = db.execute("SELECT epoch FROM sharded WHERE id = %s", (self._id,)).fetchone()[0]
        wanted = last if epoch is None else epoch
        if wanted in self._seen:
            return self._seen[wanted]
        query = "SELECT epoch, parts FROM published WHERE sharded = %s AND epoch = %s"
        row = db.execute(query, (self._id, wanted)).fetchone()
        if row is None:
            raise InvalidArgument(f"epoch {quoted(wanted)} does not exist yet; the last is {last}")
        return Published.read(*row)


class _PostgresTurn:
    """A turn: see :class:`~carag.backends.epochs.Turn`."""

    def __init__(self, epochs: PostgresEpochs, db: Any, own: int) -> None:
        self._epochs, self._db, self._id = epochs, db, own

    def last(self) -> Published:
        with self._db.transaction():
            return self._epochs.read(self._db, None)

    def done(self, batch: str) -> Published | None:
        query = "SELECT epoch, parts FROM published WHERE sharded = %s AND batch = %s"
        row = self._db.execute(query, (self._id, batch)).fetchone()
        return None if row is None else Published.read(*row)

    def left(self) -> WriteIntent | None:
        query = "SELECT number, batch, kind, keys, words FROM intent WHERE sharded = %s"
        row = self._db.execute(query, (self._id,), binary=True).fetchone()
        return None if row is None else WriteIntent._make((*row[:3], tuple(row[3]), tuple(row[4])))

    def intend(self, kind: str, batch: str, keys: tuple[int, ...], words: tuple[int, ...]) -> WriteIntent:
        with self._db.transaction():
            next_number = "UPDATE sharded SET number = number + 1 WHERE id = %s RETURNING number"
            (number,) = self._db.execute(next_number, (self._id,)).fetchone()
            self._db.execute(
                "INSERT INTO intent VALUES (%s, %s, %s, %s, %s, %s)",
                (self._id, number, batch, kind, list(keys), list(words)),
            )
        return WriteIntent(number, batch, kind, keys, words)

    def publish(self, intent: WriteIntent, parts: tuple[IndexState, ...]) -> Published:
        with self._db.transaction():
            moved = "UPDATE sharded SET epoch = epoch + 1 WHERE id = %s RETURNING epoch"
            (epoch,) = self._db.execute(moved, (self._id,)).fetchone()
            made = Published(epoch, parts)
            self._db.execute(
                "INSERT INTO published VALUES (%s, %s, %s, %s)", (self._id, epoch, intent.batch, made.text())
            )
            self.abandon(intent)
        return made

    def abandon(self, intent: WriteIntent) -> None:
        gone = "DELETE FROM intent WHERE sharded = %s AND number = %s"
        assert self._db.execute(gone, (self._id, intent.number)).rowcount == 1  # noqa: S101 - our turn
