"""Clopper and Pearson's bounds are what they are defined to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.statistics.binomial import clopper_pearson


def at_most(count: int, of: int, share: float) -> float:
    return math.fsum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count + 1))


@given(st.integers(1, 60).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_beyond_each_bound_lies_half_of_the_doubt(counted: tuple[int, int]) -> None:
    count, of = counted
    low, high = clopper_pearson(count, of)
    assert low <= count / of <= high
    assert low == 0 if count == 0 else 1 - at_most(count - 1, of, low) == pytest.approx(0.025)
    assert high == 1 if count == of else at_most(count, of, high) == pytest.approx(0.025)


@given(st.integers(1, 10_000_000))
def test_the_bound_of_no_violation_has_a_closed_form(of: int) -> None:
    """At a million it is what the goals are judged by."""
    assert clopper_pearson(0, of)[1] == pytest.approx(1 - 0.025 ** (1 / of))


@pytest.mark.parametrize(("count", "of"), [(0, 0), (-1, 5), (6, 5)])
def test_bounds_of_an_impossible_count_are_refused(count: int, of: int) -> None:
    with pytest.raises(InvalidArgument):
        clopper_pearson(count, of)
