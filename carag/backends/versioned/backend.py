"""Epochs on an engine without transactions: rows are versions, and a register, written last, says which versions hold.

Redis, Qdrant and Milvus confirm one write at a time. So a row is stored as versions, each of which holds in ``[e0,
e1)``: a new word is a new version, and a deletion ends one. A batch writes the versions of the next epoch, which
nothing asks for yet, and then the register; with this one write readers move to the new epoch. A writer that was killed
before that write leaves versions that no reader sees, and the next batch removes these first.

A write that its client gave up on may still arrive, so a writer that is not certain about a batch must repeat that
batch, and begin no other.

Ended versions are removed once no reader can still ask for them. A replaced epoch may be asked for during another
``keep`` seconds; then the register says that it may not. Another ``keep`` seconds later, when readers of the earlier
register have finished or were refused, the next batch sweeps.

The caller must ensure that there is only one writer at a time, as the engine does with its store's lock. A backend in
this package adds only a dozen primitives, each of which may be repeated.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from carag.backends.loads import load_is_open
from carag.backends.protocol import Capabilities, Found, IndexState, ShardState
from carag.backends.versioned.register import BegunBatch, Register, Sweep
from carag.backends.versioned.versions import Versions, check_rows, no_rows, row_keys, row_words
from carag.errors import BackendFault, BackendUnavailable, InvalidArgument
from carag.index import Plan
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted, Rows


KEEP: Final = 60.0
"""Seconds for which a replaced epoch may still be asked for; no search takes as long."""
_COUNTS: Final = 256
"""Most counts that are cached: for one epoch and policy, a count never changes."""
_NOW: Final = "now"
OPEN: Final = "open"
"""The text with the batch that is under way."""


class Nearest(NamedTuple):
    """The rows that an engine found, nearest first."""

    keys: list[list[int]]
    """For each query, at most ``k`` keys."""
    scores: list[list[float]]
    """Cosine similarities."""
    rows: Rows
    """The distinct rows in ``keys``."""


class VersionedBackend(ABC):
    """What Redis, Qdrant and Milvus have in common as a :class:`~carag.backends.VectorBackend`.

    Parameters
    ----------
    collection : str
        The name of the rows within the engine, already checked.
    kind : str
        The engine and its version, for records.
    keep : float, optional
        Seconds for which a replaced epoch may still be asked for; None keeps every epoch, and with it the deleted rows.
    """

    _most_words: ClassVar[int]

    def __init__(self, collection: str, kind: str, keep: float | None) -> None:
        if keep is not None and not keep > 0:
            raise InvalidArgument(
                f"keep is {quoted(keep)}; want more than 0 seconds, or None to keep all epochs"
            )
        self._collection, self._kind, self._keep = collection, kind, keep
        self._writing = threading.Lock()
        self._newest = 0
        self._last = Register.empty(1), -math.inf
        self._counts: OrderedDict[object, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{self._kind}>, collection={self._collection!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    @abstractmethod
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows after :meth:`purge`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the backend promises: only the exact plan, and replay only if all epochs are kept."""
        return Capabilities(
            plans=frozenset({Plan.EXACT}),
            exact_count=True,
            read_your_writes=True,
            atomic_batches=True,
            replay_by_epoch=self._keep is None,
            recall=None,
            most_words=self._most_words,
            server_side_policy=False,
        )

    # ------------------------------------------------------------ change

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """Add rows; a key of a live row is refused with InvalidArgument, and nothing is added."""

        def made(now: Register) -> tuple[Rows, Versions]:
            check_rows(rows, now.dim)
            ended = self._live(rows.keys.tolist(), now)
            if len(ended.e0):
                raise InvalidArgument(f"rows {_some(ended.rows.keys)} exist already; relabel or delete them")
            return rows, ended

        return self._change(batch, made)

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """Give rows new words, all at one epoch; an unknown key is refused, and nothing is changed."""
        if len(keys) != len(words):
            raise InvalidArgument(f"got {len(keys)} keys and {len(words)} words; want one word per key")
        word_of = dict(zip(row_keys(keys), row_words(words), strict=True))

        def made(now: Register) -> tuple[Rows, Versions]:
            ended = self._known(list(word_of), now)
            new = [word_of[key] for key in ended.rows.keys.tolist()]
            rows = ended.rows._replace(words=np.array(new, np.uint32))
            check_rows(rows, now.dim)
            return rows, ended

        return self._change(batch, made)

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """Delete rows, all at one epoch; an unknown key is refused, and nothing is deleted."""
        distinct = row_keys(keys)

        def made(now: Register) -> tuple[Rows, Versions]:
            return no_rows(now.dim), self._known(distinct, now)

        return self._change(batch, made)

    def _known(self, keys: list[int], now: Register) -> Versions:
        found = self._live(keys, now)
        if unknown := set(keys) - set(found.rows.keys.tolist()):
            raise InvalidArgument(f"rows {_some(sorted(unknown))} do not exist; nothing was changed")
        return found

    def _change(self, batch: str, made: Callable[[Register], tuple[Rows, Versions]]) -> IndexState:
        name = batch_name(batch)
        with self._writing:
            current, opened, done = self._current(OPEN, name)
            if done and int(done) <= current.epoch:
                return self._done(int(done), current)
            if BegunBatch.read(opened).load_after(current) is not None:
                raise load_is_open()
            rows, ended = made(current)
            following = self._following(current, rows, ended)
            self._tidy(current, opened)
            self._prepare(following.dim)
            self._keep_texts({OPEN: BegunBatch(following.epoch, name).text()})
            if len(ended.e0):
                self._end(ended, following.epoch)
            if len(rows.keys):
                self._put(Versions.of(rows, following.epoch))
            return self._confirm(name, following)

    def _done(self, epoch: int, current: Register) -> IndexState:
        """Return the state that a batch made, or the last state if that epoch is swept."""
        (kept,) = self._texts(_epoch_name(epoch))
        return self._state(Register.read(kept) if kept else current)

    def _tidy(self, current: Register, opened: str) -> None:
        """Remove what a killed batch left, and what no reader can ask for any more."""
        left = BegunBatch.read(opened)
        if left.epoch > current.epoch:
            self._undo(current.epoch, left.name)
        if current.sweep.removable > current.sweep.swept:
            self._sweep(current.sweep)

    def _confirm(self, name: str, following: Register) -> IndexState:
        """Make the next epoch from what a batch wrote."""
        text = following.text()
        self._keep_texts({name: str(following.epoch), _epoch_name(following.epoch): text})
        self._keep_texts({_NOW: text})
        self._newest = following.epoch
        return self._state(following)

    def _following(self, now: Register, rows: Rows, ended: Versions) -> Register:
        words = Counter(now.words)
        words.update(rows.words.tolist())
        words.subtract(ended.rows.words.tolist())
        words = +words
        if len(words) > self._most_words:
            raise InvalidArgument(
                f"rows would have {len(words):,} distinct policy words; {self._kind} can search for "
                f"{self._most_words:,} at most: put some rows into another collection"
            )
        shards = len(now.rows)
        of_shard = np.array(now.rows) + np.bincount(self._shard_of(rows.keys, shards), minlength=shards)
        of_shard -= np.bincount(self._shard_of(ended.rows.keys, shards), minlength=shards)
        epoch = now.epoch + 1
        return Register(
            epoch=epoch,
            dim=now.dim or rows.vectors.shape[1],
            rows=tuple(of_shard.tolist()),
            words=dict(sorted(words.items())),
            sweep=now.sweep.moved(epoch, time.time(), self._keep),
        )

    def _undo(self, epoch: int, batch: str) -> None:
        """Remove what was left by a batch that was killed before the register named its epoch."""
        self._drop_after(epoch)
        self._reopen_after(epoch)
        self._drop_texts([batch])

    def _sweep(self, sweep: Sweep) -> None:
        self._drop_ended(sweep.removable)
        self._drop_texts([_epoch_name(epoch) for epoch in range(sweep.swept, sweep.removable)])

    def purge(self) -> None:
        """Remove all ended versions at once, so that no earlier epoch can be asked for, and free what they took.

        Raises InvalidArgument if a load is open.
        """
        with self._writing:
            current, opened = self._current(OPEN)
            if BegunBatch.read(opened).load_after(current) is not None:
                raise load_is_open()
            if current.epoch:
                self._tidy(current, opened)
                epoch = current.epoch
                closing = Sweep(current.sweep.swept, epoch, epoch, epoch, time.time())
                # The register goes first, so that a purge that is killed is ended by the next batch.
                self._keep_texts({_NOW: current._replace(sweep=closing).text()})
                self._last = Register.empty(1), -math.inf
                self._sweep(closing)
                self._keep_texts({_NOW: current._replace(sweep=closing._replace(swept=epoch)).text()})
                self._free()

    # ------------------------------------------------------------ read

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """Find the ``k`` nearest admissible rows of each query, at an epoch, by default the last."""
        if plan not in (Plan.AUTO, Plan.EXACT):
            raise InvalidArgument(f"plan is {plan.value}; {self._kind} runs only the exact plan")
        register, began = self._at(at)
        if queries.ndim != 2 or k < 1 or (register.dim and queries.shape[1] != register.dim):
            raise InvalidArgument(
                f"queries are {queries.shape}, k is {k}; want (nq, {register.dim}) and 1 or more"
            )
        keys = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        rows, admissible = no_rows(register.dim), self._count(admitted, register)
        if admissible and len(queries):
            nearest = self._nearest(queries, min(k, admissible), admitted, register)
            rows = nearest.rows
            for i, (found, similar) in enumerate(zip(nearest.keys, nearest.scores, strict=True)):
                keys[i, : len(found)], scores[i, : len(found)] = found, similar
        self._in_time(began)
        return Found(keys, scores, rows, admissible, Plan.EXACT, self._state(register))

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """Count exactly the admissible rows at an epoch, by default the last."""
        register, began = self._at(at)
        found = self._count(admitted, register)
        self._in_time(began)
        return found

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """Read rows by key as of an epoch, in any order; keys without a live row are left out."""
        register, began = self._at(at)
        distinct = row_keys(dict.fromkeys(keys))
        rows = self._live(distinct, register).rows
        self._in_time(began)
        return rows

    def state(self) -> IndexState:
        """Read the last epoch, and what is known at it."""
        return self._state(self._at(None)[0])

    def _count(self, admitted: Admitted, register: Register) -> int:
        if not admitted.words or admitted.allow_entities == ():
            raise InvalidArgument("an empty list admits nothing; answer without asking the engine")
        if len(admitted.words) > self._most_words:
            raise InvalidArgument(
                f"the policy admits {len(admitted.words):,} distinct policy words; {self._kind} can search for "
                f"{self._most_words:,} at most"
            )
        if register.epoch == 0:
            return 0
        asked = (register.epoch, *admitted[:-1])
        if (known := self._counts.get(asked)) is None:
            known = self._counts[asked] = self._counted(admitted, register)
            if len(self._counts) > _COUNTS:
                self._counts.popitem(last=False)
        return known

    def _at(self, at: int | None) -> tuple[Register, float]:
        """Return the register of an epoch, and the time at which that epoch was known to be allowed."""
        last, since = self._last
        if (
            at is not None
            and at == last.epoch
            and (self._keep is None or time.monotonic() - since < self._keep / 2)
        ):
            return last, since  # a caller that has just read the epoch from `state`
        since = time.monotonic()
        (newest,) = self._current()
        if at is None or at == newest.epoch:
            self._last = newest, since
            return newest, since
        if at > newest.epoch or at < 0:
            raise InvalidArgument(f"epoch {at} does not exist yet; the last is {newest.epoch}")
        if at < newest.sweep.earliest:
            raise BackendUnavailable(f"epoch {at} is gone, and {newest.epoch} is the last; ask again")
        if at == 0:
            return Register.empty(len(newest.rows)), since
        (then,) = self._texts(_epoch_name(at))
        if not then:
            raise BackendFault(
                f"{self._kind}: epoch {at} is missing from its register; restore it, or build it again"
            )
        return Register.read(then), since

    def _current(self, *names: str) -> tuple[Any, ...]:
        """Read the register, and other texts with it; refuse an epoch earlier than one already confirmed here."""
        before = self._newest  # read first, because another thread may read a later one meanwhile
        now, *others = self._texts(_NOW, *names)
        register = Register.read(now) if now else Register.empty(self._shards())
        if register.epoch < before:
            raise BackendFault(
                f"{self._kind} went back from epoch {before} to {register.epoch}, so confirmed changes are "
                "lost; restore it, or build it again"
            )
        self._newest = max(self._newest, register.epoch)
        return register, *others

    def _in_time(self, began: float) -> None:
        if self._keep is not None and time.monotonic() - began >= self._keep:
            raise BackendUnavailable(
                f"{self._kind} took longer than the {self._keep:g} s for which an epoch is kept; ask for less, "
                "or increase keep"
            )

    def _state(self, register: Register) -> IndexState:
        shards = [ShardState(str(i), f"batch {register.epoch}", rows) for i, rows in enumerate(register.rows)]
        return IndexState(self._kind, self._collection, register.epoch, tuple(register.words), tuple(shards))

    # ------------------------------------------------------------ primitives: each may be repeated

    def _shards(self) -> int:
        """Count the parts of a new collection."""
        return 1

    def _shard_of(self, keys: NDArray[np.int64], shards: int) -> NDArray[np.int64]:
        """Return the part of each row."""
        return keys % shards

    @abstractmethod
    def _prepare(self, dim: int) -> None:
        """Create what must exist before the first write."""

    @abstractmethod
    def _texts(self, *names: str) -> list[str]:
        """Read texts by name as last confirmed; empty if missing."""

    @abstractmethod
    def _keep_texts(self, texts: dict[str, str]) -> None:
        """Write texts by name, in any order; return when every reader sees them."""

    @abstractmethod
    def _drop_texts(self, names: Iterable[str]) -> None:
        """Remove texts."""

    @abstractmethod
    def _put(self, versions: Versions) -> None:
        """Write whole versions, by key and ``e0``."""

    @abstractmethod
    def _end(self, versions: Versions, epoch: int) -> None:
        """Set ``e1`` of versions."""

    @abstractmethod
    def _drop_after(self, epoch: int) -> None:
        """Remove versions with ``e0 > epoch``."""

    @abstractmethod
    def _reopen_after(self, epoch: int) -> None:
        """Set ``e1`` to :data:`NEVER` where ``epoch < e1``."""

    @abstractmethod
    def _drop_ended(self, epoch: int) -> None:
        """Remove versions with ``e1 <= epoch``."""

    @abstractmethod
    def _free(self) -> None:
        """Have the engine free what removed versions took, and return when it has."""

    @abstractmethod
    def _live(self, keys: Sequence[int], register: Register) -> Versions:
        """Read the versions of some keys that hold at an epoch."""

    @abstractmethod
    def _counted(self, admitted: Admitted, register: Register) -> int:
        """Count exactly what is admissible at an epoch."""

    @abstractmethod
    def _nearest(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, register: Register
    ) -> Nearest:
        """Find the nearest admissible rows at an epoch by scoring all of them."""

    @abstractmethod
    def close(self) -> None:
        """Close connections; idempotent."""


def batch_name(batch: str) -> str:
    """Return the name of the text with the epoch that a batch made."""
    if not (isinstance(batch, str) and batch):
        raise InvalidArgument(f"batch is {quoted(batch)}; want a name, the same when the batch is repeated")
    return "batch/" + sha256(batch.encode("utf-8", "surrogatepass")).hexdigest()


def _epoch_name(epoch: int) -> str:
    return f"epoch/{epoch}"


def _some(keys: Iterable[int]) -> str:
    listed = [str(int(key)) for key in keys]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5:,} more" if len(listed) > 5 else "")
