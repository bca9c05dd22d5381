"""Make one collection of several backends: rows by a hash of their key, every shard asked, one epoch for all.

The ``k`` nearest of a collection are among the ``k`` nearest of its shards, and its admissible rows are the sum of
theirs, because every key has one shard. So an exact answer needs all of them: a missing one is
:class:`~carag.errors.BackendUnavailable`, never a shorter list.

A batch reaches the shards separately, and no transaction spans them; even with atomic commit a reader could see one
shard before it and another after. So shards must replay their epochs, and readers ask for what was published
(:mod:`carag.backends.epochs`). A batch whose writer ended is settled by the next one: labels and deletions are
completed, added rows removed. Every name that the lost writer may still use is used up, so that a late message changes
nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from carag.backends.loads import load_is_open
from carag.backends.protocol import Capabilities, Found, GraphBackend, IndexState, Rows
from carag.backends.sharded_loads import LOAD, ShardedLoads
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.backends.epochs import Epochs, Published, Turn, WriteIntent
    from carag.backends.protocol import Admitted, VectorBackend

__all__ = ["ShardedBackend", "shard_of"]

_CALLERS: Final = 4
"""Searches at the same time; each has one thread per shard."""
_WEAKEST_FIRST: Final = (Plan.GRAPH, Plan.SCAN, Plan.EXACT, Plan.CERTIFIED)

_Made = TypeVar("_Made")


def shard_of(keys: Sequence[int] | NDArray[np.int64], shards: int) -> NDArray[np.int64]:
    """Return the shard of each key: its splitmix64 modulo the number of shards.

    Examples
    --------
    >>> shard_of(range(8), 3).tolist()
    [1, 2, 1, 0, 1, 2, 2, 0]
    """
    mixed = np.asarray(keys, np.int64).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(shards)).astype(np.int64)


class ShardedBackend(ShardedLoads):
    """Several backends as one.

    Parameters
    ----------
    shards : sequence of VectorBackend
        The first use fixes which ones, and their order.
    epochs : Epochs
        Stores the common epoch.

    Raises
    ------
    InvalidArgument
        If ``shards`` is empty, one cannot replay its epochs, or they differ from those bound in ``epochs``.
    BackendFault
        If a shard is behind its published epoch, as after a restore from an older copy.
    """

    def __init__(self, shards: Sequence[VectorBackend], epochs: Epochs) -> None:
        if not shards:
            raise InvalidArgument("there are no shards; pass at least one")
        if not all(shard.capabilities.replay_by_epoch for shard in shards):
            raise InvalidArgument(
                "a shard cannot answer at an earlier epoch, so a change could be partly visible; use others"
            )
        self._shards, self._epochs = tuple(shards), epochs
        self._threads = ThreadPoolExecutor(_CALLERS * len(shards), thread_name_prefix="carag-shard")
        published = epochs.bind(tuple(self._all(lambda shard, _: shard.state())))
        # Asked again: another process may have published since.
        states = self._all(lambda shard, _: shard.state())
        for number, (now, then) in enumerate(zip(states, published.parts, strict=True)):
            if now.epoch < then.epoch:
                raise BackendFault(
                    f"shard {number} is at epoch {now.epoch}, but {then.epoch} was published; restore it from its "
                    "newest copy"
                )

    def __repr__(self) -> str:
        return f"<ShardedBackend of {len(self._shards)}>"

    @property
    def capabilities(self) -> Capabilities:
        """What all shards promise."""
        own = [shard.capabilities for shard in self._shards]
        recalls = [one.recall for one in own if one.recall is not None]
        return Capabilities(
            plans=frozenset.intersection(*(one.plans for one in own)),
            exact_count=all(one.exact_count for one in own),
            read_your_writes=all(one.read_your_writes for one in own),
            atomic_batches=True,
            replay_by_epoch=True,
            recall=min(recalls) if len(recalls) == len(own) else None,
            most_words=min(one.most_words for one in own),
            server_side_policy=all(one.server_side_policy for one in own),
        )

    def build_graph(self, *, memory_mb: int | None = None) -> None:
        """Have all shards build their graphs (:class:`~carag.backends.GraphBackend`); InvalidArgument if one cannot."""
        able = [shard for shard in self._shards if isinstance(shard, GraphBackend)]
        if len(able) < len(self._shards):
            raise InvalidArgument("a shard cannot build a graph; those of PostgreSQL can")
        self._all(lambda _, number: able[number].build_graph(memory_mb=memory_mb))

    def close(self) -> None:
        """Close the shards and the epochs."""
        self._threads.shutdown()
        for shard in self._shards:
            shard.close()
        self._epochs.close()

    # ------------------------------------------------------------ change

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        keys = np.asarray(rows.keys)

        def write(shard: VectorBackend, places: NDArray[np.int64], name: str) -> IndexState:
            return shard.add(Rows._make(column[places] for column in rows), batch=name)

        return self._change("add", batch, keys, (), write)

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        if len(keys) != len(words):
            raise InvalidArgument(f"got {len(keys)} keys and {len(words)} words; want one word per key")
        return self._change("relabel", batch, np.asarray(keys), tuple(int(word) for word in words), None)

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change("delete", batch, np.asarray(keys), (), None)

    def _change(
        self,
        kind: str,
        batch: str,
        keys: NDArray[np.int64],
        words: tuple[int, ...],
        write: Callable[[VectorBackend, NDArray[np.int64], str], IndexState] | None,
    ) -> IndexState:
        _check_change(keys, words)
        with self._epochs.turn() as turn:
            self._settle(turn)  # which may complete this very batch
            if turn.done(batch) is not None:
                return self._state(turn.last())
            self._check_keys(keys, is_new=kind == "add")
            intent = turn.intend(kind, batch, tuple(keys.tolist()), words)
            if write is None:
                return self._state(self._finish(turn, intent))
            try:
                parts = self._each(turn, intent, lambda shard, places: write(shard, places, intent.name))
            except InvalidArgument:
                self._settle(turn)
                raise
            return self._state(turn.publish(intent, parts))

    def _settle(self, turn: Turn) -> None:
        """Complete or undo what a writer left; an open load is refused, because it can be continued."""
        left = turn.left()
        if left is None:
            return
        if left.kind == LOAD:
            raise load_is_open()
        if left.kind == "add":
            self._each(turn, left, lambda shard, places: _taken_out(shard, left, places))
            turn.abandon(left)
        else:
            self._finish(turn, left)

    def _finish(self, turn: Turn, intent: WriteIntent) -> Published:
        """Relabel or delete; a shard that has done it already does nothing."""
        keys, words = np.array(intent.keys, np.int64), np.array(intent.words, np.int64)

        def write(shard: VectorBackend, places: NDArray[np.int64]) -> IndexState:
            own = keys[places].tolist()
            if intent.kind == "delete":
                return shard.delete(own, batch=intent.name)
            return shard.relabel(own, words[places].tolist(), batch=intent.name)

        return turn.publish(intent, self._each(turn, intent, write))

    def _each(
        self,
        turn: Turn,
        intent: WriteIntent,
        write: Callable[[VectorBackend, NDArray[np.int64]], IndexState],
    ) -> tuple[IndexState, ...]:
        """Write to every shard that an intent concerns; return the state of all shards afterwards."""
        places = self._places(np.array(intent.keys, np.int64))
        before = turn.last().parts
        return tuple(
            self._all(
                lambda shard, number: write(shard, places[number]) if places[number].size else before[number]
            )
        )

    def _check_keys(self, keys: NDArray[np.int64], *, is_new: bool) -> None:
        """Refuse a change before any shard is changed."""
        found = np.concatenate([rows.keys for rows in self._get(keys, None)])
        wrong = np.intersect1d(keys, found) if is_new else np.setdiff1d(keys, found)
        if wrong.size:
            what = "is in use; delete its row first, or relabel it" if is_new else "is unknown"
            raise InvalidArgument(f"key {wrong[0]} {what}; nothing was changed")

    # ------------------------------------------------------------ read

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """See :class:`~carag.backends.VectorBackend`."""
        where = self._epochs.at(at)
        found = self._all(
            lambda shard, number: _of_epoch(
                shard.search(queries, k, admitted, plan=plan, at=where.parts[number].epoch), where, number
            )
        )
        keys, scores = _merged(found, k)
        plans = {one.plan for one in found}
        return Found(
            keys,
            scores,
            _rows_of([one.rows for one in found], keys),
            sum(one.admissible for one in found),
            next(one for one in _WEAKEST_FIRST if one in plans),
            self._state(where),
        )

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """See :class:`~carag.backends.VectorBackend`."""
        where = self._epochs.at(at)
        return sum(self._all(lambda shard, number: shard.count(admitted, at=where.parts[number].epoch)))

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """See :class:`~carag.backends.VectorBackend`."""
        return _joined(self._get(np.asarray(keys, np.int64), self._epochs.at(at)))

    def state(self) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._state(self._epochs.at(None))

    def _get(self, keys: NDArray[np.int64], where: Published | None) -> list[Rows]:
        places = self._places(keys)
        return self._all(
            lambda shard, number: shard.get(
                keys[places[number]].tolist(), at=None if where is None else where.parts[number].epoch
            )
        )

    def _state(self, where: Published) -> IndexState:
        kinds = dict.fromkeys(part.backend for part in where.parts)
        return IndexState(
            f"sharded {len(where.parts)} times: {' and '.join(kinds)}",
            where.parts[0].collection,
            where.epoch,
            tuple(sorted({word for part in where.parts for word in part.words})),
            tuple(one for part in where.parts for one in part.shards),
        )

    # ------------------------------------------------------------ all shards

    def _places(self, keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return for each shard the positions of its keys."""
        shards = shard_of(keys, len(self._shards))
        return [np.flatnonzero(shards == number) for number in range(len(self._shards))]

    def _all(self, ask: Callable[[VectorBackend, int], _Made]) -> list[_Made]:
        """Ask all shards at once; return all answers, or raise the error of the first that failed."""
        asked = [self._threads.submit(ask, shard, number) for number, shard in enumerate(self._shards)]
        failed = [(number, one.exception()) for number, one in enumerate(asked)]
        for number, error in failed:
            if isinstance(error, BackendUnavailable):
                raise BackendUnavailable(f"shard {number} of {len(asked)}: {error}") from error
        for _, error in failed:
            if error is not None:
                raise error
        return [one.result() for one in asked]


def _check_change(keys: NDArray[np.int64], words: tuple[int, ...]) -> None:
    if keys.ndim != 1 or (keys.size and (keys.dtype.kind not in "iu" or keys.min() < 0)):
        raise InvalidArgument(f"keys are {keys.dtype} of shape {keys.shape}; want whole numbers of 0 or more")
    if len(np.unique(keys)) < keys.size:
        raise InvalidArgument("a key is named twice; name each row once")
    if words and not (min(words) >= 0 and max(words) < 2**32):
        raise InvalidArgument(f"words range from {min(words)} to {max(words)}; want 0 to {2**32 - 1}")


def _taken_out(shard: VectorBackend, intent: WriteIntent, places: NDArray[np.int64]) -> IndexState:
    """Remove what an unfinished batch added to a shard, and use up the names that its writer may still send."""
    shard.delete([], batch=intent.name)
    # No row had these keys when the batch began, and nothing has been written since.
    there = shard.get([intent.keys[place] for place in places]).keys
    return shard.delete(there.tolist(), batch=f"{intent.name} undone")


def _of_epoch(found: Found, where: Published, number: int) -> Found:
    then = where.parts[number]
    if (found.state.epoch, found.state.words) != (then.epoch, then.words):
        raise BackendFault(f"shard {number} answered for epoch {found.state.epoch}; want {then.epoch}")
    return found


def _merged(found: list[Found], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Merge the lists of each query: greatest score first, ties by smaller key."""
    keys = np.concatenate([one.keys for one in found], axis=1)
    scores = np.concatenate([one.scores for one in found], axis=1)
    is_nothing = keys < 0
    order = np.lexsort((keys, -scores, is_nothing))[:, :k]
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _rows_of(parts: list[Rows], keys: NDArray[np.int64]) -> Rows:
    rows = _joined(parts)
    return Rows._make(column[np.isin(rows.keys, keys)] for column in rows)


def _joined(parts: list[Rows]) -> Rows:
    """Join rows; a shard that has never had any does not know the length of vectors."""
    some = [one for one in parts if len(one.keys)] or parts[:1]
    return Rows._make(np.concatenate(columns) for columns in zip(*some, strict=True))
