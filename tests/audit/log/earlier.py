"""Lay out a log as versions up to 0.3 did: with its sealed values in ``private.db``, beside ``audit.db``."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from carag.audit.private.earlier import EARLIER, EARLIER_TABLES

if TYPE_CHECKING:
    from pathlib import Path


def laid_out_as_earlier(directory: Path) -> Path:
    """Move the values of a closed log out of its file; return the file they are in."""
    path = directory / EARLIER
    path.touch(mode=0o600)
    with (
        contextlib.closing(sqlite3.connect(directory / "audit.db", isolation_level=None)) as log,
        contextlib.closing(sqlite3.connect(path)) as values,
    ):
        values.execute("PRAGMA journal_mode=WAL")
        for statement in sorted(EARLIER_TABLES, reverse=True):  # tables before their index
            values.execute(statement)
        for (table,) in values.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for row in log.execute(f"SELECT * FROM {table}").fetchall():  # noqa: S608
                values.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
            log.execute(f"DROP TABLE {table}")
        values.commit()
        log.execute("VACUUM")
    return path
