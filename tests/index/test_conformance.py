"""Random worlds judged by the oracle, certified worlds built twice, and recall compared with hnswlib's."""

from __future__ import annotations

import numpy as np
import pytest

from carag.index import Plan, SearchResult
from carag.policy import Mask, Policy

# Rows without a label are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")


@pytest.mark.parametrize("pairs", [40, pytest.param(1_000, marks=pytest.mark.release)])
def test_random_worlds(bench, pairs):
    """Every plan, asked after every change of an index, gives no violation."""
    outcome = bench("conformance").run(worlds=23 * pairs // 100, seed=1)
    assert "" == outcome.first
    assert 0 == outcome.violations.total()
    assert outcome.pairs >= pairs
    assert outcome.searches >= pairs * 20 * len(Plan)
    assert all(outcome.plans[plan] > pairs for plan in ("exact", "scan", "graph", "certified"))


@pytest.mark.full
def test_all_random_worlds(bench):
    """10^5 pairs of (index, policy), 10^7 searches, all plans, kernels and dtypes: no violation."""
    conformance = bench("conformance")
    outcome = conformance.run(worlds=conformance.FULL_WORLDS, seed=0)
    assert "" == outcome.first
    assert outcome.pairs >= 10**5
    assert outcome.searches >= 10**7


@pytest.mark.parametrize("worlds", [100, pytest.param(1_000, marks=pytest.mark.release)])
def test_certified_worlds(bench, worlds):
    """Certified answers are byte for byte the same in a world rebuilt with other inadmissible rows."""
    outcome = bench("conformance").run_certified(worlds=worlds, seed=1)
    assert "" == outcome.first
    assert {"certified"} == set(outcome.plans)
    assert {"removed", "replaced", "permuted"} == set(outcome.changes)


@pytest.mark.full
def test_all_certified_worlds(bench):
    """100,000 certified worlds."""
    assert "" == bench("conformance").run_certified(worlds=100_000, seed=0).first


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.release) for seed in (1, 2))])
def test_searching_beside_writers(bench, seed):
    """During relabels, deletes, adds and consolidations, 600 searches return no closed row and miss no steady one."""
    outcome = bench("concurrency").run(searches=600, seed=seed)
    assert "" == outcome.first
    assert 600 <= outcome.searches
    assert all(
        outcome.writes[kind] for kind in ("relabel", "relabel_where", "closed for good", "add and delete")
    )


@pytest.mark.full
def test_searching_beside_writers_for_long(bench):
    """200,000 searches."""
    assert "" == bench("concurrency").run(searches=200_000, seed=9).first


@pytest.mark.parametrize("violation", range(1, 8))
def test_the_judge_can_fail(bench, violation):
    """Each kind of violation, made on purpose, is detected as that kind."""
    oracle = bench("oracle")
    vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]], dtype=np.float32)
    words = np.array([1 << 27, 1 << 27, 1 << 27, 0], dtype=np.uint32)  # the last is unlabelled
    zeros, keys = np.zeros(4, dtype=np.int64), np.array([[0, 1, 2, -1]])
    rows = oracle.Rows(vectors, words, zeros, zeros + 1, zeros, zeros, np.arange(4))
    expected = oracle.truth(rows, np.array([[1.0, 0.0]]), Policy(Mask()), 0)
    right = expected.similarities[0].astype(np.float32)
    similarities = np.array([[right[0], right[1], right[2], -np.inf]], dtype=np.float32)

    def verdict(count):
        result = SearchResult(keys, similarities, np.array([count]), None)
        return oracle.judge(rows, expected, result, np.array([violation == 6])).tolist()

    assert [0] == verdict(3)
    if violation == 2:
        keys[0, 2], similarities[0, 2] = 3, right[3]
    elif violation == 3:
        keys[0, 1], similarities[0, 1] = 0, right[0]
    elif violation == 4:
        similarities[0, 2] += np.float32(0.01)
    elif violation == 5:
        keys[0, :2], similarities[0, :2] = [1, 0], [right[1], right[0]]
    elif violation == 6:
        keys, similarities = np.array([[1]]), right[np.newaxis, 1:2]
    elif violation == 7:
        keys[0, 3] = 7
    assert [violation] == verdict({1: 2, 6: 1}.get(violation, 3))


@pytest.mark.parametrize("term", ["words", "public_at", "expires_at", "entities", "audiences"])
def test_the_oracle_tests_every_term(bench, term):
    """A row that fails by its word, its time, its entity or its audience alone is inadmissible to the oracle."""
    oracle = bench("oracle")
    columns = {"words": 1 << 27, "public_at": 5, "expires_at": 7, "entities": 3, "audiences": 8}
    closed = {"words": (1 << 27) | 1 << 30, "public_at": 7, "expires_at": 6, "entities": 4, "audiences": 9}
    policy = Policy(Mask(), allow_entities=[3], audiences=[8])

    def admitted(values):
        arrays = {name: np.array([value], dtype=np.int64) for name, value in values.items()}
        rows = oracle.Rows(np.ones((1, 2), np.float32), **arrays, keys=np.array([0]))
        return oracle.admits(rows, policy, 6).tolist()

    assert [True] == admitted(columns)
    assert [False] == admitted(columns | {term: closed[term]})


def test_the_account_of_a_world_can_differ(bench):
    """A world whose index is changed without it reports a difference."""
    worlds = bench("worlds")
    world = worlds.World(np.random.default_rng(0), (20, 21), 4)
    world.index.relabel(world.rows.keys[:1], [int(world.rows.words[0]) ^ 1], allow_quarantine=True)
    world._compare("nothing")
    assert ["after nothing the rows are not those of the account"] == world.faults


def test_recall_equals_hnswlib_on_a_small_set(bench):
    """4,000 vectors of 64 dimensions: unfiltered recall@10 within 0.01 of hnswlib's, few rows scored, no scan."""
    recall = bench("recall")
    of = bench("datasets").Mixture(rows=4_000, dim=64, queries=200, clusters=20, local_dim=24)
    report = recall.measure(*bench("datasets").mixture(of), efs=(24,), M=12, ef_construction=60)
    ours, theirs = report.scores["ef=24"]["carag"], report.scores["ef=24"]["hnswlib"]
    assert ours.recall >= theirs.recall - 0.01
    assert ours.scored_most < 0.4
    assert 0 == ours.fallbacks


@pytest.mark.full
def test_recall_equals_hnswlib(bench):
    """26,595 x 1,024 of low intrinsic dimension: within 0.01 of hnswlib's recall, under 20 % scored, no scan."""
    recall = bench("recall")
    report = recall.measure(*bench("datasets").mixture(bench("datasets").Mixture()), efs=(24, 64))
    for score in report.scores.values():
        assert score["carag"].recall >= score["hnswlib"].recall - 0.01
        assert score["carag"].scored_most < 0.2
        assert 0 == score["carag"].fallbacks
