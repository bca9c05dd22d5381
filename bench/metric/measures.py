"""Compute what the benchmark reports: pure functions of ranks, scores and verdicts.

Those that an interval is wanted of take ``weights``: how often each item counts, of shape ``(n,)`` or, a row for each
replicate of a bootstrap, ``(replicates, n)``; they return one figure, or one for each row. Replicates are those of
:func:`carag.evaluation.statistics.bootstrap.bootstrap_weights`: clusters with replacement, then items within each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.statistics.bootstrap import bootstrap_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from numpy.typing import NDArray


Figures = Any
"""One float, or an array with one for each replicate."""
THRESHOLDS: Final = tuple(at / 100 for at in range(101))
"""Contradiction thresholds that are tried."""


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold among the first k.

    Examples
    --------
    >>> recall_at(["a", "x", "b"], {"a", "b"}, 2)
    0.5
    """
    return len({*ranked[:k]} & {*gold}) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 over the rank of the first that is gold; 0 if none is.

    Examples
    --------
    >>> reciprocal_rank(["x", "a"], {"a"}), reciprocal_rank(["x"], {"a"})
    (0.5, 0.0)
    """
    return next((1 / rank for rank, one in enumerate(ranked, start=1) if one in gold), 0.0)


def ndcg_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k over the greatest possible; the gain is 1 or 0, as the gold has it.

    (Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques, 2002; discount log2(rank + 1).)

    Examples
    --------
    >>> ndcg_at(["a", "x"], {"a"}, 2), round(ndcg_at(["x", "a"], {"a"}, 2), 4)
    (1.0, 0.6309)
    """
    gained = sum(1 / math.log2(rank + 1) for rank, one in enumerate(ranked[:k], start=1) if one in gold)
    return gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


def mean(values: Sequence[float], weights: NDArray[np.float64]) -> Figures:
    """Return the weighted mean."""
    return weights @ np.asarray(values, dtype=np.float64) / weights.sum(axis=-1)


def confusion(
    truth: Sequence[Hashable], said: Sequence[Hashable], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Count pairs of labels: ``(..., labels, labels)``, a row for each label of the truth, in the order of their names.

    Examples
    --------
    >>> confusion([True, True, False], [True, False, False], np.ones(3)).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    labels = sorted({*truth, *said}, key=repr)
    cells = np.zeros((len(truth), len(labels) ** 2))
    for at, (one, other) in enumerate(zip(truth, said, strict=True)):
        cells[at, labels.index(one) * len(labels) + labels.index(other)] = 1
    counted = np.asarray(weights, dtype=np.float64) @ cells
    return np.asarray(counted.reshape(*counted.shape[:-1], len(labels), len(labels)))


def accuracy(table: NDArray[np.float64]) -> Figures:
    """Return the share on the diagonal."""
    return np.trace(table, axis1=-2, axis2=-1) / table.sum(axis=(-2, -1))


def kappa(table: NDArray[np.float64]) -> Figures:
    """Return Cohen's kappa; 0 where chance alone would agree always, so that nothing more could be shown.

    (Cohen, A Coefficient of Agreement for Nominal Scales, 1960.)

    Examples
    --------
    >>> round(float(kappa(np.array([[20, 5], [10, 15]]))), 4)
    0.4
    """
    whole = table.sum(axis=(-2, -1))
    chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / whole**2
    spare = 1 - chance
    return np.where(spare > 1e-12, (accuracy(table) - chance) / np.where(spare > 1e-12, spare, 1), 0.0)


def macro_f1(table: NDArray[np.float64]) -> Figures:
    """Return the mean F1 over the labels that occur; 0 for one that is never right.

    Examples
    --------
    >>> round(float(macro_f1(np.array([[3, 1], [1, 1]]))), 4)
    0.625
    """
    right = np.diagonal(table, axis1=-2, axis2=-1)
    both = table.sum(axis=-1) + table.sum(axis=-2)
    occurs = both > 0
    f1 = np.where(occurs, 2 * right / np.where(occurs, both, 1), 0.0)
    return f1.sum(axis=-1) / occurs.sum(axis=-1)


def f1_by_threshold(scores: Sequence[float], contradicts: Sequence[bool]) -> list[float]:
    """Return the macro-F1 at each of :data:`THRESHOLDS`, where a score below it contradicts."""
    marks, truth = np.asarray(scores), np.asarray(contradicts, dtype=bool)
    found = []
    for limit in THRESHOLDS:
        said = marks < limit
        table = np.array(
            [[(truth == one) & (said == other) for other in (False, True)] for one in (False, True)]
        )
        found.append(float(macro_f1(table.sum(axis=-1).astype(np.float64))))
    return found


def best_threshold(scores: Sequence[float], contradicts: Sequence[bool]) -> float:
    """Return the threshold of the greatest macro-F1: of equal ones the middle one, which is furthest from either side.

    Examples
    --------
    >>> best_threshold([0.1, 0.2, 0.8, 0.9], [True, True, False, False])
    0.51
    """
    found = f1_by_threshold(scores, contradicts)
    equal = [at for at, one in zip(THRESHOLDS, found, strict=True) if one >= max(found) - 1e-12]
    return equal[len(equal) // 2]


def average_precision(
    scores: Sequence[float], contradicts: Sequence[bool], weights: NDArray[np.float64]
) -> Figures:
    """Return the precision of contradiction averaged over recall as the threshold rises; of a guess, the prevalence."""
    caught, said = _cumulated(scores, contradicts, weights)
    whole = caught[..., -1:]
    steps = np.diff(caught, axis=-1, prepend=0.0)
    precision = np.where(said > 0, caught / np.where(said > 0, said, 1), 0.0)
    return np.where(
        whole[..., 0] > 0, (steps * precision).sum(axis=-1) / np.where(whole > 0, whole, 1)[..., 0], np.nan
    )


def area(scores: Sequence[float], contradicts: Sequence[bool], weights: NDArray[np.float64]) -> Figures:
    """Return the area under the ROC curve: how often a contradiction scores below a support; equal scores count half.

    Examples
    --------
    >>> float(area([0.1, 0.5, 0.5, 0.9], [True, True, False, False], np.ones(4)))
    0.875
    """
    caught, said = _cumulated(scores, contradicts, weights)
    wrong = said - caught
    steps = np.diff(wrong, axis=-1, prepend=0.0)
    below = caught - np.diff(caught, axis=-1, prepend=0.0) / 2
    pairs = caught[..., -1] * wrong[..., -1]
    return np.where(pairs > 0, (steps * below).sum(axis=-1) / np.where(pairs > 0, pairs, 1), np.nan)


def _cumulated(
    scores: Sequence[float], contradicts: Sequence[bool], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count contradictions, and all items, up to each score that occurs, ascending."""
    marks, truth = np.asarray(scores), np.asarray(contradicts, dtype=bool)
    _, at = np.unique(marks, return_inverse=True)
    order = np.argsort(at, kind="stable")
    ends = np.flatnonzero(np.diff(at[order], append=at.max() + 1))
    drawn = np.asarray(weights, dtype=np.float64)[..., order]
    return (drawn * truth[order]).cumsum(axis=-1)[..., ends], drawn.cumsum(axis=-1)[..., ends]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval, by the percentiles of a cluster bootstrap."""

    value: float
    low: float
    high: float
    n: int
    clusters: int

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


def interval(figure: Callable[[NDArray[np.float64]], Figures], clusters: Sequence[int]) -> Interval:
    """Return a figure with its interval; for a paired difference, the figure is the difference of two over one draw.

    Parameters
    ----------
    figure : callable
        Takes weights of shape ``(replicates, n)``, returns a figure for each row; NaN where it has no value.
    clusters : sequence of int
        The cluster of each item, ascending.

    Raises
    ------
    InvalidArgument
        If no replicate has a value.
    """
    drawn = _drawn(tuple(clusters))
    made = np.asarray(figure(drawn), dtype=np.float64)
    made = made[~np.isnan(made)]
    value = float(np.asarray(figure(np.ones((1, len(clusters)))))[0])
    if not made.size or math.isnan(value):
        raise InvalidArgument(f"a figure of {len(clusters)} items has no value; want both truths among them")
    low, high = (float(one) for one in np.percentile(made, [2.5, 97.5]))
    # Include the value: percentiles of a skewed figure can miss the estimate itself.
    return Interval(value, min(low, value), max(high, value), len(clusters), len({*clusters}))


@lru_cache(maxsize=8)
def _drawn(clusters: tuple[int, ...]) -> NDArray[np.float64]:
    """Draw once for each list of clusters: the same draw pairs all figures over the same items."""
    return bootstrap_weights(clusters)
