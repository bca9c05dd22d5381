"""zvec: HNSW with inverted indexes, in this process; a policy becomes a filter expression over the words it admits."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Zvec", "ZvecInt8"]

_BATCH: Final = 1_000
_NO_WORD: Final = -1
"""Stands for no word at all: there is no empty list in a filter."""
_EFS: Final = (16, 32, 64, 96, 128, 192, 256, 512, 1024)


class Zvec(Engine):
    """HNSW over float32."""

    name = "zvec-hnsw"
    bits = 32
    efforts = _EFS

    def build(self, rows: Rows, store: Store) -> Build:
        """Insert and optimise."""
        self._zvec = _started()
        self._rows = rows
        name = f"{self.name}-M{graph_degree(len(rows.words))}-{rows.digest}"
        build = store.built(name, len(rows.words), 1, self._make)
        self._collection = self._zvec.open(path=str(store.file(name)))
        self._words = np.unique(rows.words)
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Write the filter and search."""
        expression = None if policy.is_open else self._filter(policy)
        asked = self._zvec.Query(field_name="vector", vector=query, param=self._param(effort))
        found = self._collection.query(asked, topk=k, filter=expression, output_fields=[])
        return np.array([int(document.id) for document in found], dtype=np.int64)

    def _param(self, effort: int) -> Any:
        return self._zvec.HnswQueryParam(ef=effort)

    def _quantizer(self) -> Any:
        return self._zvec.QuantizeType.UNDEFINED

    def _make(self, path: Path) -> float:
        zvec, rows = self._zvec, self._rows
        graph = zvec.HnswIndexParam(
            metric_type=zvec.MetricType.IP,
            m=graph_degree(len(rows.words)),
            ef_construction=200,
            quantize_type=self._quantizer(),
            use_contiguous_memory=True,
        )
        ranged = zvec.InvertIndexParam(enable_range_optimization=True)
        schema = zvec.CollectionSchema(
            name="rows",
            fields=[
                zvec.FieldSchema(name, zvec.DataType.INT64, nullable=False, index_param=ranged)
                for name in ("word", "public_at", "entity")
            ],
            vectors=zvec.VectorSchema("vector", zvec.DataType.VECTOR_FP32, rows.vectors.shape[1], graph),
        )
        begin = time.process_time()
        collection = zvec.create_and_open(path=str(path), schema=schema)
        for start in range(0, len(rows.words), _BATCH):
            end = min(start + _BATCH, len(rows.words))
            collection.insert([self._document(row) for row in range(start, end)])
        collection.optimize()
        collection.flush()
        seconds = time.process_time() - begin
        collection.close()
        return seconds

    def _document(self, row: int) -> Any:
        rows = self._rows
        fields = {
            "word": int(rows.words[row]),
            "public_at": int(rows.public_at[row]),
            "entity": int(rows.entities[row]),
        }
        return self._zvec.Doc(id=str(row), fields=fields, vectors={"vector": rows.vectors[row].tolist()})

    def _filter(self, policy: Request) -> str:
        mask = policy.required | policy.forbidden
        words = self._words[(self._words & np.uint32(mask)) == policy.required].tolist()
        parts = [f"word in ({','.join(map(str, words or [_NO_WORD]))})"]
        if policy.as_of is not None:
            parts.append(f"public_at <= {policy.as_of}")
        if policy.denied is not None:
            parts.append(f"entity not in ({','.join(map(str, policy.denied.tolist()))})")
        return " and ".join(parts)


class ZvecInt8(Zvec):
    """HNSW over 8-bit codes, refined from the rows."""

    name = "zvec-hnsw-int8"
    bits = 8

    def _param(self, effort: int) -> Any:
        return self._zvec.HnswQueryParam(ef=effort, is_using_refiner=True, scale_factor=2.0)

    def _quantizer(self) -> Any:
        return self._zvec.QuantizeType.INT8


@cache
def _started() -> Any:
    """Start the library with one thread, which a process may do once."""
    zvec = optional("zvec")
    zvec.init(query_threads=1, optimize_threads=1)
    return zvec
