"""Choose rows that repeat each other less: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.backends import AnyIndex
    from carag.index import TextIndex
    from carag.policy import Search
    from carag.retrieval.ranking.ranker import Question, Ranked, Ranker, Wider


_NAME: Final = re.compile(r"(?P<ranker>.+)\+mmr-(?P<relevance>0?\.\d{1,2}|1|0)-(?P<fetch>\d{1,4})")

_MOST: Final = 9999
"""The most rows to choose from, so that the number fits into a ranker's name."""


class Diverse:
    """Chooses, from the best rows of another ranker, those that are relevant and unlike the rows already chosen.

    Each next row has the greatest ``relevance * score - (1 - relevance) * likeness``: the ranker's score, and the
    greatest cosine similarity to a row already chosen, 0 for the first. Rows about what the question names are all
    chosen before others. Similarities are the core's exact ones, so that every machine chooses the same rows.

    ``relevance``, lambda in the paper, is 0 to 1 in steps of 0.01; at 1 the order is the ranker's. ``fetch`` is the
    number of rows to choose from, 1 to 9,999.
    """

    def __init__(self, ranker: Ranker, relevance: float, fetch: int) -> None:
        if not 0 <= relevance <= 1 or round(relevance, 2) != relevance:
            raise InvalidArgument(f"the weight on relevance is {relevance}; want 0 to 1 in steps of 0.01")
        if not 1 <= fetch <= _MOST:
            raise InvalidArgument(f"the number of rows to choose from is {fetch}; want 1 to {_MOST}")
        self._ranker = ranker
        self._relevance = relevance
        self._fetch = fetch
        self.name = f"{ranker.name}+mmr-{relevance:g}-{fetch}"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the ranker."""
        return self._ranker.fingerprint

    def rank(
        self,
        index: AnyIndex,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        """Rank by the other ranker, and choose from its rows."""
        found = self._ranker.rank(
            index,
            words,
            question,
            searches,
            max(k, self._fetch),
            exact_limit=exact_limit,
            wider=wider and wider._replace(k=max(wider.k, self._fetch)),
        )
        others = found.wider and wider and self._chosen(index, found.wider, wider.k)
        return self._chosen(index, found, k)._replace(wider=others)

    def _chosen(self, index: AnyIndex, found: Ranked, k: int) -> Ranked:
        chosen = self._choose(index, found, k)
        return found._replace(
            keys=[found.keys[at] for at in chosen],
            similarities=[found.similarities[at] for at in chosen],
            scores=[found.scores[at] for at in chosen],
        )

    def _choose(self, index: AnyIndex, found: Ranked, k: int) -> list[int]:
        """Return the places of the rows chosen, in the order of choice."""
        keys = np.array(found.keys, np.int64)
        vectors = index.vectors(keys)
        relevance = self._relevance * np.array(found.scores)
        is_about = np.array([found.about is None or key in found.about for key in found.keys], bool)
        likeness = np.full(len(found.keys), -np.inf)
        left = np.ones(len(found.keys), bool)
        chosen: list[int] = []
        while left.any() and len(chosen) < k:
            among = np.flatnonzero(left & is_about if (left & is_about).any() else left)
            alike = likeness[among] if chosen else 0.0
            at = int(among[np.argmax(relevance[among] - (1 - self._relevance) * alike)])
            chosen.append(at)
            left[at] = False
            likeness = np.maximum(likeness, index.similarities(vectors[at], keys))
        return chosen


def diversity_of(name: str) -> tuple[str, float, int] | None:
    """Split a ranker's name into the other ranker, the weight on relevance and the number of rows to choose from."""
    if "+" not in name:
        return None
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise InvalidArgument(
            f"there is no ranker {quoted(name)}; want RANKER+mmr-RELEVANCE-ROWS, such as fused-1+mmr-0.7-20"
        )
    return parts["ranker"], float(parts["relevance"]), int(parts["fetch"])
