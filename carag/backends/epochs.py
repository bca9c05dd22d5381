"""Say which epoch of several backends holds: what makes one collection of shards that know nothing of each other.

Every shard counts its own epochs. A published epoch names one of each, so a reader that takes it first, and asks every
shard at its own, sees a state that was whole once. A writer changes the shards and then publishes; until then nobody
asks for what it wrote.

A writer that ends in between leaves an intent. Whoever writes next settles it first: it is told which rows were meant,
and under which name every shard knows the batch. One writer at a time has its turn, and publishes within it or not at
all.
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

__all__ = ["Epochs", "Intent", "MemoryEpochs", "Published", "Turn"]


class Published(NamedTuple):
    """An epoch, and where every shard stands at it."""

    epoch: int
    parts: tuple[IndexState, ...]

    def text(self) -> str:
        """Write the parts as JSON."""
        return json.dumps([(*part[:4], part.shards) for part in self.parts], separators=(",", ":"))

    @classmethod
    def read(cls, epoch: int, text: str) -> Published:
        """Read what :meth:`text` wrote.

        Raises
        ------
        BackendFault
            If it is not that.
        """
        try:
            parts = [
                IndexState(backend, collection, own, tuple(words), tuple(ShardState(*one) for one in shards))
                for backend, collection, own, words, shards in json.loads(text)
            ]
        except MALFORMED as error:
            raise BackendFault(f"what was published as epoch {epoch} cannot be read; restore it") from error
        return cls(epoch, tuple(parts))


class Intent(NamedTuple):
    """What a writer is about to do."""

    number: int
    """No two intents have the same; part of the name that the shards know the batch by."""
    batch: str
    kind: str
    """``"add"``, ``"relabel"`` or ``"delete"``."""
    keys: tuple[int, ...]
    words: tuple[int, ...]
    """Of a relabel: one a key."""

    @property
    def name(self) -> str:
        """The name of the batch at the shards."""
        return f"{self.number} {self.batch}"


class Turn(Protocol):
    """What the one writer may do."""

    def last(self) -> Published:
        """Return the last epoch."""
        ...

    def done(self, batch: str) -> Published | None:
        """Return the epoch that a batch made, if it did."""
        ...

    def left(self) -> Intent | None:
        """Return what a writer left that ended before it published."""
        ...

    def intend(self, kind: str, batch: str, keys: tuple[int, ...], words: tuple[int, ...]) -> Intent:
        """Keep what is about to be done."""
        ...

    def publish(self, intent: Intent, parts: tuple[IndexState, ...]) -> Published:
        """Make the next epoch of an intent, which is done."""
        ...

    def abandon(self, intent: Intent) -> None:
        """Forget an intent that was undone."""
        ...


class Epochs(Protocol):
    """Where epochs are kept. Every method may raise :class:`~carag.errors.BackendUnavailable`."""

    def bind(self, shards: tuple[IndexState, ...]) -> Published:
        """Take shards for those of the collection, from now on or again; return the last epoch.

        Raises
        ------
        InvalidArgument
            If they are others, or in another order, or hold rows that no epoch knows of.
        """
        ...

    def at(self, epoch: int | None) -> Published:
        """Return an epoch, by default the last; one that is not yet is refused with InvalidArgument."""
        ...

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for one's turn to write, and have it."""
        ...

    def close(self) -> None:
        """Give up connections; idempotent."""
        ...


def names_of(shards: tuple[IndexState, ...]) -> list[str]:
    """Name shards so that another set of them, or another order, has other names."""
    return [" ".join([one.collection, *(part.id for part in one.shards)]) for one in shards]


def check_new(shards: tuple[IndexState, ...]) -> None:
    """Check that shards hold nothing."""
    if any(part.rows for one in shards for part in one.shards):
        raise InvalidArgument(
            "the shards hold rows that no epoch knows of here; name the shards of before in their order and the same "
            "server of epochs, or take empty collections"
        )


def check_same(known: list[str], shards: tuple[IndexState, ...]) -> None:
    """Check that shards are those that are known."""
    named = names_of(shards)
    if known == named:
        return
    if sorted(known) == sorted(named):
        raise InvalidArgument(
            "these shards are those of the collection in another order; name them as at first, for key and order say "
            "which shard a row is in"
        )
    raise InvalidArgument(
        f"these {len(shards)} shards are not the {len(known)} of the collection; name those, in their order"
    )


class MemoryEpochs:
    """Epochs in this process, for shards that end with it."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._published: list[Published] = []
        self._batches: dict[str, Published] = {}
        self._intents: list[Intent] = []
        self._open: Intent | None = None
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
            raise InvalidArgument(f"epoch {quoted(epoch)} is not yet; the last is {last.epoch}")
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

    def left(self) -> Intent | None:
        """See ``Turn``."""
        return self._open

    def intend(self, kind: str, batch: str, keys: tuple[int, ...], words: tuple[int, ...]) -> Intent:
        """See ``Turn``."""
        self._open = Intent(len(self._intents), batch, kind, keys, words)
        self._intents.append(self._open)
        return self._open

    def publish(self, intent: Intent, parts: tuple[IndexState, ...]) -> Published:
        """See ``Turn``."""
        made = Published(self._published[-1].epoch + 1, parts)
        self._published.append(made)
        self._batches[intent.batch] = made
        self._open = None
        return made

    def abandon(self, intent: Intent) -> None:
        """See ``Turn``."""
        assert intent == self._open  # noqa: S101 - ours
        self._open = None

    def close(self) -> None:
        """See :class:`Epochs`."""
