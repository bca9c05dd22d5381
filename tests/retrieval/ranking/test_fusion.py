"""The best rows by the fused score are those of a plain sort over all rows, however few of them were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from carag.retrieval.ranking.fusion import SIMILARITY, WORDS, Bonuses, Nearest, best_of, bonuses

if TYPE_CHECKING:
    from numpy.typing import NDArray

COSINES = st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.3, 0.30000001192092896, 0.5, 0.75, 1.0])
"""Few values, so that scores tie."""


@st.composite
def worlds(draw: st.DrawFn) -> tuple[NDArray[np.int64], NDArray[np.float32], Bonuses]:
    """Rows under keys in any order, how similar each is, and the bonuses of some."""
    keys = np.array(draw(st.lists(st.integers(0, 999), min_size=1, max_size=30, unique=True)), np.int64)
    cosines = np.array(draw(st.lists(COSINES, min_size=keys.size, max_size=keys.size)), np.float32)
    chosen = np.array(draw(st.lists(st.booleans(), min_size=keys.size, max_size=keys.size)))
    values = draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.4, 1.0, 1.7]), min_size=keys.size, max_size=keys.size)
    )
    order = np.argsort(keys[chosen])
    return keys, cosines, Bonuses(keys[chosen][order], np.array(values)[chosen][order])


def nearest_of(keys: NDArray[np.int64], cosines: NDArray[np.float32], count: int) -> Nearest:
    order = np.lexsort((keys, -cosines))[:count]
    return Nearest(keys[order], cosines[order])


@given(worlds(), st.integers(1, 32), st.integers(0, 5))
def test_the_best_are_those_of_a_sort_over_all_rows(world, k, more):
    keys, cosines, bonus = world
    asked: list[int] = []

    def read(some: NDArray[np.int64]) -> NDArray[np.float32]:
        asked.extend(some.tolist())
        return np.array([cosines[keys == key][0] for key in some], np.float32)

    nearest = nearest_of(keys, cosines, k + more)
    found, similarities, scores = best_of(nearest, bonus, k, read, whole=nearest.keys.size == keys.size)
    plain = SIMILARITY * cosines.astype(float) + bonus.of(keys)
    order = np.lexsort((keys, -plain))[:k]
    assert found.tolist() == keys[order].tolist()
    assert scores.tolist() == plain[order].tolist()
    assert similarities.tolist() == cosines[order].tolist()
    assert len(set(asked)) == len(asked)
    assert not set(asked) & set(nearest.keys.tolist()), "what is known is not read again"


@given(
    st.dictionaries(st.integers(0, 99), st.floats(0.01, 50), max_size=20),
    st.dictionaries(st.integers(0, 99), st.floats(0, 3), max_size=20),
)
def test_a_bonus_is_the_share_of_the_best_words_and_the_tier(words, tiers):
    got = bonuses(
        np.array(list(words), np.int64),
        np.array(list(words.values()), float) / max(words.values(), default=1.0),
        Bonuses(np.array(sorted(tiers), np.int64), np.array([tiers[key] for key in sorted(tiers)], float)),
    )
    assert got.keys.tolist() == sorted({*words, *tiers})
    for key, value in zip(got.keys.tolist(), got.values.tolist(), strict=True):
        share = WORDS * (words[key] / max(words.values())) if key in words else 0.0
        assert value == share + tiers.get(key, 0.0)


def test_no_more_is_read_than_may_be_among_the_best():
    """A company's passages before all others: of ten thousand rows with words, none else is read."""
    keys = np.arange(10_000, dtype=np.int64)
    bonus = Bonuses(keys, np.where(keys < 20, 1.5, 0.3))
    nearest = Nearest(np.array([5_000, 5_001]), np.array([0.8, 0.7], np.float32))
    asked: list[int] = []

    def read(some: NDArray[np.int64]) -> NDArray[np.float32]:
        asked.extend(some.tolist())
        return np.full(some.size, 0.2, np.float32)

    best_of(nearest, bonus, 2, read, whole=False)
    assert sorted(asked) == list(range(20))


def test_rows_that_nothing_speaks_for_fill_up():
    """As many rows as are wanted, also where no row holds a term."""
    nearest = Nearest(np.array([4, 7]), np.array([0.2, -0.1], np.float32))
    nothing = Bonuses(np.empty(0, np.int64), np.empty(0))
    none = bonuses(*nothing, nothing)
    found, _, _ = best_of(nearest, none, 2, lambda asked: np.zeros(asked.size, np.float32), whole=True)
    assert found.tolist() == [4, 7]
