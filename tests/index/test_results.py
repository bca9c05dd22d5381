"""Results are read per query, take the room that rows need, and rows that nobody will find are told of."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, UnlabelledWarning
from carag.index import Hits, Index
from carag.policy import QUARANTINE, Mask, Policy, PolicyBit, policy_word

AXES = np.eye(4, dtype=np.float32)


def filled(rows: int = 4) -> Index:
    index = Index(4, M=2)
    index.add(AXES[:rows], policy_word(np.array([1, 1, 2, 1])[:rows]))
    return index


@given(st.integers(0, 4), st.integers(1, 9), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_a_result_is_its_queries_each_its_rows_without_padding(rows: int, k: int, queries: list[int]) -> None:
    """As many as were counted, the nearest first, in the shape that arrays of several queries need."""
    result = filled(rows).search(AXES[queries], k, Mask(required="J_US"))
    assert result.keys.shape == result.similarities.shape == (len(queries), k)
    assert len(result) == len(queries) == len(list(result))
    for hits, keys, count in zip(result, result.keys, result.counts, strict=True):
        assert len(hits) == count == min(k, sum(row != 2 for row in range(rows)))
        assert [key for key, _ in hits] == keys[:count].tolist()
        assert [similarity for _, similarity in hits] == sorted(hits.similarities.tolist(), reverse=True)


def test_what_is_printed_is_short() -> None:
    """However many rows were found, and none of what the core keeps."""
    index = Index(4, M=2)
    index.add(np.tile(AXES, (100, 1)), np.full(400, policy_word(PolicyBit.J_US)))
    result = index.search(AXES[:1], 300, Mask())
    assert repr(result) == "<SearchResult of 1 queries: 300 rows, 400 of 400 admissible>"
    assert [repr(hits) for hits in result] == ["<Hits 0: 1.000, 4: 1.000, 8: 1.000, ...>"]
    assert repr(next(iter(index.search(AXES[:1], 3, Policy())))) == "<Hits none>"
    assert repr(Hits(np.array([7]), np.array([0.5], np.float32))) == "<Hits 7: 0.500>"


@pytest.mark.parametrize("k", [2**20 + 1, 10**9, 2**31 - 1])
def test_more_rows_than_there_can_be_are_refused_before_room_is_made_for_them(k: int) -> None:
    """An error that says how many there are, and no memory for what cannot come."""
    index = filled()
    tracemalloc.start()
    with pytest.raises(InvalidArgument, match=r"want at most 1,048,576, or the 4 rows there are"):
        index.search(AXES, k, Mask())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
    assert index.search(AXES[0], 2**20, Mask()).counts.tolist() == [4]


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        ([1, 1, 1], 3),
        ([0, policy_word(1), 0], 2),
        ([policy_word(1), QUARANTINE | 1, policy_word(1)], 1),
        ([PolicyBit.J_US, policy_word("J_US"), policy_word("J_US")], 1),
    ],
)
def test_words_that_no_policy_admits_are_stored_with_a_warning(words: list[int], closed: int) -> None:
    """Bits taken for words close their rows without an error; whoever stores them hears of it, here and at once."""
    index = Index(4, M=2)
    with pytest.warns(UnlabelledWarning, match=f"{closed} of 3 words .* carag.policy_word") as told:
        keys = index.add(AXES[:3], words, allow_quarantine=True)
    assert [one.filename for one in told] == [__file__]
    assert index.count(Mask()) == 3 - closed
    with pytest.warns(UnlabelledWarning, match=f"{closed} of 3 words"):
        index.relabel(keys, words, allow_quarantine=True)


def test_words_that_are_refused_or_right_are_not_warned_of() -> None:
    """One voice: an error needs no warning beside it, and a quarantined word is closed on purpose."""
    index = Index(4, M=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidArgument):
            index.add(AXES[:2], [1, 2 << 27])
        index.add(AXES[:2], [policy_word(0), policy_word(1) | QUARANTINE], allow_quarantine=True)
        index.add(AXES[:0], [])
