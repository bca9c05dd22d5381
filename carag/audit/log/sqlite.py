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
from carag.audit.log.backend import Backend
from carag.audit.log.stored import END
from carag.audit.tlog.merkle import stored_hash_count
from carag.errors import AuditUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.audit.log.backend import Batch, Tip
    from carag.audit.tlog.note import NoteKey


_READING: Final = ("PRAGMA query_only=ON", "PRAGMA cell_size_check=ON", "PRAGMA trusted_schema=OFF")


class SqliteBackend(SqliteStore, Backend):
    """The :class:`~carag.audit.log.backend.Backend` in one SQLite file.

    ``node.i`` is :func:`~carag.audit.tlog.merkle.stored_hash_index`, so a proof is a few look-ups by key.
    """

    is_shared = False
    repair = "; restore the file from a backup"
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

    def _rows(self, query: str, start: int, stop: int) -> Iterator[Any]:
        with self._reading():
            rows = self._reader.execute(query, (start, stop))
            yield from rows if stop == END else rows.fetchall()
