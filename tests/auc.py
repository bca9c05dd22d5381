"""Estimate the area under the ROC curve of a score that tells two classes apart, with its 95 % interval.

0.5 is a coin's. An attacker who may also bet the other way round reaches ``max(area, 1 - area)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_Z = 1.959964  # two-sided 95 %


@dataclass(frozen=True, slots=True)
class Area:
    """An area under the ROC curve, 0 to 1, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def at_most(self) -> float:
        """What an attacker may reach at most, who may also bet the other way round."""
        return max(self.high, 1 - self.low)

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} .. {self.high:.4f})"


def area_under_curve(positive: ArrayLike, negative: ArrayLike) -> Area:
    """Estimate P(positive > negative), ties counted half, with DeLong's variance.

    Source: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), by mid-ranks (Sun and Xu 2014).

    Parameters
    ----------
    positive, negative : (n,), (m,) float64
        Scores of independent trials, at least two of each.

    Examples
    --------
    >>> area_under_curve([2, 3, 4], [0, 1, 1]).value
    1.0
    """
    high, low = (np.asarray(scores, np.float64) for scores in (positive, negative))
    if high.ndim != 1 or low.ndim != 1 or min(len(high), len(low)) < 2:
        raise ValueError(f"scores are {high.shape} and {low.shape}; want two columns of two or more")
    # Of each score, how much of the other class it beats.
    beats_low = _beaten(high, low)
    beaten_by_high = 1 - _beaten(low, high)
    value = float(beats_low.mean())
    error = math.sqrt(beats_low.var(ddof=1) / len(high) + beaten_by_high.var(ddof=1) / len(low))
    return Area(value, max(0.0, value - _Z * error), min(1.0, value + _Z * error))


def _beaten(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the share of the others that each score is above, those it equals counted half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, "left")
    up_to = np.searchsorted(ordered, scores, "right")
    return np.asarray((below + up_to) / (2 * len(others)))
