"""Glass: its Python search takes no filter, so that it is asked for more rows than wanted, and the others are dropped.

The first search asks for as many candidates as its beam is wide, which is the effort. The policy is tested on the
candidates alone, inside the call: nothing is computed for rows that were not found. While fewer than k are left, the
beam is widened by what the last one says is missing, up to `WIDEST`; a policy that admits less than that finds is
answered short. Without a policy one search asks for k. Builds use all processors, searches one thread.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional
from bench.ann.peers.hnswlib import EF_CONSTRUCTION, EFS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


WIDEST: Final = 8 * EFS[-1]
"""Candidates at most; a scan of what is admissible is long since faster."""


class PostFilter(Engine):
    """Drops what is not admissible, and widens."""

    bits = 32
    efforts = EFS

    def search(self, query: NDArray[np.float32], k: int, policy: Request, effort: int) -> NDArray[np.int64]:
        """Search, test what was found, and search wider while too little of it is admissible."""
        if policy.is_open:
            found = self._nearest(query, k, max(k, effort))
        else:
            widest = min(WIDEST, len(self._rows.words))
            width = min(max(k, effort), widest)
            while True:
                found = self._nearest(query, width, width)
                found = found[policy.admissible(self._rows.some(found))]
                if len(found) >= k or width == widest:
                    break
                width = min(widest, width * min(8, max(2, k // max(1, len(found)))))
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
