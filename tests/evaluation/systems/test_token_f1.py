"""Token F1 is SQuAD's."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.evaluation.systems.token_f1 import normalised_tokens, token_f1

words = st.lists(
    st.sampled_from(["the", "Net", "net,", "sales", "5%", "5", "an", "-", "a", "é"]), max_size=8
).map(" ".join)


def plainly(answer: str, gold: str) -> float:
    """Read the definition word by word: pair off equal tokens."""

    def tokens(text: str) -> list[str]:
        kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
        return [token for token in re.split(r"\s+", kept) if token and token not in ("a", "an", "the")]

    said, wanted = tokens(answer), tokens(gold)
    if not said or not wanted:
        return float(said == wanted)
    left = list(wanted)
    for token in said:
        if token in left:
            left.remove(token)
    common = len(wanted) - len(left)
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


@given(words, words)
def test_equals_a_plain_reading(answer: str, gold: str) -> None:
    assert token_f1(answer, gold) == pytest.approx(plainly(answer, gold), abs=5e-5)


@given(words, words)
def test_is_symmetric_and_one_of_itself(one: str, other: str) -> None:
    assert token_f1(one, other) == token_f1(other, one)
    assert token_f1(one, one) == 1.0


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("$1,577.00", "$1577.00", 1.0),  # commas and points go, so the digits run together
        ("1577", "$1577.00", 0.0),
        ("The answer", "answer", 1.0),
        ("net net net", "net", 0.5),  # counted as often as it occurs
        ("", "", 1.0),
        ("the", "sales", 0.0),
        ("theory", "ory", 0.0),  # an article is a word, not a prefix
    ],
)
def test_known_scores(answer: str, gold: str, score: float) -> None:
    assert token_f1(answer, gold) == score


def test_hyphens_join_as_in_squads_script() -> None:
    assert normalised_tokens("year-over-year") == ["yearoveryear"]
