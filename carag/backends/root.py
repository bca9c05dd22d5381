"""Summarise a collection's rows in one hash, its *state root*, which is the same whichever backend they are read from.

The state root is SHA-256 over ``carag rows 1``, a line feed, and every row in the order of keys: the key (8 bytes),
word, ``public_at``, ``expires_at`` and entity (4 bytes each) as unsigned integers, the length of the vector (4 bytes),
and its coordinates as IEEE 754 numbers of 32 bits; all big-endian. If the row is not for everybody, the highest bit of
the length is set, and the audience (4 bytes) follows the length. Backends keep vectors bit for bit, so two backends
with the same rows have the same root, and any missing, added or changed row gives a different one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import BackendFault, InvalidArgument
from carag.policy import EVERYBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from carag.backends.protocol import Rows, VectorBackend


BLOCK: Final = 4096
"""Rows read or written at a time."""
_PREFIX: Final = b"carag rows 1\n"
_HAS_AUDIENCE: Final = 1 << 31
"""Set in the length of the vector of a row that is not for everybody."""
_AUDIENCE: Final = slice(28, 32)
"""Where the audience is in a record; a state root leaves it out if it is everybody."""


class StateRoot:
    """A state root computed as rows arrive, by ascending key.

    Examples
    --------
    >>> from carag.backends import rows_of
    >>> one, other = StateRoot(), StateRoot()
    >>> one.add(rows_of([[1, 0], [0, 1]], [1 << 27, 1 << 27], [3, 8]))
    >>> other.add(rows_of([[0, 1], [1, 0]], [1 << 27, 1 << 27], [8, 3]))
    >>> one.hex() == other.hex(), one.hex()[:16]
    (True, 'db3139d2ff01c3c2')
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256(_PREFIX)
        self._last = -1

    def add(self, rows: Rows) -> None:
        """Add rows, in any order; raise InvalidArgument unless their keys come after all keys added before."""
        if not len(rows.keys):
            return
        records = records_of(rows)
        keys = records["key"].astype(np.int64)
        if keys[0] <= self._last or not (np.diff(keys) > 0).all():
            raise InvalidArgument(
                "a key is repeated, or is less than one already hashed; want ascending keys"
            )
        self._last = int(keys[-1])
        bytes_of = records.view(np.uint8).reshape(len(records), -1)
        is_there = np.ones(bytes_of.shape, bool)
        is_there[records["audience"] == EVERYBODY, _AUDIENCE] = False
        self._hash.update(bytes_of[is_there].tobytes())

    def hex(self) -> str:
        """Return the root so far, in hexadecimal."""
        return self._hash.hexdigest()


def records_of(rows: Rows) -> NDArray[Any]:
    """Return rows as records of equal size, by ascending key; a state root hashes them without the audience 0."""
    dim = rows.vectors.shape[1]
    names = ("word", "public_at", "expires_at", "entity", "dim", "audience")
    kind = np.dtype([("key", ">u8"), *((name, ">u4") for name in names), ("vector", ">f4", (dim,))])
    order = np.argsort(rows.keys, kind="stable")
    records = np.empty(len(order), kind)
    columns: list[NDArray[Any]] = [rows.keys, rows.words, rows.public_at, rows.expires_at, rows.entities]
    for name, column in zip(("key", *names), columns, strict=False):
        records[name] = column[order]
    records["audience"], records["vector"] = rows.audiences[order], rows.vectors[order]
    records["dim"] = np.where(records["audience"] == EVERYBODY, dim, dim | _HAS_AUDIENCE)
    return records


def ascending(keys: ArrayLike) -> NDArray[np.int64]:
    """Return distinct keys in ascending order."""
    return np.unique(np.asarray(keys, np.int64))


def rows_at(backend: VectorBackend, keys: NDArray[np.int64]) -> Callable[[Sequence[int]], Rows]:
    """Return a reader of a backend's rows at its current epoch; raise InvalidArgument unless it has as many rows."""
    at = backend.state()
    held = sum(shard.rows for shard in at.shards)
    if held != len(keys):
        raise InvalidArgument(
            f"{at.collection!r} holds {held:,} rows, but {len(keys):,} keys were given; pass the keys of all its rows"
        )
    return lambda some: backend.get(some, at=at.epoch)


def blocks_of(
    read: Callable[[Sequence[int]], Rows], keys: NDArray[np.int64], *, block: int = BLOCK
) -> Iterator[Rows]:
    """Read rows block by block, by ascending key; raise BackendFault if one is missing or another is returned."""
    for start in range(0, len(keys), block):
        some = keys[start : start + block]
        rows = read(some.tolist())
        if not np.array_equal(np.sort(rows.keys), some):
            raise BackendFault(
                f"of {len(some):,} rows asked for by key the backend returned {len(rows.keys):,}"
            )
        yield rows


def state_root(backend: VectorBackend, keys: ArrayLike) -> str:
    """Return the state root of a backend, in hexadecimal.

    Parameters
    ----------
    backend : VectorBackend
    keys : (n,) int64
        All its rows, in any order, from the label store: no backend is asked for them.

    Raises
    ------
    InvalidArgument
        If it holds a different number of rows.
    BackendFault
        If it fails to return any one of them.

    Examples
    --------
    >>> from carag.backends import NativeBackend, rows_of
    >>> backend, root = NativeBackend(2), StateRoot()
    >>> rows = rows_of([[1, 0]], [1 << 27], [3])
    >>> state = backend.add(rows, batch="first")
    >>> root.add(rows)
    >>> state_root(backend, [3]) == root.hex()
    True
    """
    root, wanted = StateRoot(), ascending(keys)
    for rows in blocks_of(rows_at(backend, wanted), wanted):
        root.add(rows)
    return root.hex()
