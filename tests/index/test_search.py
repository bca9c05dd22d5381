"""The laws of filtered search: each plan compared with a float64 model that is independent of the core."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import DType, Index, Plan, Why, kernels
from carag.policy import Mask, Policy, policy_word


@st.composite
def indexes(draw):
    """An index of up to 200 rows over few distinct directions, so that ties and duplicates are common."""
    dim = draw(st.integers(1, 6))
    n = draw(st.one_of(st.integers(0, 60), st.integers(100, 200)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.integers(-2, 3, (n, dim)).astype(np.float64)
    vectors[~vectors.any(axis=1)] = 1.0
    words = policy_word(rng.integers(0, 8, n))
    keys = rng.permutation(n)
    index = Index(dim, M=draw(st.integers(2, 8)), ef_construction=draw(st.integers(1, 30)))
    index.add(vectors, words, keys)
    return index, vectors, words, keys


masks = st.builds(lambda r, f: Mask(r, f & ~r), st.integers(0, 7), st.integers(0, 7))
policies = st.builds(lambda found: Policy(*found), st.lists(masks, max_size=3))


def cosines(vectors, query):
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return vectors @ query / lengths


@given(indexes(), policies, st.integers(1, 70), st.sampled_from(Plan), st.sampled_from([1, 4, 64]))
def test_complete_admissible_and_ordered(made, policy, k, plan, ef):
    """Every plan returns min(k, admissible) rows, all admissible, none twice, nearest first, ties by key."""
    index, _, words, keys = made
    query = np.ones(index.dim)
    found = index.search(query, k, policy, plan=plan, ef_search=ef)
    open_rows = {int(key) for key, word in zip(keys, words, strict=True) if policy.admits(int(word))}
    count = int(found.counts[0])
    got = found.keys[0][:count].tolist()
    assert min(k, len(open_rows)) == count
    assert set(got) <= open_rows
    assert count == len(set(got))
    similarities = found.similarities[0]
    order = list(zip((-similarities[:count]).tolist(), got, strict=True))
    assert sorted(order) == order
    assert (found.keys[0][count:] == -1).all()
    assert (similarities[count:] == -np.inf).all()


@given(indexes(), policies, st.integers(1, 70), st.sampled_from(["exact", "certified"]))
def test_exact_equals_float64(made, policy, k, plan):
    """The exact plans return the float64 answer, except where similarities differ by less than 1e-6."""
    index, vectors, words, keys = made
    query = np.arange(1.0, index.dim + 1)
    found = index.search(query, k, policy, plan=plan)
    true = dict(zip(keys.tolist(), cosines(vectors, query).tolist(), strict=True))
    admissible = [
        true[key] for key, word in zip(keys.tolist(), words, strict=True) if policy.admits(int(word))
    ]
    best = sorted(admissible, reverse=True)[:k]
    got = [true[key] for key in found.keys[0][: found.counts[0]].tolist()]
    assert np.allclose(best, got, rtol=0, atol=1e-6)
    assert np.allclose(found.similarities[0][: found.counts[0]], got, rtol=0, atol=1e-6)


@given(indexes(), masks, masks, st.integers(1, 20))
def test_tightening_a_policy_only_removes(made, mask, tighter, k):
    """A mask with more required or forbidden bits finds no row the first does not, and none nearer."""
    index = made[0]
    conflict = (mask.required | tighter.required) & (mask.forbidden | tighter.forbidden)
    both = Mask(mask.required | tighter.required & ~conflict, mask.forbidden | tighter.forbidden & ~conflict)
    query = np.ones(index.dim)
    loose = index.search(query, len(index) + 1, mask, plan="exact")
    tight = index.search(query, k, both, plan="exact")
    assert set(tight.keys[0].tolist()) - {-1} <= set(loose.keys[0].tolist())
    assert (tight.similarities[0] <= loose.similarities[0][:k].max(initial=-np.inf)).all()


@pytest.mark.parametrize("plan", ["exact", "certified"])
def test_inadmissible_rows_change_nothing_in_an_exact_answer(build, plan):
    """Rows that the policy hides may be added, deleted and changed; keys and similarities stay byte-identical."""
    index, policy = build(300, 16), Mask(required=1, forbidden=2)
    query = np.arange(1.0, 17)
    before = index.search(query, 20, policy, plan=plan)
    hidden = [key for key in index.keys().tolist() if not policy.admits(int(index.words([key])[0]))]
    index.delete(hidden[::2])
    index.relabel(hidden[1::2], [policy_word(2)] * len(hidden[1::2]))
    index.add(np.tile(query, (50, 1)), [policy_word(2)] * 50)
    after = index.search(query, 20, policy, plan=plan)
    assert before.keys.tobytes() == after.keys.tobytes()
    assert before.similarities.tobytes() == after.similarities.tobytes()


def test_equal_admissible_sets_give_equal_answers(build):
    """Policies written differently that admit the same rows give the same answer with the same plan."""
    index = build(400, 12)
    one = Policy(Mask(required=1))
    split = Policy(Mask(required=3), Mask(required=1, forbidden=2))
    for plan in Plan:
        a, b = (index.search(np.ones(12), 10, p, plan=plan, ef_search=20) for p in (one, split))
        assert a.keys.tobytes() == b.keys.tobytes()
        assert a.stats.plans == b.stats.plans


@pytest.mark.parametrize("dtype", DType)
def test_exact_plans_are_exact_over_what_is_kept(dtype):
    """For every stored type, exact plans return the float64 answer over the stored values."""
    rng = np.random.default_rng(9)
    vectors = np.sign(rng.standard_normal((400, 90))) * (rng.integers(0, 3, (400, 90)) + 0.501) / 127
    vectors[:, 0] = 1.0  # eight-bit codes round all other coordinates up by half a step
    index = Index(90, M=4, ef_construction=5, dtype=dtype)
    index.add(vectors, np.full(400, policy_word(0)))
    kept, queries = index.vectors(index.keys()).astype(np.float64), rng.standard_normal((30, 90))
    queries[::2] = vectors[:15]
    true = queries / np.linalg.norm(queries, axis=1, keepdims=True) @ kept.T
    best = -np.sort(-true, axis=1)[:, :10]
    for plan in ("exact", "certified"):
        found = index.search(queries, 10, Mask(), plan=plan)
        assert np.allclose(best, found.similarities, rtol=0, atol=1e-6)
        assert np.allclose(best, np.take_along_axis(true, found.keys, axis=1), rtol=0, atol=1e-6)


@given(indexes(), st.sampled_from(DType), st.randoms(use_true_random=False))
def test_similarities_are_those_of_an_exact_search_to_the_last_bit(made, dtype, chance):
    """In any order of keys, before and after deletions; hidden rows have a similarity too."""
    index, vectors, words, keys = made
    kept = Index(index.dim, M=3, ef_construction=3, dtype=dtype)
    kept.add(vectors, words, keys)
    query = np.arange(1, index.dim + 1) - 1.5
    gone = keys[::7]
    for closed in ((), gone):
        kept.delete(closed)
        for plan in ("exact", "certified"):
            found = kept.search(query, len(keys) + 1, Mask(), plan=plan)
            count = int(found.counts[0])
            order = chance.sample(range(count), chance.randint(0, count))
            got = kept.similarities(query, found.keys[0][order])
            assert (np.float32, (len(order),)) == (got.dtype, got.shape)
            assert found.similarities[0][order].tobytes() == got.tobytes()
    assert kept.similarities(query, kept.keys()).shape == (len(kept),)
    kept.consolidate(threads=1)
    assert found.similarities[0][order].tobytes() == kept.similarities(query, found.keys[0][order]).tobytes()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ([1.0] * 3, "shape"),
        (np.eye(8)[:2], "2 queries"),
        (np.empty((0, 8)), "0 queries"),
        ([0.0] * 8, "query 0 is zero"),
        ([np.nan] * 8, "query 0 holds NaN"),
        (["a"] * 8, "queries are"),
    ],
)
def test_similarities_are_to_one_query_that_has_a_direction(build, query, message):
    """A batch of one row is one query."""
    index = build()
    with pytest.raises(InvalidArgument, match=message):
        index.similarities(query, [0])
    assert index.similarities(np.eye(8)[:1], [3]).shape == (1,)
    assert index.similarities(np.eye(8)[0], []).shape == (0,)


def test_similarities_are_read_from_a_file_as_from_memory(build, tmp_path):
    """The same bits whether mapped or read, on every kernel."""
    index = build(300, 33)
    index.save(tmp_path / "index")
    keys, query = np.arange(299, -1, -1), np.arange(33) - 15.5
    expected = index.similarities(query, keys).tobytes()
    for mmap in (False, True):
        loaded = Index.load(tmp_path / "index", mmap=mmap)
        for name in kernels.available():
            with kernels.use(name):
                assert expected == loaded.similarities(query, keys).tobytes()


def test_codes_that_round_far_mislead_no_exact_plan():
    """A stored vector may be half as long again as the given one; the exact plan still finds the nearest.

    One large coordinate and 65,535 half steps, which all round away from the query in the nearest row, and towards it
    in another: the worst case of eight-bit codes.
    """
    half = np.full((42, 65_536), 0.5001, dtype=np.float32)
    half[:, 0] = 127.0
    query, misleading, nearest, others = half[0], half[1], half[2], half[3:]
    query[32_768:] = 0.4999
    misleading[32_768:] *= -1
    nearest[1:2_001], nearest[2_001:32_768] = 0.4999, -0.5001
    others *= -1
    index = Index(65_536, M=2, ef_construction=1, dtype="int8")
    index.add(half[1:], np.full(41, policy_word(0)))
    true = query @ index.vectors(index.keys()).astype(np.float64).T / np.linalg.norm(query)
    assert 1 == true.argmax()
    for plan in ("exact", "certified"):
        assert [[1]] == index.search(query, 1, Mask(), plan=plan).keys.tolist()


def clustered(rows, dim, seed):
    rng = np.random.default_rng(seed)
    centres, mixing = rng.standard_normal((30, dim)), rng.standard_normal((12, dim))
    return centres[rng.integers(0, 30, rows)] + 0.6 * rng.standard_normal((rows, 12)) @ mixing / np.sqrt(12)


@pytest.fixture(scope="module")
def banded():
    """5,000 rows whose bit i is set with probability ``SHARES[i]``, and 200 queries."""
    rng = np.random.default_rng(8)
    vectors = clustered(5_200, 48, 8)
    bits = (rng.random((5_000, len(SHARES))) < SHARES) @ (1 << np.arange(len(SHARES)))
    index = Index(48, M=16, ef_construction=100)
    index.add(vectors[:5_000], policy_word(bits.astype(np.int64)))
    return index, vectors[5_000:]


SHARES = (1.0, 0.5, 0.2, 0.05)


@pytest.mark.parametrize("share", range(len(SHARES)), ids=[f"{share:.0%}" for share in SHARES])
@pytest.mark.parametrize("plan", ["scan", "graph", "auto"])
def test_recall(banded, plan, share):
    """Recall@10 against the exact plan is 0.99 or more in every band of selectivity, untuned."""
    index, queries = banded
    policy = Mask(required=1 << share)
    exact, found = (index.search(queries, 10, policy, plan=p) for p in ("exact", plan))
    hits = (found.similarities >= exact.similarities[:, -1:]).sum()
    assert hits / found.keys.size >= 0.99


def test_a_scan_estimates_what_may_be_near_and_scores_few(banded):
    """The one-bit pass estimates some of the admissible rows, near ones first, and few of them are scored."""
    index, queries = banded
    for share in range(3):
        stats = index.search(queries, 10, Mask(required=1 << share), plan="scan").stats
        assert {Plan.SCAN} == set(stats.plans)
        assert (stats.estimates <= stats.admissible).all()
        assert stats.distance_computations.mean() < 0.5 * stats.admissible


def test_an_exact_plan_scores_every_admissible_row_and_no_other(banded):
    """Each admissible row by its code, and few of them by their vectors."""
    index, queries = banded
    for plan, share in (("exact", 1), ("certified", 2)):
        stats = index.search(queries, 10, Mask(required=1 << share), plan=plan).stats
        assert ((stats.distance_computations > stats.admissible) & (stats.hops == 0)).all()
        assert stats.distance_computations.mean() < 1.5 * stats.admissible


@pytest.mark.parametrize("direction", [1.0, -1.0], ids=["near", "far"])
def test_policies_correlated_with_the_query(direction):
    """When the admissible rows are the nearest, or the farthest, the graph still answers in full."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((3_000, 16))
    query = rng.standard_normal(16)
    rank = np.argsort(np.argsort(-direction * cosines(vectors, query)))
    index = Index(16, M=8, ef_construction=40)
    index.add(vectors, policy_word((rank < 150).astype(np.int64)))
    exact = index.search(query, 10, Mask(required=1), plan="exact")
    graph = index.search(query, 10, Mask(required=1), plan="graph", ef_search=16)
    assert [10] == graph.counts.tolist()
    assert len(set(exact.keys[0]) & set(graph.keys[0])) >= 9
    assert (graph.stats.distance_computations <= 2 * 3_000).all()


def test_an_empty_admissible_set_costs_nothing(build):
    """Without admissible rows the answer is empty, and no vector is read."""
    found = build(200, 4).search(np.ones(4), 5, Policy(), plan="graph")
    assert (0, 0) == (found.stats.admissible, int(found.stats.distance_computations[0]))
    assert [0] == found.counts.tolist()


def test_auto_is_the_cheapest_by_its_own_account(banded):
    """A scan, which may continue as a walk, or the exact plan: the cheaper one, unless rows near the query decide."""
    index, queries = banded
    for share in range(len(SHARES)):
        stats = index.search(queries[0], 10, Mask(required=1 << share)).stats
        costs = stats.nanoseconds
        assert stats.whys[0] in (Why.CHEAPEST, Why.NEAR, Why.BUDGET)
        if stats.whys == (Why.CHEAPEST,) and stats.plans == (Plan.EXACT,):
            assert costs[Plan.EXACT] <= 2 * costs[Plan.SCAN]
        if costs[Plan.SCAN] < costs[Plan.EXACT] / 2:
            assert stats.plans != (Plan.EXACT,)
        assert {Plan.EXACT, Plan.SCAN} == costs.keys()
        assert all(f"{plan} " in stats.explain() for plan in costs)


def test_answers_do_not_depend_on_the_batch_or_the_kernel(build):
    """A query gets the same bytes alone, in a batch, from every kernel, and with any number of threads."""
    index = build(500, 33)
    queries = np.random.default_rng(6).standard_normal((20, 33))
    for plan in Plan:
        batch = index.search(queries, 7, Mask(forbidden=4), plan=plan, threads=1)
        for threads in (2, 3, 64):
            shared = index.search(queries, 7, Mask(forbidden=4), plan=plan, threads=threads)
            assert batch.keys.tobytes() == shared.keys.tobytes()
            assert batch.similarities.tobytes() == shared.similarities.tobytes()
            assert batch.stats.plans == shared.stats.plans
        for kernel in kernels.available():
            with kernels.use(kernel):
                for i, query in enumerate(queries):
                    one = index.search(query, 7, Mask(forbidden=4), plan=plan)
                    assert batch.keys[i].tobytes() == one.keys[0].tobytes()
                    assert batch.similarities[i].tobytes() == one.similarities[0].tobytes()


@given(indexes(), policies, st.integers(1, 70), st.integers(-2, 2))
def test_an_exact_limit_is_a_count_before_the_search(made, policy, k, beyond):
    """One search with a limit gives the same answer and plan as a count followed by the right search."""
    index, *_ = made
    admissible = index.count(policy)
    for limit in {0, 1, max(admissible + beyond, 0), 2**64 - 1}:
        plan = Plan.CERTIFIED if 0 < limit >= admissible else Plan.AUTO
        query = np.ones(index.dim)
        once = index.search(query, k, policy, exact_limit=limit)
        twice = index.search(query, k, policy, plan=plan)
        assert twice.keys.tobytes() == once.keys.tobytes()
        assert twice.similarities.tobytes() == once.similarities.tobytes()
        assert twice.stats.plans == once.stats.plans
        assert twice.stats.whys == once.stats.whys
        assert admissible == once.stats.admissible


def test_other_plans_ignore_the_exact_limit(build):
    """A plan that is named is used."""
    index = build(500, 8)
    for plan in (Plan.EXACT, Plan.SCAN, Plan.GRAPH, Plan.CERTIFIED):
        with_limit = index.search(np.ones(8), 5, Mask(), plan=plan, exact_limit=500)
        assert index.search(np.ones(8), 5, Mask(), plan=plan).stats.plans == with_limit.stats.plans


def test_plain_graph_search_keeps_to_its_ef(build):
    """With every row admissible the beam is ef_search, or k if larger; it is not widened."""
    index = build(2_000, 16)
    for ef, k, wanted in ((24, 5, 24), (24, 60, 60)):
        found = index.search(np.ones(16), k, Mask(), plan="graph", ef_search=ef)
        assert ([wanted], [False]) == (found.stats.ef.tolist(), found.stats.fallbacks.tolist())


def test_a_graph_search_stops_by_distance_unless_a_width_is_asked_for(banded):
    """It then scores far fewer rows than a beam of its own width, and hardly misses any."""
    index, queries = banded
    exact = index.search(queries, 10, Mask(), plan="exact")
    stopped = index.search(queries, 10, Mask(), plan="graph", fallback=False)
    width = int(stopped.stats.ef.max())
    spent = index.search(queries, 10, Mask(), plan="graph", ef_search=width, fallback=False)
    assert stopped.stats.distance_computations.mean() < 0.7 * spent.stats.distance_computations.mean()
    assert (stopped.similarities >= exact.similarities[:, -1:]).mean() >= 0.99


def test_a_walk_that_is_given_up_goes_on_as_a_scan():
    """If half of all rows are admissible but none near the query, the answer is complete and nearly exact."""
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((5_000, 16))
    index = Index(16, M=8, ef_construction=40)
    index.add(vectors, policy_word((vectors[:, 0] < 0).astype(int)))
    queries = rng.standard_normal((20, 16))
    queries[:, 0] = 6.0
    found, exact = (index.search(queries, 10, Mask(required=1), plan=plan) for plan in ("graph", "exact"))
    assert ({Plan.SCAN}, {Why.BUDGET}) == (set(found.stats.plans), set(found.stats.whys))
    assert found.stats.fallbacks.all()
    assert [10] * 20 == found.counts.tolist()
    assert (found.similarities >= exact.similarities[:, -1:]).mean() >= 0.99


def test_a_tight_policy_widens_the_beam():
    """With one row in four admissible the beam grows about fourfold, and never beyond sixteenfold."""
    rng = np.random.default_rng(7)
    index = Index(8, M=6, ef_construction=30)
    index.add(rng.standard_normal((6_000, 8)), policy_word((rng.random(6_000) < 0.25).astype(int)))
    found = index.search(rng.standard_normal((20, 8)), 5, Mask(required=1), plan="graph", ef_search=10)
    graph = ~found.stats.fallbacks
    assert graph.any()
    assert (found.stats.ef[graph] > 20).all()
    assert (found.stats.ef[graph] <= 160).all()
