"""Rows and their versions as columns: what is checked before a backend stores rows, and how they are packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.backends.protocol import Rows
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray


NEVER: Final = (1 << 53) - 1
"""The end of a version that holds: the greatest integer that is exact even if an engine compares doubles."""
NUMBERS: Final = ("key", "word", "public_at", "expires_at", "entity", "audience", "e0", "e1")
"""What an engine holds about a version in addition to its vector, by name."""
_TYPES: Final[tuple[np.dtype[Any], ...]] = tuple(
    np.dtype(name) for name in ("int64", "float32", *["uint32"] * 5)
)
"""The types of the columns of rows."""
_UNIT: Final = 1e-3
"""Greatest difference of a vector's length from 1."""


class Versions(NamedTuple):
    """Rows, each with the epochs ``[e0, e1)`` in which it holds."""

    rows: Rows
    e0: NDArray[np.int64]
    e1: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, epoch: int) -> Versions:
        """Return rows as versions that hold from an epoch."""
        many = len(rows.keys)
        return cls(rows, np.full(many, epoch, np.int64), np.full(many, NEVER, np.int64))

    @classmethod
    def listed(cls, items: Sequence[Sequence[object]], dim: int) -> Versions:
        """Make columns from versions: key, vector, word, public_at, expires_at, entity, audience, e0, e1."""
        rows = rows_from(items, dim)
        e0, e1 = (np.array([item[i] for item in items], np.int64) for i in (7, 8))
        return cls(rows, e0, e1)

    def numbered(self) -> list[dict[str, int]]:
        """Return the numbers of each version by name: what :func:`version_item` reads."""
        columns = (self.rows.keys, *self.rows[2:], self.e0, self.e1)
        return [
            dict(zip(NUMBERS, values, strict=True))
            for values in zip(*(column.tolist() for column in columns), strict=True)
        ]


def version_item(numbers: Mapping[str, int], vector: object) -> tuple[object, ...]:
    """Put what an engine holds about a version in the order that :meth:`Versions.listed` expects."""
    key, *others = (numbers[name] for name in NUMBERS)
    return key, vector, *others


def rows_from(items: Sequence[Sequence[object]], dim: int) -> Rows:
    """Make columns from rows: key, vector, word, public_at, expires_at, entity, audience; anything after is ignored."""
    if not items:
        return no_rows(dim)
    return Rows(
        *(np.array(column, kind) for column, kind in zip(zip(*items, strict=True), _TYPES, strict=False))
    )


def no_rows(dim: int) -> Rows:
    """Return no rows."""
    return Rows(*(np.empty((0, dim) if kind == np.float32 else 0, kind) for kind in _TYPES))


def row_keys(keys: Iterable[int]) -> list[int]:
    """Return keys as a list of integers, each 0 or more, without duplicates."""
    listed = [int(key) for key in keys]
    if any(not 0 <= key < 1 << 63 for key in listed):
        raise InvalidArgument("a key is negative or has more than 63 bits; want 0 to 2^63 - 1")
    if len(set(listed)) < len(listed):
        raise InvalidArgument(f"{len(listed) - len(set(listed)):,} keys are duplicates; give each key once")
    return listed


def row_words(words: Iterable[int]) -> list[int]:
    """Return words as a list of 32-bit integers."""
    listed = [int(word) for word in words]
    if any(not 0 <= word < 1 << 32 for word in listed):
        raise InvalidArgument("a word is negative or has more than 32 bits; want 0 to 2^32 - 1")
    return listed


def check_rows(rows: Rows, dim: int) -> None:
    """Check that rows can be stored with vectors of a length, 0 before the first.

    Examples
    --------
    >>> check_rows(no_rows(3), 2)
    Traceback (most recent call last):
        ...
    carag.errors.InvalidArgument: vectors have 3 coordinates; want 2, as the stored ones
    """
    for name, column, kind in zip(Rows._fields, rows, _TYPES, strict=True):
        if not isinstance(column, np.ndarray) or column.dtype != kind or len(column) != len(rows.keys):
            raise InvalidArgument(f"{name} must be an array of {len(rows.keys):,} {kind}, one per row")
    row_keys(rows.keys.tolist())
    if rows.vectors.ndim != 2 or not rows.vectors.shape[1]:
        raise InvalidArgument(f"vectors are {rows.vectors.shape}; want (n, dim)")
    if dim and rows.vectors.shape[1] != dim:
        raise InvalidArgument(
            f"vectors have {rows.vectors.shape[1]} coordinates; want {dim}, as the stored ones"
        )
    lengths = np.linalg.norm(rows.vectors.astype(np.float64), axis=1)
    if not bool(np.all(np.abs(lengths - 1) <= _UNIT)):  # NaN is not close to anything
        raise InvalidArgument("a vector is not of unit length, or not finite; want unit vectors")
