"""Load any number of rows into a backend at one epoch, and copy a collection from one backend to another.

A stream of rows is written block by block. The next block is requested when the one before is confirmed, so the stream
adapts to the backend's speed, and memory holds one block. No row is visible before all are written, verified and
published. A run that was killed leaves nothing visible, and the same call continues after the confirmed rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.backends.loads import loading
from carag.backends.protocol import Rows
from carag.backends.root import BLOCK, StateRoot, ascending, blocks_of, records_of, rows_at
from carag.errors import BackendFault, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from carag.backends.protocol import IndexState, LoadingBackend, VectorBackend


_SAMPLE: Final = 8
"""How many rows of a block are read back at once."""


class Moved(Protocol):
    """Receives the progress of a stage, ``"written"`` or ``"verified"``: rows done, and rows in total, 0 if unknown."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """Receive one report."""


class Copied(NamedTuple):
    """The result of a copy."""

    rows: int
    root: str
    """The state root of both collections, in hexadecimal."""
    state: IndexState
    """Of the target."""


def load_rows(
    backend: VectorBackend, blocks: Iterable[Rows], *, batch: str, progress: Moved | None = None
) -> IndexState:
    """Add the rows of a stream, of any length, all at one epoch.

    Rows that an earlier call with this name wrote are skipped, and some rows of each block are compared, so the stream
    must be the same.

    Parameters
    ----------
    backend : VectorBackend
        A backend that takes loads, as all in this package do (:class:`~carag.backends.LoadingBackend`).
    blocks : iterable of Rows
        Made by :func:`carag.backends.rows_of`, without duplicate keys.
    batch : str
        Names the whole load. After publication the same name changes nothing, and no block is requested.
    progress : Moved, optional

    Raises
    ------
    InvalidArgument
        If the backend takes no loads or another load is open, a key is in use, or the stream is empty or is not the one
        that was begun.
    BackendFault
        If rows read back differ from those written; no row is visible.
    BackendUnavailable
        If it does not answer; repeat with the same name.

    Examples
    --------
    >>> import numpy as np
    >>> from carag.backends import NativeBackend, rows_of
    >>> backend = NativeBackend(2)
    >>> blocks = (rows_of(np.eye(2), [1 << 27] * 2, [n, n + 1]) for n in range(0, 1000, 2))
    >>> load_rows(backend, blocks, batch="first").shards[0].rows
    1000
    """
    target = loading(backend)
    position = target.loaded(batch)
    if position is not None:
        end = _written(target, blocks, batch, position, progress)
        _check_count(target, batch, end)
    return target.publish(batch)


def _written(
    target: LoadingBackend, blocks: Iterable[Rows], batch: str, position: int, progress: Moved | None
) -> int:
    """Write what remains; return the number of rows in the stream."""
    end = 0
    for block in blocks:
        begin, end = end, end + len(block.keys)
        if begin < position < end:  # the block size has changed: this block is partly written
            _check_sample(target, _part(block, slice(0, position - begin)), batch)
            block, begin = _part(block, slice(position - begin, None)), position
        if begin < end:
            if position < end:
                target.load(block, batch=batch, begin=begin, end=end)
            _check_sample(target, block, batch)
        if progress is not None:
            progress("written", end, 0)
    if end < position:
        raise InvalidArgument(
            f"the stream ended after {end:,} rows, but {position:,} of it were written before; pass the same stream"
        )
    if not end:
        raise InvalidArgument("the stream has no rows; pass at least one")
    return end


def _check_sample(target: LoadingBackend, block: Rows, batch: str) -> None:
    """Read back some rows of a block, including the first and last, and compare every bit."""
    places = np.unique(np.linspace(0, len(block.keys) - 1, _SAMPLE).astype(np.int64))
    some = _part(block, places)
    read = target.get_loaded(some.keys.tolist(), batch=batch)
    if wrong := differing(some, read):
        raise BackendFault(
            f"{wrong} of {len(places)} rows read back differ from those given: rows were changed on the way, or "
            "the stream is not the one that was begun; nothing was published"
        )


def _check_count(target: LoadingBackend, batch: str, expected: int) -> None:
    counted = target.count_loaded(batch)
    if counted != expected:
        raise BackendFault(
            f"{counted:,} of {expected:,} written rows are there: a key came twice, or rows were lost; "
            "nothing was published"
        )


def copy_rows(
    source: VectorBackend,
    target: VectorBackend,
    keys: ArrayLike,
    *,
    restart: bool = False,
    progress: Moved | None = None,
) -> Copied:
    """Copy all rows of a backend into an empty backend, and make sure that both hold the same rows.

    All of the copy is read back before it is published: count, rows and state root must be the source's. A run that was
    killed continues with the same call; a call after publication compares the two.

    Parameters
    ----------
    source : VectorBackend
        The backend to copy. A change made meanwhile is not copied, or ends the copy.
    target : VectorBackend
        One that takes loads (:class:`~carag.backends.LoadingBackend`).
    keys : (n,) int64
        All rows of the source, in any order, from the label store. Their number must be that of the source.
    restart : bool
        Whether to discard what was written of another load, or from another epoch of the source.
    progress : Moved, optional

    Raises
    ------
    InvalidArgument
        If the source holds other keys, or the target takes no loads, holds other rows, or has another load open.
    BackendFault
        If a row read back differs from the source's; no row is visible.
    BackendUnavailable
        If one of them does not answer; repeat the call.

    Examples
    --------
    >>> import numpy as np
    >>> from carag.backends import NativeBackend, rows_of
    >>> source, target = NativeBackend(2), NativeBackend(2)
    >>> state = source.add(rows_of(np.eye(2), [1 << 27] * 2, [3, 8]), batch="first")
    >>> copied = copy_rows(source, target, [3, 8])
    >>> copied.rows, copied.root == copy_rows(target, NativeBackend(2), [3, 8]).root
    (2, True)
    """
    wanted, into = ascending(keys), loading(target)
    at, read = source.state(), rows_at(source, wanted)
    held = sum(shard.rows for shard in target.state().shards)
    if held or not len(wanted):
        root = same_root(read, rows_at(target, wanted), wanted, progress)
        return Copied(len(wanted), root, target.state())
    if restart:
        into.unload()
    batch = f"copy of {len(wanted)} rows of {at.collection} at epoch {at.epoch}"
    position = into.loaded(batch)
    root = ""
    if position is not None:
        for rows in blocks_of(read, wanted[position:]):
            begin, position = position, position + len(rows.keys)
            into.load(rows, batch=batch, begin=begin, end=position)
            if progress is not None:
                progress("written", position, len(wanted))
        _check_count(into, batch, len(wanted))
        root = same_root(read, lambda some: into.get_loaded(some, batch=batch), wanted, progress)
    state = into.publish(batch)
    return Copied(len(wanted), root or same_root(read, rows_at(target, wanted), wanted, progress), state)


def same_root(
    one: Callable[[Sequence[int]], Rows],
    other: Callable[[Sequence[int]], Rows],
    keys: NDArray[np.int64],
    progress: Moved | None = None,
) -> str:
    """Read rows from two places, and return their state root; raise BackendFault if any rows differ."""
    root, wrong, done = StateRoot(), 0, 0
    for rows, copies in _side_by_side(one, other, keys):
        root.add(rows)
        wrong += differing(rows, copies)
        done += len(rows.keys)
        if progress is not None:
            progress("verified", done, len(keys))
    if wrong:
        raise BackendFault(
            f"{wrong:,} of {len(keys):,} rows are missing or differ, so the state roots differ; nothing was "
            "published or switched: copy all again (restart), into another collection if these rows are published"
        )
    return root.hex()


def _side_by_side(
    one: Callable[[Sequence[int]], Rows], other: Callable[[Sequence[int]], Rows], keys: NDArray[np.int64]
) -> Iterator[tuple[Rows, Rows]]:
    done = 0
    for rows in blocks_of(one, keys):
        some = keys[done : done + BLOCK]
        done += BLOCK
        yield rows, other(some.tolist())


def differing(rows: Rows, copies: Rows) -> int:
    """Count the rows without an identical copy, or the copies without an identical row, whichever are more."""
    if rows.vectors.shape[1] != copies.vectors.shape[1]:
        return max(len(rows.keys), len(copies.keys))
    ours, theirs = (dict.fromkeys(record.tobytes() for record in records_of(one)) for one in (rows, copies))
    return max(len(ours.keys() - theirs.keys()), len(theirs.keys() - ours.keys()))


def _part(rows: Rows, places: NDArray[np.int64] | slice) -> Rows:
    return Rows._make(column[places] for column in rows)
