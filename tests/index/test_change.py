"""Changes: by policy as by key, in one go as in many, on one thread as on several."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.index import DType, Index, Plan
from carag.policy import Mask, Policy, policy_word

masks = st.builds(lambda r, f: Mask(r, f & ~r), st.integers(0, 7), st.integers(0, 7))
policies = st.builds(
    lambda some, deny: Policy(*some, deny_entities=deny),
    st.lists(masks, max_size=3),
    st.sets(st.integers(0, 3)),
)


def random_index(n, seed, dim=4, **parameters):
    rng = np.random.default_rng(seed)
    index = Index(dim, **({"M": 4, "ef_construction": 10} | parameters))
    words = policy_word(rng.integers(0, 8, n))
    index.add(rng.standard_normal((n, dim)), words, rng.permutation(n) * 2, entities=rng.integers(0, 4, n))
    return index


def answers(index, k=8, plan="exact"):
    queries = np.random.default_rng(5).standard_normal((10, index.dim))
    found = [
        index.search(queries, k, policy, plan=plan) for policy in (Mask(), Mask(1), Policy(Mask(2), Mask(4)))
    ]
    return [(one.keys.tobytes(), one.similarities.tobytes(), one.stats.admissible) for one in found]


@given(st.integers(0, 80), policies, st.integers(0, 7), st.integers(0, 7), st.integers(0, 99))
def test_relabelling_by_policy_equals_relabelling_by_key(n, policy, on, off, seed):
    """Each admitted row gets (word & ~clear) | set, each other keeps its word, and the number is told."""
    by_policy, by_key = random_index(n, seed), random_index(n, seed)
    keys, off = by_key.keys(), off & ~on
    rows = zip(by_key.words(keys).tolist(), by_key.entities(keys).tolist(), strict=True)
    admitted = np.array([policy.admits(word, entity) for word, entity in rows], dtype=bool)
    by_key.relabel(keys[admitted], by_key.words(keys[admitted]) & ~np.uint32(off) | np.uint32(on))
    assert admitted.sum() == by_policy.relabel_where(policy, set=on, clear=off)
    assert by_key.words(keys).tolist() == by_policy.words(keys).tolist()
    assert answers(by_key) == answers(by_policy)
    assert () == by_policy.check()


def test_relabelling_by_policy_is_seen_by_the_next_query(build):
    """A class that is closed is closed for whoever asks next, on every plan."""
    index = build(500, 8)
    index.relabel_where(Mask(required=1), set=1 << 20)
    for plan in Plan:
        found = index.search(np.ones(8), 500, Mask(forbidden=1 << 20), plan=plan)
        assert not (index.words(found.keys[0][: found.counts[0]]) & 1).any()
    assert 0 == index.count(Mask(required=1, forbidden=1 << 20))


def test_many_small_relabels_equal_one():
    """Thousands of relabels one by one leave what one batch leaves: counts, words, answers."""
    one, many = random_index(3_000, 1, M=2, ef_construction=1), random_index(3_000, 1, M=2, ef_construction=1)
    keys = one.keys()
    words = policy_word(np.random.default_rng(2).integers(0, 16, keys.size))
    one.relabel(keys, words)
    for part in np.array_split(np.random.default_rng(3).permutation(keys.size), 1_500):
        many.relabel(keys[part], words[part])
    assert one.words(keys).tolist() == many.words(keys).tolist()
    tally = Counter(words.tolist())
    assert [tally[word] for word in map(policy_word, range(16))] == [
        many.count(Mask(bits, 15 & ~bits)) for bits in range(16)
    ]
    assert answers(one) == answers(many)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 33, 128])
def test_what_an_index_keeps_is_kept_again(dim):
    """Vectors read from one and added to another are the same to the last bit; another length is made one."""
    rng = np.random.default_rng(dim)
    one, other = (Index(dim, M=2, ef_construction=1) for _ in range(2))
    keys = one.add(rng.standard_normal((2_000, dim)) ** 3, np.full(2_000, policy_word(1)))
    kept = one.vectors(keys)
    other.add(kept, one.words(keys))
    assert kept.tobytes() == other.vectors(keys).tobytes()
    longer = other.add(kept[:100] * np.float32(1 + 2**-20), one.words(keys[:100]))
    assert (
        np.abs(np.linalg.norm(other.vectors(longer).astype(np.float64), axis=1) - 1) <= 2**-24 * 1.001
    ).all()


@given(st.integers(0, 120), st.integers(0, 99), st.sampled_from(DType), st.data())
def test_consolidating_changes_no_exact_answer(n, seed, dtype, data):
    """Deleted rows leave, the rest stays: keys, columns, counts and exact answers, byte for byte."""
    index = random_index(n, seed, dtype=dtype)
    keys = index.keys()
    index.delete(keys[np.random.default_rng(seed).random(n) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))])
    index.relabel_where(Mask(required=1), set=8)
    left = index.keys()

    def account():
        columns = [index.words(left), index.entities(left), index.public_at(left), index.vectors(left)]
        return [left.tobytes(), *(column.tobytes() for column in columns), answers(index)]

    before = account()
    index.consolidate()
    assert index.keys().tolist() == left.tolist()
    assert before == account()
    assert answers(index, plan="exact") == answers(index, plan="certified")
    assert () == index.check()
    freed = np.setdiff1d(keys, left)
    index.add(np.ones((freed.size, 4)), [policy_word(0)] * freed.size, freed)
    assert keys.tolist() == index.keys().tolist()


def test_consolidating_forgets_the_deleted(build, tmp_path):
    """After it the file holds the live rows only."""
    index = build(400, 8)
    index.save(tmp_path / "before")
    index.delete(index.keys()[100:])
    index.consolidate()
    index.save(tmp_path / "after")
    assert (tmp_path / "after").stat().st_size < (tmp_path / "before").stat().st_size / 2
    assert 100 == len(index) == len(Index.load(tmp_path / "after"))


@pytest.mark.parametrize("dtype", DType)
def test_the_file_does_not_depend_on_threads(tmp_path, dtype):
    """Any number of threads in add and consolidate: the same bytes."""
    rng = np.random.default_rng(4)
    vectors, words = rng.standard_normal((1_500, 24)), policy_word(rng.integers(0, 8, 1_500))
    files = []
    for threads in (1, 2, 5):
        index = Index(24, M=8, ef_construction=30, dtype=dtype)
        index.add(vectors[:700], words[:700], threads=threads)
        index.add(vectors[700:], words[700:], threads=threads)
        index.delete(np.arange(0, 1_500, 7))
        index.save(tmp_path / "grown")
        index.consolidate(threads=threads)
        index.save(tmp_path / "consolidated")
        files.append([(tmp_path / name).read_bytes() for name in ("grown", "consolidated")])
    assert files[0] == files[1] == files[2]


def test_rows_added_one_by_one_are_all_found():
    """A row is found from the call after its own on, by every plan, whatever the number of rows before."""
    rng = np.random.default_rng(6)
    vectors = rng.standard_normal((150, 6))
    index = Index(6, M=3, ef_construction=10)
    for i, vector in enumerate(vectors):
        index.add(vector[np.newaxis], [policy_word(i % 8)])
        found = index.search(vector, 1, Mask(), plan=list(Plan)[i % len(Plan)])
        assert [[i]] == found.keys.tolist()
    assert 150 == len(index) == index.count(Mask())
    assert () == index.check()


def test_classes_are_counted(build):
    """As many classes as distinct words and terms, however many rows."""
    assert 8 == build(500).classes
    index = random_index(300, 0)
    assert 32 >= index.classes >= 16
