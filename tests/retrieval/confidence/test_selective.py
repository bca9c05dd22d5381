"""At most the stated share of new answers is wrong, whatever the similarities."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval import selective_threshold
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DRAWS = 1000
"""Calibrations of one simulation."""
ERRORS = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
TRIED = st.lists(st.tuples(st.integers(-8, 8).map(lambda one: one / 8), st.booleans()), max_size=40)
"""Few different similarities, in exact binary fractions, so that many are tied."""


@pytest.mark.parametrize("error", [0.05, "1/20", 5, True, Fraction(0), Fraction(1), Fraction(5)])
def test_an_error_is_an_exact_share(error: Any) -> None:
    """Five percent is not 5."""
    with pytest.raises(InvalidArgument, match=r"want a fractions\.Fraction between 0 and 1"):
        selective_threshold([0.5] * 99, [True] * 99, error)


def test_what_is_no_cosine_or_has_no_verdict_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not finite"):
        selective_threshold([0.5, math.nan], [True, True], Fraction(1, 2))
    with pytest.raises(InvalidArgument, match="2 similarities and 1 verdicts"):
        selective_threshold([0.5, 0.5], [True], Fraction(1, 2))


@given(TRIED, ERRORS)
def test_it_is_the_least_that_keeps_the_share_and_none_if_none_does(
    tried: list[tuple[float, bool]], error: Fraction
) -> None:
    def keeps(threshold: float) -> bool:
        passed = [is_right for score, is_right in tried if score >= threshold]
        return Fraction(passed.count(False) + 1, len(passed) + 1) <= error

    chosen = selective_threshold([score for score, _ in tried], [right for _, right in tried], error)
    best = min((score for score, _ in tried if keeps(score)), default=None)
    assert chosen == (None if best is None else best * 1_000_000)


@given(TRIED, ERRORS, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(
    tried: list[tuple[float, bool]], error: Fraction, chance: random.Random
) -> None:
    other = chance.sample(tried, len(tried))
    first, second = (
        selective_threshold([score for score, _ in one], [right for _, right in one], error)
        for one in (tried, other)
    )
    assert first == second


def test_one_right_answer_more_below_never_closes_the_gate() -> None:
    tried = [0.875, 0.75, 0.5]
    assert 500_000 == selective_threshold(tried, [True] * 3, Fraction(1, 4))
    assert 250_000 == selective_threshold([*tried, 0.25], [True] * 4, Fraction(1, 4))


def nearer_is_better(chance: random.Random) -> tuple[float, bool]:
    similarity = chance.random()
    return similarity, chance.random() < similarity


def tied(chance: random.Random) -> tuple[float, bool]:
    similarity = chance.randrange(5) / 8
    return similarity, chance.random() < 0.6 + similarity / 2


def without_use(chance: random.Random) -> tuple[float, bool]:
    """A similarity that tells nothing; only luck passes the gate."""
    return chance.random(), chance.random() < 0.7


def mostly_wrong(chance: random.Random) -> tuple[float, bool]:
    return chance.random(), chance.random() < 0.1


DRAWN = [nearer_is_better, tied, without_use, mostly_wrong]


def mean_share(draw: Any, choose: Any, n: int, error: Fraction) -> tuple[float, float]:
    """The mean, over calibrations on n questions, of the share wrong among the new answers; and its error.

    Of 60 new questions each; a calibration by which none is answered has no wrong answer.
    """
    chance = random.Random(f"{draw.__name__} {n} {error}")  # noqa: S311 - a simulation
    shares = []
    for _ in range(DRAWS):
        tried = [draw(chance) for _ in range(n)]
        threshold = choose([one for one, _ in tried], [right for _, right in tried], error)
        least = math.inf if threshold is None else threshold / 1_000_000
        passed = [
            is_right for similarity, is_right in (draw(chance) for _ in range(60)) if similarity >= least
        ]
        shares.append(passed.count(False) / max(len(passed), 1))
    return fmean(shares), stdev(shares) / math.sqrt(DRAWS)


def keeps(draw: Any, choose: Any, n: int, error: Fraction) -> bool:
    """Tell whether it is the error or less, within four standard errors."""
    mean, away = mean_share(draw, choose, n, error)
    return mean <= error + 4 * away


SIZES = [(30, Fraction(1, 5)), (60, Fraction(1, 10)), (99, Fraction(1, 20)), (12, Fraction(1, 3))]


@pytest.mark.release
@pytest.mark.parametrize(("n", "error"), SIZES)
@pytest.mark.parametrize("draw", DRAWN)
def test_the_mean_share_of_wrong_answers_is_no_greater_than_stated(
    draw: Any, n: int, error: Fraction
) -> None:
    assert keeps(draw, selective_threshold, n, error)


@pytest.mark.parametrize(("n", "error"), SIZES)
@pytest.mark.parametrize("draw", DRAWN)
def test_a_new_question_is_answered_and_wrong_no_more_often_than_proved(
    draw: Any, n: int, error: Fraction
) -> None:
    """At most the error times how often the rule on all n + 1 questions answers it."""
    chance = random.Random(f"{draw.__name__} {n} {error} one")  # noqa: S311 - a simulation
    wrong = at_all = 0
    draws = examples(DRAWS)
    for _ in range(draws):
        *tried, (similarity, is_right) = every = [draw(chance) for _ in range(n + 1)]
        threshold = selective_threshold([one for one, _ in tried], [right for _, right in tried], error)
        is_answered = threshold is not None and similarity >= threshold / 1_000_000
        wrong += is_answered and not is_right
        in_common = WITH_IT([one for one, _ in every], [right for _, right in every], error)
        is_at_all = in_common is not None and similarity >= in_common / 1_000_000
        at_all += is_at_all
        assert is_at_all or is_right or not is_answered
    assert wrong <= at_all * error + 4 * math.sqrt(draws * error * (1 - error))


def mutant(wanted: Callable[[int, int, int, Fraction], bool]) -> Any:
    def choose(similarities: Sequence[float], right: Sequence[bool], error: Fraction) -> int | None:
        chosen, wrong = None, 0
        ordered = sorted(zip(similarities, right, strict=True), reverse=True)
        for answered, (score, is_right) in enumerate(ordered, start=1):
            wrong += not is_right
            is_last = answered == len(ordered) or ordered[answered][0] != score
            if is_last and wanted(wrong, answered, len(right), error):
                chosen = math.floor(score * 1_000_000)
        return chosen

    return choose


WITH_IT = mutant(lambda wrong, answered, n, error: wrong <= error * answered)
"""The rule T of the proof, which counts the new question among the others."""
MUTANTS = {
    "without the 1s": lambda wrong, answered, n, error: wrong <= error * answered,
    "without the new question": lambda wrong, answered, n, error: wrong <= error * (answered + 1),
    "of all questions": lambda wrong, answered, n, error: wrong + 1 <= error * (n + 1),
    "the share that is right": lambda wrong, answered, n, error: (
        answered - wrong + 1 <= error * (answered + 1)
    ),
}


@pytest.mark.parametrize("wanted", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_rule_breaks_the_law(wanted: Any) -> None:
    """The simulation above would notice in one of the cases."""
    assert not all(keeps(draw, mutant(wanted), 30, Fraction(1, 5)) for draw in DRAWN)


def test_the_rule_written_again_keeps_the_law() -> None:
    """So it is what each mutant changes that breaks the law."""
    right = mutant(lambda wrong, answered, n, error: wrong + 1 <= error * (answered + 1))
    assert all(keeps(draw, right, 30, Fraction(1, 5)) for draw in DRAWN)
