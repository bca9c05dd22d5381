"""A session's score: the shares of its turns, the weighted mean, and the bootstrap with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import BayesianMode, FrequentistMode
from carag.evaluation.regulatory.statistical import shares

if TYPE_CHECKING:
    import random

values = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.6, 0.7, 1.0]) | st.floats(0, 1)
weights = st.floats(0, 1e300, allow_subnormal=True) | st.sampled_from([0.1, 0.3, 1.0, 5e-324])
sessions = st.lists(st.tuples(values, weights), min_size=1, max_size=6).filter(
    lambda pairs: any(weight for _, weight in pairs)
)
MODES = {"frequentist": FrequentistMode(), "bayesian": BayesianMode(mc_samples=60)}

# --- shares ---


@pytest.mark.parametrize(
    ("stated", "paper", "package"),
    [
        ([None, None], [0.5, 0.5], [0.5, 0.5]),
        ([0.25, 0.75], [0.25, 0.75], [0.25, 0.75]),
        ([1.0, 3.0], [0.25, 0.75], [0.5, 0.5]),  # divided by the sum; made equal
        ([0.1, 0.3], [0.25, 0.75], [0.5, 0.5]),
        ([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]),
        ([0.5, None, None], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
        ([0.0, None], [0.0, 1.0], [0.0, 1.0]),
        ([5.0], [1.0], [1.0]),
        ([1e308, 1e308], [0.5, 0.5], [0.5, 0.5]),
    ],
)
def test_weights_become_shares(stated: list[float | None], paper: list[float], package: list[float]) -> None:
    assert shares(stated) == pytest.approx(paper, abs=1e-15)
    assert shares(stated, is_exact_package=True) == pytest.approx(package, abs=1e-15)


def test_a_sum_that_rounding_makes_is_one_to_the_package() -> None:
    assert shares([0.25, 0.75 + 9e-7], is_exact_package=True)[0] == pytest.approx(0.25, abs=1e-6)
    assert shares([0.25, 0.75 + 2e-6], is_exact_package=True) == [0.5, 0.5]


@pytest.mark.parametrize("stated", [[0.0, 0.0], [1.0, None], [0.7, 0.7, None], [1e308, 1e308, None]])
def test_weights_that_leave_nothing_are_refused_and_made_equal_by_the_package(
    stated: list[float | None],
) -> None:
    with pytest.raises(InvalidArgument, match="weight"):
        shares(stated)
    assert shares(stated, is_exact_package=True) == pytest.approx([1 / len(stated)] * len(stated))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("bad", [-1.0, -1e-9, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused_by_either_reading(bad: float, exact: bool) -> None:
    with pytest.raises(InvalidArgument, match=r"a weight is .*; want a finite number of at least 0"):
        shares([0.5, bad], is_exact_package=exact)


@given(st.lists(weights, min_size=1, max_size=8).filter(any))
def test_shares_sum_to_one_and_keep_the_order_of_weights(stated: list[float]) -> None:
    found = shares(stated)
    assert sum(found) == pytest.approx(1, abs=1e-12)
    assert all(0 <= one <= 1 for one in found)
    by_weight = sorted(zip(stated, found, strict=True))
    assert [share for _, share in by_weight] == sorted(found)


# --- the weighted mean ---


def test_the_mean_is_the_sum_of_weighted_scores() -> None:
    found = FrequentistMode().aggregate([1.0, 0.5, 0.0], [0.5, 0.3, 0.2])
    assert found.mean == pytest.approx(0.65)
    assert (found.low, found.high) == (None, None)


@given(values, st.integers(1, 12), st.sampled_from(list(MODES)))
def test_turns_that_all_score_the_same_have_exactly_that_mean(score: float, count: int, mode: str) -> None:
    """So a session whose turns are all at the threshold meets it."""
    found = MODES[mode].aggregate([score] * count, shares([None] * count))
    assert found.mean == score
    assert found.low in (None, score)
    assert found.high in (None, score)


@given(sessions, st.sampled_from(list(MODES)), st.randoms(use_true_random=False))
def test_the_order_of_turns_changes_neither_score_nor_interval(
    pairs: list[tuple[float, float]], mode: str, draw: random.Random
) -> None:
    shuffled = draw.sample(pairs, len(pairs))
    one, other = (
        MODES[mode].aggregate([score for score, _ in some], shares([weight for _, weight in some]))
        for some in (pairs, shuffled)
    )
    assert one == other


@given(sessions, st.sampled_from(list(MODES)))
def test_the_mean_is_among_the_scores_and_the_interval_contains_it(
    pairs: list[tuple[float, float]], mode: str
) -> None:
    scores = [score for score, _ in pairs]
    found = MODES[mode].aggregate(scores, shares([weight for _, weight in pairs]))
    assert min(scores) <= found.mean <= max(scores)
    if mode == "bayesian":
        assert found.low is not None
        assert found.high is not None
        assert min(scores) <= found.low <= found.mean <= found.high <= max(scores)


# --- the bootstrap ---


def by_hand(scores: list[float], weights: list[float], seed: int, samples: int) -> tuple[float, ...]:
    """The paper's formulas: S means of n scores drawn with the weights, their mean and quantiles."""
    rng = np.random.default_rng(seed)
    means = np.empty(samples)
    drawn = rng.choice(len(scores), size=(samples, len(scores)), p=weights)
    for k in range(samples):
        means[k] = sum(scores[index] for index in drawn[k]) / len(scores)
    return float(np.mean(means)), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", [42, 7])
def test_the_bootstrap_is_the_papers_with_5000_draws(seed: int, exact: bool) -> None:
    scores, parts = [0.0, 0.25, 0.5, 1.0], [0.1, 0.2, 0.3, 0.4]  # ascending, as our own reading sorts them
    found = BayesianMode(rng_seed=seed, is_exact_package=exact).aggregate(scores, parts)
    assert found == pytest.approx(by_hand(scores, parts, seed, 5_000), abs=1e-12)
    assert found.mean == pytest.approx(0.6, abs=0.02)  # the weighted mean, which it estimates


def test_one_turn_has_an_interval_of_no_width() -> None:
    assert BayesianMode().aggregate([0.4], [1.0]) == (0.4, 0.4, 0.4)


def test_a_wider_level_gives_a_wider_interval() -> None:
    narrow, wide = (BayesianMode(ci_level=one).aggregate([0.0, 1.0] * 4, [0.125] * 8) for one in (0.5, 0.99))
    assert wide.low < narrow.low <= narrow.mean <= narrow.high < wide.high  # type: ignore[operator]
    assert wide.mean == narrow.mean


def test_very_uneven_weights_still_have_their_mean_inside() -> None:
    """Almost every draw is all ones, so both quantiles are 1 and miss the mean; the package shows that."""
    scores, parts = [0.0, 1.0], [1e-3, 1 - 1e-3]
    bare = BayesianMode(is_exact_package=True).aggregate(scores, parts)
    assert bare.mean < 1.0 == bare.low
    ours = BayesianMode().aggregate(scores, parts)
    assert ours.low == ours.mean < 1.0 == ours.high


def test_each_session_starts_again_but_the_package_goes_on_in_one_stream() -> None:
    scores, parts = [0.0, 0.3, 1.0], [0.2, 0.3, 0.5]
    ours, package = BayesianMode(), BayesianMode(is_exact_package=True)
    assert ours.aggregate(scores, parts) == ours.aggregate(scores, parts)
    first, second = package.aggregate(scores, parts), package.aggregate(scores, parts)
    assert first != second


@pytest.mark.parametrize(
    "wrong",
    [
        {"mc_samples": 0},
        {"mc_samples": True},
        {"mc_samples": 10.0},
        {"ci_level": 0},
        {"ci_level": 1},
        {"ci_level": 95},
        {"ci_level": float("nan")},
        {"ci_level": "0.95"},
        {"rng_seed": -1},
        {"rng_seed": "x"},
        {"rng_seed": None},
    ],
)
def test_a_bootstrap_that_cannot_be_drawn_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"{next(iter(wrong))} is .*; want"):
        BayesianMode(**wrong)
