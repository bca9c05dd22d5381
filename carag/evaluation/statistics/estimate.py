"""Estimate means with 95 % intervals and effective sample sizes, from sums by question."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.bootstrap import bootstrap_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


SCALE: Final = 1_000_000
"""Units of 1: values are summed as whole millionths, so that sums are exact in any order."""
_BOOTSTRAP: Final = "cluster bootstrap"
_EXACT: Final = "Clopper-Pearson at the effective n"
_NONE: Final = "none: nothing shows how far questions vary"

_ROUNDING: Final = 1e-18
"""Variance of replicates up to which they are taken to be equal."""

Question = tuple[int, str]
"""CIK of a filer, and the id of a question about it."""


class ValueRange(Enum):
    """Range of the values of a measure."""

    SHARE = "0..1"
    DIFFERENCE = "-1..1"
    AMOUNT = "0.."


@dataclass(frozen=True, slots=True)
class Sums:
    """Sum, count, count of non-zero values, sum of squares, and extremes of values in millionths."""

    values: int = 0
    count: int = 0
    nonzero: int = 0
    squares: int = 0
    least: int = 0
    greatest: int = 0

    @classmethod
    def of(cls, *values: int) -> Sums:
        """Sum up values, each in millionths."""
        if not values:
            return _EMPTY
        squares = sum(value * value for value in values)
        nonzero = sum(value != 0 for value in values)
        return cls(sum(values), len(values), nonzero, squares, min(values), max(values))

    def __add__(self, other: Sums) -> Sums:
        if not other.count:
            return self
        if not self.count:
            return other
        return Sums(
            self.values + other.values,
            self.count + other.count,
            self.nonzero + other.nonzero,
            self.squares + other.squares,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )


_EMPTY: Final = Sums()


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Why a figure is missing; printed in words, never as 0."""

    why: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    ``effective`` is the effective sample size: the variance of one row over the variance of the mean among replicates,
    at most the denominator. If all rows agree there is no variance, and the effective sample size is Kish's
    ``(sum of m)^2 / sum of m^2`` over the numbers m of rows per filer, as if the rows of a filer always agreed.
    """

    value: float
    numerator: float
    denominator: int  # rows, chunks or canaries: what the measure counts
    low: float | None  # None, like ``high``, if fewer than two questions were asked
    high: float | None
    questions: int  # the distinct questions in the denominator; likewise ``filers``
    filers: int
    effective: int
    method: str
    bound_if_independent: float | None = None  # for a share of 0 or 1 in all rows


def total(sums: Iterable[Sums]) -> Sums:
    """Add up sums."""
    whole = Sums()
    for one in sums:
        whole += one
    return whole


def estimates(
    columns: Mapping[str, Mapping[Question, Sums]],
    *,
    value_range: ValueRange = ValueRange.SHARE,
    drawn: NDArray[np.float64] | None = None,
) -> dict[str, Estimate | NotMeasured]:
    """Estimate the mean of each column of sums by question; all columns are resampled alike.

    ``value_range`` bounds the mean if all rows agree. ``drawn`` are the `bootstrap_weights` of the sorted questions of
    all columns; they are drawn here if absent.
    """
    questions = sorted({question for column in columns.values() for question in column})
    if not questions:
        return {name: NotMeasured("nothing to count: the denominator is empty") for name in columns}
    if drawn is None:
        drawn = bootstrap_weights([filer for filer, _ in questions])
    if drawn.shape[1] != len(questions):
        raise InvalidArgument(
            f"there are {drawn.shape[1]} weights for {len(questions)} questions; want one for each"
        )
    names = sorted(columns)
    values = np.array(
        [[columns[name].get(q, _EMPTY).values for name in names] for q in questions], dtype=float
    )
    counts = np.array(
        [[columns[name].get(q, _EMPTY).count for name in names] for q in questions], dtype=float
    )
    means = _ratios(drawn @ values, drawn @ counts)
    return {name: _one(columns[name], means[:, at], value_range) for at, name in enumerate(names)}


def _ratios(over: NDArray[np.float64], under: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide; NaN for a replicate that drew no question that counts."""
    return np.divide(over, under * SCALE, out=np.full_like(over, np.nan), where=under > 0)


def _one(
    column: Mapping[Question, Sums], means: NDArray[np.float64], value_range: ValueRange
) -> Estimate | NotMeasured:
    whole = total(column.values())
    if not whole.count:
        return NotMeasured("nothing to count: the denominator is empty")
    per_filer: dict[int, int] = defaultdict(int)
    for (filer, _), sums in column.items():
        per_filer[filer] += sums.count
    questions = sum(sums.count > 0 for sums in column.values())
    kish = whole.count**2 // sum(count * count for count in per_filer.values())
    value = whole.values / (whole.count * SCALE)
    made = sorted(means[~np.isnan(means)].tolist())
    spread = float(np.var(made)) if made else 0.0
    low: float | None
    high: float | None
    low, high, effective, method, independent = None, None, kish, _NONE, None
    if whole.least == whole.greatest and (bounds := _unanimous_bounds(value, kish, value_range)):
        low, high = bounds
        method, independent = _EXACT, _other_bound(value, _unanimous_bounds(value, whole.count, value_range))
    elif questions > 1 and spread > _ROUNDING:
        low, high = made[round(0.025 * (len(made) - 1))], made[round(0.975 * (len(made) - 1))]
        variance = (whole.squares / whole.count - (whole.values / whole.count) ** 2) / SCALE**2
        effective, method = min(whole.count, max(1, math.floor(variance / spread))), _BOOTSTRAP
    elif value_range is ValueRange.SHARE and questions > 1:
        # Rows differ within questions, but all questions have the same mean, so replicates do not vary.
        low = clopper_pearson(math.floor(value * kish), kish)[0]
        high = clopper_pearson(math.ceil(value * kish), kish)[1]
        method = _EXACT
    return Estimate(
        value=rounded(value),
        numerator=rounded(whole.values / SCALE),
        denominator=whole.count,
        # Include the value: percentiles of a skewed ratio can miss the estimate itself.
        low=None if low is None else rounded(min(low, value)),
        high=None if high is None else rounded(max(high, value)),
        questions=questions,
        filers=sum(count > 0 for count in per_filer.values()),
        effective=effective,
        method=method,
        bound_if_independent=None if independent is None else rounded(independent),
    )


def _unanimous_bounds(value: float, count: int, value_range: ValueRange) -> tuple[float, float] | None:
    """Bound a mean whose `count` values are all at the same end of their range, or are all 0 as differences."""
    rare = clopper_pearson(0, count)[1]
    if value_range is ValueRange.SHARE and value in (0.0, 1.0):
        return (0.0, rare) if not value else (1 - rare, 1.0)
    if value_range is ValueRange.DIFFERENCE and not value:
        return -rare, rare
    return None


def _other_bound(value: float, bounds: tuple[float, float] | None) -> float | None:
    """Return the bound that differs from the value."""
    return None if bounds is None else bounds[0] if bounds[1] == value else bounds[1]


def formatted(figure: Estimate, *, scale: float = 1.0, places: int = 1) -> tuple[str, str]:
    """Format a value and its interval, with no more decimals than the width of the interval makes meaningful.

    ``scale`` multiplies both, such as 100 for per cent; ``places`` significant digits of half the width are shown.
    """
    if figure.low is None or figure.high is None or figure.low == figure.high:
        decimals = 2
    else:
        width = scale * (figure.high - figure.low) / 2
        decimals = max(0, places - 1 - math.floor(math.log10(width)))

    def one(value: float) -> str:
        return f"{value:.0f}" if value == round(value) else f"{value:z.{decimals}f}"

    if figure.low is None or figure.high is None:
        return one(scale * figure.value), "no interval"
    return one(scale * figure.value), f"{one(scale * figure.low)} .. {one(scale * figure.high)}"


def rounded(value: float) -> float:
    """Round to six decimals, or below 1 to six significant digits, which are the same on every machine."""
    return float(f"{value:.6g}") if abs(value) < 1 else round(value, 6)
