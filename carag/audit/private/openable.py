"""Tell which of a record's committed values can still be opened, from ``private.db`` without its keys.

No lock is taken, nothing is written, as in :class:`~carag.audit.auditor.reader.LogReader`, and no value is read.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

__all__ = ["openable"]


def openable(directory: str | PathLike[str], seq: int, names: Iterable[str]) -> dict[str, str]:
    """Tell for each commitment of a record whether its value still exists.

    Returns
    -------
    dict of str to str
        ``"can be opened"``, ``"erased by record N"``, ``"not kept"``, or why that cannot be told.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, place_hold
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     seq = place_hold(log, "MATTER-7", actor="counsel").seq
    ...     openable(directory, seq, ["actor"])
    {'actor': 'can be opened'}
    """
    path = Path(directory) / "private.db"
    if not path.is_file():
        return dict.fromkeys(names, "not kept in this directory")
    wal = Path(f"{path}-wal")
    # As in the reader of the log: without a write-ahead log the file alone is complete.
    mode = "mode=ro" if wal.is_file() and wal.stat().st_size else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)) as db:
            db.execute("PRAGMA trusted_schema=OFF")
            kept = {name for (name,) in db.execute("SELECT field FROM value WHERE seq = ?", (seq,))}
            gone = dict(db.execute("SELECT field, record FROM erased WHERE seq = ?", (seq,)))
    except sqlite3.Error:
        return dict.fromkeys(names, "cannot be told: private.db cannot be read")
    return {
        name: "can be opened"
        if name in kept
        else f"erased by record {gone[name]}"
        if name in gone
        else "not kept"
        for name in names
    }
