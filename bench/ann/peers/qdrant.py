"""Qdrant Edge: HNSW with payload indexes, in this process; filters are its own, made for every query.

A policy becomes the list of the words it admits, since its conditions know no bits.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["QdrantAcorn", "QdrantEdge"]

_BATCH: Final = 1_000
_EFS: Final = (16, 32, 64, 96, 128, 192, 256, 512, 1024)


class QdrantEdge(Engine):
    """One shard, optimised into an HNSW graph with indexes on word, time and entity."""

    name = "qdrant-edge"
    bits = 32
    efforts = _EFS
    acorn = False

    def build(self, rows: Rows, store: Store) -> Build:
        """Insert, index, optimise."""
        self._qdrant = optional("qdrant_edge")
        self._rows = rows
        name = f"qdrant-edge-M{graph_degree(len(rows.words))}-{rows.digest}"
        build = store.built(name, len(rows.words), 1, self._make)
        path = str(store.file(name))
        self._shard = store.once(name, lambda: self._qdrant.EdgeShard.load(path, self._config()))
        self._words = np.unique(rows.words)
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Make the filter and search."""
        qdrant = self._qdrant
        permitted = None if policy.is_open else self._filter(policy)
        acorn = qdrant.AcornSearchParams(enable=True) if self.acorn else None
        request = qdrant.SearchRequest(
            qdrant.Query.Nearest(query.tolist()),
            k,
            filter=permitted,
            params=qdrant.SearchParams(hnsw_ef=effort, acorn=acorn),
        )
        return np.array([hit.id for hit in self._shard.search(request)], dtype=np.int64)

    def _config(self) -> Any:
        qdrant = self._qdrant
        graph = qdrant.HnswIndexConfig(
            m=graph_degree(len(self._rows.words)),
            ef_construct=200,
            full_scan_threshold=10_000,
            max_indexing_threads=1,
        )
        vectors = qdrant.EdgeVectorParams(
            size=self._rows.vectors.shape[1],
            distance=qdrant.Distance.Dot,
            memory=qdrant.Memory.Cached,
            hnsw_config=graph,
        )
        optimizers = qdrant.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=100)
        return qdrant.EdgeConfig(
            vectors=vectors, hnsw_config=graph, optimizers=optimizers, max_search_threads=1
        )

    def _make(self, path: Path) -> float:
        qdrant, rows = self._qdrant, self._rows
        path.mkdir()
        begin = time.process_time()
        shard = qdrant.EdgeShard.create(str(path), self._config())
        for name in ("word", "public_at", "entity"):
            schema = qdrant.PayloadSchemaType.Integer
            shard.update(qdrant.UpdateOperation.create_field_index(name, schema))
        for start in range(0, len(rows.words), _BATCH):
            part = slice(start, start + _BATCH)
            columns = zip(
                rows.vectors[part].tolist(),
                rows.words[part].tolist(),
                rows.public_at[part].tolist(),
                rows.entities[part].tolist(),
                strict=True,
            )
            points = [
                qdrant.Point(start + row, vector, {"word": word, "public_at": public_at, "entity": entity})
                for row, (vector, word, public_at, entity) in enumerate(columns)
            ]
            shard.update(qdrant.UpdateOperation.upsert_points(points))
        while shard.optimize():
            pass
        shard.flush()
        seconds = time.process_time() - begin
        shard.close()
        return seconds

    def _filter(self, policy: Request) -> Any:
        qdrant = self._qdrant
        mask = policy.required | policy.forbidden
        words = self._words[(self._words & np.uint32(mask)) == policy.required].tolist()
        must = [qdrant.FieldCondition("word", match=qdrant.MatchAny(words))]
        if policy.as_of is not None:
            must.append(qdrant.FieldCondition("public_at", range=qdrant.RangeFloat(lte=float(policy.as_of))))
        if policy.denied is None:
            return qdrant.Filter(must=must)
        denied = qdrant.FieldCondition("entity", match=qdrant.MatchAny(policy.denied.tolist()))
        return qdrant.Filter(must=must, must_not=[denied])


class QdrantAcorn(QdrantEdge):
    """The same shard, searched with ACORN's two hops."""

    name = "qdrant-edge-acorn"
    acorn = True
