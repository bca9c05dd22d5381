"""Check lists of entities once: a session brings the same thousand denied entities with every question."""

from __future__ import annotations

import marshal
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.bits import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_LISTED", "NOBODY", "EntityList", "entity_list", "entity_set"]

MAX_LISTED: Final = 10**10 - 1
"""The greatest entity number that a list can hold: EDGAR's CENTRAL INDEX KEY has ten digits."""
_PLAIN: Final = frozenset((list, tuple, set, frozenset))
"""Types of lists that are known again by what they hold."""
_MAX_KNOWN: Final = 1 << 16
"""The greatest size in bytes of a list that is kept to be known again: some ten thousand entities."""
_KEPT: Final = 128
"""The greatest number of lists that are kept; of the longest that is 70 MB."""
_BY_VALUE: Final = 2
"""The version of marshal's format that writes what a list holds, and not which of it is one object."""


class EntityList(NamedTuple):
    """A list of entities, checked."""

    numbers: tuple[int, ...]
    """Ascending, none twice."""
    packed: bytes
    """The same as unsigned integers of 64 bits: to be compared, and hashed once."""

    def without(self, others: EntityList) -> EntityList:
        """Take others out.

        Examples
        --------
        >>> entity_list("listed", [3, 1, 2]).without(entity_list("others", [2])).numbers
        (1, 3)
        """
        if not others.numbers:
            return self
        return _packed(set(self.numbers).difference(others.numbers))


def _packed(numbers: Iterable[int]) -> EntityList:
    """Sort in an array, in a twentieth of the time that a thousand integers take.

    Raises
    ------
    OverflowError
        If a number is negative, or has more than 64 bits.
    """
    column = np.sort(np.frombuffer(array("Q", numbers), np.uint64))
    is_first = np.ones(column.size, dtype=bool)
    np.not_equal(column[1:], column[:-1], out=is_first[1:])
    column = column[is_first]
    return EntityList(tuple(column.tolist()), column.tobytes())


NOBODY: Final = EntityList((), b"")
"""The empty list."""


def entity_list(name: str, numbers: Iterable[int]) -> EntityList:
    """Check the numbers of a list of entities, as :func:`entity_set`; a list that came before is known again.

    Examples
    --------
    >>> entity_list("deny_entities", [7, 320193, 7]).numbers
    (7, 320193)
    """
    if type(numbers) in _PLAIN:
        if not numbers:
            return NOBODY
        try:
            written = marshal.dumps(tuple(numbers), _BY_VALUE)  # a set itself would be sorted, slowly
            return (_read if len(written) <= _MAX_KNOWN else _read.__wrapped__)(written)
        except (ValueError, OverflowError):
            pass  # not plain integers of ten digits; NumPy's are welcome, and of others an error says which
    if type(numbers) is np.ndarray and numbers.ndim == 1 and numbers.dtype.kind in "iu":
        known = _of_array if numbers.nbytes <= _MAX_KNOWN else _of_array.__wrapped__
        return known(name, numbers.dtype.str, numbers.tobytes())
    return _packed(entity_set(name, numbers))


@lru_cache(maxsize=_KEPT)
def _of_array(name: str, dtype: str, written: bytes) -> EntityList:
    """Check an array of integers of any size, which its type and bytes tell."""
    return _packed(entity_set(name, np.frombuffer(written, dtype).tolist()))


@lru_cache(maxsize=_KEPT)
def _read(written: bytes) -> EntityList:
    """Check what a list holds, which its marshalled form tells by type and value: ``True`` is not ``1`` there.

    Only lists of plain integers are read, and so only those are kept: what is marshalled otherwise, as NumPy's numbers
    are like bytes, is never taken for them.
    """
    numbers = marshal.loads(written)  # noqa: S302 - our own bytes
    if set(map(type, numbers)) != {int}:
        raise ValueError("not plain integers")
    read = _packed(numbers)
    if read.numbers[-1] > MAX_LISTED:
        raise ValueError("not of ten digits")
    return read


def entity_set(name: str, numbers: Iterable[int]) -> frozenset[int]:
    """Check the numbers of a list of entities, one by one.

    Raises
    ------
    InvalidArgument
        If it is no list, or holds anything but integers from 0 to :data:`MAX_LISTED`; booleans are none.

    Examples
    --------
    >>> sorted(entity_set("deny_entities", range(3)))
    [0, 1, 2]
    """
    if isinstance(numbers, (str, bytes)) or not hasattr(numbers, "__iter__"):
        raise InvalidArgument(
            f"{name} is {quoted(numbers)}; want integers from 0 to {MAX_LISTED}, such as CIKs"
        )
    return frozenset(_entity(name, number) for number in numbers)


def _entity(name: str, number: object) -> int:
    try:
        entity = whole_number(number)
    except TypeError:
        entity = -1
    if not 0 <= entity <= MAX_LISTED:
        raise InvalidArgument(
            f"{name} holds {quoted(number)}; want integers from 0 to {MAX_LISTED}, such as CIKs"
        )
    return entity
