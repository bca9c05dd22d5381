"""Search for the baselines with hnswlib, in the paper's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.extras import require

if TYPE_CHECKING:
    from numpy.typing import NDArray


M: Final = 32
"""Links of a node on each layer of the graph, as in the paper."""
EF_CONSTRUCTION: Final = 200
"""Candidates kept while a row is inserted, as in the paper."""
EF_SEARCH: Final = 64
"""Candidates kept during a search, as in the paper."""

Found = tuple["NDArray[np.int64]", "NDArray[np.float32]"]
"""Rows, most similar first, and their similarities."""


class Hnsw:
    """An hnswlib graph over all rows, ``vectors : (n, dim) float32`` of length 1, without a policy."""

    def __init__(self, vectors: NDArray[np.float32], *, seed: int) -> None:
        require("the baseline hnswlib", "bench")
        import hnswlib

        self._count = len(vectors)
        self._index: Any = hnswlib.Index(space="ip", dim=vectors.shape[1])
        self._index.init_index(len(vectors), M=M, ef_construction=EF_CONSTRUCTION, random_seed=100 + seed)
        # With one thread, the same rows give the same graph.
        self._index.add_items(vectors, np.arange(len(vectors)), num_threads=1)

    def nearest(self, query: NDArray[np.float32], k: int) -> Found:
        """Return the k nearest rows, approximately: the graph search may miss some."""
        k = min(k, self._count)
        self._index.set_ef(max(EF_SEARCH, k))
        return self._found(*self._index.knn_query(query, k=k, num_threads=1))

    def nearest_of(self, query: NDArray[np.float32], k: int, mask: NDArray[np.bool_]) -> Found:
        """Return the nearest rows that a Python callback admits, as many as the search of the graph reaches."""
        admitted = mask.tolist()
        self._index.set_ef(EF_SEARCH)
        for fewer in range(min(k, int(mask.sum())), 0, -1):
            try:
                return self._found(
                    *self._index.knn_query(query, k=fewer, num_threads=1, filter=admitted.__getitem__)
                )
            except RuntimeError:
                continue
        return np.empty(0, np.int64), np.empty(0, np.float32)

    @staticmethod
    def _found(labels: Any, distances: Any) -> Found:
        return labels[0].astype(np.int64), (1 - distances[0]).astype(np.float32)
