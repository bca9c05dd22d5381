"""Pairs are drawn by their seed, stratified by their gold, and split by their question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag.evaluation.cases.pairs import cross, pairs_for_model, share_of, split_of
from tests.sizes import examples

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair
    from tests.evaluation.conftest import Small


def test_shares_and_splits() -> None:
    mask = np.array([True, True, False, False])
    assert [share_of(rows, mask) for rows in ((0, 1), (0, 2), (0, 2, 3, 2), (2,), ())] == [
        "loose",
        "medium",
        "tight",
        "void",
        "void",
    ]
    assert share_of((0,), None) == "void"
    splits = [split_of(f"q{number}") for number in range(2_000)]
    assert 0.15 < splits.count("dev") / len(splits) < 0.25
    assert splits == [split_of(f"q{number}") for number in range(2_000)]


def test_crossing_is_seeded_and_keeps_a_question_in_one_split(small: Small) -> None:
    def draw(seed: int) -> list[Pair]:
        return cross(
            small.truth,
            small.built.questions,
            small.built.gold,
            small.embedder.vectors,
            count=examples(50, least=30),
            seed=seed,
        )

    drawn = draw(1)
    assert drawn == draw(1)
    assert drawn != draw(2)
    splits: dict[str, set[str]] = {}
    for pair in drawn:
        splits.setdefault(pair.question.id, set()).add(pair.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {"loose", "medium", "void"} <= {pair.stratum.share for pair in drawn}


def test_a_slow_model_is_asked_what_can_be_compared(pairs: list[Pair]) -> None:
    """Reported real pairs, two thirds with an answer to compare with, or as many as there are."""
    reported = [pair for pair in pairs if pair.split == "reported" and pair.kind == "real"]
    comparable = [pair for pair in reported if pair.answerable and pair.question.answer is not None]
    assert 3 < len(comparable) < len(reported) - 2
    for count in (0, 1, 3, len(reported), len(reported) + 9):
        chosen = pairs_for_model(pairs, count=count, seed=0)
        assert chosen == pairs_for_model(pairs, count=count, seed=0)
        assert len(chosen) == min(count, len(reported)) == len({id(pair) for pair in chosen})
        assert all(pair in reported for pair in chosen)
        shown = sum(pair in comparable for pair in chosen)
        assert shown >= min(len(comparable), 2 * len(chosen) / 3)
