"""A passage that holds a piece of evidence is found, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from carag.evaluation.cases.gold import holders, likely_holders, ngrams
from tests.evaluation.cases.words import WORD

if TYPE_CHECKING:
    from tests.evaluation.conftest import Small


@given(st.lists(WORD, min_size=10, max_size=60), st.data())
def test_a_chunk_cut_from_evidence_holds_it(words: list[str], draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(words) - 10))
    end = draw.draw(st.integers(start + 10, len(words)))
    assert holders(" ".join(words), [ngrams(" ".join(words[start:end])), ngrams("x y z v w u")]) == [0]


def test_an_answer_without_its_numbers_is_held_nowhere() -> None:
    assert likely_holders("It was $82,959 million", ["sales were 81,000", "nothing"]) == []


def test_gold_is_found_for_every_question_with_evidence(small: Small) -> None:
    """Each quote of the shipped questions is in some chunk, and in the filing that it names."""
    asked = {one.id: one for one in small.built.questions}
    for name, pieces in small.built.gold.items():
        if name not in asked:
            continue
        filings = {doc for piece in asked[name].evidence for doc, _ in piece.alternatives}
        rows = [row for piece in pieces for row in small.truth.rows_at(piece)]
        assert {small.truth.filing(row).document_id for row in rows} <= filings
    assert small.built.dropped <= 1
