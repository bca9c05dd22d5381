"""Loads of several backends as one: each shard gets its part of every block, and all are published at one epoch.

A shard's position counts rows of the stream, not its own; so a block that reached only some shards before a kill is
written again, and skipped by those. While a load is open its intent keeps every other change out; once one shard has
published, the others must, and then the epoch that names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.backends.loads import load_is_open, loading, no_load
from carag.backends.protocol import Rows
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from numpy.typing import NDArray

    from carag.backends.epochs import Epochs, Published, Turn, WriteIntent
    from carag.backends.protocol import IndexState, VectorBackend

    _Made = TypeVar("_Made")

__all__ = ["LOAD", "ShardedLoads"]

LOAD: Final = "load"
"""The kind of an intent that is a load."""


class ShardedLoads(ABC):
    """:class:`~carag.backends.ShardedBackend` as a :class:`~carag.backends.LoadingBackend`."""

    _epochs: Epochs

    @abstractmethod
    def _all(self, ask: Callable[[VectorBackend, int], _Made]) -> list[_Made]:
        """Ask all shards at once."""

    @abstractmethod
    def _places(self, keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return for each shard the positions of its keys."""

    @abstractmethod
    def _settle(self, turn: Turn) -> None:
        """Complete or undo what a writer left."""

    @abstractmethod
    def _state(self, where: Published) -> IndexState:
        """Return the state of an epoch."""

    @abstractmethod
    def _check_keys(self, keys: NDArray[np.int64], *, is_new: bool) -> None:
        """Refuse a change before any shard is changed."""

    def loaded(self, batch: str) -> int | None:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._epochs.turn() as turn:
            if turn.done(batch) is not None:
                return None
            intent = _own(turn, batch)
            return 0 if intent is None else self._position(intent)

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """See :class:`~carag.backends.LoadingBackend`."""
        keys = np.asarray(rows.keys)
        with self._epochs.turn() as turn:
            if turn.done(batch) is not None:
                return
            intent = _own(turn, batch)
            if intent is None:
                if begin > 0:
                    raise no_load()
                self._settle(turn)
                intent = turn.intend(LOAD, batch, (), ())
            self._check_keys(keys, is_new=True)
            name, places = intent.name, self._places(keys)

            def write(shard: VectorBackend, number: int) -> None:
                part = Rows._make(column[places[number]] for column in rows)
                loading(shard).load(part, batch=name, begin=begin, end=end)

            self._all(write)

    def count_loaded(self, batch: str) -> int:
        """See :class:`~carag.backends.LoadingBackend`."""
        name = self._open(batch).name
        return sum(self._all(lambda shard, _: loading(shard).count_loaded(name)))

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """See :class:`~carag.backends.LoadingBackend`."""
        wanted = np.asarray(keys, np.int64)
        name, places = self._open(batch).name, self._places(wanted)
        parts = self._all(
            lambda shard, number: loading(shard).get_loaded(wanted[places[number]].tolist(), batch=name)
        )
        return Rows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def publish(self, batch: str) -> IndexState:
        """See :class:`~carag.backends.LoadingBackend`."""
        with self._epochs.turn() as turn:
            if (done := turn.done(batch)) is not None:
                return self._state(done)
            intent = _own(turn, batch)
            if intent is None:
                raise no_load()
            parts = self._all(lambda shard, _: loading(shard).publish(intent.name))
            return self._state(turn.publish(intent, tuple(parts)))

    def unload(self) -> None:
        """See :class:`~carag.backends.LoadingBackend`; a partly published load is refused."""
        with self._epochs.turn() as turn:
            left = turn.left()
            if left is None or left.kind != LOAD:
                return
            if self._position(left) is None:
                raise InvalidArgument(
                    "the load is partly published; repeat the call that began it to finish it"
                )
            self._all(lambda shard, _: loading(shard).unload())
            turn.abandon(left)

    def _position(self, intent: WriteIntent) -> int | None:
        positions = self._all(lambda shard, _: loading(shard).loaded(intent.name))
        known = [one for one in positions if one is not None]
        return min(known) if len(known) == len(positions) else None

    def _open(self, batch: str) -> WriteIntent:
        with self._epochs.turn() as turn:
            intent = _own(turn, batch)
        if intent is None:
            raise no_load()
        return intent


def _own(turn: Turn, batch: str) -> WriteIntent | None:
    """Return the intent of a load of this name, if open; refuse if another is open."""
    left = turn.left()
    if left is None or left.kind != LOAD:
        return None
    if left.batch != batch:
        raise load_is_open()
    return left
