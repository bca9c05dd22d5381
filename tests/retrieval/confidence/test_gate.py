"""Claims about the confidence gate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval.confidence.gate import ConfidenceGate, top_similarity
from carag.retrieval.evidence import Passage

SIMILARITIES = st.floats(-1, 1)


def passage(similarity: float) -> Passage:
    return Passage(
        chunk_id="0000000001-24-000001:0",
        text="Net sales rose.",
        similarity=similarity,
        word=0,
        accession_number="0000000001-24-000001",
        form="10-K",
        company="Example Corp",
        filed="2024-02-01",
        document="10-K",
        start=0,
        end=15,
    )


@given(similarities=st.lists(SIMILARITIES, max_size=5), threshold=SIMILARITIES)
def test_passes_exactly_at_the_threshold(similarities: list[float], threshold: float) -> None:
    """Evidence passes if and only if some passage reaches the threshold, whatever their order."""
    passages = [passage(similarity) for similarity in similarities]
    assert any(s >= threshold for s in similarities) == ConfidenceGate(threshold).passes(passages)


def test_nothing_admissible_never_passes() -> None:
    """Even the most open gate stays shut when there is nothing to answer from."""
    assert not ConfidenceGate(-1).passes(())
    assert top_similarity(()) is None


def test_a_similarity_that_is_no_number_does_not_pass() -> None:
    """NaN reaches no threshold."""
    assert not ConfidenceGate(-1).passes([passage(math.nan)])


def test_the_message_says_how_close_it_came() -> None:
    """A decline names the best admissible similarity and the one needed, and says what to try."""
    said = ConfidenceGate(0.5).message([passage(0.1234), passage(0.4321)])
    assert "defers on confidence" in said
    assert "best similarity 0.432; needed 0.500" in said
    assert "Rephrase" in said


def test_the_message_depends_on_admissible_similarity_alone() -> None:
    """Passages that differ in all else give the same wording."""
    one = passage(0.2)
    other = replace(one, text="Withheld elsewhere", word=0x7FF, company="Other", chunk_id="9:9")
    gate = ConfidenceGate(0.5)
    assert gate.message([one]) == gate.message([other, passage(0.1)])
    assert gate.message(()).replace("none was found", "") == gate.message([one]).replace(
        "best similarity 0.200", ""
    )


@pytest.mark.parametrize("threshold", [-1.01, 1.01, math.nan, math.inf])
def test_a_threshold_is_a_cosine(threshold: float) -> None:
    """What no cosine can reach, or every cosine passes, is a mistake."""
    with pytest.raises(InvalidArgument, match="want a cosine"):
        ConfidenceGate(threshold)


def test_a_baseline_asks_more_where_more_passages_may_be_used() -> None:
    """It goes through its points, stays at the first before it and at the last behind it; a chosen one never moves."""
    gate = ConfidenceGate(0.5, calibrated=False, points=((3, 0.1), (30, 0.3), (300, 0.5)))
    assert [0.1, 0.1, 0.3, 0.5, 0.5] == [gate.among(count).threshold for count in (0, 3, 30, 300, 10**6)]
    assert 0.1 < gate.among(5).threshold < gate.among(9).threshold < 0.3
    assert ConfidenceGate(0.4).among(3) == ConfidenceGate(0.4)
