"""Move the values of a log into its file, from the ``private.db`` beside it in which versions up to 0.3 kept them.

All are moved in one transaction, and only then is the old file overwritten and removed. If that is cut short, the next
opening finds it beside the tables that have its rows. It removes the file only if they do have every row, or if it was
being overwritten: any other file of that name may hold values that are nowhere else, so the log stays shut.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.audit._files import sync_directory
from carag.audit.private.store import VALUE_TABLES
from carag.errors import AuditUnavailable, CorruptFile
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit._sqlite import SqliteLink


_VALUE, _BY_HOLDER = VALUE_TABLES[2:4]
EARLIER: Final = "private.db"
"""Name of the file that held the values beside ``audit.db``."""
EARLIER_TABLES: Final = frozenset(VALUE_TABLES) - {_VALUE, _BY_HOLDER} | {
    f"{_VALUE} WITHOUT ROWID",
    _BY_HOLDER.partition(" WHERE")[0],
}
"""Statements that made its tables."""
_ORDERED: Final = {
    "shelf": "SELECT * FROM shelf ORDER BY id",
    "holder": "SELECT * FROM holder ORDER BY id",
    "value": "SELECT * FROM value WHERE seq < :size ORDER BY seq, field",
    "erased": "SELECT * FROM erased ORDER BY seq, field",
    "planned": "SELECT * FROM planned ORDER BY seq, field",
    "hold": "SELECT * FROM hold ORDER BY placed",
    "state": "SELECT * FROM state",
}
"""The rows of each table. Values beyond the last record belong to appends that were cut short."""
_SECTOR: Final = 512
"""Bytes that a disk writes whole: once these are zeros, the file cannot be taken for a database."""
_PIECE: Final = 1 << 20
"""Bytes overwritten at a time."""

_logger = logger(__name__)


def take_over(link: SqliteLink, size: int) -> None:
    """Move values into the file of a log of ``size`` records, or finish that.

    Raises CorruptFile if ``private.db`` is damaged, or is not what was moved.
    """
    path = link.path.with_name(EARLIER)
    if not path.exists():
        return
    if not _is_overwritten(path):
        with _opened(path) as old:
            if link.lacks_later():
                _move(old, link, size)
            elif not _is_moved(old, link, size):
                raise CorruptFile(
                    f"{path} has other values than {link.path}, into which those of an earlier version were moved; "
                    "move it out of the store, and keep it"
                )
    elif link.lacks_later():
        return  # emptied before anything was moved: the values are lost
    _remove(path)


def _is_overwritten(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return not file.read(_SECTOR).strip(b"\0")
    except OSError as error:
        raise AuditUnavailable(f"{path} cannot be read: {error}") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the old file, whose write-ahead log a killed process may have left."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
            for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "BEGIN"):
                old.execute(statement)
            found = {sql for (sql,) in old.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
            if found != EARLIER_TABLES:
                raise CorruptFile(
                    f"{path} does not have the tables of a log's values; restore it from a backup"
                )
            yield old
    except sqlite3.DatabaseError as error:
        raise CorruptFile(f"{path} is damaged: {error}; restore it from a backup") from error


def _move(old: sqlite3.Connection, link: SqliteLink, size: int) -> None:
    with link.turn() as db:
        for statement in VALUE_TABLES:
            db.execute(statement)
        for table, query in _ORDERED.items():
            rows = old.execute(query, {"size": size})
            marks = ", ".join("?" * len(rows.description))
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - the tables of this file
        (count,) = db.execute("SELECT count(*) FROM value").fetchone()
    _logger.info("moved %d sealed values from %s into %s", count, EARLIER, link.path.name)


def _is_moved(old: sqlite3.Connection, link: SqliteLink, size: int) -> bool:
    with link.mutex, link.reading():
        return all(
            row == moved
            for query in _ORDERED.values()
            for row, moved in zip_longest(
                old.execute(query, {"size": size}), link.execute(query, {"size": size})
            )
        )


def _remove(path: Path) -> None:
    """Overwrite a database with zeros and remove it, the file itself last."""
    try:
        _overwrite(path, _SECTOR)  # first, so that whatever follows can be cut short
        for side in (Path(f"{path}-wal"), Path(f"{path}-shm"), path):
            if side.exists():
                _overwrite(side, side.stat().st_size)
                side.unlink()
        sync_directory(path.parent)
    except OSError as error:
        raise AuditUnavailable(f"{path} cannot be removed: {error}") from error


def _overwrite(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for start in range(0, size, _PIECE):
            os.pwrite(descriptor, bytes(min(_PIECE, size - start)), start)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
