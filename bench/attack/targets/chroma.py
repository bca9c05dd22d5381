"""Chroma in a directory: names as a list in the metadata, and ``where`` in each call."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromadb

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class target:  # noqa: N801 - the factory that a command names
    """One collection, with the default index."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(self._home.name, settings)
        self._rows: Any = self._client.create_collection("rows", metadata={"hnsw:space": "cosine"})

    def add(self, documents: Sequence[Document]) -> None:
        """Upsert rows; an empty list is not accepted as metadata, so that no one is named as a hyphen."""
        self._rows.upsert(
            [one.id for one in documents],
            embeddings=[vector_of(one.text).tolist() for one in documents],
            documents=[one.text for one in documents],
            metadatas=[{"audience": sorted(one.audience) or ["-"]} for one in documents],
        )

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Query with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(query, k, None if as_whom is None else {"audience": {"$contains": as_whom}})

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Join the caller's filter to the one on the audience with ``$and``."""
        each = "$not_contains" if where.negated else "$contains"
        theirs = [{"audience": {each: name}} for name in where.names]
        joined = theirs[0] if len(theirs) == 1 else {"$and" if where.negated else "$or": theirs}
        return self._found(query, k, {"$and": [{"audience": {"$contains": as_whom}}, joined]})

    def _found(self, query: str, k: int, where: Any) -> list[tuple[str, float]]:
        found = self._rows.query(query_embeddings=[vector_of(query).tolist()], n_results=k, where=where)
        return [(name, 1 - far) for name, far in zip(found["ids"][0], found["distances"][0], strict=True)]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Update the metadata."""
        self._rows.update([name], metadatas=[{"audience": sorted(audience) or ["-"]}])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        self._rows.delete(list(ids))

    def files(self) -> list[Path]:
        """Return the files below the directory."""
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def close(self) -> None:
        """Remove the directory."""
        self._home.cleanup()
