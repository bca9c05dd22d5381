"""Score texts by words over any part of them, stated plainly: the reference for the core's search by words.

It shares its tokens with :class:`carag.TextIndex`, but nothing else: it has no policy, no labels and no pruning. What a
system may search is a mask over rows from the ground truth, so statistics cover only those rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log
from typing import TYPE_CHECKING

import numpy as np

from carag.index import TermCounts
from carag.retrieval.ranking import K1, B

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class Postings:
    """Where each term occurs, and how often; ``texts`` are the terms of each row, including those of its heading."""

    def __init__(self, texts: Sequence[Iterable[str]]) -> None:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths = np.zeros(len(texts))
        for row, terms in enumerate(texts):
            counted = Counter(terms)
            self._lengths[row] = counted.total()
            for term, times in counted.items():
                found[term].append((row, times))
        self._postings = {term: np.array(places, np.int32) for term, places in found.items()}

    def count(self, terms: Iterable[str], mask: NDArray[np.bool_]) -> TermCounts:
        """Count the rows that a mask admits, their terms, and how many of them contain each of some terms."""
        held = (self._postings.get(term) for term in terms)
        return TermCounts(
            int(np.count_nonzero(mask)),
            int(self._lengths[mask].sum()),
            tuple(0 if places is None else int(np.count_nonzero(mask[places[:, 0]])) for places in held),
        )

    def scores(self, terms: Iterable[str], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Score every row that a mask ``(n,) bool`` admits by BM25, as if there were no others; other rows have 0."""
        scores = np.zeros(len(mask))
        count = int(np.count_nonzero(mask))
        if count == 0:
            return scores
        norms = K1 * (1 - B + B * self._lengths / (self._lengths[mask].sum() / count))
        for term, times in sorted(Counter(terms).items(), key=lambda item: item[0].encode()):
            if (places := self._postings.get(term)) is None:
                continue
            rows, often = places[mask[places[:, 0]]].T
            if rows.size:
                weight = times * log(1 + (count - rows.size + 0.5) / (rows.size + 0.5))
                scores[rows] += weight * (often * (K1 + 1) / (often + norms[rows]))
        return scores
