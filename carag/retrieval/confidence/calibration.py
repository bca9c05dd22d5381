"""Choose a gate's threshold by conformal prediction from questions with known answers, and watch for drift.

If a new answerable question is exchangeable with those measured, it falls below the threshold with probability at most
the stated error, whatever the distribution of similarities (Vovk, Gammerman, Shafer: Algorithmic Learning in a Random
World, 2005; Angelopoulos, Bates: Conformal Prediction, A Gentle Introduction, 2023, section 1.1 and appendix D). The
probability is over both the questions measured and the new one: a single calibration may lie above or below it.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence


_MILLION: Final = 1_000_000
"""A cosine of 1 in the unit of records, which hold no floats."""
_FALSE_ALARM: Final = Fraction(1, 1000)
"""The probability of ever raising an alarm while scores are distributed as in the calibration."""


def questions_wanted(error: Fraction) -> int:
    """Return the least number of answerable questions from which an error can be promised."""
    if type(error) is not Fraction or not 0 < error < 1:
        raise InvalidArgument(
            f"the error is {quoted(error)}; want a fractions.Fraction between 0 and 1, such as 1/10"
        )
    return math.ceil(1 / error) - 1


def conformal_threshold(similarities: Sequence[float], error: Fraction) -> int:
    """Return the threshold below which a new answerable question falls with probability at most ``error``.

    It is the similarity of rank floor(error * (n + 1)) from the smallest: the new question is one of n + 1 that could
    each have any rank. It is rounded down, which declines no more questions.

    - ``similarities``: for each answerable question the cosine of its best admissible passage, which the gate tests.
    - ``error``: exact, because 0.1 * (n + 1) as a float can fall short of a whole number.

    Returns
    -------
    int
        In millionths, within ±1,000,000.

    Raises InvalidArgument if there are too few similarities, or one is not finite.

    Examples
    --------
    >>> conformal_threshold([0.5, 0.6123456789, 0.7], Fraction(1, 2))
    612345
    """
    wanted = questions_wanted(error)
    if len(similarities) < wanted:
        raise InvalidArgument(
            f"{len(similarities)} answerable questions are too few for an error of {error}; want {wanted} or more: add "
            "questions, or allow a larger error"
        )
    rank = math.floor(error * (len(similarities) + 1))
    return sorted(_in_millionths(similarities))[rank - 1]


def selective_threshold(similarities: Sequence[float], right: Sequence[bool], error: Fraction) -> int | None:
    """Return the least threshold at which the share of wrong answers is promised, or None if no threshold keeps it.

    It is the least at which (wrong + 1) / (answered + 1) <= error, counting the questions at or above it: the new
    question counts as one more that is answered wrongly. Conformal selection (Jin, Candès: Selection by Prediction with
    Conformal p-values, JMLR 24, 2023) has all questions in the denominator, and so promises that a new question is
    answered *and* wrong with probability at most ``error``; that promise holds here as well.

    For the share among the answered, let T be the same rule on all n + 1 questions, without the 1s. T treats the
    questions alike, so if they are exchangeable, P(wrong, answered at T) <= error * P(answered at T). A wrong new
    question is answered at the threshold returned only if it is at T. Hence P(wrong, answered) <= error * P(answered at
    T), where P(answered at T) differs from P(answered) only by the effect of one question. On average over
    calibrations, the share of wrong ones among new answers is then about ``error`` or less, as
    ``tests/retrieval/confidence/test_selective.py`` simulates. No rule can promise this for only those calibrations
    that let something pass.

    - ``similarities``: for each question that would be answered without a gate, the cosine that the gate tests.
    - ``right``: whether that answer is right; for a question without an answer it never is.
    - ``error``: the greatest share of wrong ones among the answers to new questions.

    Returns
    -------
    int or None
        In millionths, within ±1,000,000.

    Raises InvalidArgument if the error is not between 0 and 1, the lengths differ, or a similarity is not finite.

    Examples
    --------
    >>> selective_threshold([0.875, 0.75, 0.5, 0.25], [True, True, True, False], Fraction(1, 4))
    500000
    >>> selective_threshold([0.9, 0.8], [True, True], Fraction(1, 4)) is None
    True
    """
    questions_wanted(error)
    if len(similarities) != len(right):
        raise InvalidArgument(
            f"{len(similarities)} similarities and {len(right)} verdicts; want one of each for every question"
        )
    scores = sorted(zip(_in_millionths(similarities), right, strict=True))
    chosen, wrong = None, 0
    for answered, (score, is_right) in enumerate(reversed(scores), start=1):
        wrong += not is_right
        is_last = answered == len(scores) or scores[-answered - 1][0] != score
        if is_last and wrong + 1 <= error * (answered + 1):
            chosen = score
    return chosen


class Drift:
    """Detects, with a conformal test martingale, scores that are smaller than those of a calibration.

    The p-value of each score is its rank among those of the calibration and those since. While all scores are
    exchangeable, p-values with randomly broken ties are independent and uniform (Vovk, Gammerman, Shafer, 2005, section
    8.1), and a bet of p ** -1/2 / 2 has mean 1. Ties here count against an alarm, which only makes the bet smaller
    and needs no randomness: a reader of the log finds the same result. Of the initial capital of 1, a share of 1 / (t *
    (t + 1)) is staked on a change at score t, so that losses from a long uneventful stretch need not be won back first.
    The sum is still a martingale, so the probability that it ever exceeds 1,000 is at most 1/1,000 (Ville, 1939).

    An alarm needs a calibration of about 20 questions, and comes sooner with more.

    Examples
    --------
    >>> drift = Drift(range(100_000, 900_000, 10_000))
    >>> [drift.sees(score) for score in (500_000, 90_000, 80_000, 70_000, 60_000, 50_000)][-2:]
    [False, True]
    """

    def __init__(self, calibrated: Sequence[int]) -> None:
        self._seen = sorted(calibrated)
        self._count = 0
        self._bet = 0.0

    def sees(self, score: int) -> bool:
        """Add the next score, in millionths, and tell whether scores have drifted by now."""
        self._count += 1
        rank = bisect_right(self._seen, score) + 1
        insort(self._seen, score)
        self._bet = (
            (self._bet + 1 / (self._count * (self._count + 1))) * 0.5 * math.sqrt(len(self._seen) / rank)
        )
        kept = 1 / (self._count + 1)
        return self._bet + kept >= 1 / _FALSE_ALARM


def _in_millionths(similarities: Sequence[float]) -> list[int]:
    """Round down to millionths, the unit in which the gate compares."""
    if not all(math.isfinite(similarity) for similarity in similarities):
        raise InvalidArgument("a similarity is not finite; want cosines")
    # a float32 cosine can exceed 1 slightly
    return [min(max(math.floor(Fraction(one) * _MILLION), -_MILLION), _MILLION) for one in similarities]
