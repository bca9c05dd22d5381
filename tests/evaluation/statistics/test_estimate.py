"""An interval holds its estimate, clusters make it wider, and nothing to count gives no figure."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.bootstrap import bootstrap_weights
from carag.evaluation.statistics.estimate import (
    SCALE,
    Estimate,
    NotMeasured,
    Sums,
    ValueRange,
    estimates,
    formatted,
    total,
)

millionths = st.lists(st.sampled_from([0, 250_000, SCALE]), max_size=4)
columns = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from("abc")), millionths.map(lambda v: Sums.of(*v)), min_size=1
)


def one(column: dict[tuple[int, str], Sums], value_range: ValueRange = ValueRange.SHARE) -> Estimate:
    figure = estimates({"it": column}, value_range=value_range)["it"]
    assert isinstance(figure, Estimate)
    return figure


@given(columns, st.sampled_from(list(ValueRange)))
def test_the_interval_holds_the_estimate(
    column: dict[tuple[int, str], Sums], value_range: ValueRange
) -> None:
    figure = estimates({"it": column}, value_range=value_range)["it"]
    if isinstance(figure, NotMeasured):
        assert not any(sums.count for sums in column.values())
        return
    assert (figure.low is None) == (figure.high is None)
    if figure.low is not None and figure.high is not None:
        assert figure.low <= figure.value <= figure.high
        if value_range is ValueRange.SHARE:
            assert figure.low >= 0
            assert figure.high <= 1
    assert 1 <= figure.effective <= figure.denominator
    assert figure.denominator == sum(sums.count for sums in column.values())


@given(columns, st.randoms(use_true_random=False))
def test_the_order_of_questions_changes_nothing(
    column: dict[tuple[int, str], Sums], draw: random.Random
) -> None:
    shuffled = list(column.items())
    draw.shuffle(shuffled)
    assert estimates({"it": dict(shuffled)}) == estimates({"it": column})


@given(st.lists(st.sampled_from([0, 1, 5, SCALE, -SCALE]), max_size=6), st.integers(0, 6))
def test_sums_add_up_as_their_values_do(values: list[int], cut: int) -> None:
    assert Sums.of(*values[:cut]) + Sums.of(*values[cut:]) == Sums.of(*values)
    assert total([Sums.of(value) for value in values]) == Sums.of(*values)


def test_nothing_to_count_is_not_measured_and_never_zero() -> None:
    for column in ({}, {(1, "q"): Sums()}):
        assert isinstance(estimates({"it": column})["it"], NotMeasured)
    assert estimates({}) == {}


@pytest.mark.parametrize("value", [0, SCALE])
def test_where_all_rows_agree_the_bound_is_exact_at_one_vote_a_filer(value: int) -> None:
    column = {(filer, f"q{n}"): Sums.of(value, value) for filer in range(20) for n in range(5)}
    figure = one(column)
    assert figure.effective == 20
    rare, rarer = clopper_pearson(0, 20)[1], clopper_pearson(0, 200)[1]
    if value:
        assert (figure.low, figure.high) == (pytest.approx(1 - rare, abs=1e-6), 1.0)
        assert figure.bound_if_independent == pytest.approx(1 - rarer, abs=1e-6)
    else:
        assert (figure.low, figure.high) == (0.0, pytest.approx(rare, rel=1e-5))
        assert figure.bound_if_independent == pytest.approx(rarer, rel=1e-5)


def test_uneven_filers_count_for_fewer() -> None:
    column = {(1, "a"): Sums.of(*[0] * 90)} | {(filer, "b"): Sums.of(0) for filer in range(2, 12)}
    assert one(column).effective == 100**2 // (90**2 + 10)


def test_no_difference_is_bounded_on_both_sides() -> None:
    figure = one({(filer, "q"): Sums.of(0) for filer in range(30)}, ValueRange.DIFFERENCE)
    assert figure.low == -figure.high  # type: ignore[operator]
    assert figure.high == pytest.approx(clopper_pearson(0, 30)[1], rel=1e-5)


def test_one_question_tells_no_interval() -> None:
    figure = one({(1, "q"): Sums.of(0, SCALE)})
    assert (figure.value, figure.low, figure.high) == (0.5, None, None)


def test_questions_that_all_have_the_same_mean_still_leave_doubt() -> None:
    """The bootstrap sees nothing vary; the exact bounds around a half are symmetric, also where n is odd."""
    figure = one({(filer, "q"): Sums.of(0, SCALE) for filer in range(21)})
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low + figure.high == pytest.approx(1, abs=1e-5)
    assert figure.high == pytest.approx(clopper_pearson(11, 21)[1], abs=1e-5)


def test_clusters_make_the_interval_wider() -> None:
    """The same 400 rows: independent, or of forty filers whose rows always agree."""
    values = [SCALE if filer % 2 else 0 for filer in range(40) for _ in range(10)]
    apart = one({(at, "q"): Sums.of(value) for at, value in enumerate(values)})
    together = one({(filer, "q"): Sums.of(*values[filer * 10 : filer * 10 + 10]) for filer in range(40)})
    assert apart.value == together.value == 0.5
    width, wider = (figure.high - figure.low for figure in (apart, together))  # type: ignore[operator]
    assert 2.5 < wider / width < 4  # the square root of ten
    assert together.effective < 60
    assert apart.effective > 300


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Filers differ, questions within them too; the true mean is 0.3."""
    draw = random.Random(7)  # noqa: S311 - a simulation
    held = 0
    for _ in range(60):
        column = {}
        for filer in range(30):
            share = draw.choice([0.0, 0.1, 0.8])
            for number in range(4):
                column[filer, str(number)] = Sums.of(*(SCALE * (draw.random() < share) for _ in range(3)))
        figure = one(column)
        held += figure.low <= 0.3 <= figure.high  # type: ignore[operator]
    assert held >= 51  # of 60; 57 expected, fewer than 51 is a chance in a thousand


# --- draws ---


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12).map(sorted), st.integers(0, 5))
def test_draws_are_two_stage(filers: list[int], seed: int) -> None:
    """As many filers are drawn as there are, each with as many questions as it has."""
    drawn = bootstrap_weights(filers, replicates=20, seed=seed)
    sizes = np.array([filers.count(filer) for filer in dict.fromkeys(filers)])
    owners = np.array([list(dict.fromkeys(filers)).index(filer) for filer in filers])
    for replicate in drawn:
        per_filer = np.bincount(owners, weights=replicate)
        times = per_filer / sizes
        assert np.array_equal(times, np.round(times))
        assert times.sum() == len(sizes)


def test_every_question_is_drawn_once_on_average() -> None:
    drawn = bootstrap_weights([1, 1, 1, 2, 3, 3, 4, 5, 6, 7])
    assert np.abs(drawn.mean(axis=0) - 1).max() < 0.15


def test_draws_are_the_same_on_every_machine() -> None:
    """The stream of PCG64 is promised; so are these numbers."""
    assert bootstrap_weights([1, 1, 2, 3], replicates=3).tolist() == GOLDEN


GOLDEN = [[0.0, 0.0, 2.0, 1.0], [1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize("filers", [[], [2, 1]])
def test_unsorted_or_no_filers_are_refused(filers: list[int]) -> None:
    with pytest.raises(InvalidArgument):
        bootstrap_weights(filers)


def test_weights_of_other_questions_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="weights"):
        estimates({"it": {(1, "q"): Sums.of(0)}}, drawn=bootstrap_weights([1, 2]))


@given(st.lists(st.integers(-SCALE, SCALE), min_size=3, max_size=3).map(sorted), st.sampled_from([1, 100]))
def test_no_figure_shows_more_than_its_interval_knows(bounds: list[int], scale: int) -> None:
    """A written figure is off by half a unit of its last digit at most, and that unit is no less than a tenth of the
    interval's half-width."""
    low, value, high = (bound / SCALE for bound in bounds)
    shown, interval = formatted(Estimate(value, 1, 9, low, high, 9, 9, 9, ""), scale=scale)
    unit = 10.0 ** -len(shown.partition(".")[2])
    assert abs(float(shown) - scale * value) <= unit / 2 * (1 + 1e-6)
    assert unit == 1 or low == high or unit > scale * (high - low) / 20 * (1 - 1e-9)
    assert [pytest.approx(scale * low, abs=unit), pytest.approx(scale * high, abs=unit)] == [
        float(end) for end in interval.split(" .. ")
    ]
