"""An hnswlib graph over all rows in the place of the index: what retrieval takes that reads and fuses as ours does.

It knows no policy, so what it finds is not what a session may use, and none of it is shown to anybody: it is timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carag.evaluation.systems.baselines import Hnsw
from carag.index import SearchResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from carag.index import Index, SearchStats, TextIndex
    from carag.policy import Search
    from carag.retrieval.ranking import Question, Ranked, Ranker, Wider


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


class Instead:
    """A ranker that searches something else than the index it is given."""

    def __init__(self, inner: Ranker, instead: Vanilla) -> None:
        self.name, self.fingerprint = inner.name, inner.fingerprint
        self._inner, self._instead = inner, instead

    def rank(
        self,
        index: Any,  # noqa: ARG002
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,  # noqa: ARG002
        wider: Wider | None = None,
    ) -> Ranked:
        """See :class:`carag.retrieval.ranking.Ranker`."""
        searched: Any = self._instead
        return self._inner.rank(searched, words, question, searches, k, exact_limit=0, wider=wider)
