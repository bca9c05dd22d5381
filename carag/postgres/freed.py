"""Write tables again, so that no page of them, of their indexes or of the server's statistics holds a deleted row."""

from __future__ import annotations

import re
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


def clears_statistics(db: Any) -> bool:
    """Tell whether an account may remove the server's samples of columns."""
    (may,) = db.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return bool(may)


def free(db: Any, tables: Sequence[str]) -> None:
    """Write tables, which the account owns, and their indexes again; the connection must be in no transaction.

    The names have been checked. Raises StoreLocked if a transaction that began earlier may still read the deleted rows.
    """
    kept: list[int] = []

    def hear(said: Any) -> None:
        # The detail begins with the number of deleted rows that stay, in whichever language the server speaks.
        if (found := re.match(r"\D*(\d+)", said.message_detail or "")) is not None:
            kept.append(int(found[1]))

    db.add_notice_handler(hear)
    written = [*tables]
    if clears_statistics(db):
        # Sampling an empty table would leave the earlier samples.
        db.execute(_UNSAMPLE, {"tables": written})
        written.append("pg_catalog.pg_statistic")
    for table in written:
        db.execute(f"VACUUM (FULL, VERBOSE) {table}")
    for table in tables:
        db.execute(f"ANALYZE {table}")
    # Files of earlier versions of a table lose their content at the end of the transaction, and are removed later.
    db.remove_notice_handler(hear)
    if any(kept):
        raise StoreLocked(
            "an earlier transaction on the server may still read rows that were deleted, so that they stay in its "
            "files; end that transaction, and erase again"
        )
