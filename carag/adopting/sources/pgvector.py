"""Read a table with a column of pgvector, in one transaction that can only read."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from carag.adopting.sources.port import AT_ONCE, Opened, row_of
from carag.errors import InvalidArgument
from carag.postgres.address import taken_out
from carag.postgres.connection import connected, described

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.adopting.sources.port import Row, Wanted


@contextmanager
def opened(address: str, _: str, wanted: Wanted) -> Iterator[Opened]:
    """Open the table that ``?table=`` names, with its schema or without."""
    url, tables = taken_out(address, "table")
    if len(tables) != 1 or not all(tables[0].split(".")):
        raise InvalidArgument("the address names no table; add ?table=NAME or ?table=SCHEMA.NAME")
    import psycopg

    try:
        with closing(connected(url, {"default_transaction_read_only": "on"}, autocommit=False)) as db:
            yield Opened(
                f"pgvector:{tables[0]}", _rows(db, psycopg.sql.Identifier(*tables[0].split(".")), wanted)
            )
    except psycopg.Error as error:
        raise InvalidArgument(f"the table cannot be read: {described(error, url)}") from None


def _rows(db: Any, table: Any, wanted: Wanted) -> Iterator[Row]:
    import psycopg

    with db.cursor("adopting", row_factory=psycopg.rows.dict_row) as cursor:
        cursor.itersize = AT_ONCE
        cursor.execute(psycopg.sql.SQL("SELECT * FROM {}").format(table))
        for fields in cursor:
            row = row_of(fields, wanted)
            yield row._replace(vector=json.loads(row.vector)) if isinstance(row.vector, str) else row
