"""PostgreSQL with pgvector and row-level security: the policy reads a setting that is made for each reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from bench.erasing.peers import server
from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MADE = """
DROP TABLE IF EXISTS attacked;
CREATE TABLE attacked (id text PRIMARY KEY, text text, audience text[], v vector(256));
ALTER TABLE attacked ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON attacked FOR SELECT USING (current_setting('app.reader', true) = ANY (audience));
DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON attacked TO reader;
"""


class target:  # noqa: N801 - the factory that a command names
    """A table without an index on vectors, which its owner writes and an account without rights reads."""

    indexed, scans = False, "off"

    def __init__(self) -> None:
        self._owner = psycopg.connect(server().url, autocommit=True)
        self._owner.execute(_MADE)
        self._reader = psycopg.connect(server().as_account("reader"), autocommit=True)
        if self.indexed:
            self._owner.execute("CREATE INDEX ON attacked USING hnsw (v vector_cosine_ops)")
            # so that so few rows are searched through the graph
            self._reader.execute(f"SET enable_seqscan = off; SET hnsw.iterative_scan = {self.scans}")

    def add(self, documents: Sequence[Document]) -> None:
        """Insert rows, or update them."""
        rows = [
            (one.id, one.text, sorted(one.audience), str(vector_of(one.text).tolist())) for one in documents
        ]
        self._owner.cursor().executemany(
            "INSERT INTO attacked VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE "
            "SET text = excluded.text, audience = excluded.audience, v = excluded.v",
            rows,
        )

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search as a reader; without one, in a connection in which none was set."""
        return self._found(query, k, as_whom, "true", ())

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Search with a condition of the caller's."""
        return self._found(query, k, as_whom, "(audience && %s) <> %s", (sorted(where.names), where.negated))

    def _found(
        self, query: str, k: int, whom: str | None, where: str, values: tuple[Any, ...]
    ) -> list[tuple[str, float]]:
        self._reader.execute("SELECT set_config('app.reader', %s, false)", (whom or "",))
        asked = f"SELECT id, 1 - (v <=> %s) FROM attacked WHERE {where} ORDER BY v <=> %s LIMIT %s"  # noqa: S608
        vector = str(vector_of(query).tolist())
        return self._reader.execute(asked, (vector, *values, vector, k)).fetchall()

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Update the audience."""
        self._owner.execute("UPDATE attacked SET audience = %s WHERE id = %s", (sorted(audience), name))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        self._owner.execute("DELETE FROM attacked WHERE id = ANY (%s)", (list(ids),))

    def get(self, name: str, as_whom: str) -> Any:
        """Select one row as a reader."""
        self._reader.execute("SELECT set_config('app.reader', %s, false)", (as_whom,))
        return self._reader.execute("SELECT text FROM attacked WHERE id = %s", (name,)).fetchall()

    def files(self) -> list[Path]:
        """Write the table again, and return its files and those of its indexes, without the journal."""
        self._owner.execute("VACUUM FULL attacked")
        self._owner.execute("CHECKPOINT")
        paths = self._owner.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = 'attacked'::regclass UNION "
            "SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = 'attacked'::regclass"
        ).fetchall()
        return [server().directory / "data" / path for (path,) in paths]

    def close(self) -> None:
        """Hang up."""
        self._reader.close()
        self._owner.close()
