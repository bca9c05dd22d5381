"""Keep a log's records, tree nodes and newest checkpoint in one SQLite file, ``audit.db``.

Personal data (:mod:`carag.audit.private.store`) are in a separate file, so that the two can be backed up, given to
others and destroyed separately. Proofs are read over a second, read-only connection.

The two files must not cost two disk syncs in sequence. The private values are written first and synced by
:meth:`~carag.audit._sqlite.SqliteStore.sync` while the records are committed: if the process is killed, the values of
every stored record are in their file; a power cut between the two can only lose values of a record that was not yet
acknowledged.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from carag.audit._sqlite import SqliteStore, insert
from carag.audit.tlog.merkle import stored_hash_count, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.audit.log.backend import Batch
    from carag.audit.log.tip import Tip
    from carag.audit.tlog.note import NoteKey

__all__ = ["SqliteBackend"]

_READING: Final = ("PRAGMA query_only=ON", "PRAGMA cell_size_check=ON", "PRAGMA trusted_schema=OFF")
_MAX_ROWID: Final = (1 << 63) - 1


class SqliteBackend(SqliteStore):
    """The :class:`~carag.audit.log.backend.Backend` in one SQLite file.

    ``node.i`` is :func:`~carag.audit.tlog.merkle.stored_hash_index`, so a proof is a few look-ups by key.
    """

    is_shared = False
    SCHEMA = (
        "CREATE TABLE rec (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE node (i INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
        "CREATE TABLE cp (size INTEGER PRIMARY KEY, note TEXT NOT NULL)",
        "CREATE TABLE begun (seq INTEGER PRIMARY KEY)",
    )

    def __init__(self, path: Path, *, create: bool, empty: str) -> None:
        super().__init__(path, create=create, first=[("INSERT INTO cp VALUES (0, ?)", (empty,))])
        try:
            with self._reading():
                self._reader = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode=ro",
                    uri=True,
                    isolation_level=None,
                    check_same_thread=False,
                )
                for pragma in _READING:
                    self._reader.execute(pragma)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; idempotent."""
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()
        super().close()  # last, because the last connection checkpoints

    @contextlib.contextmanager
    def turn(self, tip: Tip, key: NoteKey) -> Iterator[Tip]:  # noqa: ARG002 - the interface has it
        """Yield the given end: no other process writes."""
        yield tip

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: no other process writes."""
        return contextlib.nullcontext()

    def alone(self, what: str) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002 - as above
        """Do nothing: no other process has the log open."""
        return contextlib.nullcontext()

    def append(self, batch: Batch) -> None:
        """Add a batch and replace the checkpoint, or change nothing."""
        bodies = list(enumerate(batch.bodies, batch.first))
        nodes = list(enumerate((node.hash for node in batch.nodes), stored_hash_count(batch.first)))
        with self._transaction() as db:
            size = db.execute("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec").fetchone()[0]
            if size != batch.first:
                raise AuditUnavailable(
                    f"{self._path} no longer ends where this process left it; open the log again"
                )
            insert(db, "rec", bodies)
            insert(db, "node", nodes)
            insert(db, "begun", [(seq,) for seq in batch.begun])
            for seq in batch.ended:
                db.execute("DELETE FROM begun WHERE seq = ?", (seq,))
            db.execute("DELETE FROM cp")
            db.execute("INSERT INTO cp VALUES (?, ?)", (batch.size, batch.note))

    def size(self) -> int:
        """Return one more than the last sequence number."""
        return int(self._one("SELECT COALESCE(MAX(seq) + 1, 0) FROM rec")[0])

    def body(self, seq: int) -> bytes:
        """Return a record's bytes; CorruptFile if it is missing."""
        return self._bytes(self._one("SELECT body FROM rec WHERE seq = ?", seq), f"record {seq}")

    def bodies(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence number, bytes) of the records in ``start <= seq < stop``, in order."""
        query = "SELECT seq, body FROM rec WHERE seq >= ? AND seq < ? ORDER BY seq"
        for row in self._rows(query, start, stop):
            if type(row[1]) is not bytes:
                self._bytes(None, f"record {row[0]}")
            yield row

    def node(self, level: int, n: int) -> bytes:
        """Return the hash of a perfect subtree; CorruptFile if it is missing."""
        row = self._one("SELECT hash FROM node WHERE i = ?", stored_hash_index(level, n))
        return self._bytes(row, f"tree node ({level}, {n})")

    def nodes(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (storage index, hash) of the nodes with ``start <= index < stop``, in order."""
        yield from self._rows("SELECT i, hash FROM node WHERE i >= ? AND i < ? ORDER BY i", start, stop)

    def checkpoint(self) -> str:
        """Return the newest checkpoint; CorruptFile if it is missing."""
        row = self._one("SELECT note FROM cp ORDER BY size DESC LIMIT 1")
        if row is None or not isinstance(row[0], str):
            raise CorruptFile(f"{self._path} has no checkpoint; restore it from a backup")
        return row[0]

    def unended(self) -> tuple[int, ...]:
        """Return the sequence numbers of begin records without an end, in order."""
        with self._reading():
            return tuple(seq for (seq,) in self._reader.execute("SELECT seq FROM begun ORDER BY seq"))

    def left_behind(self) -> tuple[int, ...]:
        """Return all begin records without an end: an earlier process wrote them."""
        return self.unended()

    def _one(self, query: str, *parameters: object) -> Any:
        with self._reading():
            return self._reader.execute(query, parameters).fetchone()

    def _rows(self, query: str, start: int, stop: int | None) -> Iterator[Any]:
        with self._reading():
            rows = self._reader.execute(query, (start, _MAX_ROWID if stop is None else stop))
            yield from rows if stop is None else rows.fetchall()

    def _bytes(self, row: tuple[object, ...] | None, what: str) -> bytes:
        if row is None or not isinstance(row[0], bytes):
            raise CorruptFile(f"{self._path}: {what} is missing; restore the file from a backup")
        return row[0]
