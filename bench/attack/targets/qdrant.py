"""Qdrant's client in its local mode: a payload of names, and a filter in each call."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdrant_client import QdrantClient, models

from carag.evaluation.attack import Document, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def _point(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class target:  # noqa: N801 - the factory that a command names
    """One collection in a directory."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._client = QdrantClient(path=self._home.name)
        params = models.VectorParams(size=256, distance=models.Distance.COSINE)
        self._client.create_collection("rows", params)

    def add(self, documents: Sequence[Document]) -> None:
        """Upsert points."""
        points = [
            models.PointStruct(
                id=_point(one.id),
                vector=vector_of(one.text).tolist(),
                payload={"id": one.id, "text": one.text, "audience": sorted(one.audience)},
            )
            for one in documents
        ]
        self._client.upsert("rows", points)

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a filter on the audience; without a reader, as a caller who gives no filter."""
        return self._found(query, k, None if as_whom is None else models.Filter(must=[_has(as_whom)]))

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Nest the caller's filter below the one on the audience."""
        names = [_has(name) for name in where.names]
        theirs = models.Filter(must_not=names) if where.negated else models.Filter(should=names)
        return self._found(query, k, models.Filter(must=[_has(as_whom), theirs]))

    def _found(self, query: str, k: int, allowed: Any) -> list[tuple[str, float]]:
        found = self._client.query_points("rows", vector_of(query).tolist(), query_filter=allowed, limit=k)
        return [(one.payload["id"], one.score) for one in found.points]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Set the payload."""
        self._client.set_payload("rows", {"audience": sorted(audience)}, [_point(name)])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete points."""
        self._client.delete("rows", [_point(one) for one in ids])

    def files(self) -> list[Path]:
        """Return the files below the directory."""
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def close(self) -> None:
        """Close the client."""
        self._client.close()
        self._home.cleanup()


def _has(name: str) -> models.FieldCondition:
    return models.FieldCondition(key="audience", match=models.MatchValue(value=name))
