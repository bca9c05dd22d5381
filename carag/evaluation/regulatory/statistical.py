"""Reduce the scores of a session's turns to one number: a weighted mean, or a bootstrap with its interval.

(Regulatory Compliance Metric, Session-Level Aggregation.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_ROUNDING: Final = 1e-6
"""Greatest difference from 1 of the sum of stated weights that counts as rounding, as in the published package."""


class Estimate(NamedTuple):
    """A session's score, and the ends of its interval if the mode gives one."""

    mean: float
    low: float | None = None
    high: float | None = None


class StatisticalMode(ABC):
    """How the scores of turns become the score of their session."""

    def __repr__(self) -> str:
        """Return the name in records; a mode with parameters states them here."""
        return type(self).__name__

    @abstractmethod
    def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Estimate:
        """Return the score of a session.

        Parameters
        ----------
        scores : sequence of float
            One per turn, at least one, each in [0, 1].
        weights : sequence of float
            One per turn, at least 0, with the sum 1.
        """


class FrequentistMode(StatisticalMode):
    """The weighted mean, without an interval.

    Parameters
    ----------
    is_exact_package : bool
        Whether it is summed in floating point, as in the package gaussia. Otherwise it is exact and rounded once,
        so that turns that all score the threshold meet it.

    Examples
    --------
    >>> FrequentistMode().aggregate([1.0, 0.5], [0.25, 0.75])
    Estimate(mean=0.625, low=None, high=None)
    """

    def __init__(self, *, is_exact_package: bool = False) -> None:
        self._is_exact_package = is_exact_package

    def __repr__(self) -> str:
        return f"frequentist{' of the package' if self._is_exact_package else ''}"

    def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Estimate:
        """Return the weighted mean."""
        pairs = list(zip(scores, weights, strict=True))
        if self._is_exact_package:
            return Estimate(float(sum(score * weight for score, weight in pairs)))
        total = sum(Fraction(weight) for weight in weights)
        return Estimate(float(sum(Fraction(score) * Fraction(weight) for score, weight in pairs) / total))


class BayesianMode(StatisticalMode):
    """The bootstrap of the mean, with turns drawn by weight, and a credible interval.

    Parameters
    ----------
    mc_samples : int
        Samples drawn, each with as many turns as the session has.
    ci_level : float
        Probability of the interval, between 0 and 1.
    is_exact_package : bool
        Whether one stream of draws serves all sessions in turn, and the interval is the bare quantiles, as in the
        package gaussia. Otherwise the order of turns and of sessions does not matter: each session draws from the
        seed, over its scores in ascending order. The interval then always includes the mean, which the bare quantiles
        can miss if weights are very uneven.

    Examples
    --------
    >>> mode = BayesianMode(mc_samples=1_000)
    >>> found = mode.aggregate([0.0, 1.0, 1.0], [0.2, 0.4, 0.4])
    >>> found.low <= found.mean <= found.high, mode.aggregate([1.0, 1.0, 0.0], [0.4, 0.4, 0.2]) == found
    (True, True)
    """

    def __init__(
        self,
        mc_samples: int = 5_000,
        ci_level: float = 0.95,
        rng_seed: int = 42,
        *,
        is_exact_package: bool = False,
    ) -> None:
        if type(mc_samples) is not int or mc_samples < 1:
            raise InvalidArgument(f"mc_samples is {quoted(mc_samples)}; want a whole number of at least 1")
        if not isinstance(ci_level, (int, float)) or not 0 < ci_level < 1:
            raise InvalidArgument(f"ci_level is {quoted(ci_level)}; want a probability between 0 and 1")
        if type(rng_seed) is not int or rng_seed < 0:
            raise InvalidArgument(f"rng_seed is {quoted(rng_seed)}; want a whole number of at least 0")
        self.mc_samples = mc_samples
        self.ci_level = ci_level
        self._seed = rng_seed
        self._shared = np.random.default_rng(rng_seed) if is_exact_package else None

    def __repr__(self) -> str:
        package = " of the package" if self._shared is not None else ""
        return f"bayesian {self.mc_samples} {self.ci_level!r} {self._seed}{package}"

    def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Estimate:
        """Return mean and quantiles of the bootstrap."""
        values, shares_ = np.array(scores), np.array(weights)
        if self._shared is None:
            order = np.lexsort((shares_, values))
            values, shares_ = values[order], shares_[order]
        means = self._means(values, shares_ / shares_.sum())
        tail = (1 - self.ci_level) / 2
        mean = float(np.mean(means))
        low, high = float(np.quantile(means, tail)), float(np.quantile(means, 1 - tail))
        if self._shared is None:  # rounding may exceed the range of the scores by one unit in the last place
            mean, low, high = (float(np.clip(one, values[0], values[-1])) for one in (mean, low, high))
            low, high = min(low, mean), max(high, mean)
        return Estimate(mean, low, high)

    def _means(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        rng = np.random.default_rng(self._seed) if self._shared is None else self._shared
        count = len(values)
        drawn = rng.choice(count, size=(self.mc_samples, count), replace=True, p=weights)
        return np.asarray(values[drawn].mean(axis=1))


def shares(weights: Sequence[float | None], *, is_exact_package: bool = False) -> list[float]:
    """Return each turn's share of its session; the shares sum to 1.

    Without any weights all turns count equally. If every turn has a weight, each is divided by their sum. If some
    weights are missing, the stated weights are shares of 1, and the rest is divided equally among the other turns.
    Everything is exact and rounded once, so the order of turns does not matter; in the package's arithmetic it may
    matter in the last bit.

    Parameters
    ----------
    weights : sequence of float or None
        At least one; the stated weights are finite and at least 0.
    is_exact_package : bool
        Whether weights that do not sum to 1, or leave nothing, are replaced by equal ones, as in the package
        gaussia.

    Raises
    ------
    InvalidArgument
        If every weight is 0, or the stated weights leave nothing for the others.
    """
    stated = [weight for weight in weights if weight is not None]
    if bad := [weight for weight in stated if not 0 <= weight < float("inf")]:
        raise InvalidArgument(f"a weight is {bad[0]!r}; want a finite number of at least 0")
    if is_exact_package:
        return _package_shares(weights, stated)
    missing, total = len(weights) - len(stated), sum(map(Fraction, stated))
    if not stated:
        return [1 / len(weights)] * len(weights)
    if missing and total >= 1:
        raise InvalidArgument(
            f"the stated weights sum to {sum(stated):g}, which leaves nothing for the {missing} turns without "
            "a weight; state a weight for every turn, or shares with a sum of less than 1"
        )
    if missing:
        left = (1 - total) / missing
        return [float(left if weight is None else weight) for weight in weights]
    if not total:
        raise InvalidArgument("all weights of a session are 0; leave the weights out, or state one above 0")
    return [float(Fraction(weight) / total) for weight in stated]


def _package_shares(weights: Sequence[float | None], stated: list[float]) -> list[float]:
    missing, total = len(weights) - len(stated), sum(stated)
    if not stated or (total >= 1 if missing else abs(total - 1) > _ROUNDING):
        equal = [1 / len(weights)] * len(weights)
        return [one / sum(equal) for one in equal]
    left = (1 - total) / missing if missing else 0.0
    whole = sum([*stated, *[left] * missing])  # 1 but for rounding; in the package's order
    return [(left if weight is None else weight) / whole for weight in weights]
