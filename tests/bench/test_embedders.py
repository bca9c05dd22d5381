"""Claims about how embedders are compared and gates calibrated (``bench/embedders``)."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPS = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def measure() -> Iterator[Any]:
    """``bench`` is outside the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        yield importlib.import_module("bench.embedders.measure")


class Axes:
    """An embedder whose query number n is the n-th axis."""

    def embed_query(self, text: str) -> np.ndarray:
        return np.eye(12, dtype=np.float32)[int(text)]


def question(text: str, *evidence: set[int]) -> SimpleNamespace:
    return SimpleNamespace(text=text, evidence=tuple(map(frozenset, evidence)))


@given(tops=TOPS)
def test_the_threshold_is_the_highest_that_keeps_the_rule(measure: Any, tops: list[float]) -> None:
    """At most 5 % of the in-scope questions are declined, and one hundredth more would decline too many."""
    in_scope = np.array(tops, dtype=np.float32)
    gate = measure.calibrate(in_scope, [in_scope])
    assert 20 * gate.in_scope_declined <= len(tops)
    assert (gate.in_scope_declined,) == gate.out_of_scope_declined
    above = np.sum(in_scope < (round(gate.threshold * 100) + 1) / 100)
    assert gate.threshold == 1 or 20 * above > len(tops)


def test_recall_counts_pieces_of_evidence(measure: Any) -> None:
    """A piece counts if any of its chunks is among the first eight; the rank is that of the first of all."""
    vectors = np.zeros((20, 12), dtype=np.float32)
    vectors[:, 0] = np.linspace(1, 0, 20)
    found = measure.quality(Axes(), vectors, [question("0", {7, 19}, {8}), question("0", {0})])
    assert pytest.approx((0.5 + 1) / 2) == found.recall.mean
    assert pytest.approx((1 / 8 + 1) / 2) == found.reciprocal_rank.mean
    assert [1, 1] == found.top.tolist()
    assert found.recall.low <= found.recall.mean <= found.recall.high


def test_ties_go_to_the_smaller_row(measure: Any) -> None:
    """Equal similarities rank in row order, so a run repeats."""
    vectors = np.zeros((20, 12), dtype=np.float32)
    found = measure.quality(Axes(), vectors, [question("0", {3}), question("0", {12})])
    assert pytest.approx((1 / 4 + 1 / 13) / 2) == found.reciprocal_rank.mean
    assert 0.5 == found.recall.mean
