"""Bound a share from its count, exactly (Clopper and Pearson)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable


@lru_cache(4096)  # a report asks for the same few counts at every figure, and each is a bisection
def clopper_pearson(count: int, of: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided confidence interval of a share (Clopper and Pearson, Biometrika 26, 1934).

    It requires ``0 <= count <= of``, ``of >= 1`` and ``0 < confidence < 1``; half of the rest is beyond each bound.

    Raise InvalidArgument if a number is outside its range.
    """
    if not (of >= 1 and 0 <= count <= of and 0 < confidence < 1):
        raise InvalidArgument(
            f"the count is {count} of {of} and the confidence {confidence}; "
            "want 0 <= count <= of, of >= 1 and 0 < confidence < 1"
        )
    tail = (1 - confidence) / 2
    lower = 0.0 if count == 0 else _where(lambda share: _at_most(of - count, of, 1 - share) > tail)
    upper = 1.0 if count == of else _where(lambda share: _at_most(count, of, share) < tail)
    return lower, upper


def _where(reached: Callable[[float], bool]) -> float:
    """Find by bisection the least share for which `reached` holds; it holds at 1 and not at 0."""
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _at_most(count: int, of: int, share: float) -> float:
    """Return the probability of at most `count` in `of` draws."""
    if share in (0.0, 1.0):
        return float(count >= of * share)
    chance, against = math.log(share), math.log1p(-share)
    return math.fsum(
        math.exp(
            math.lgamma(of + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(of - hits + 1)
            + hits * chance
            + (of - hits) * against
        )
        for hits in range(count + 1)
    )
