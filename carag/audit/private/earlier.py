"""Move a log's values into its file, from the ``private.db`` beside it, where versions up to 0.3 kept them.

All values are moved in one transaction, and only then is the old file overwritten and removed. If that is cut short,
the next opening finds the old file beside the tables that have its rows. It removes the file only if the tables do have
every row, or if the file was being overwritten: any other file of that name may hold values that are nowhere else, so
the log stays shut.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.audit._files import overwrite, sync_directory
from carag.audit.private.store import SEALED, VALUE_TABLES
from carag.errors import AuditUnavailable, CorruptFile
from carag.visible import logger

if TYPE_CHECKING:
    from carag.audit._sqlite import SqliteLink


EARLIER: Final = "private.db"
"""Name of the file that held the values beside ``audit.db``."""
_VALUE, _BY_HOLDER = VALUE_TABLES[2:4]
_OF_EARLIER: Final = {_VALUE: f"{_VALUE} WITHOUT ROWID", _BY_HOLDER: _BY_HOLDER.partition(" WHERE")[0]}
EARLIER_TABLES: Final = frozenset(_OF_EARLIER.get(statement, statement) for statement in VALUE_TABLES)
"""Statements that made its tables."""
_SECTOR: Final = 512
"""Bytes that a disk writes whole: once these are zeros, the file cannot be taken for a database."""

_logger = logger(__name__)


def take_over(link: SqliteLink, size: int) -> None:
    """Move values into the file of a log of ``size`` records, or finish that.

    Raises CorruptFile if ``private.db`` is damaged, or is not what was moved.
    """
    path = link.path.with_name(EARLIER)
    try:
        if not path.exists():
            return
        with path.open("rb") as file:
            is_overwritten = not file.read(_SECTOR).strip(b"\0")
        if is_overwritten and link.lacks_later():
            return  # emptied before anything was moved: the values are lost
        if not is_overwritten:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
                _moved(old, path, link, size)
        _remove(path)
    except sqlite3.DatabaseError as error:
        raise CorruptFile(
            f"{path} is damaged: {error}; restore it from a backup, or move it out of the store and accept the loss: "
            f"carag audit accept --lost-values --store {path.parent}"
        ) from error
    except OSError as error:
        raise AuditUnavailable(f"{path} cannot be read or removed: {error}") from error


def _moved(old: sqlite3.Connection, path: Path, link: SqliteLink, size: int) -> None:
    """Move all rows, or check that they were moved."""
    for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "BEGIN"):
        old.execute(statement)
    if {
        sql for (sql,) in old.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    } != EARLIER_TABLES:
        raise CorruptFile(f"{path} does not have the tables of a log's values; restore it from a backup")
    if link.lacks_later():
        with link.turn() as db:
            for statement in VALUE_TABLES:
                db.execute(statement)
            for table in (*SEALED, "erased"):
                rows = _rows(old, table, size)
                marks = ", ".join("?" * len(rows.description))
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - tables of this file
        _logger.info("moved the sealed values from %s into %s", path.name, link.path.name)
        return
    with link.mutex, link.reading():
        for table in (*SEALED, "erased"):
            if any(a != b for a, b in zip_longest(_rows(old, table, size), _rows(link, table, size))):
                raise CorruptFile(
                    f"{path} has other values than {link.path}, into which those of an earlier version were moved; "
                    "move it out of the store, and keep it"
                )


def _rows(db: sqlite3.Connection | SqliteLink, table: str, size: int) -> sqlite3.Cursor:
    """Return a table's rows in order, without values beyond the last record, which appends that were cut short left."""
    which = f"WHERE seq < {size}" if table == "value" else ""
    return db.execute(f"SELECT * FROM {table} {which} ORDER BY 1, 2")  # noqa: S608 - the tables of this file


def _remove(path: Path) -> None:
    """Overwrite a database with zeros and remove it, the file itself last."""
    _overwrite(path, _SECTOR)  # this comes first, so that whatever follows can be cut short
    for side in (Path(f"{path}-wal"), Path(f"{path}-shm"), path):
        if side.exists():
            _overwrite(side, side.stat().st_size)
            side.unlink()
    sync_directory(path.parent)


def _overwrite(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        overwrite(descriptor, size)
    finally:
        os.close(descriptor)
