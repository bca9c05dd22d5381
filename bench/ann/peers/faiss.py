"""FAISS: every index of it that takes a selector, with the bitmap built inside the call.

Queries use one thread. Compressed lists are refined from the float32 rows, as FAISS offers it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional
from bench.ann.peers.hnswlib import EF_CONSTRUCTION, EFS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


_NPROBES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_TRAINING_ROWS: Final = 100_000
_REFINED: Final = 10
"""Candidates per wanted row that compressed lists hand to the float32 rows."""


class _Faiss(Engine):
    """What all of them share: the selector, and saving."""

    refines = False
    """Whether candidates are scored again from the float32 rows, which it then has to hold."""

    def build(self, rows: Rows, store: Store) -> Build:
        """Build or read the index."""
        faiss = optional("faiss")
        faiss.omp_set_num_threads(1)
        self._faiss, self._rows = faiss, rows
        extra = 4.0 * rows.vectors.shape[1] if self.refines else 0.0
        build = store.built(self._file(), len(rows.words), 1, self._save, extra=extra)
        index = faiss.read_index(str(store.file(self._file())))
        self._index = faiss.IndexRefineFlat(index, faiss.swig_ptr(rows.vectors)) if self.refines else index
        return build

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Build the bitmap, the selector and the parameters, and search."""
        sel = None
        if not policy.is_open:
            bitmap = np.packbits(policy.admissible(self._rows), bitorder="little")
            sel = self._faiss.IDSelectorBitmap(bitmap)
        _, ids = self._index.search(query[np.newaxis], k, params=self._parameters(effort, sel))
        return np.asarray(ids[0])

    def _file(self) -> str:
        return self.name

    def _save(self, path: Path) -> float:
        begin = time.process_time()
        index = self._make(self._rows.vectors.shape[1])
        if not index.is_trained:
            index.train(self._training())
        index.add(self._rows.vectors)
        seconds = time.process_time() - begin
        self._faiss.write_index(index, str(path))
        return seconds

    def _training(self) -> NDArray[np.float32]:
        vectors = self._rows.vectors
        chosen = np.random.default_rng(0).permutation(len(vectors))[:_TRAINING_ROWS]
        return vectors[np.sort(chosen)]

    def _make(self, dim: int) -> Any:
        raise NotImplementedError

    def _parameters(self, effort: int, sel: Any) -> Any:
        raise NotImplementedError


class Hnsw(_Faiss):
    """IndexHNSWFlat under a bitmap."""

    name = "faiss-hnsw"
    bits = 32
    efforts = EFS

    def _file(self) -> str:
        return f"{self.name}-M{graph_degree(len(self._rows.words))}-efc{EF_CONSTRUCTION}"

    def _make(self, dim: int) -> Any:
        degree = graph_degree(len(self._rows.words))
        index = self._faiss.IndexHNSWFlat(dim, degree, self._faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        return index

    def _parameters(self, effort: int, sel: Any) -> Any:
        return self._faiss.SearchParametersHNSW(efSearch=effort, sel=sel)


class HnswSq8(Hnsw):
    """IndexHNSWSQ with 8-bit codes, refined from the rows."""

    name = "faiss-hnsw-sq8"
    bits = 8
    refines = True

    def _make(self, dim: int) -> Any:
        faiss = self._faiss
        degree = graph_degree(len(self._rows.words))
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, degree, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        return index

    def _parameters(self, effort: int, sel: Any) -> Any:
        base = self._faiss.SearchParametersHNSW(efSearch=effort, sel=sel)
        return self._faiss.IndexRefineSearchParameters(k_factor=2, base_index_params=base)


class IvfFlat(_Faiss):
    """IndexIVFFlat with 4 sqrt(n) lists under a bitmap."""

    name = "faiss-ivf"
    bits = 32
    efforts = _NPROBES

    def _make(self, dim: int) -> Any:
        faiss = self._faiss
        self._quantizer = faiss.IndexFlatIP(dim)  # the index does not own it
        return faiss.IndexIVFFlat(self._quantizer, dim, self._lists(), faiss.METRIC_INNER_PRODUCT)

    def _lists(self) -> int:
        return int(4 * np.sqrt(len(self._rows.words)))

    def _parameters(self, effort: int, sel: Any) -> Any:
        return self._faiss.SearchParametersIVF(nprobe=effort, sel=sel)


class IvfPqFastScan(IvfFlat):
    """IndexIVFPQFastScan, two dimensions to 4 bits, refined from the rows."""

    name = "faiss-ivfpq-fastscan"
    bits = 2
    refines = True

    def _make(self, dim: int) -> Any:
        faiss = self._faiss
        self._quantizer = faiss.IndexFlatIP(dim)
        return faiss.IndexIVFPQFastScan(
            self._quantizer, dim, self._lists(), dim // 2, 4, faiss.METRIC_INNER_PRODUCT
        )

    def _parameters(self, effort: int, sel: Any) -> Any:
        base = super()._parameters(effort, sel)
        return self._faiss.IndexRefineSearchParameters(k_factor=_REFINED, base_index_params=base)
