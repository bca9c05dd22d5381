"""Fuse similarity, words and what the question names into one score over all admissible rows, and find its best.

A row's score is ``SIMILARITY`` times its cosine plus its bonus: ``WORDS`` times its BM25 score in units of the best
admissible one, the tier of its document, and ``NAMED`` if that document is about what the question names. No bonus is
negative, so a row without a bonus that is not among the ``k`` nearest has ``k`` rows before it. The nearest rows and
all bonuses therefore determine the best of *all* rows: no lists are cut off and merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


WORDS: Final = 0.4
"""The weight of words; on development questions 0.3 to 0.5 did equally well."""
SIMILARITY: Final = 1 - WORDS
NAMED: Final = 1.0
"""Added to the tier, 1 or more, of a document about what the question names. A cosine may be negative, and without this
a close row about another company could come before one about the company named: 1 + NAMED - SIMILARITY is greater than
SIMILARITY + WORDS."""
_ROUNDING: Final = 1 - 1e-9
"""A bound is lowered by this factor, far more than rounding loses."""


class Nearest(NamedTuple):
    """The rows most similar to a question."""

    keys: NDArray[np.int64]
    similarities: NDArray[np.float32]
    """Descending; ties by smaller key."""


class Bonuses(NamedTuple):
    """The bonuses of rows; all other rows have none."""

    keys: NDArray[np.int64]
    """Ascending."""
    values: NDArray[np.float64]
    """0 or more."""

    def places(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the places of some rows, and for each whether it is present."""
        if not self.keys.size:
            return np.zeros(keys.size, np.int64), np.zeros(keys.size, np.bool_)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return at, self.keys[at] == keys

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the bonus of some rows."""
        at, is_there = self.places(keys)
        found = np.zeros(keys.size)
        found[is_there] = self.values[at[is_there]]
        return found


class Best(NamedTuple):
    """The rows of the highest score."""

    keys: NDArray[np.int64]
    """Best first."""
    similarities: NDArray[np.float32]
    scores: NDArray[np.float64]


def bonuses(by_words: NDArray[np.int64], shares: NDArray[np.float64], tiers: Bonuses) -> Bonuses:
    """Add the bonuses of rows for their words and for the tier of their document.

    ``by_words`` are (n,) rows with a term of the question, each once, and ``shares`` their BM25 scores in units of the
    best admissible one, 0 to 1; ``tiers`` has all admissible rows whose document is in a tier.
    """
    keys = np.concatenate((by_words, tiers.keys))
    values = np.concatenate((WORDS * shares, tiers.values))
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    if not keys.size:
        return Bonuses(keys, values)
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return Bonuses(keys[first], np.add.reduceat(values, first))


def best_of(
    nearest: Nearest,
    bonus: Bonuses,
    k: int,
    similarities_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    *,
    whole: bool,
) -> Best:
    """Return the ``k`` rows with the highest score; ties by smaller key.

    ``nearest`` has at least the ``k`` nearest rows, or all (``whole``). ``similarities_of`` returns the similarities of
    rows by their keys, and is called only for rows that may be among the best.
    """
    keys, found = nearest
    scores = SIMILARITY * found.astype(np.float64) + bonus.of(keys)
    if not whole and keys.size:
        # Farther rows are at most as similar as the last of the nearest, and rounding keeps that order.
        at, is_there = bonus.places(keys)
        is_farther = np.ones(bonus.keys.size, bool)
        is_farther[at[is_there]] = False
        far, extra = bonus.keys[is_farther], bonus.values[is_farther]
        most = extra + SIMILARITY * float(found[-1])
        likely = np.argsort(-most, kind="stable")[:k]
        rest = np.ones(far.size, bool)
        rest[likely] = False
        for some in (likely, np.flatnonzero(rest)):
            asked = some
            if scores.size >= k:
                asked = some[most[some] >= np.partition(scores, scores.size - k)[scores.size - k]]
            if asked.size:
                read = similarities_of(far[asked])
                keys, found = np.concatenate((keys, far[asked])), np.concatenate((found, read))
                scores = np.concatenate((scores, SIMILARITY * read.astype(np.float64) + extra[asked]))
    order = np.lexsort((keys, -scores))[:k]
    return Best(keys[order], found[order], scores[order])


def least_share(best: Best, nearest: Nearest, k: int) -> float:
    """Return the least share of words that could lift a row without a tier into the best ones, or higher among them.

    The scores in ``best`` are lower bounds, because some rows' words may not be known yet.
    """
    if best.scores.size < k:
        return 0.0
    lift = float(best.scores[-1]) - SIMILARITY * float(nearest.similarities[0])
    return max(0.0, _ROUNDING * lift / WORDS)
