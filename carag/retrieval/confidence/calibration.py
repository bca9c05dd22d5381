"""Choose a gate's threshold from questions of known answer by conformal prediction, and watch whether it still holds.

If a new answerable question is exchangeable with those measured, it falls below the threshold with probability at most
the stated error, whatever the distribution of similarities (Vovk, Gammerman, Shafer: Algorithmic Learning in a Random
World, 2005; Angelopoulos, Bates: Conformal Prediction, A Gentle Introduction, 2023, section 1.1 and appendix D). The
probability is over both, the questions measured and the new one: one calibration may lie above it, another below.
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

__all__ = ["Drift", "conformal_threshold", "questions_wanted", "selective_threshold"]

_MILLION: Final = 1_000_000
"""A cosine of 1, in the unit of records: they hold no floats."""
_FALSE_ALARM: Final = Fraction(1, 1000)
"""Probability of an alarm, ever, while scores keep coming as those of the calibration did."""


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
    rank = math.floor(error * (len(similarities) + 1))
    return sorted(_in_millionths(similarities))[rank - 1]


def selective_threshold(similarities: Sequence[float], right: Sequence[bool], error: Fraction) -> int | None:
    """Return the least threshold at which the share of wrong answers is promised, or None if none keeps it.

    It is the least at which (wrong + 1) / (answered + 1) <= error, counting what is at or above it: the new question is
    taken for one more that is answered wrongly. That is the rule of conformal selection (Jin, Candès: Selection by
    Prediction with Conformal p-values, JMLR 24, 2023) but for the denominator: theirs counts all questions, and so
    promises that a new question is answered *and* wrong with probability ``error`` at most. As no more are answered
    than asked, that promise holds here too.

    For the share among the answered ones let T be the same rule on all n + 1 questions, without the 1s. It treats them
    alike, so if they are exchangeable, P(wrong, answered at T) <= error * P(answered at T). A wrong new question is
    answered at the threshold returned only if it is at T: with it, the counts are those that the 1s stand for. Hence

        P(wrong, answered) <= error * P(answered at T),

    where the last is P(answered) but for what one question more or less moves. In the mean over calibrations the share
    of wrong ones among new answers is then about ``error`` or less, as ``tests/retrieval/confidence/test_selective.py``
    simulates; a calibration that lets nothing pass has no wrong answer. No rule can promise it of those calibrations
    alone that let something pass: where similarity tells nothing of what is right, it is luck that they do.

    Parameters
    ----------
    similarities : sequence of float
        What the gate tests, of each question that would be answered if no gate stood there.
    right : sequence of bool
        Whether that answer is right; of a question without an answer none is.
    error : Fraction
        The greatest share of wrong ones among the answers of new questions.

    Returns
    -------
    int or None
        In millionths, within ±1,000,000.

    Raises
    ------
    InvalidArgument
        If the error is none, the two differ in length, or a similarity is no number.

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
            f"{len(similarities)} similarities and {len(right)} verdicts; want one of each for a question"
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
    """Notices when scores come smaller than those of a calibration did, with a conformal test martingale.

    Each score gets a conformal p-value, its rank among those of the calibration and those since, itself included. While
    all are exchangeable, p-values that break ties at random are independent and uniform (Vovk, Gammerman, Shafer, 2005,
    section 8.1), and a bet of p ** -1/2 / 2 has the mean 1. Ties here count against an alarm, which makes p greater and
    the bet smaller, and needs no chance: who reads the log finds the same. Of the capital, which is 1, the part 1 / (t
    * (t + 1)) is put on a change at score t, so that no long good time has to be won back; all of it together is
    still a martingale, and passes 1,000 with probability 1/1,000 at most, ever (Ville, 1939).

    What has drifted joins the ranks, so an alarm needs a calibration of some 20 questions or more, and comes sooner
    with more: of fewer, too few orders are possible for any to be that unlikely.

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
        """Take the next score, in millionths, and tell whether by now they have drifted."""
        self._count += 1
        rank = bisect_right(self._seen, score) + 1
        insort(self._seen, score)
        self._bet = (
            (self._bet + 1 / (self._count * (self._count + 1))) * 0.5 * math.sqrt(len(self._seen) / rank)
        )
        kept = 1 / (self._count + 1)
        return self._bet + kept >= 1 / _FALSE_ALARM


def _in_millionths(similarities: Sequence[float]) -> list[int]:
    """Round them down, which the gate does not tell from the exact number: it compares with whole millionths."""
    if not all(math.isfinite(similarity) for similarity in similarities):
        raise InvalidArgument("a similarity is not finite; want cosines")
    # a cosine of float32 can be a little more than 1
    return [min(max(math.floor(Fraction(one) * _MILLION), -_MILLION), _MILLION) for one in similarities]
