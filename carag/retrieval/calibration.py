"""Choose a gate's threshold from questions of known answer, by split conformal prediction.

If a new answerable question is exchangeable with those measured, it falls below the threshold with probability at most
the stated error, whatever the distribution of similarities (Vovk, Gammerman, Shafer: Algorithmic Learning in a Random
World, 2005; Angelopoulos, Bates: Conformal Prediction, A Gentle Introduction, 2023, section 1.1 and appendix D). The
probability is over both, the questions measured and the new one: one calibration may lie above it, another below.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["conformal_threshold", "questions_wanted"]

_MILLION: Final = 1_000_000
"""A cosine of 1, in the unit of records: they hold no floats."""


def questions_wanted(error: Fraction) -> int:
    """Return the least number of answerable questions from which an error can be promised.

    Raises
    ------
    InvalidArgument
        If the error is no fraction between 0 and 1.

    Examples
    --------
    >>> questions_wanted(Fraction(1, 10))
    9
    """
    if type(error) is not Fraction or not 0 < error < 1:
        raise InvalidArgument(
            f"the error is {quoted(error)}; want a fractions.Fraction between 0 and 1, as in 1/10"
        )
    return math.ceil(1 / error) - 1


def conformal_threshold(similarities: Sequence[float], error: Fraction) -> int:
    """Return the threshold below which a new answerable question falls with probability ``error`` at most.

    Of n similarities it is that of rank floor(error * (n + 1)), counted from the smallest: the new question is one of
    n + 1 that could each be at any rank, hence the 1. It is rounded down, which declines no more.

    Parameters
    ----------
    similarities : sequence of float
        Of each answerable question, its best admissible passage's cosine: what the gate tests.
    error : Fraction
        Exact, because a float such as 0.1 times n + 1 can fall short of the whole number that is meant.

    Returns
    -------
    int
        In millionths, within ±1,000,000.

    Raises
    ------
    InvalidArgument
        If there are too few similarities, or one is no number.

    Examples
    --------
    >>> conformal_threshold([0.5, 0.6123456789, 0.7], Fraction(1, 2))
    612345
    """
    wanted = questions_wanted(error)
    if len(similarities) < wanted:
        raise InvalidArgument(
            f"{len(similarities)} answerable questions; want {wanted} or more for an error of {error}: with fewer no "
            "threshold keeps it; add questions, or allow a larger error"
        )
    if not all(math.isfinite(similarity) for similarity in similarities):
        raise InvalidArgument("a similarity is not finite; want cosines")
    rank = math.floor(error * (len(similarities) + 1))
    chosen = math.floor(Fraction(sorted(similarities)[rank - 1]) * _MILLION)
    return min(max(chosen, -_MILLION), _MILLION)  # a cosine of float32 can be a little more than 1
