"""Split conformal: at most the stated share of new answerable questions is declined, whatever their similarities."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval import ConfidenceGate, conformal_threshold, questions_wanted
from tests.retrieval.confidence.test_gate import passage
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DRAWS = 2000
"""Calibrations of one simulation."""
ERRORS = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)


# --- what is refused ---


@pytest.mark.parametrize("error", [0.1, "1/10", 1, True, None, Fraction(0), Fraction(1), Fraction(-1, 10)])
def test_an_error_is_an_exact_share(error: Any) -> None:
    """A float is not: 0.1 is a little more than a tenth."""
    for ask in (lambda: questions_wanted(error), lambda: conformal_threshold([0.5] * 99, error)):
        with pytest.raises(InvalidArgument, match=r"want a fractions\.Fraction"):
            ask()


@given(ERRORS)
def test_too_few_questions_are_refused_and_one_more_is_enough(error: Fraction) -> None:
    """As many are wanted as make floor(error * (n + 1)) one."""
    wanted = questions_wanted(error)
    assert math.floor(error * wanted) < 1 <= math.floor(error * (wanted + 1))
    with pytest.raises(InvalidArgument, match=f"want {wanted} or more"):
        conformal_threshold([0.5] * (wanted - 1), error)
    assert 500_000 == conformal_threshold([0.5] * wanted, error)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_no_cosine_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidArgument, match="not finite"):
        conformal_threshold([0.5] * 9 + [wrong], Fraction(1, 10))


# --- the laws ---


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60), ERRORS)
def test_the_sample_itself_declines_fewer_than_the_rank(similarities: list[float], error: Fraction) -> None:
    """So a gate never declines the question that set its threshold, rounding included."""
    if len(similarities) < questions_wanted(error):
        return
    gate = ConfidenceGate(conformal_threshold(similarities, error) / 1_000_000)
    declined = sum(not gate.passes([passage(similarity)]) for similarity in similarities)
    assert declined < math.floor(error * (len(similarities) + 1))


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=60), st.randoms())
def test_the_order_of_the_questions_decides_nothing(similarities: list[float], chance: random.Random) -> None:
    shuffled = chance.sample(similarities, len(similarities))
    assert conformal_threshold(similarities, Fraction(1, 10)) == conformal_threshold(
        shuffled, Fraction(1, 10)
    )


def test_it_is_rounded_down_and_stays_a_cosine() -> None:
    """Also below zero; float32 gives cosines of a little more than 1."""
    for similarity, millionths in [
        (0.1234569, 123_456),
        (-0.1234561, -123_457),
        (1.0000002, 1_000_000),
        (-1.0000002, -1_000_000),
    ]:
        assert millionths == conformal_threshold([similarity] * 9, Fraction(1, 10))


def uniform(chance: random.Random, count: int) -> list[float]:
    return [chance.uniform(-1, 1) for _ in range(count)]


def skewed(chance: random.Random, count: int) -> list[float]:
    return [1 - chance.expovariate(3) / 10 for _ in range(count)]


def shifted(chance: random.Random, count: int) -> list[float]:
    """Exchangeable and not independent: all of one draw are moved alike."""
    by = chance.uniform(-0.5, 0.5)
    return [by + chance.gauss(0, 0.1) for _ in range(count)]


def tied(chance: random.Random, count: int) -> list[float]:
    return [round(chance.uniform(0, 1), 1) for _ in range(count)]


def declined(draw: Any, threshold: Any, n: int, error: Fraction, draws: int = DRAWS) -> int:
    """Return in how many calibrations on n questions the next one is declined."""
    chance = random.Random(f"{draw.__name__} {n} {error}")  # noqa: S311 - a simulation
    count = 0
    for _ in range(draws):
        *measured, new = draw(chance, n + 1)
        count += new < threshold(measured, error) / 1_000_000
    return count


def is_near(count: int, share: Fraction, *, draws: int = DRAWS, sides: int = 2) -> bool:
    """Tell whether a count is the share of draws, or no more, within four standard errors of a binomial count."""
    away = count - draws * float(share)
    return (abs(away) if sides == 2 else away) <= 4 * math.sqrt(draws * share * (1 - share))


SIZES = [(9, Fraction(1, 10)), (19, Fraction(1, 10)), (40, Fraction(1, 5)), (25, Fraction(3, 20))]


@pytest.mark.parametrize(("n", "error"), SIZES)
@pytest.mark.parametrize("draw", [uniform, skewed, shifted, tied])
def test_a_new_question_is_declined_no_more_often_than_stated(draw: Any, n: int, error: Fraction) -> None:
    """For ties less often; without them in rank of n + 1 cases, which is the error but for the rounding to a rank."""
    rank = math.floor(error * (n + 1))
    draws = examples(DRAWS)
    count = declined(draw, conformal_threshold, n, error, draws)
    assert is_near(count, error, draws=draws, sides=1), count
    assert draw is tied or is_near(count, Fraction(rank, n + 1), draws=draws), count


def mutant(rank: Callable[[int, Fraction], int]) -> Any:
    def threshold(similarities: Sequence[float], error: Fraction) -> int:
        return math.floor(sorted(similarities)[rank(len(similarities), error) - 1] * 1_000_000)

    return threshold


MUTANTS = {
    "without the 1": lambda n, error: math.floor(error * n),
    "a rank too high": lambda n, error: math.floor(error * (n + 1)) + 1,
    "a rank too low": lambda n, error: math.floor(error * (n + 1)) - 1,
    "from the largest": lambda n, error: n + 1 - math.floor(error * (n + 1)),
    "the upper quantile of scores turned round": lambda n, error: math.ceil((1 - error) * (n + 1)),
}


@pytest.mark.parametrize("rank", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_rank_breaks_the_law(rank: Callable[[int, Fraction], int]) -> None:
    """The simulation above would notice."""
    assert not is_near(declined(uniform, mutant(rank), 19, Fraction(1, 10)), Fraction(1, 10))


def test_the_rank_written_again_keeps_the_law() -> None:
    """So it is what each mutant changes that breaks the law."""
    right = mutant(lambda n, error: math.floor(error * (n + 1)))
    assert is_near(declined(uniform, right, 19, Fraction(1, 10)), Fraction(1, 10))
