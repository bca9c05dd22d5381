"""Changes have the same result by policy or by key, at once or in steps, on one thread or several."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index import DType, Index, Plan
from carag.policy import Mask, Policy, policy_word
from tests.sizes import examples

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
    """Each admitted row gets (word & ~clear) | set, every other keeps its word, and the number is returned."""
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
    """A closed class is closed for the next query, on every plan."""
    index = build(500, 8)
    index.relabel_where(Mask(required=1), set=1 << 20)
    for plan in Plan:
        found = index.search(np.ones(8), 500, Mask(forbidden=1 << 20), plan=plan)
        assert not (index.words(found.keys[0][: found.counts[0]]) & 1).any()
    assert 0 == index.count(Mask(required=1, forbidden=1 << 20))


def test_many_small_relabels_equal_one():
    """Hundreds of small relabels, thousands for a release, give the same counts, words and answers as one batch."""
    rows = examples(3_000, least=800)
    one, many = (random_index(rows, 1, M=2, ef_construction=1) for _ in range(2))
    keys = one.keys()
    words = policy_word(np.random.default_rng(2).integers(0, 16, keys.size))
    one.relabel(keys, words)
    for part in np.array_split(np.random.default_rng(3).permutation(keys.size), rows // 2):
        many.relabel(keys[part], words[part])
    assert one.words(keys).tolist() == many.words(keys).tolist()
    tally = Counter(words.tolist())
    assert [tally[word] for word in map(policy_word, range(16))] == [
        many.count(Mask(bits, 15 & ~bits)) for bits in range(16)
    ]
    assert answers(one) == answers(many)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 33, 128])
def test_what_an_index_keeps_is_kept_again(dim):
    """Vectors read from one index and added to another keep every bit; other lengths are normalised to 1."""
    rng, rows = np.random.default_rng(dim), examples(2_000)
    one, other = (Index(dim, M=2, ef_construction=1) for _ in range(2))
    keys = one.add(rng.standard_normal((rows, dim)) ** 3, np.full(rows, policy_word(1)))
    kept = one.vectors(keys)
    other.add(kept, one.words(keys))
    assert kept.tobytes() == other.vectors(keys).tobytes()
    longer = other.add(kept[:100] * np.float32(1 + 2**-20), one.words(keys[:100]))
    assert (
        np.abs(np.linalg.norm(other.vectors(longer).astype(np.float64), axis=1) - 1) <= 2**-24 * 1.001
    ).all()


@given(st.integers(0, 120), st.integers(0, 99), st.sampled_from(DType), st.data())
def test_consolidating_changes_no_exact_answer(n, seed, dtype, data):
    """Deleted rows are removed; keys, columns, counts and exact answers of the rest stay, byte for byte."""
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
    """Afterwards the file holds only the live rows."""
    index = build(400, 8)
    index.save(tmp_path / "before")
    index.delete(index.keys()[100:])
    index.consolidate()
    index.save(tmp_path / "after")
    assert (tmp_path / "after").stat().st_size < (tmp_path / "before").stat().st_size / 2
    assert 100 == len(index) == len(Index.load(tmp_path / "after"))


@pytest.mark.parametrize("dtype", DType)
def test_the_file_does_not_depend_on_threads(tmp_path, dtype):
    """Any number of threads in add and consolidate gives the same bytes; another seed gives another graph."""
    rng = np.random.default_rng(4)
    vectors, words = rng.standard_normal((400, 24)), policy_word(rng.integers(0, 8, 400))
    files = []
    for threads, seed in ((1, 0), (2, 0), (5, 0), (1, 1)):
        index = Index(24, M=8, ef_construction=20, dtype=dtype, seed=seed)
        index.add(vectors[:150], words[:150], threads=threads)
        index.add(vectors[150:], words[150:], threads=threads)
        index.delete(np.arange(0, 400, 7))
        index.save(tmp_path / "grown")
        index.consolidate(threads=threads)
        index.save(tmp_path / "consolidated")
        files.append([(tmp_path / name).read_bytes() for name in ("grown", "consolidated")])
    assert files[0] == files[1] == files[2] != files[3]


@pytest.mark.parametrize("room", [0, 150, 300, 1_000])
def test_the_file_does_not_depend_on_room_that_was_reserved(tmp_path, room):
    """Whether reserved before any row or later, and also when more rows are added than reserved."""
    rng = np.random.default_rng(3)
    vectors, words = rng.standard_normal((400, 8)), policy_word(rng.integers(0, 8, 400))
    plain, roomy = Index(8, M=4), Index(8, M=4)
    roomy.reserve(room)
    for at in (slice(0, 150), slice(150, 300), slice(300, 390)):
        for index in (plain, roomy):
            index.add(vectors[at], words[at])
    roomy.reserve(room + 390)
    for name, index in (("plain", plain), ("roomy", roomy)):
        index.add(vectors[390:], words[390:])
        index.save(tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "roomy").read_bytes()


def test_what_was_preloaded_answers_and_changes_as_before(tmp_path):
    """A mapped index is preloaded, one in memory is unchanged, and a closed one raises."""
    index = random_index(500, 1)
    index.save(tmp_path / "index")
    mapped = Index.load(tmp_path / "index", mmap=True)
    expected = [answers(index, plan=plan) for plan in ("exact", "graph", "scan")]
    for one in (mapped, mapped, index):
        one.preload()
        assert expected == [answers(one, plan=plan) for plan in ("exact", "graph", "scan")]
    mapped.delete(np.arange(0, 500, 2))
    index.delete(np.arange(0, 500, 2))
    for one in (mapped, index):
        one.consolidate()
        one.verify()
    assert answers(index) == answers(mapped)
    mapped.close()
    with pytest.raises(InvalidArgument):
        mapped.preload()


@pytest.mark.parametrize("rows", [-1, 2**32 - 64, 1.5, "many"])
def test_room_is_for_a_number_of_rows(rows):
    """A number that an index cannot hold, or a value that is not an integer, is refused."""
    with pytest.raises(InvalidArgument, match="want an integer from 0 to 4294967231"):
        Index(2).reserve(rows)


def test_rows_added_one_by_one_are_all_found():
    """A row is found as soon as it is added, by every plan, whatever the number of rows before it."""
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
