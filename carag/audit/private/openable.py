"""Read sealed values without the writer's lock: which of them still exist (this needs no keys), and the values."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carag.audit._notes import SHARED_AT, remembered
from carag.audit._shared import VALUES, Snapshot
from carag.audit._sqlite import read_only
from carag.audit.private.earlier import EARLIER, EARLIER_TABLES
from carag.audit.private.keys import SUCCESSORS, PrivateKeys, unseal, unwrap
from carag.audit.private.store import HOLDERS_A_SHELF, VALUE_TABLES
from carag.errors import AuditUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from carag.audit.records.commitment import Opening


class PrivateReader:
    """The values of a log, opened with the keys in the same directory, as of one commit.

    Nothing that it returns may be shown: showing a value is recorded (:func:`carag.audit.disclose`). It serves to find
    the requests of a conversation by a known id. Raises AuditUnavailable if there are no readable values; CorruptFile
    if the keys are missing or belong to another log.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self._home, self._shelves = Path(directory), dict[int, AESGCM]()
        with self._reading():
            db = _connected(self._home)
        if db is None:
            raise AuditUnavailable(
                f"{self._home} has no values for its records: what the records commit to cannot be opened here"
            )
        self._db = db
        try:
            with self._reading():
                (wrapping,) = self._db.execute("SELECT wrapping FROM state").fetchone()
                keys = PrivateKeys(self._home / "private.key")
                if isinstance(self._db, Snapshot):
                    keys.follow(self._db.execute(SUCCESSORS).fetchall())
            self._wrapping = keys.wrapping(bytes(wrapping))
        except BaseException:
            self.close()
            raise

    def of_field(self, name: str) -> Iterator[tuple[int, Opening]]:
        """Yield (sequence number, opening) of every record that has a field, in order."""
        query = (
            "SELECT value.seq, holder.id, holder.wrapped, value.box "
            "FROM value JOIN holder ON value.holder = holder.id WHERE value.field = ? ORDER BY value.seq"
        )
        with self._reading():
            for seq, holder, wrapped, box in self._db.execute(query, (name,)):
                key = AESGCM(unwrap(self._shelf(holder // HOLDERS_A_SHELF), wrapped, f"holder {holder}"))
                yield seq, unseal(key, box, seq, name)

    def close(self) -> None:
        """Close the file; idempotent."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _shelf(self, shelf: int) -> AESGCM:
        if shelf not in self._shelves:
            (wrapped,) = self._db.execute("SELECT wrapped FROM shelf WHERE id = ?", (shelf,)).fetchone()
            self._shelves[shelf] = AESGCM(unwrap(self._wrapping, wrapped, f"shelf {shelf}"))
        return self._shelves[shelf]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, TypeError) as error:  # None where a row is missing
            raise AuditUnavailable(f"the values in {self._home} cannot be read: {error}") from error


def _connected(home: Path) -> Any | None:
    """Open the values in one state, until they are closed; None if there are no values."""
    if (address := remembered(home, SHARED_AT)) is not None:
        return Snapshot(address, VALUES, "SELECT wrapping FROM state")
    for path, tables in ((home / "audit.db", {*VALUE_TABLES}), (home / EARLIER, EARLIER_TABLES)):
        with ExitStack() as undo:
            if path.is_file():
                wal = Path(f"{path}-wal")
                db = read_only(path, wal=wal.is_file() and wal.stat().st_size > 0)
                undo.callback(db.close)
                if tables <= {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema")}:
                    undo.pop_all()
                    return db
    return None


def openable(directory: str | PathLike[str], seq: int, names: Iterable[str]) -> dict[str, str]:
    """Tell, for each commitment in a record, whether its value still exists.

    The result is ``"can be opened"``, ``"kept, but not its key"``, ``"erased by record N"``, ``"not kept"``, or the
    reason why that cannot be told.
    """
    try:
        if (db := _connected(Path(directory))) is None:
            return dict.fromkeys(names, "not kept in this directory")
        with closing(db):
            kept = {name for (name,) in db.execute("SELECT field FROM value WHERE seq = ?", (seq,))}
            gone = dict(db.execute("SELECT field, record FROM erased WHERE seq = ?", (seq,)))
    except (sqlite3.Error, AuditUnavailable):
        return dict.fromkeys(names, "cannot be told: the values cannot be read")
    is_open = Path(directory, "private.key").is_file()
    return {
        name: ("can be opened" if is_open else "kept, but not its key")
        if name in kept
        else f"erased by record {gone[name]}"
        if name in gone
        else "not kept"
        for name in names
    }
