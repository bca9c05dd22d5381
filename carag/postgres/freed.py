"""Write tables again, so that no page of them, of their indexes or of the server's statistics holds a deleted row."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from carag.errors import StoreLocked

if TYPE_CHECKING:
    from collections.abc import Sequence

BEYOND: Final = ("postgresql-wal", "postgresql-replicas")
"""Codes of what may hold deleted rows of a server whatever is done: its journal, and what copies of it have on disk."""
STATISTICS: Final = "postgresql-statistics"
"""Code of the server's samples of columns, from which only a superuser can remove values."""

_UNSAMPLE: Final = """
WITH written AS (SELECT unnest(%(tables)s::text[]::regclass[]) AS id)
DELETE FROM pg_statistic WHERE starelid IN (
    SELECT id FROM written UNION SELECT inhparent FROM pg_inherits JOIN written ON inhrelid = id)
"""


_PATIENCE: Final = 5.0
"""Seconds for which short transactions of the server itself, such as a sampling, may keep deleted rows."""
_PAUSE: Final = 0.2
"""Seconds between two attempts."""


def clears_statistics(db: Any) -> bool:
    """Tell whether an account may remove the server's samples of columns."""
    (may,) = db.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return bool(may)


def free(db: Any, tables: Sequence[str]) -> None:
    """Write tables, which the account owns, and their indexes again; the connection must be in no transaction.

    The names have been checked. Raises StoreLocked if a transaction that began earlier may still read the deleted rows.
    """
    written = [*tables]
    if clears_statistics(db):
        # Sampling an empty table would leave the earlier samples.
        db.execute(_UNSAMPLE, {"tables": written})
        written.append("pg_catalog.pg_statistic")
    until = time.monotonic() + _PATIENCE
    while (is_kept := _keeps_rows(db, written)) and time.monotonic() < until:
        time.sleep(_PAUSE)
    for table in tables:
        db.execute(f"ANALYZE {table}")
    if is_kept:
        raise StoreLocked(
            "an earlier transaction on the server may still read rows that were deleted, so that they stay in its "
            "files; end that transaction, and erase again"
        )


def _keeps_rows(db: Any, tables: Sequence[str]) -> bool:
    """Write tables again; tell whether deleted rows stay, because a transaction may still read them."""
    kept: list[int] = []

    def hear(said: Any) -> None:
        # The detail begins with the number of deleted rows that stay, in whichever language the server speaks.
        if (found := re.match(r"\D*(\d+)", said.message_detail or "")) is not None:
            kept.append(int(found[1]))

    db.add_notice_handler(hear)
    try:
        # Files of earlier versions of a table lose their content at the end of the transaction, and are removed later.
        for table in tables:
            db.execute(f"VACUUM (FULL, VERBOSE) {table}")
    finally:
        db.remove_notice_handler(hear)
    return any(kept)
