"""A measured figure: numerator, denominator, value, interval, and how many independent rows it is worth."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.bootstrap import bootstrap_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "SCALE",
    "Estimate",
    "NotMeasured",
    "Question",
    "Sums",
    "ValueRange",
    "estimates",
    "formatted",
    "rounded",
    "total",
]

SCALE: Final = 1_000_000
"""Values are summed as whole millionths, so that sums are exact in any order."""
_BOOTSTRAP: Final = "cluster bootstrap"
_EXACT: Final = "Clopper-Pearson at the effective n"
_NONE: Final = "none: nothing tells how far questions vary"

_STILL: Final = 1e-18
"""A variance below this is rounding."""

Question = tuple[int, str]
"""A filer and a question of it."""


class ValueRange(Enum):
    """Where the values of a measure lie."""

    SHARE = "0..1"
    DIFFERENCE = "-1..1"
    AMOUNT = "0.."


@dataclass(frozen=True, slots=True)
class Sums:
    """What rows add up to: values in millionths, how many, how many are not 0, their squares, and the extremes."""

    values: int = 0
    count: int = 0
    nonzero: int = 0
    squares: int = 0
    least: int = 0
    greatest: int = 0

    @classmethod
    def of(cls, *values: int) -> Sums:
        """Count some values, each in millionths."""
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
    """There is no figure, and why; it is printed as words, never as 0."""

    why: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"not_measured": self.why}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes
    ----------
    value : float
        ``numerator / denominator``.
    numerator : float
    denominator : int
        Rows, chunks or canaries: what the measure counts.
    low, high : float or None
        None where fewer than two questions were asked: nothing then tells how far they vary.
    questions, filers : int
        Distinct ones that are in the denominator.
    effective : int
        How many independent rows would tell as much: variance of one row over variance of the mean among replicates,
        at most the denominator. Where all rows agree nothing varies, and it is what is left if a filer's rows always
        agree: ``(sum of m)^2 / sum of m^2`` over rows per filer.
    method : str
    bound_if_independent : float or None
        Of a share that is 0 or 1 throughout: the bound there would be if all rows were independent.
    """

    value: float
    numerator: float
    denominator: int
    low: float | None
    high: float | None
    questions: int
    filers: int
    effective: int
    method: str
    bound_if_independent: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def total(sums: Iterable[Sums]) -> Sums:
    """Add up."""
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
    """Estimate the mean of each column.

    Parameters
    ----------
    columns : mapping
        By name, the sums of each question. All columns are resampled alike, over the questions of all.
    lies : Lies
        Where values lie: where all rows agree, this bounds what the rest may be.
    drawn : array, optional
        `weights` of the sorted questions of all columns; made if absent.

    Examples
    --------
    >>> rows = {(filer, f"q{filer}"): Sums.of(0, 0) for filer in range(30)}
    >>> found = estimates({"violations": rows})["violations"]
    >>> found.value, found.denominator, found.effective, round(found.high, 4)
    (0.0, 60, 30, 0.1157)
    >>> estimates({"violations": {(1, "q"): Sums()}})["violations"]
    NotMeasured(why='nothing to count: the denominator is empty')
    """
    questions = sorted({question for column in columns.values() for question in column})
    if not questions:
        return {name: NotMeasured("nothing to count: the denominator is empty") for name in columns}
    if drawn is None:
        drawn = bootstrap_weights([filer for filer, _ in questions])
    if drawn.shape[1] != len(questions):
        raise InvalidArgument(f"{drawn.shape[1]} weights for {len(questions)} questions; want one for each")
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
    """Divide; NaN where a replicate drew no question that counts."""
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
    if whole.least == whole.greatest and (bounds := _agreed(value, kish, value_range)):
        low, high = bounds
        method, independent = _EXACT, _farther(value, _agreed(value, whole.count, value_range))
    elif questions > 1 and spread > _STILL:
        low, high = made[round(0.025 * (len(made) - 1))], made[round(0.975 * (len(made) - 1))]
        variance = (whole.squares / whole.count - (whole.values / whole.count) ** 2) / SCALE**2
        effective, method = min(whole.count, max(1, math.floor(variance / spread))), _BOOTSTRAP
    elif value_range is ValueRange.SHARE and questions > 1:
        # Rows differ within questions and no question from another: the bootstrap sees nothing vary.
        low = clopper_pearson(math.floor(value * kish), kish)[0]
        high = clopper_pearson(math.ceil(value * kish), kish)[1]
        method = _EXACT
    return Estimate(
        value=rounded(value),
        numerator=rounded(whole.values / SCALE),
        denominator=whole.count,
        # Widened only: a skewed ratio's percentiles can miss the estimate itself.
        low=None if low is None else rounded(min(low, value)),
        high=None if high is None else rounded(max(high, value)),
        questions=questions,
        filers=sum(count > 0 for count in per_filer.values()),
        effective=effective,
        method=method,
        bound_if_independent=None if independent is None else rounded(independent),
    )


def _agreed(value: float, count: int, value_range: ValueRange) -> tuple[float, float] | None:
    """Bound a mean all of whose `count` values are one end of where they lie, or no difference at all."""
    rare = clopper_pearson(0, count)[1]
    if value_range is ValueRange.SHARE and value in (0.0, 1.0):
        return (0.0, rare) if not value else (1 - rare, 1.0)
    if value_range is ValueRange.DIFFERENCE and not value:
        return -rare, rare
    return None


def _farther(value: float, bounds: tuple[float, float] | None) -> float | None:
    """Return the bound that is not the value."""
    return None if bounds is None else bounds[0] if bounds[1] == value else bounds[1]


def formatted(figure: Estimate, *, scale: float = 1.0, places: int = 1) -> tuple[str, str]:
    """Write a value and its interval with no more decimals than the interval's width leaves a meaning to.

    Parameters
    ----------
    scale : float
        What both are multiplied by, such as 100 for per cent.
    places : int
        How many digits of half the width are shown.

    Examples
    --------
    >>> figure = Estimate(0.156943, 67.2, 428, 0.10221, 0.183824, 100, 20, 39, "")
    >>> written(figure, scale=100), written(figure, places=2)
    (('16', '10 .. 18'), ('0.157', '0.102 .. 0.184'))
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
    """Keep six decimals, or six digits of what is smaller: what stays the same on every machine."""
    return float(f"{value:.6g}") if abs(value) < 1 else round(value, 6)
