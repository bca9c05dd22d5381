"""Keep a log's records, tree nodes and newest checkpoint in one SQLite file, ``audit.db``.

Sealed values (:mod:`carag.audit.private.store`) are in the same file, so that records and values of a batch are one
transaction and one disk sync; only someone who also has ``private.key`` can open the values. Proofs are read over a
second, read-only connection, which never waits for a writer.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from carag.audit._sqlite import insert
from carag.audit.log.backend import Backend
from carag.audit.log.stored import END
from carag.audit.tlog.merkle import stored_hash_count
from carag.errors import AuditUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit._sqlite import SqliteLink
    from carag.audit.log.backend import Batch, Tip
    from carag.audit.tlog.note import NoteKey


RECORD_TABLES: Final = (
    "CREATE TABLE rec (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE node (i INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
    "CREATE TABLE cp (size INTEGER PRIMARY KEY, note TEXT NOT NULL)",
    "CREATE TABLE begun (seq INTEGER PRIMARY KEY)",
)
"""Statements that make the tables."""


class SqliteBackend(Backend):
    """The :class:`~carag.audit.log.backend.Backend` in one SQLite file.

    ``node.i`` is :func:`~carag.audit.tlog.merkle.stored_hash_index`, so a proof is a few look-ups by key.
    """

    is_shared = False
    repair = "; restore the file from a backup"

    def __init__(self, link: SqliteLink) -> None:
        self.link = link

    @property
    def where(self) -> str:
        """The file's path."""
        return self.link.where

    def close(self) -> None:
        """Close the file; idempotent."""
        self.link.close()

    @contextlib.contextmanager
    def turn(self, tip: Tip, key: NoteKey) -> Iterator[Tip]:  # noqa: ARG002 - the interface has it
        """Write in a turn, starting at the given end: no other process writes."""
        with self.link.turn():
            yield tip

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: no other process writes."""
        return contextlib.nullcontext()

    def alone(self, what: str) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002 - as above
        """Do nothing: no other process has the log open."""
        return contextlib.nullcontext()

    def append(self, batch: Batch) -> None:
        """Add a batch and replace the checkpoint, within a turn or as one."""
        bodies = list(enumerate(batch.bodies, batch.first))
        nodes = list(enumerate((node.hash for node in batch.nodes), stored_hash_count(batch.first)))
        with self.link.turn() as db:
            size = db.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec").fetchone()[0]
            if size != batch.first:
                raise AuditUnavailable(
                    f"{self.where} no longer ends where this process left it; open the log again"
                )
            insert(db, "rec", bodies)
            insert(db, "node", nodes)
            insert(db, "begun", [(seq,) for seq in batch.begun])
            for seq in batch.ended:
                db.execute("DELETE FROM begun WHERE seq = ?", (seq,))
            db.execute("UPDATE cp SET size = ?, note = ?", (batch.size, batch.note))

    def size(self) -> int:
        """Return one more than the last sequence number."""
        return int(self._one("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec")[0])

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        with self.link.reading():
            return tuple(seq for (seq,) in self.link.read("SELECT seq FROM begun ORDER BY seq"))

    def left_behind(self) -> tuple[int, ...]:
        """Return all begin records without an end: an earlier process wrote them."""
        return self.unended()

    def _one(self, query: str, *parameters: object) -> Any:
        with self.link.reading():
            return self.link.read(query, parameters).fetchone()

    def _rows(self, query: str, start: int, stop: int) -> Iterator[Any]:
        with self.link.reading():
            rows = self.link.read(query, (start, stop))
            yield from rows if stop == END else rows.fetchall()
