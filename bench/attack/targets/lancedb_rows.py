"""LanceDB in a directory: names as a list, and a filter in SQL in each call, applied before the search."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lancedb
import pyarrow

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCHEMA = pyarrow.schema(
    [
        ("id", pyarrow.string()),
        ("text", pyarrow.string()),
        ("audience", pyarrow.list_(pyarrow.string())),
        ("vector", pyarrow.list_(pyarrow.float32(), 256)),
    ]
)


class target:  # noqa: N801 - the factory that a command names
    """One table, without an index on vectors."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._rows: Any = lancedb.connect(self._home.name).create_table("rows", schema=_SCHEMA)

    def add(self, documents: Sequence[Document]) -> None:
        """Merge rows by their ids."""
        rows = [
            {"id": one.id, "text": one.text, "audience": sorted(one.audience), "vector": vector_of(one.text)}
            for one in documents
        ]
        merge = self._rows.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pyarrow.Table.from_pylist(rows, _SCHEMA))

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(query, k, None if as_whom is None else _has(as_whom))

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Join the caller's filter to the one on the audience with AND."""
        theirs = f"({' OR '.join(map(_has, sorted(where.names)))})"
        return self._found(query, k, f"{_has(as_whom)} AND {'NOT ' if where.negated else ''}{theirs}")

    def _found(self, query: str, k: int, where: str | None) -> list[tuple[str, float]]:
        asked = self._rows.search(vector_of(query)).distance_type("cosine").limit(k)
        asked = asked if where is None else asked.where(where, prefilter=True)
        return [(one["id"], 1 - one["_distance"]) for one in asked.to_list()]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Merge the row with another list: an update cannot write an empty one."""
        (row,) = self._rows.search().where(f"id = {_quoted(name)}").to_list()
        self.add([Document(name, row["text"], audience)])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        self._rows.delete(f"id IN ({', '.join(map(_quoted, ids))})")

    def files(self) -> list[Path]:
        """Compact, remove all older versions, and return the files."""
        self._rows.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def close(self) -> None:
        """Remove the directory."""
        self._home.cleanup()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _has(name: str) -> str:
    return f"array_has(audience, {_quoted(name)})"
