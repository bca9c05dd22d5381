"""Label noise: no flip, no violation; all bits flipped, what a plain reading says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.report.label_noise import RATES, false_words, noise_sweep
from carag.evaluation.statistics.estimate import Estimate, NotMeasured
from carag.policy import CONTROL, Mask, Policy
from tests.evaluation.rows import row

OPEN, SHUT = 0x0800_0001, 0x0800_0021
POLICY = Policy(Mask(0, 0x20))
ROW = row(retrieved=("a", "b", "c"), retrieved_admissible=(True, False, False), gold=(), gold_admissible=())
WORDS = {"a": OPEN, "b": SHUT, "c": OPEN}  # c is shut by what no bit says


@given(st.dictionaries(st.text("ab", min_size=1), st.integers(0, 2**32 - 1)), st.floats(0, 1))
def test_control_bits_stay_and_no_rate_changes_nothing(words: dict[str, int], rate: float) -> None:
    wrong = false_words(words, rate)
    assert {chunk: word & CONTROL for chunk, word in wrong.items()} == {
        chunk: word & CONTROL for chunk, word in words.items()
    }
    assert false_words(words, 0.0) == words
    assert false_words(dict(reversed(words.items())), rate) == wrong


@given(st.floats(0, 0.5), st.floats(0, 0.5))
def test_what_is_wrong_at_a_low_rate_is_wrong_at_a_higher(one: float, other: float) -> None:
    low, high = sorted((one, other))
    words = {str(at): OPEN for at in range(20)}
    few, many = false_words(words, low), false_words(words, high)
    assert all((few[chunk] ^ OPEN) & ~(many[chunk] ^ OPEN) == 0 for chunk in words)


def test_about_as_many_bits_are_flipped_as_asked() -> None:
    words = {str(at): 0 for at in range(2_000)}
    flipped = sum(word.bit_count() for word in false_words(words, 0.05).values())
    assert flipped / (27 * 2_000) == pytest.approx(0.05, abs=0.005)


def value(figure: Estimate | NotMeasured) -> float:
    assert isinstance(figure, Estimate)
    return figure.value


def test_true_labels_let_nothing_through() -> None:
    (point,) = noise_sweep([ROW], WORDS, lambda _: POLICY, rates=[0.0])
    assert (point.wrong, point.skipped, value(point.cvr_query), value(point.hidden)) == (0, 0, 0.0, 0.0)


def test_all_bits_false_is_the_plain_opposite() -> None:
    """Open becomes shut and shut by its word open; what is shut by a date stays shut."""
    (point,) = noise_sweep([ROW], WORDS, lambda _: POLICY, rates=[1.0])
    assert (value(point.cvr_query), value(point.cvr_chunk), value(point.hidden)) == (1.0, 1.0, 1.0)
    assert isinstance(point.cvr_chunk, Estimate)
    assert point.cvr_chunk.denominator == 1


def test_a_word_not_in_force_for_the_session_is_left_out_and_counted() -> None:
    (point,) = noise_sweep([ROW], WORDS | {"a": SHUT}, lambda _: POLICY, rates=[0.0])
    assert point.skipped == 1
    assert isinstance(point.hidden, NotMeasured)


def test_violations_rise_with_the_rate() -> None:
    rows = [
        row(
            question_id=f"q{at}",
            filer=at,
            retrieved=(f"s{at}", f"o{at}"),
            retrieved_admissible=(False, True),
            gold=(),
            gold_admissible=(),
        )
        for at in range(300)
    ]
    words = {chunk: SHUT if chunk[0] == "s" else OPEN for one in rows for chunk in one.retrieved}
    points = noise_sweep(rows, words, lambda _: POLICY)
    assert [point.rate for point in points] == list(RATES)
    rates = [value(point.cvr_query) for point in points]
    assert rates[0] == 0
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(0.1, abs=0.05)  # one bit decides, so the share is the rate
    assert value(points[-1].hidden) == pytest.approx(0.1, abs=0.05)


def test_only_vanilla_is_read_and_every_chunk_needs_a_word() -> None:
    (point,) = noise_sweep([row(system="oracle")], {}, lambda _: POLICY, rates=[0.1])
    assert isinstance(point.cvr_query, NotMeasured)
    with pytest.raises(InvalidArgument, match="no word"):
        noise_sweep([ROW], {"a": OPEN}, lambda _: POLICY)
    with pytest.raises(InvalidArgument, match="rate"):
        false_words(WORDS, 1.5)
