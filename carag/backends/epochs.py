"""Keep the epochs of several backends, which make independent shards one collection.

Every shard counts its own epochs. A published epoch names one epoch of each shard, so a reader that reads it first and
asks every shard at its own epoch sees a consistent state. A writer changes the shards and then publishes; until then
nothing asks for what it wrote.

A writer that ends in between leaves an intent, which the next writer settles first: it names the rows, and the batch at
every shard. Writers take turns, and can publish only within their turn.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from carag.backends.protocol import IndexState, ShardState
from carag.errors import MALFORMED, BackendFault, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

__all__ = ["Epochs", "MemoryEpochs", "Published", "Turn", "WriteIntent"]


class Published(NamedTuple):
    """An epoch, and the state of every shard at it."""

    epoch: int
    parts: tuple[IndexState, ...]

    def text(self) -> str:
        """Return the parts as JSON."""
        return json.dumps([(*part[:4], part.shards) for part in self.parts], separators=(",", ":"))

    @classmethod
    def read(cls, epoch: int, text: str) -> Published:
        """Read what :meth:`text` wrote; raise BackendFault if it is not that."""
        try:
            parts = [
                IndexState(backend, collection, own, tuple(words), tuple(ShardState(*one) for one in shards))
                for backend, collection, own, words, shards in json.loads(text)
            ]
        except MALFORMED as error:
            raise BackendFault(
                f"the record of epoch {epoch} cannot be read; restore the database of epochs"
            ) from error
        return cls(epoch, tuple(parts))


class WriteIntent(NamedTuple):
    """What a writer is about to do."""

    number: int
    """Unique; part of the batch name at the shards."""
    batch: str
    kind: str
    """``"add"``, ``"relabel"`` or ``"delete"``."""
    keys: tuple[int, ...]
    words: tuple[int, ...]
    """For a relabel: one per key."""

    @property
    def name(self) -> str:
        """The name of the batch at the shards."""
        return f"{self.number} {self.batch}"


class Turn(Protocol):
    """What the writer whose turn it is may do."""

    def last(self) -> Published:
        """Return the last epoch."""
        ...

    def done(self, batch: str) -> Published | None:
        """Return the epoch that a batch made, if it did."""
        ...

    def left(self) -> WriteIntent | None:
        """Return the intent of a writer that ended before it published."""
        ...

    def intend(self, kind: str, batch: str, keys: tuple[int, ...], words: tuple[int, ...]) -> WriteIntent:
        """Record what is about to be done."""
        ...

    def publish(self, intent: WriteIntent, parts: tuple[IndexState, ...]) -> Published:
        """Make the next epoch from a completed intent."""
        ...

    def abandon(self, intent: WriteIntent) -> None:
        """Forget an intent that was undone."""
        ...


class Epochs(Protocol):
    """Storage of epochs. Every method may raise :class:`~carag.errors.BackendUnavailable`."""

    def bind(self, shards: tuple[IndexState, ...]) -> Published:
        """Bind the collection to its shards, now or again; return the last epoch.

        Raises
        ------
        InvalidArgument
            If the shards or their order differ from before, or they hold rows that no epoch covers.
        """
        ...

    def at(self, epoch: int | None) -> Published:
        """Return an epoch, by default the last; a future one is refused with InvalidArgument."""
        ...

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the turn to write, and hold it."""
        ...

    def close(self) -> None:
        """Close connections; idempotent."""
        ...


def names_of(shards: tuple[IndexState, ...]) -> list[str]:
    """Name shards so that another set of them, or another order, has other names."""
    return [" ".join([one.collection, *(part.id for part in one.shards)]) for one in shards]


def check_new(shards: tuple[IndexState, ...]) -> None:
    """Check that shards hold nothing."""
    if any(part.rows for one in shards for part in one.shards):
        raise InvalidArgument(
            "the shards hold rows that no epoch covers; name the same shards in the same order with the same server "
            "of epochs, or use empty collections"
        )


def check_same(known: list[str], shards: tuple[IndexState, ...]) -> None:
    named = names_of(shards)
    if known == named:
        return
    if sorted(known) == sorted(named):
        raise InvalidArgument(
            "these are the collection's shards in another order; name them in the original order, which together with "
            "the key decides which shard a row is in"
        )
    raise InvalidArgument(
        f"these {len(shards)} shards are not the {len(known)} of the collection; name those, in the original order"
    )


class MemoryEpochs:
    """Epochs in this process, for shards that end with it."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._published: list[Published] = []
        self._batches: dict[str, Published] = {}
        self._intents: list[WriteIntent] = []
        self._open: WriteIntent | None = None
        self._lock = threading.Lock()

    def bind(self, shards: tuple[IndexState, ...]) -> Published:
        """See :class:`Epochs`."""
        if self._published:
            check_same(self._names, shards)
        if not self._published or (self._published[-1].epoch == 0 and self._open is None):
            check_new(shards)
        if not self._published:
            self._names, self._published = names_of(shards), [Published(0, shards)]
        return self._published[-1]

    def at(self, epoch: int | None) -> Published:
        """See :class:`Epochs`."""
        last = self._published[-1]
        if epoch is None:
            return last
        if not 0 <= epoch <= last.epoch:
            raise InvalidArgument(f"epoch {quoted(epoch)} does not exist yet; the last is {last.epoch}")
        return self._published[epoch]

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """See :class:`Epochs`."""
        with self._lock:
            yield self

    def last(self) -> Published:
        """See ``Turn``."""
        return self._published[-1]

    def done(self, batch: str) -> Published | None:
        """See ``Turn``."""
        return self._batches.get(batch)

    def left(self) -> WriteIntent | None:
        """See ``Turn``."""
        return self._open

    def intend(self, kind: str, batch: str, keys: tuple[int, ...], words: tuple[int, ...]) -> WriteIntent:
        """See ``Turn``."""
        self._open = WriteIntent(len(self._intents), batch, kind, keys, words)
        self._intents.append(self._open)
        return self._open

    def publish(self, intent: WriteIntent, parts: tuple[IndexState, ...]) -> Published:
        """See ``Turn``."""
        made = Published(self._published[-1].epoch + 1, parts)
        self._published.append(made)
        self._batches[intent.batch] = made
        self._open = None
        return made

    def abandon(self, intent: WriteIntent) -> None:
        """See ``Turn``."""
        assert intent == self._open  # noqa: S101 - ours
        self._open = None

    def close(self) -> None:
        """See :class:`Epochs`."""
