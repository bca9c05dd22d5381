"""The long counts: random cases judged by the oracle, and recall held against hnswlib's."""

from __future__ import annotations

import numpy as np
import pytest

from carag.index import Plan
from carag.policy import Mask, Policy


def test_random_cases(bench):
    """2,000 random cases, 20 of them with 2,000 rows or more, over all plans and kernels: no violation."""
    outcome = bench("conformance").run(cases=2_000, large=20, seed=1)
    assert "" == outcome.first
    assert {0} == set(outcome.violations.values())
    assert outcome.plans["graph"] > 500
    assert outcome.searches >= 2_000 * 2 * len(Plan)


@pytest.mark.full
def test_all_random_cases(bench):
    """100,000 random cases, 1,000 of them with 2,000 rows or more, over all plans and kernels: no violation."""
    outcome = bench("conformance").run(cases=100_000, large=1_000, seed=0)
    assert "" == outcome.first
    assert {0} == set(outcome.violations.values())


@pytest.mark.parametrize("violation", range(1, 8))
def test_the_judge_can_fail(bench, violation):
    """Each kind of violation, made on purpose, is seen for what it is."""
    oracle = bench("oracle")
    vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])
    words = np.array([1 << 27, 1 << 27, 1 << 27, 0], dtype=np.uint32)  # the last is unlabelled
    rows = oracle.Rows(vectors, words, np.zeros(4, dtype=np.int64), np.arange(4))
    expected = oracle.truth(rows, np.array([1.0, 0.0]), Policy(Mask()), 0)
    right = expected.similarities.astype(np.float32)
    keys = np.array([0, 1, 2, -1])
    similarities = np.array([right[0], right[1], right[2], -np.inf], dtype=np.float32)
    count = 3
    assert 0 == oracle.judge(rows, expected, keys, similarities, count, exact=True)
    if violation == 1:
        count = 2
    elif violation == 2:
        keys[2], similarities[2] = 3, right[3]
    elif violation == 3:
        keys[1], similarities[1] = 0, right[0]
    elif violation == 4:
        similarities[2] += np.float32(0.01)
    elif violation == 5:
        keys[:2], similarities[:2] = [1, 0], [right[1], right[0]]
    elif violation == 6:
        keys, similarities, count = np.array([1]), right[1:2], 1
    else:
        keys[3] = 7
    exact = violation == 6
    assert violation == oracle.judge(rows, expected, keys, similarities, count, exact=exact)


def test_recall_equals_hnswlib_on_a_small_set(bench):
    """4,000 vectors of 64 dimensions: unfiltered recall@10 within 0.01 of hnswlib's, few rows scored, no scan."""
    recall = bench("recall")
    of = recall.Mixture(rows=4_000, dim=64, queries=200, clusters=20, local_dim=24)
    report = recall.measure(*recall.mixture(of), efs=(24,), M=12, ef_construction=60)
    ours, theirs = report.scores["ef=24"]["carag"], report.scores["ef=24"]["hnswlib"]
    assert ours.recall >= theirs.recall - 0.01
    assert ours.scored_most < 0.4
    assert 0 == ours.fallbacks


@pytest.mark.full
def test_recall_equals_hnswlib(bench):
    """26,595 x 1,024 of low intrinsic dimension: within 0.01 of hnswlib's recall, under 20 % scored, no scan."""
    recall = bench("recall")
    report = recall.measure(*recall.mixture(recall.Mixture()), efs=(24, 64))
    for score in report.scores.values():
        assert score["carag"].recall >= score["hnswlib"].recall - 0.01
        assert score["carag"].scored_most < 0.2
        assert 0 == score["carag"].fallbacks
