"""Translate statements of the store and the log from SQLite's dialect to PostgreSQL's, so that each is written once.

A statement uses only what both dialects spell alike and the few forms that :func:`in_postgres` knows. Any other form is
an error from the server, never a different answer: the store's tests run on both databases.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


_FORMS: Final = (
    (
        r"SELECT value FROM json_each\((.+?)\)",
        r"SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(\1 AS json))",
    ),
    (
        r"SELECT CAST\(value AS TEXT\) FROM json_each\((.+?)\)",
        r"SELECT value FROM json_array_elements_text(CAST(\1 AS json))",
    ),
    (r"json_extract\((\w+), '\$\.(\w+)'\)", r"(CAST(\1 AS json) ->> '\2')"),
    (r"json_group_array\((\w+)\)", r"coalesce(CAST(json_agg(\1) AS text), '[]')"),
    (r"\?", "%s"),
    (r"(?<![:\w]):([a-z]\w*)", r"%(\1)s"),
)
"""Forms that SQLite and PostgreSQL spell differently."""
_OF_TABLES: Final = (
    (r"--[^\n]*", ""),
    (r"\) STRICT(, WITHOUT ROWID)?", ")"),
    (r"\bINTEGER\b", "bigint"),
    (r"\bBLOB\b", "bytea"),
    (r"\bTEXT\b", 'text COLLATE "C"'),  # the order of bytes, as SQLite's
    (r"0x[0-9A-F]+", lambda found: str(int(found[0], 16))),
)


@lru_cache(maxsize=1024)
def in_postgres(statement: str) -> str:
    """Translate a statement.

    Examples
    --------
    >>> in_postgres("SELECT word FROM labels WHERE label IN (SELECT value FROM json_each(?)) AND known_to > :u")
    'SELECT word FROM labels WHERE label IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(%s AS \
    json))) AND known_to > %(u)s'
    """
    for form, said in _FORMS:
        statement = re.sub(form, said, statement)
    return statement


def table_in_postgres(statement: str) -> str:
    """Translate a statement of :data:`carag.store._schema.TABLES`.

    Examples
    --------
    >>> table_in_postgres("CREATE TABLE vectors (key INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT")
    'CREATE TABLE vectors (key bigint PRIMARY KEY, vector bytea NOT NULL)'
    """
    for form, said in _OF_TABLES:
        statement = re.sub(form, said, statement)
    return statement


class InPostgres:
    """A PostgreSQL connection with as much of the interface of SQLite's connection as the store and the log use."""

    def __init__(self, db: Any) -> None:
        self._db = db

    def transaction(self) -> Any:
        """Return a context: one transaction."""
        return self._db.transaction()

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        """Run a statement; return its rows."""
        return self._db.execute(in_postgres(statement), parameters or None)

    def executemany(self, statement: str, rows: Iterable[Any]) -> None:
        """Run a statement for each row of parameters."""
        with self._db.cursor() as cursor:
            cursor.executemany(in_postgres(statement), rows)
