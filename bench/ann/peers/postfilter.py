"""Graphs whose Python search takes no filter: asked for more rows than wanted, what is not admissible dropped after.

The first search asks for as many candidates as its beam is wide, which is the effort. The policy is tested on the
candidates alone, inside the call: nothing is computed for rows that were not found. While fewer than k are left, the
beam is widened by what the last one says is missing, up to `WIDEST`; a policy that admits less than that finds is
answered short. Without a policy one search asks for k.

Vamana is searched over three codes on one graph, which is built from float32. Builds use all processors, searches one
thread.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional
from bench.ann.peers.hnswlib import EF_CONSTRUCTION, EFS
from carag.errors import MissingExtra

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["WIDEST", "Glass", "Usearch", "UsearchInt8", "Vamana", "VamanaLvq4x8", "VamanaLvq8", "Voyager"]

WIDEST: Final = 8 * EFS[-1]
"""Candidates at most; a scan of what is admissible is long since faster."""
_REFINED: Final = 10
"""Candidates per wanted row that coarse codes hand to the float32 rows."""


class PostFilter(Engine):
    """What all of them share: drop what is not admissible, and widen."""

    bits = 32
    efforts = EFS
    refines = False
    """Whether the best are scored again from the float32 rows, which it then has to hold."""

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Search, test what was found, and search wider while too little of it is admissible."""
        handed = k * _REFINED if self.refines else k
        if policy.is_open:
            found = self._nearest(query, handed, max(handed, effort))
        else:
            widest = min(WIDEST, len(self._rows.words))
            width = min(max(handed, effort), widest)
            while True:
                found = self._nearest(query, width, width)
                found = found[policy.admissible(self._rows.some(found))]
                if len(found) >= k or width == widest:
                    break
                width = min(widest, width * min(8, max(2, k // max(1, len(found)))))
        if self.refines:
            found = found[:handed]
            found = found[np.argsort(-(self._rows.vectors[found] @ query))]
        return found[:k]

    def build(self, rows: Rows, store: Store) -> Build:
        """Build or read the index."""
        self._rows = rows
        return self._ready(store)

    @abstractmethod
    def _ready(self, store: Store) -> Build:
        """Make ready to search the rows."""

    @abstractmethod
    def _nearest(self, query: NDArray[np.float32], count: int, width: int) -> NDArray[np.int64]:
        """Return the ids of up to `count` rows, nearest first, found with a beam of `width`."""


class Vamana(PostFilter):
    """Intel SVS: Vamana over float32."""

    name = "svs-vamana"
    _levels: tuple[int, int] | None = None
    """Bits of a dimension in the first and the second level of the code; none: float32."""

    def _ready(self, store: Store) -> Build:
        self._svs = optional("svs")
        vendor = optional("archspec.cpu").host().vendor
        if self._levels and vendor != "GenuineIntel":  # loading its codes elsewhere ends the process
            raise MissingExtra(f"SVS has its LVQ codes on processors of Intel only; this one is of {vendor}")
        size, dim = self._rows.vectors.shape
        name = f"svs-vamana-R64-W{EF_CONSTRUCTION}"
        build = store.built(name, size, os.cpu_count() or 1, self._make)
        self._index = self._loaded(store.file(name))
        narrower = 4.0 * dim - sum(self._levels) / 8 * dim if self._levels else 0.0
        return replace(build, bytes_per_row=build.bytes_per_row - narrower)

    def _make(self, path: Path) -> float:
        svs = self._svs
        shape = svs.VamanaBuildParameters(alpha=0.95, graph_max_degree=64, window_size=EF_CONSTRUCTION)
        begin = time.process_time()
        index = svs.Vamana.build(
            shape, self._rows.vectors, svs.DistanceType.MIP, num_threads=os.cpu_count() or 1
        )
        seconds = time.process_time() - begin
        path.mkdir()
        index.save(*(str(path / part) for part in ("config", "graph", "data")))
        return seconds

    def _loaded(self, path: Path) -> Any:
        svs = self._svs
        rows = svs.VectorDataLoader(
            str(path / "data"), svs.DataType.float32, dims=self._rows.vectors.shape[1]
        )
        if self._levels:
            rows = svs.LVQLoader(rows, primary=self._levels[0], residual=self._levels[1])
        return svs.Vamana(
            str(path / "config"),
            svs.GraphLoader(str(path / "graph")),
            rows,
            distance=svs.DistanceType.MIP,
            num_threads=1,
        )

    def _nearest(self, query: NDArray[np.float32], count: int, width: int) -> NDArray[np.int64]:
        self._index.search_window_size = width
        ids, _ = self._index.search(query, count)
        return np.asarray(ids[0], dtype=np.int64)


class VamanaLvq4x8(Vamana):
    """The same graph over 4-bit codes, candidates scored again with 8 bits more."""

    name = "svs-vamana-lvq4x8"
    bits = 4
    _levels = (4, 8)


class VamanaLvq8(Vamana):
    """The same graph over 8-bit codes."""

    name = "svs-vamana-lvq8"
    bits = 8
    _levels = (8, 0)


class Usearch(PostFilter):
    """USearch: HNSW over float32."""

    name = "usearch"
    _dtype = "f32"

    def _ready(self, store: Store) -> Build:
        self._usearch = optional("usearch.index")
        size, dim = self._rows.vectors.shape
        name = f"{self.name}-M{graph_degree(size)}-efc{EF_CONSTRUCTION}"
        extra = 4.0 * dim if self.refines else 0.0
        build = store.built(name, size, os.cpu_count() or 1, self._make, extra=extra)
        self._index = self._empty()
        self._index.load(str(store.file(name)))
        return build

    def _empty(self) -> Any:
        size, dim = self._rows.vectors.shape
        return self._usearch.Index(
            ndim=dim,
            metric="ip",
            dtype=self._dtype,
            connectivity=graph_degree(size),
            expansion_add=EF_CONSTRUCTION,
        )

    def _make(self, path: Path) -> float:
        index = self._empty()
        begin = time.process_time()
        index.add(np.arange(len(self._rows.words)), self._rows.vectors, threads=os.cpu_count() or 1)
        seconds = time.process_time() - begin
        index.save(str(path))
        return seconds

    def _nearest(self, query: NDArray[np.float32], count: int, width: int) -> NDArray[np.int64]:
        self._index.expansion_search = width
        found = self._index.search(query, count, threads=1)
        return np.asarray(found.keys, dtype=np.int64)


class UsearchInt8(Usearch):
    """USearch: HNSW over 8-bit codes, refined from the rows."""

    name = "usearch-i8"
    bits = 8
    refines = True
    _dtype = "i8"


class Voyager(PostFilter):
    """Voyager: Spotify's HNSW over float32."""

    name = "voyager"

    def _ready(self, store: Store) -> Build:
        self._voyager = optional("voyager")
        size = len(self._rows.words)
        name = f"voyager-M{graph_degree(size)}-efc{EF_CONSTRUCTION}"
        build = store.built(name, size, os.cpu_count() or 1, self._make)
        self._index = self._voyager.Index.load(str(store.file(name)))
        return build

    def _make(self, path: Path) -> float:
        size, dim = self._rows.vectors.shape
        space = self._voyager.Space.InnerProduct
        index = self._voyager.Index(
            space, dim, M=graph_degree(size), ef_construction=EF_CONSTRUCTION, max_elements=size
        )
        begin = time.process_time()
        index.add_items(self._rows.vectors, num_threads=os.cpu_count() or 1)
        seconds = time.process_time() - begin
        index.save(str(path))
        return seconds

    def _nearest(self, query: NDArray[np.float32], count: int, width: int) -> NDArray[np.int64]:
        ids, _ = self._index.query(query, count, num_threads=1, query_ef=width)
        return np.asarray(ids, dtype=np.int64)


class Glass(PostFilter):
    """Glass: HNSW over 8-bit codes, refined from float32 rows of its own."""

    name = "glass-sq8"
    bits = 8

    def _ready(self, store: Store) -> Build:
        self._glass = optional("glass")
        size, dim = self._rows.vectors.shape
        name = f"glass-R{2 * graph_degree(size)}-L{EF_CONSTRUCTION}"
        build = store.built(name, size, os.cpu_count() or 1, self._make, extra=5.0 * dim)
        graph = self._glass.Graph(str(store.file(name)))
        self._index = self._glass.Searcher(graph, self._rows.vectors, "IP", "SQ8U", "FP32")
        self._index.optimize(1)
        return build

    def _make(self, path: Path) -> float:
        self._glass.set_num_threads(os.cpu_count() or 1)
        degree = 2 * graph_degree(len(self._rows.words))
        index = self._glass.Index("HNSW", "IP", "FP32", R=degree, L=EF_CONSTRUCTION)
        begin = time.process_time()
        graph = index.build(self._rows.vectors)
        seconds = time.process_time() - begin
        graph.save(str(path))
        return seconds

    def _nearest(self, query: NDArray[np.float32], count: int, width: int) -> NDArray[np.int64]:
        self._index.set_ef(width)
        ids, _ = self._index.search(query, count)
        return np.asarray(ids, dtype=np.int64)
