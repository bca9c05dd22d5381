"""Private files from before values were sealed: read once, sealed, replaced."""

from __future__ import annotations

import contextlib
import sqlite3
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from carag.audit._files import sync_directory
from carag.audit._private_keys import overwriting
from carag.audit.commitment import Opening
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["upgrade"]

_SCHEMA: Final = (
    "CREATE TABLE private (seq INTEGER, field TEXT, salt BLOB NOT NULL, value TEXT NOT NULL, "
    "PRIMARY KEY (seq, field)) WITHOUT ROWID"
)
_QUERY: Final = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"
_BATCH: Final = 1000


def upgrade(path: Path) -> None:
    """Seal a ``private.db`` that holds salts and values in clear; leave any other file alone.

    The sealed copy is built beside it and takes its place in one step, so that a crash leaves the old file. The
    old file's bytes are overwritten.

    Raises
    ------
    AuditUnavailable
        If the copy cannot be made; the old file is as it was.
    """
    if not path.is_file() or path.stat().st_size == 0:
        return
    scratch = path.with_name(f"{path.name}.sealing")
    try:
        if _tables(path) not in ([], [(_SCHEMA,)]):
            return
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
            if old.execute(_QUERY).fetchall() != [(_SCHEMA,)]:
                return
            _remove(scratch)
            _copy(old, scratch)
            old.execute("PRAGMA journal_mode=DELETE")  # empties and removes the write-ahead log
        with overwriting(path):
            scratch.replace(path)
            sync_directory(path.parent)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise CorruptFile(f"{path} is damaged: {error}; restore it from a backup") from error
        raise AuditUnavailable(f"{path} cannot be sealed: {error}; it is as it was") from error
    except OSError as error:
        raise AuditUnavailable(f"{path} cannot be sealed: {error}; it is as it was") from error


def _tables(path: Path) -> list[tuple[str]]:
    """Look without the write-ahead log: cheap, and leaves no trace. Nothing found means look again with it.

    It may hold all tables of a young file, or mend one that a power cut left half written.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            return db.execute(_QUERY).fetchall()
    except sqlite3.DatabaseError:
        return []


def _copy(old: sqlite3.Connection, scratch: Path) -> None:
    from carag.audit.private import PrivateStore

    new = PrivateStore(scratch)
    with contextlib.closing(new):
        rows = old.execute("SELECT seq, field, salt, value FROM private ORDER BY seq")
        records = groupby(rows, key=lambda row: row[0])
        while batch := {
            seq: {field: Opening(salt, value) for _, field, salt, value in group}
            for seq, group in islice(records, _BATCH)
        }:
            new.put(batch)


def _remove(scratch: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)
