"""An hnswlib graph over all rows in the place of the index: what retrieval takes that reads and fuses as ours does.

It knows no policy, so what it finds is not what a session may use, and none of it is shown to anybody: it is timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.evaluation.systems.baselines import Hnsw
from carag.index import SearchResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.index import Index, SearchStats


class Vanilla:
    """An hnswlib graph that answers as an :class:`carag.Index` does.

    Parameters
    ----------
    index : Index
        Tells how similar rows are to a query.
    keys : (n,) int64
    vectors : (n, dim) float32
        Of the rows, as `keys` are.
    stats : SearchStats
        Of every answer.
    """

    def __init__(
        self, index: Index, keys: NDArray[np.int64], vectors: NDArray[np.float32], stats: SearchStats
    ) -> None:
        self.similarities = index.similarities
        self.graph = Hnsw(vectors, seed=0)
        self._keys, self._stats = keys, stats

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, query: NDArray[np.float32], k: int, *_policy: Any, **_options: Any) -> SearchResult:
        """Find the nearest of all rows, whatever the policy."""
        rows, similarities = self.graph.nearest(query, k)
        return _Unfiltered(
            self._keys[rows][None], similarities[None], np.array([len(rows)], np.int64), self._stats
        )


class _Unfiltered(SearchResult):
    """What is nearest of all rows is what is nearest without a policy, too."""

    @property
    def wider(self) -> SearchResult:
        return self
