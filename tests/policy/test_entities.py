"""A list of entities in the cache is refused or accepted exactly as one that is read number by number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy import MAX_LISTED, Mask, Policy
from carag.policy.entities import entity_list, entity_set


class Number(int):
    """An integer that claims to equal every other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


few = st.integers(-1, 3)
elements = st.one_of(
    few,
    few,
    few.map(float),
    few.map(np.int64),
    few.map(lambda number: np.uint8(number % 3)),
    few.map(Number),
    few.map(str),
    st.booleans(),
    st.booleans().map(np.bool_),
    st.sampled_from(
        [MAX_LISTED, MAX_LISTED + 1, 2**63, 2**64, -(2**70), None, b"\1\0\0\0\0\0\0\0", (1,), 1j]
    ),
)
lists = st.lists(elements, max_size=6)
containers = st.sampled_from([list, tuple, frozenset, set, iter, lambda them: dict.fromkeys(them)])


def said(read, numbers):
    """Return the numbers read, or the error."""
    try:
        return sorted(read("listed", numbers))
    except InvalidArgument as error:
        return str(error)


@given(st.lists(lists, min_size=1, max_size=4), containers)
def test_a_list_is_read_as_its_numbers_are_one_by_one(several, container):
    """Whatever lists came before it, even those that claim to be equal or have other types."""
    for numbers in [*several, *several]:
        wanted = said(entity_set, container(numbers))
        found = said(lambda name, given: entity_list(name, given).numbers, container(numbers))
        assert wanted == found
        if not isinstance(found, str):
            listed = entity_list("listed", container(numbers))
            assert {int} >= set(map(type, listed.numbers))
            assert list(listed.numbers) == np.frombuffer(listed.packed, np.uint64).tolist()


@pytest.mark.parametrize(
    "impostor", [True, np.True_, 1.0, "1", None, 1j, b"\1\0\0\0\0\0\0\0", [1], -1, MAX_LISTED + 1]
)
@pytest.mark.parametrize("container", [list, tuple])
def test_a_list_that_was_right_may_be_wrong_when_it_comes_again(impostor, container):
    """The same object with another number in it, and a list that Python considers equal to the valid one."""
    numbers = [1, *range(2, 1_000)]
    policy = Policy(Mask(), deny_entities=container(numbers))
    assert policy == Policy(Mask(), deny_entities=container(numbers))
    numbers[0] = impostor
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r"deny_entities holds .*want integers"):
            Policy(Mask(), deny_entities=container(numbers))
    numbers[0] = 1
    assert policy == Policy(Mask(), deny_entities=container(numbers))


def test_a_list_that_changes_is_another_list():
    """The cache keys on content, not on the object."""
    numbers = [3, 1, 2]
    before = Policy(Mask(), deny_entities=numbers)
    numbers.append(4)
    after = Policy(Mask(), deny_entities=numbers)
    assert ((1, 2, 3), (1, 2, 3, 4)) == (before.deny_entities, after.deny_entities)
    assert before != after


def test_numbers_of_numpy_are_not_taken_for_the_bytes_that_they_are_like():
    """In any order; bytes are not numbers."""
    for _ in range(2):
        assert (1, MAX_LISTED) == entity_list("listed", [np.int64(1), np.int64(MAX_LISTED)]).numbers
        with pytest.raises(InvalidArgument, match="want integers"):
            entity_list("listed", [np.int64(1).tobytes()])


@given(
    st.sampled_from(["int64", "uint64", "int32", "uint8", ">i8", "bool", "float64"]),
    st.lists(st.integers(-2, 200), max_size=8),
    st.sampled_from([1, 2, -1]),
)
def test_an_array_is_read_as_its_numbers_are_one_by_one(dtype, numbers, step):
    """For every type and stride, and on repetition; a negative number or a non-integer is refused."""
    array = np.array(numbers).astype(dtype)[::step]
    for _ in range(2):
        wanted = said(entity_set, array.tolist())
        found = said(lambda name, given: entity_list(name, given).numbers, array)
        assert wanted == found or (isinstance(wanted, str) and isinstance(found, str))


def test_an_array_that_changes_is_another_list():
    """So are the same bytes with another type; an error names the argument."""
    array = np.array([1, 2], np.int64)
    assert (1, 2) == entity_list("listed", array).numbers
    array[0] = 3
    assert (2, 3) == entity_list("listed", array).numbers
    assert (0, 2, 3) == entity_list("listed", array.view(np.int32)).numbers
    array[0] = -1
    for name in ("listed", "others"):
        with pytest.raises(InvalidArgument, match=f"{name} holds -1"):
            entity_list(name, array)


def test_long_lists_are_read_as_short_ones_are():
    """Also lists too long for the cache."""
    numbers = list(range(30_000, 0, -1))
    for _ in range(2):
        assert tuple(range(1, 30_001)) == entity_list("listed", numbers).numbers
    with pytest.raises(InvalidArgument, match="listed holds True"):
        entity_list("listed", [True, *numbers])
