"""Results are read per query and take only the memory they need; storing rows that no policy admits warns."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, UnlabelledWarning
from carag.index import Index, SearchResult
from carag.policy import QUARANTINE, Mask, Policy, PolicyBit, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Made = TypeVar("_Made")

AXES = np.eye(4, dtype=np.float32)


def filled(rows: int = 4) -> Index:
    index = Index(4, M=2)
    index.add(AXES[:rows], policy_word(np.array([1, 1, 2, 1])[:rows]))
    return index


@given(st.integers(0, 4), st.integers(1, 9), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_a_result_is_its_queries_each_its_rows_without_padding(rows: int, k: int, queries: list[int]) -> None:
    """As many rows as counted, the nearest first; the arrays are padded."""
    result = filled(rows).search(AXES[queries], k, Mask(required="J_US"))
    assert result.keys.shape == result.similarities.shape == (len(queries), k)
    assert len(result) == len(queries) == len(list(result))
    for hits, keys, count in zip(result, result.keys, result.counts, strict=True):
        assert len(hits) == count == min(k, sum(row != 2 for row in range(rows)))
        assert [key for key, _ in hits] == keys[:count].tolist()
        assert [similarity for _, similarity in hits] == sorted(hits.similarities.tolist(), reverse=True)


@pytest.mark.parametrize("k", [2**20 + 1, 10**9, 2**31 - 1])
def test_more_rows_than_there_can_be_are_refused_before_room_is_made_for_them(k: int) -> None:
    """The error states how many rows there are, and no memory is taken."""
    index = filled()
    tracemalloc.start()
    with pytest.raises(InvalidArgument, match=r"want at most 1,048,576, or the 4 rows of the index"):
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
    """Bits used as words close their rows without an error, so the call that stores them warns."""
    index = Index(4, M=2)
    with pytest.warns(UnlabelledWarning, match=f"{closed} of 3 words .* carag.policy_word") as told:
        keys = index.add(AXES[:3], words, allow_quarantine=True)
    assert [one.filename for one in told] == [__file__]
    assert index.count(Mask()) == 3 - closed
    with pytest.warns(UnlabelledWarning, match=f"{closed} of 3 words"):
        index.relabel(keys, words, allow_quarantine=True)


def test_words_that_are_refused_or_right_are_not_warned_of() -> None:
    """An error needs no warning as well, and a quarantined word is closed on purpose."""
    index = Index(4, M=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidArgument):
            index.add(AXES[:2], [1, 2 << 27])
        index.add(AXES[:2], [policy_word(0), policy_word(1) | QUARANTINE], allow_quarantine=True)
        index.add(AXES[:0], [])


def parts(result: SearchResult) -> tuple[bytes, ...]:
    """Read everything that a result holds."""
    stats = result.stats
    arrays = (
        result.keys,
        result.similarities,
        result.counts,
        stats.distance_computations,
        stats.hops,
        stats.ef,
    )
    return *(array.tobytes() for array in arrays), repr((stats.plans, stats.whys, stats.admissible)).encode()


@given(st.lists(st.tuples(st.integers(1, 66), st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_a_result_stays_what_it_was_whatever_is_searched_after_it(asked: list[tuple[int, int, int]]) -> None:
    """Whether read at once or after other searches for as many, more or fewer rows."""
    index = filled()
    policies = Mask("J_US"), Mask("J_EU"), Mask(), Policy()
    searched = [
        lambda k=k, at=at, policy=policy: index.search(AXES[at], k, policies[policy])
        for k, at, policy in asked
    ]
    at_once = [parts(search()) for search in searched]
    later = [search() for search in searched]
    assert at_once == [parts(result) for result in later]


@pytest.mark.parametrize("k", [1, 64, 65])
def test_threads_do_not_share_results(k: int) -> None:
    """Whatever the number of threads, a result never holds a row of another thread's search."""
    index = filled()
    masks = Mask("J_US"), Mask("J_EU"), Mask(), Mask(forbidden="J_US")
    alone = [parts(index.search(AXES[2], k, mask)) for mask in masks]

    def same(at: int) -> bool:
        found = [index.search(AXES[2], k, masks[at % 4]) for _ in range(40)]
        return all(parts(one) == alone[at % 4] for one in found)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(same, range(64)))


def test_a_result_is_made_of_arrays_that_are_the_readers_own() -> None:
    """They are aligned, contiguous, writable and stable; the result itself is frozen."""
    result = filled().search(AXES, 3, Mask())
    for name in ("keys", "similarities", "counts"):
        array = getattr(result, name)
        assert array is getattr(result, name)
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, array)
    assert result.stats is result.stats
    with pytest.raises(AttributeError, match="nothing"):
        result.nothing  # type: ignore[attr-defined] # noqa: B018


@pytest.mark.parametrize("search", [AXES[0], AXES], ids=["one", "several"])
def test_a_result_can_be_copied_and_sent(search: NDArray[np.float32]) -> None:
    """Whether read before or not, and also one made by hand."""
    for is_read in (False, True):
        result = filled().search(search, 3, Mask())
        said = parts(result) if is_read else None
        sent = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
        assert (
            parts(sent) == parts(copy.copy(result)) == parts(copy.deepcopy(result)) == (said or parts(result))
        )
    by_hand = SearchResult(result.keys, result.similarities, result.counts, result.stats)
    assert parts(copy.copy(by_hand)) == parts(by_hand) == parts(result)


@pytest.mark.parametrize("k", [True, 1.0, "1", None, np.array([1, 2])])
def test_what_was_checked_before_is_checked_again_of_another_kind(k: object) -> None:
    """Equality with a valid number seen before is not enough."""
    index = filled()
    one = index.search(AXES[0], 1, Mask(), ef_search=1, exact_limit=1)
    right = {"k": 1, "policy": Mask(), "ef_search": 1, "exact_limit": 1}
    for name in ("k", "exact_limit", *([] if k is None else ["ef_search"])):
        with pytest.raises(InvalidArgument, match=f"{name} is"):
            index.search(AXES[0], **{**right, name: k})  # type: ignore[arg-type]
    again = index.search(AXES[0], np.int64(1), Mask(), ef_search=np.uint8(1), exact_limit=np.int32(1))
    assert parts(one) == parts(again)


def test_a_number_that_changes_is_read_at_each_search() -> None:
    """An object whose value changes is not cached."""

    class Counter:
        value = 0

        def __index__(self) -> int:
            self.value += 1
            return self.value

    index, counter = filled(), Counter()
    shapes = [index.search(AXES[0], counter, Mask()).keys.shape for _ in range(3)]  # type: ignore[arg-type]
    assert shapes == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize(
    "query",
    [
        AXES[1].astype(np.float64),
        AXES[1].astype(">f4"),
        AXES[1].astype(np.float16),
        AXES[1].astype(np.int8),
        np.repeat(AXES[1], 2)[::2],
        np.frombuffer(b"\0" + AXES[1].tobytes(), np.uint8)[1:].view(np.float32),
        AXES[1].tolist(),
        AXES[1:2],
        np.asfortranarray(AXES)[:, 1],
    ],
    ids=["double", "other order", "half", "byte", "strided", "unaligned", "list", "of one", "a column"],
)
def test_a_query_is_the_numbers_it_holds(query: Any) -> None:
    """Whatever their layout in memory."""
    assert parts(filled().search(query, 3, Mask())) == parts(filled().search(AXES[1], 3, Mask()))


def while_noting(note: Callable[[str], object], call: Callable[[], _Made]) -> _Made:
    """Return the result of a call; ``note`` runs before and after every function in it, and in no collection."""
    gc.disable()  # a finalizer of what another test left would be noted, too
    sys.setprofile(lambda frame, event, _: note(event))
    try:
        return call()
    finally:
        sys.setprofile(None)
        gc.enable()


@pytest.mark.parametrize("k", [3, 65])
def test_a_search_amid_a_search_disturbs_neither(k: int) -> None:
    """A signal handler may search at any step of another search."""
    index = filled()
    alone, other = (parts(index.search(AXES[at], k, Mask())) for at in (2, 0))
    within: list[SearchResult] = []
    found = while_noting(
        lambda _: within.append(index.search(AXES[0], k, Mask())), lambda: index.search(AXES[2], k, Mask())
    )
    assert parts(found) == alone
    assert {parts(one) for one in within} == {other}
    assert len(within) > 10


def test_a_call_takes_few_steps() -> None:
    """The Python functions that run are counted, not timed; most callers make a policy for each call."""
    index, kept = (
        filled(),
        Policy(Mask(required=0x5A5A)),
    )  # no other test's, which would be compared in the cache
    most: dict[int, Callable[[], object]] = {
        14: lambda: Policy(Mask(required=8)),
        11: lambda: index.search(AXES[0], 3, kept),
        8: lambda: index.count(kept),
    }
    for steps, call in most.items():
        call()
        events: list[str] = []
        while_noting(events.append, call)
        assert events.count("call") - 1 <= steps, events  # but for the lambda
