"""What the index accepts, refuses and returns."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product

import numpy as np
import pytest

from carag.errors import InvalidArgument, PolicyConflict, UnlabelledWarning
from carag.index import DType, Index, Plan, Why, kernels
from carag.policy import NEVER, QUARANTINE, TOMBSTONE, Mask, Policy, as_of_minutes, policy_word

OPEN = policy_word(0)
EYE = np.eye(3)


def three(**more) -> Index:
    index = Index(3, M=4)
    index.add(EYE, [OPEN] * 3, [10, 20, 30], **more)
    return index


def test_parameters_are_kept():
    """The parameters of an index can be read."""
    index = Index(7, M=5, ef_construction=11, seed=2**64 - 1)
    assert (7, 5, 11, 2**64 - 1) == (index.dim, index.M, index.ef_construction, index.seed)
    assert DType.FLOAT32 is index.dtype
    assert "dim=7" in repr(index)
    for dtype in DType:
        assert dtype is Index(3, dtype=dtype).dtype is Index(3, dtype=dtype.value).dtype


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim": 0},
        {"dim": -1},
        {"dim": 2.0},
        {"dim": "3"},
        {"dim": True},
        {"dim": 10**6},
        {"dim": 3, "M": 1},
        {"dim": 3, "M": 10**6},
        {"dim": 3, "ef_construction": 0},
        {"dim": 3, "seed": -1},
        {"dim": 3, "seed": 2**64},
        {"dim": None},
        *({"dim": 3, "dtype": dtype} for dtype in ("float64", "", None, np.float32, 0, [])),
    ],
)
def test_bad_parameters(arguments):
    """A parameter out of range or of the wrong type is refused, never replaced."""
    with pytest.raises(InvalidArgument, match=r"want an integer from|dtype is .*want one of"):
        Index(**arguments)


def test_unknown_keywords():
    """An unknown keyword is a TypeError on every method that could loosen something."""
    index = three()
    with pytest.raises(TypeError):
        Index(3, m=32)
    with pytest.raises(TypeError):
        index.search(EYE, 1, Policy(Mask()), filter=None)
    with pytest.raises(TypeError):
        index.add(EYE, [OPEN] * 3, quarantine=True)
    with pytest.raises(TypeError):
        index.search(EYE, 1)
    with pytest.raises(TypeError):
        index.count()


BAD_ROWS = {
    "wrong dimension": (np.ones((2, 4)), [OPEN] * 2, None, "shape"),
    "one vector, no batch": (np.ones(3), [OPEN], None, "shape"),
    "NaN": (np.array([[1, 2, 3], [1, np.nan, 3]]), [OPEN] * 2, None, "vector 1 holds NaN"),
    "infinity": (np.array([[np.inf, 2, 3]]), [OPEN], None, "vector 0 holds NaN"),
    "too large for float32": (np.array([[1e300, 2, 3]]), [OPEN], None, "vector 0 holds NaN"),
    "zero vector": (np.array([[1, 0, 0], [0, 0, 0]]), [OPEN] * 2, None, "vector 1 is zero"),
    "too small for float32": (np.array([[1e-300, 0, 0]]), [OPEN], None, "vector 0 is zero"),
    "complex": (np.ones((1, 3)) * 1j, [OPEN], None, "real numbers"),
    "text": ([["a", "b", "c"]], [OPEN], None, "real numbers"),
    "ragged": ([[1, 2, 3], [1, 2]], [OPEN] * 2, None, "equal length"),
    "duplicate key in batch": (EYE, [OPEN] * 3, [1, 2, 1], "key 1 .position 2. is a duplicate"),
    "duplicate key in index": (EYE, [OPEN] * 3, [1, 20, 2], "key 20 .position 1. is a duplicate"),
    "duplicate key among words of several classes": (
        EYE,
        [OPEN, policy_word(1), OPEN],  # rows are stored in the order of their classes
        [1, 2, 1],
        "key 1 .position 2. is a duplicate",
    ),
    "negative key": (EYE, [OPEN] * 3, [1, -5, 2], "key 1 is -5, negative"),
    "key too large": (EYE, [OPEN] * 3, np.array([1, 2, 2**63], dtype=np.uint64), "keys range"),
    "fractional key": (EYE, [OPEN] * 3, [1.0, 2.0, 3.0], "want integers"),
    "too few keys": (EYE, [OPEN] * 3, [1, 2], "keys have shape"),
    "too few words": (EYE, [OPEN] * 2, None, "words have shape"),
    "word with tombstone": (EYE, [OPEN, OPEN | TOMBSTONE, OPEN], None, "word 1, .*control bits set"),
    "word with quarantine": (EYE, [OPEN, OPEN, OPEN | QUARANTINE], None, "word 2, .*control bits"),
    "word of version 2": (EYE, [2 << 27, OPEN, OPEN], None, "word 0, .*control bits"),
    "word of version 3": (EYE, [OPEN | 2 << 27, OPEN, OPEN], None, "word 0, .*control bits"),
    "negative word": (EYE, [-1, OPEN, OPEN], None, "words range"),
    "word too large": (EYE, [2**32, OPEN, OPEN], None, "words range"),
    "fractional word": (EYE, [1.5, 2.0, 3.0], None, "want integers"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_change_nothing(case):
    """A batch with a bad row is refused whole with the reason, and the index is unchanged."""
    vectors, words, keys, message = BAD_ROWS[case]
    index = three()
    with pytest.raises(InvalidArgument, match=message):
        index.add(vectors, words, keys)
    assert [10, 20, 30] == index.keys().tolist()
    assert () == index.check()
    assert not any(key in index for key in (0, 1, 2))


@pytest.mark.parametrize("term", ["public_at", "expires_at", "entities", "audiences"])
@pytest.mark.parametrize("value", [-1, 2**32, 1.5, [0, 1], [[0, 1, 2]], "now"])
def test_bad_terms(term, value):
    """Times, entities and audiences are 32 bits, one for all rows or one each."""
    index = three()
    with pytest.raises(InvalidArgument, match=term):
        index.add(EYE, [OPEN] * 3, **{term: value})
    assert 3 == len(index)


BAD_SEARCHES = {
    "queries have shape": [{"queries": np.ones(shape)} for shape in ((1, 4), 4, (1, 1, 3))],
    "query 0 holds NaN": [{"queries": [[1, np.nan, 0]]}],
    "query 1 is zero": [{"queries": [[1, 0, 0], [0, 0, 0]]}],
    "real numbers": [{"queries": [["x", "y", "z"]]}],
    "policy is": [{"policy": one} for one in (None, 0, "all", (0, 0), [Mask()], {}, Mask, object())],
    "plan is": [{"plan": one} for one in ("sketch", "", "GRAPH", None, 1, b"graph", [])],
    "k is": [{"k": one} for one in (0, -1, 1.0, None, "3", True, 2**31)],
    "ef_search is": [{"ef_search": one} for one in (0, -1, 1.5, "64", True, 2**40)],
    "exact_limit": [{"exact_limit": one} for one in (-1, 2**64, 1.5, "many")],
}


@pytest.mark.parametrize("message", BAD_SEARCHES)
def test_bad_searches(message):
    """An argument that is out of range or of the wrong type is refused by name, never replaced."""
    index = three()
    for bad in BAD_SEARCHES[message]:
        with pytest.raises(InvalidArgument, match=message):
            index.search(**{"queries": EYE, "k": 1, "policy": Mask(), **bad})
        if "policy" in bad:
            for call in (index.count, lambda one: index.relabel_where(one, set=1)):
                with pytest.raises(InvalidArgument, match=message):
                    call(bad["policy"])


def test_a_conflicting_mask_never_reaches_the_index():
    """A bit required and forbidden at once is refused where the mask is made."""
    with pytest.raises(PolicyConflict):
        three().search(EYE, 1, Mask(required=1, forbidden=1))


@pytest.mark.parametrize("threads", [0, -1, 1.0, "2", True, 10**6])
def test_bad_threads(threads):
    """The number of threads is an integer from 1."""
    index = three()
    calls = [
        lambda: index.search(EYE, 1, Mask(), threads=threads),
        lambda: index.add(EYE, [OPEN] * 3, threads=threads),
        lambda: index.consolidate(threads=threads),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match="threads is"):
            call()
    assert 3 == len(index)


@pytest.mark.parametrize("bits", [-1, 1 << 27, OPEN, TOMBSTONE, 1.0, None, True])
def test_bad_bits_to_change(bits):
    """relabel_where changes policy bits and no other, and none of them both ways."""
    index = three()
    for name in ("set", "clear"):
        with pytest.raises(InvalidArgument, match=f"{name} is"):
            index.relabel_where(Mask(), **{name: bits})
    with pytest.raises(InvalidArgument, match="no bit may be in both"):
        index.relabel_where(Mask(), set=3, clear=2)
    assert [OPEN] * 3 == index.words([10, 20, 30]).tolist()


@pytest.mark.parametrize(
    "as_of",
    [datetime(2024, 1, 1), -1, NEVER, 1.5, "2024-01-01", True, date(1960, 1, 1)],  # noqa: DTZ001
)
def test_bad_as_of(as_of):
    """A naive datetime, text, a fraction or an instant outside 32 bits is refused."""
    index = three()
    with pytest.raises(InvalidArgument, match="as_of"):
        index.search(EYE, 1, Mask(), as_of=as_of)
    with pytest.raises(InvalidArgument, match="as_of"):
        index.count(Mask(), as_of=as_of)


def test_rows_open_at_their_minute():
    """A row is open from its release minute on; never means never; by default only what was always public."""
    noon = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)
    index = Index(3, M=4)
    index.add(EYE, [OPEN] * 3, public_at=[0, as_of_minutes(noon), NEVER])
    minute = timedelta(minutes=1)
    assert 1 == index.count(Mask())
    assert 1 == index.count(Mask(), as_of=noon - minute)
    assert 2 == index.count(Mask(), as_of=noon)
    assert 2 == index.count(Mask(), as_of=NEVER - 1)
    assert [0, 1, -1] == index.search(EYE[0], 3, Mask(), as_of=date(2024, 3, 1)).keys[0].tolist()
    assert [0, -1, -1] == index.search(EYE[0], 3, Mask(), as_of=date(2024, 2, 29)).keys[0].tolist()
    assert [0, as_of_minutes(noon), NEVER] == index.public_at([0, 1, 2]).tolist()


def test_a_date_is_the_end_of_its_day_in_new_york():
    """A row released at 23:30 Eastern is open as of that date, and at 00:30 of the next it is not."""
    index = Index(3, M=4)
    late = as_of_minutes(datetime(2024, 7, 2, 3, 30, tzinfo=UTC))  # 23:30 on July 1st, New York
    index.add(EYE[:2], [OPEN] * 2, public_at=[late, late + 60])
    assert 1 == index.count(Mask(), as_of=date(2024, 7, 1))
    assert 2 == index.count(Mask(), as_of=date(2024, 7, 2))


def test_the_control_bits_close_rows():
    """Unlabelled, quarantined and deleted rows are stored and stay closed, whatever the policy."""
    index = Index(3, M=4)
    words = [policy_word(1), 1, policy_word(1) | QUARANTINE]
    with pytest.warns(UnlabelledWarning, match="1 of 3 words"):
        index.add(EYE, words, allow_quarantine=True)
    assert words == index.words([0, 1, 2]).tolist()
    assert 1 == index.count(Mask()) == index.count(Mask(required=1))
    index.delete([0])
    assert 0 == index.count(Policy(Mask(), Mask(required=1), Mask(forbidden=2)))
    assert 2 == len(index)


def test_every_mask_of_a_small_world():
    """All words, required and forbidden vectors over three bits: the index admits what the mask admits."""
    index = Index(2, M=4)
    words = [policy_word(bits) for bits in range(8)]
    index.add(np.random.default_rng(0).standard_normal((8, 2)), words)
    for required, forbidden in product(range(8), repeat=2):
        if required & forbidden:
            continue
        mask = Mask(required, forbidden)
        admitted = {bits for bits in range(8) if bits & required == required and not bits & forbidden}
        for plan in Plan:
            found = index.search([1.0, 1.0], 8, mask, plan=plan)
            assert admitted == set(found.keys[0][: found.counts[0]].tolist())
        assert len(admitted) == index.count(mask)


def test_default_keys_are_the_next_free_row_numbers():
    """Rows without keys take their row number, passing over those in use."""
    index = Index(3, M=4)
    assert [0, 1, 2] == index.add(EYE, [OPEN] * 3).tolist()
    assert [4] == index.add(EYE[:1], [OPEN], [4]).tolist()
    assert [5, 6, 7] == index.add(EYE, [OPEN] * 3).tolist()
    assert [2**63 - 1] == index.add(EYE[:1], [OPEN], [2**63 - 1]).tolist()


def test_keys_come_ascending():
    """keys() lists the live rows by key, whatever the order they were added in."""
    index = Index(3, M=4)
    index.add(EYE, [policy_word(bits) for bits in (1, 2, 1)], [30, 10, 20])
    index.add(EYE[:2], [OPEN] * 2, [15, 5])
    index.delete([20])
    assert [5, 10, 15, 30] == index.keys().tolist()


def test_a_deleted_key_is_free():
    """A key can be used again after delete(); the old row never comes back."""
    index = three()
    index.delete([20])
    assert 20 not in index
    index.add([[0, 0, 1]], [OPEN], [20])
    found = index.search(EYE[1], 4, Mask(), plan="exact")
    assert [10, 20, 30] == sorted(found.keys[0][:3].tolist())
    assert 0.0 == found.similarities[0][0]
    assert () == index.check()


@pytest.mark.parametrize(
    ("keys", "message"),
    [([10, 99], "key 99"), ([10, 10], "named twice"), ([-1], "not in the index"), ([1.5], "integers")],
)
def test_unknown_keys(keys, message):
    """Relabel, delete and lookups of a key that is not there change nothing."""
    index = three()
    with pytest.raises(InvalidArgument, match=message):
        index.relabel(keys, [policy_word(1)] * len(keys))
    with pytest.raises(InvalidArgument, match=message):
        index.delete(keys)
    with pytest.raises(InvalidArgument, match=message):
        index.similarities(EYE[0], keys)
    if message != "named twice":
        with pytest.raises(InvalidArgument, match=message):
            index.words(keys)
    assert [OPEN] * 3 == index.words([10, 20, 30]).tolist()
    assert 3 == len(index)


def test_relabel_refuses_control_bits():
    """A word with control bits set is refused on relabel too, and no row of the batch changes."""
    index = three()
    for word in (OPEN | TOMBSTONE, OPEN | QUARANTINE, 5 << 27):
        with pytest.raises(InvalidArgument, match="control bits"):
            index.relabel([10, 20], [policy_word(1), word])
    assert [OPEN] * 3 == index.words([10, 20, 30]).tolist()
    index.relabel([10, 20], [policy_word(1), OPEN | QUARANTINE], allow_quarantine=True)
    assert 2 == index.count(Mask())


def test_a_single_query_is_a_batch_of_one():
    """A vector of shape (dim,) is searched like one of shape (1, dim)."""
    index = three()
    one, batch = (index.search(q, 2, Mask()) for q in (EYE[0], EYE[:1]))
    assert (1, 2) == one.keys.shape == one.similarities.shape
    assert batch.keys.tolist() == one.keys.tolist()


def test_no_queries_no_rows_no_error():
    """Zero queries give arrays of zero rows; an empty index gives empty answers; adding nothing is fine."""
    index = three()
    assert (0, 2) == index.search(np.empty((0, 3)), 2, Mask()).keys.shape
    assert (0,) == index.add(np.empty((0, 3)), []).shape
    empty = Index(3)
    found = empty.search(EYE, 2, Mask())
    assert [0, 0, 0] == found.counts.tolist()
    assert (-1, -np.inf) == (found.keys.max(), found.similarities.max())


def test_result_types():
    """Results have the documented dtypes; stats say what ran and why."""
    found = three().search(EYE, 5, Policy(Mask()), plan="exact")
    assert (np.int64, np.float32, np.int64) == (
        found.keys.dtype,
        found.similarities.dtype,
        found.counts.dtype,
    )
    stats = found.stats
    assert (3, 3, 1, kernels.active()) == (stats.admissible, stats.rows, stats.classes, stats.kernel)
    assert ((Plan.EXACT,) * 3, (Why.ASKED,) * 3) == (stats.plans, stats.whys)
    assert [3, 3, 3] == stats.distance_computations.tolist()
    assert [False] * 3 == stats.fallbacks.tolist()
    assert [0] * 3 == stats.hops.tolist() == stats.ef.tolist() == stats.estimates.tolist()
    assert {} == stats.nanoseconds
    assert "3 of 3 rows admissible" in stats.explain(2)
    with pytest.raises(IndexError):
        stats.explain(3)


def test_statistics_outlive_the_answer():
    """What a search reports can be read after its arrays, and the index, are gone."""
    index = three()
    stats = index.search(EYE, 5, Mask()).stats
    index.close()
    del index
    assert (3, (Why.CHEAPEST,) * 3) == (stats.admissible, stats.whys)


def test_nothing_admissible_says_so():
    """An empty policy is answered at once, and the reason is given."""
    for plan in Plan:
        stats = three().search(EYE[0], 2, Policy(), plan=plan).stats
        assert ((Why.NOTHING,), [0]) == (stats.whys, stats.distance_computations.tolist())


def test_array_layouts_do_not_matter():
    """Fortran order, strides, float64, integers and lists give the same rows as contiguous float32."""
    rng = np.random.default_rng(1)
    vectors = rng.integers(-3, 4, (40, 6)) + 0.5
    words = np.full(40, OPEN)
    plain = Index(6, M=4)
    plain.add(vectors.astype(np.float32), words)
    wide = np.repeat(vectors, 2, axis=1)[:, ::2]
    for layout in (np.asfortranarray(vectors), vectors.tolist(), wide, vectors[::-1][::-1]):
        index = Index(6, M=4)
        index.add(layout, words.tolist())
        assert plain.vectors(plain.keys()).tobytes() == index.vectors(index.keys()).tobytes()


def test_stored_vectors_are_unit_vectors():
    """Rows are normalised on entry, whatever their length."""
    index = Index(4, M=4)
    index.add(np.array([[1e-20, 0, 0, 1e-20], [3e30, 4e30, 0, 0]]), [OPEN] * 2)
    lengths = np.linalg.norm(index.vectors([0, 1]).astype(np.float64), axis=1)
    assert np.allclose(1.0, lengths, atol=1e-7)


def test_closed_means_closed():
    """After close() every method raises and none crashes; closing twice is fine."""
    with three() as index:
        pass
    index.close()
    calls = [
        lambda: index.search(EYE, 1, Mask()),
        lambda: index.count(Mask()),
        lambda: index.add(EYE, [OPEN] * 3),
        lambda: index.relabel([10], [OPEN]),
        lambda: index.relabel_where(Mask(), set=1),
        lambda: index.delete([10]),
        lambda: index.consolidate(),
        lambda: index.save("nowhere"),
        lambda: index.verify(),
        lambda: index.words([10]),
        lambda: index.entities([10]),
        lambda: index.audiences([10]),
        lambda: index.keys(),
        lambda: len(index),
        lambda: 10 in index,
        lambda: index.check(),
        lambda: index.classes,
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match="closed"):
            call()
    assert "closed" in repr(index)


def test_membership_takes_anything():
    """`in` answers False for a value that cannot be a key."""
    index = three()
    assert 10 in index
    assert np.int64(10) in index
    assert not any(key in index for key in (11, -1, 2**70, 10.0, "10", None, True))
