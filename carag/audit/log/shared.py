"""Keep a log in PostgreSQL, where several processes append to it in turns: one tree, one sequence of records.

A turn starts at the present end of the log: records that other processes appended are first read, hashed and compared
with the checkpoint that they signed with the log's key. So every process knows the edge of the whole tree, and detects
tampering in its own turn. Records, tree, checkpoint and sealed values of a batch are one transaction.

The application's role can insert and read; a trigger stops everybody else (:mod:`carag.audit.log.postgres_tables`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from carag.audit._shared import LOG, VALUES, SharedLink
from carag.audit.log.backend import Backend
from carag.audit.log.growth import Growth
from carag.audit.log.postgres_tables import make_tables, wrong_with
from carag.audit.log.stored import SHARED_TABLES
from carag.audit.private.shared import make_values
from carag.audit.records.record import Record
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import stored_hash_count
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile
from carag.postgres.dialect import in_postgres

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from carag.audit.log.backend import Batch, Tip
    from carag.audit.tlog.note import NoteKey


_PAGE_ROWS: Final = 1000
"""Rows fetched at a time."""
_NEWEST: Final = "SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1"


def set_up_shared(db: Any, schema: str, role: str) -> None:
    """Create whatever is missing among a log's tables, triggers and grants; run by an administrator, who owns them."""
    with db.transaction():
        make_tables(db, f"{schema}_{LOG}", role)
        db.execute(f"CREATE SEQUENCE IF NOT EXISTS {schema}_{LOG}.process AS integer CYCLE")
        db.execute(f"GRANT USAGE ON SEQUENCE {schema}_{LOG}.process TO {role}")
        make_values(db, f"{schema}_{VALUES}", role)


def check_tables(db: Any, schema: str) -> None:
    """Refuse tables, triggers or grants that are not as they were set up."""
    if wrong := list(wrong_with(db, schema)):
        raise AuditUnavailable(
            f"the log in schema {schema} is not as it was set up: {'; '.join(wrong)}. Find out who changed it; then "
            "set it up again as an administrator: carag share --admin"
        )


class SharedBackend(Backend):
    """The :class:`~carag.audit.log.backend.Backend` of one process among several.

    ``empty`` is the checkpoint of the empty log, stored if there is no other.
    """

    is_shared = True
    tables = SHARED_TABLES
    repair = "; restore the database from a backup"

    def __init__(self, link: SharedLink, empty: str) -> None:
        self.link = link
        with link.turn() as db:
            if db.execute(_NEWEST).fetchone() is None:
                db.execute("INSERT INTO checkpoint VALUES (0, %s)", (empty,))

    @property
    def where(self) -> str:
        """The server, the database and the schema."""
        return self.link.where

    @contextmanager
    def turn(self, tip: Tip, key: NoteKey) -> Iterator[Tip]:
        """Take over what others have appended, then write in a turn."""
        with self.link.turn() as db:
            size, text = db.execute(_NEWEST).fetchone()
            if text == tip.note.to_text():
                yield tip
                return
            if size < tip.frontier.size:
                raise CorruptFile(
                    f"{self.where}: rollback: there are {size} records, but this process knows {tip.frontier.size}; "
                    "restore the newest backup of the database"
                )
            yield self._followed(tip, key, Note.parse(text), size)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold the turn."""
        with self.link.turn():
            yield

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Keep all other processes out of the log."""
        return self.link.alone(what)

    def append(self, batch: Batch) -> None:
        """Add a batch and a checkpoint, within a turn or as one."""
        first = stored_hash_count(batch.first)
        with self.link.turn() as db:
            if db.execute(_NEWEST).fetchone()[0] != batch.first:
                raise AuditUnavailable(f"{self.where} no longer ends where this process left it")
            _insert(db, "record", batch.first, batch.bodies)
            _insert(db, "node", first, [node.hash for node in batch.nodes])
            db.execute("INSERT INTO checkpoint VALUES (%s, %s)", (batch.size, batch.note))
            if batch.begun:
                query = "INSERT INTO begun SELECT unnest(%s::bigint[]), %s"
                db.execute(query, (list(batch.begun), self.link.number))
            if batch.ended:
                db.execute("INSERT INTO ended SELECT unnest(%s::bigint[])", (list(batch.ended),))

    def size(self) -> int:
        """Return one more than the last sequence number."""
        return int(self._one("SELECT coalesce(max(seq) + 1, 0) FROM record")[0])

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        return tuple(seq for seq, _ in self._unended())

    def left_behind(self) -> tuple[int, ...]:
        """Return those of :meth:`unended` whose processes have left without ending them."""
        with self.link.turn():
            found = self._unended()
            gone = {one for one in {process for _, process in found} if self.link.is_gone(one)}
        return tuple(seq for seq, process in found if process in gone)

    def close(self) -> None:
        """Close the connections; idempotent."""
        self.link.close()

    def _followed(self, tip: Tip, key: NoteKey, note: Note, size: int) -> Tip:
        """Extend the end that this process knows with the records of other processes, up to their signed checkpoint."""
        checkpoint = Checkpoint.parse(note.text)
        if not key.verifies(note) or checkpoint.size != size:
            raise CorruptFile(f"{self.where}: the newest checkpoint is not signed by the log's own key")
        growth, committed = Growth(tip), tip.committed
        for seq, body in self.bodies(growth.size, size):
            try:
                record = Record.parse(body)
            except CorruptFile as error:
                raise CorruptFile(f"{self.where}: record {seq} cannot be decoded: {error}") from error
            if (record.seq, seq, record.log) != (growth.size, growth.size, checkpoint.origin):
                raise CorruptFile(f"{self.where}: record {growth.size} is missing")
            growth.add(record.event, body)
            committed = record.committed
        if (growth.size, growth.frontier.root()) != (size, checkpoint.root):
            raise CorruptFile(f"{self.where}: the records are not those that the log signed")
        return growth.tip(note, committed)

    def _unended(self) -> list[tuple[int, int]]:
        query = (
            "SELECT seq, process FROM begun WHERE NOT EXISTS (SELECT FROM ended WHERE ended.seq = begun.seq) "
        )
        return list(self.link.execute(f"{query} ORDER BY seq").fetchall())

    def _one(self, query: str, *parameters: object) -> Any:
        return self.link.execute(in_postgres(query), parameters, binary=True).fetchone()

    def _rows(self, query: str, start: int, stop: int) -> Iterator[Any]:
        page = f"{in_postgres(query)} LIMIT {_PAGE_ROWS}"
        while True:
            rows = self.link.execute(page, (start, stop), binary=True).fetchall()
            yield from rows
            if len(rows) < _PAGE_ROWS:
                return
            start = rows[-1][0] + 1


def _insert(db: Any, table: str, first: int, items: Iterable[bytes]) -> None:
    query = (
        f"INSERT INTO {table} SELECT %s::bigint + place - 1, item "  # noqa: S608 - the tables of this file
        "FROM unnest(%b::bytea[]) WITH ORDINALITY AS t (item, place)"
    )
    db.execute(query, (first, list(items)))
