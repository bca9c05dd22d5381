"""Milvus Lite: names as JSON, and a filter in each call, in which names are quoted as JSON quotes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymilvus import DataType, MilvusClient

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class target:  # noqa: N801 - the factory that a command names
    """One collection in a file, with strong consistency."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._client: Any = MilvusClient(str(Path(self._home.name) / "rows.db"))
        schema = self._client.create_schema(auto_id=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
        schema.add_field("text", DataType.VARCHAR, max_length=2000)
        schema.add_field("audience", DataType.JSON)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=256)
        index = self._client.prepare_index_params()
        index.add_index("vector", index_type="FLAT", metric_type="COSINE")
        self._client.create_collection("rows", schema=schema, index_params=index, consistency_level="Strong")

    def add(self, documents: Sequence[Document]) -> None:
        """Upsert rows."""
        self._client.upsert("rows", [_row(one) for one in documents])

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(query, k, "" if as_whom is None else _has(as_whom))

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Join the caller's filter to the one on the audience with ``and``."""
        theirs = f"{'not ' if where.negated else ''}({' or '.join(map(_has, sorted(where.names)))})"
        return self._found(query, k, f"{_has(as_whom)} and {theirs}")

    def _found(self, query: str, k: int, allowed: str) -> list[tuple[str, float]]:
        vector = vector_of(query).tolist()
        found = self._client.search("rows", [vector], filter=allowed, limit=k)
        return [(one["id"], one["distance"]) for one in found[0]]

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        self._client.delete("rows", ids=list(ids))

    def files(self) -> list[Path]:
        """Flush, compact, and return the files."""
        self._client.flush("rows")
        self._client.compact("rows")
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def close(self) -> None:
        """Close the client."""
        self._client.close()
        self._home.cleanup()


def _has(name: str) -> str:
    return f"json_contains(audience, {json.dumps(name)})"


def _row(one: Document) -> dict[str, Any]:
    vector = vector_of(one.text).tolist()
    return {"id": one.id, "text": one.text, "audience": sorted(one.audience), "vector": vector}
