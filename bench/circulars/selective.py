"""Choose thresholds so that few of the answers above them are wrong, and measure them on circulars set aside."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.retrieval import selective_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray


SPLITS: Final = 200
SEED: Final = 20_261_124
_MILLION: Final = 1_000_000


class Row(NamedTuple):
    """What became of one question, as the gate and its judge see it."""

    family: str
    score: float
    answered: bool
    """By the generator, were there no gate."""
    right: bool
    """Whether a passage cited holds the clause."""
    found: bool
    """Whether one of the first six does."""


class Measured(NamedTuple):
    """Means over the splits in which a threshold was found, and the number of these."""

    found: int
    wrong: float | None
    """Share of the answers that are wrong; of splits with an answer above the threshold."""
    coverage: float
    """Share of all questions that are answered."""
    over_refusal: float
    """Share declined of the questions whose clause is in the first six."""
    empty: int
    """Splits with a threshold above which no question of the other half is."""


def splits(families: Sequence[str], count: int = SPLITS, seed: int = SEED) -> Iterator[NDArray[np.bool_]]:
    """Yield, for each of some splits, which questions calibrate: whole families, half of them, at random."""
    names, of = np.unique(np.asarray(families), return_inverse=True)
    random = np.random.Generator(np.random.PCG64(seed))
    for _ in range(count):
        calibrates = np.zeros(len(names), bool)
        calibrates[random.permutation(len(names))[: len(names) // 2]] = True
        yield calibrates[of]


def measured_over(rows: Sequence[Row], error: Fraction) -> Measured:
    """Choose a threshold on one half of each split, and measure it on the other.

    Without a threshold nothing is answered: such a split counts in coverage and over-refusal, and has no answer that
    could be wrong.
    """
    wrong, coverage, refused, found = [], [], [], 0
    for calibrates in splits([row.family for row in rows]):
        known = [row for row, is_in in zip(rows, calibrates, strict=True) if is_in and row.answered]
        others = [row for row, is_in in zip(rows, calibrates, strict=True) if not is_in]
        threshold = selective_threshold([row.score for row in known], [row.right for row in known], error)
        found += threshold is not None
        answered = [
            row
            for row in others
            if threshold is not None and row.answered and row.score * _MILLION >= threshold
        ]
        if answered:
            wrong.append(sum(not row.right for row in answered) / len(answered))
        coverage.append(len(answered) / len(others))
        there = sum(row.found for row in others)
        refused.append(1 - sum(row.found for row in answered) / there)
    return Measured(
        found,
        float(np.mean(wrong)) if wrong else None,
        float(np.mean(coverage)),
        float(np.mean(refused)),
        found - len(wrong),
    )


@cache
def _drawn(count: int, replicates: int) -> NDArray[np.int64]:
    return np.random.Generator(np.random.PCG64(SEED)).integers(count, size=(replicates, count))


def share_interval(
    values: Mapping[str, Sequence[bool]], replicates: int = 2_000
) -> tuple[float, float, float]:
    """Return a share over all questions, with its 95 % interval: families are drawn again, with their questions."""
    table = np.array([(sum(some), len(some)) for some in values.values()], np.float64)
    drawn = _drawn(len(table), replicates)
    shares = table[drawn, 0].sum(axis=1) / table[drawn, 1].sum(axis=1)
    low, high = np.percentile(shares, [2.5, 97.5])
    return float(table[:, 0].sum() / table[:, 1].sum()), float(low), float(high)
