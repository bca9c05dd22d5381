"""Serve a :class:`carag.Index` as a backend: what every other is compared with, and the one that can certify."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.backends.protocol import Capabilities, Found, IndexState, ShardState
from carag.backends.rows import few_rows
from carag.errors import BackendUnavailable, InvalidArgument
from carag.index import FILE_VERSION, Index, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted, Rows

__all__ = ["NativeBackend"]

_NAME: Final = f"native, file format {FILE_VERSION}"


class NativeBackend:
    """An index in this process; an epoch is a number of changes, and the last is the only one that can be asked.

    Parameters
    ----------
    dim : int
        Length of every vector.
    collection : str
        What records call it.
    """

    capabilities: Final = Capabilities(
        plans=frozenset(Plan),
        exact_count=True,
        read_your_writes=True,
        atomic_batches=True,
        replay_by_epoch=False,
        recall=0.9,
        most_words=2**31 - 1,
        server_side_policy=False,
    )

    def __init__(self, dim: int, *, collection: str = "rows") -> None:
        self._index = Index(dim)
        self._collection = collection
        self._batches: dict[str, IndexState] = {}
        self._epoch = 0
        self._state: IndexState | None = None
        self._lock = threading.RLock()

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(
            batch,
            lambda: self._index.add(
                rows.vectors,
                rows.words,
                rows.keys,
                public_at=rows.public_at,
                expires_at=rows.expires_at,
                entities=rows.entities,
                allow_quarantine=True,
            ),
        )

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, lambda: self._index.relabel(keys, words, allow_quarantine=True))

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        return self._change(batch, lambda: self._index.delete(keys))

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            state = self._at(at)
            found = self._index.search(
                queries, k, admitted.policy, plan=plan, as_of=admitted.as_of, alive_at=admitted.alive_at
            )
            keys = np.unique(found.keys[found.keys >= 0])
            ran = Plan.EXACT if not found.counts.size else found.stats.plans[0]
            rows = few_rows(self._index, keys)
            return Found(found.keys, found.similarities, rows, found.stats.admissible, ran, state)

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            self._at(at)
            return self._index.count(admitted.policy, as_of=admitted.as_of, alive_at=admitted.alive_at)

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            self._at(at)
            return few_rows(self._index, [key for key in dict.fromkeys(keys) if key in self._index])

    def state(self) -> IndexState:
        """See :class:`~carag.backends.VectorBackend`."""
        with self._lock:
            if self._state is None:
                words = np.unique(self._index.words(self._index.keys()))
                shard = ShardState("0", str(self._epoch), len(self._index))
                self._state = IndexState(
                    _NAME, self._collection, self._epoch, tuple(words.tolist()), (shard,)
                )
            return self._state

    def close(self) -> None:
        """See :class:`~carag.backends.VectorBackend`."""
        self._index.close()

    def _change(self, batch: str, make: Callable[[], object]) -> IndexState:
        with self._lock:
            if batch not in self._batches:
                make()
                self._epoch, self._state = self._epoch + 1, None
                self._batches[batch] = self.state()
            return self._batches[batch]

    def _at(self, epoch: int | None) -> IndexState:
        if epoch is not None and epoch > self._epoch:
            raise InvalidArgument(f"epoch {epoch} is not yet; the last is {self._epoch}")
        if epoch is not None and epoch < self._epoch:
            raise BackendUnavailable(f"epoch {epoch} is gone, and {self._epoch} is the last; ask again")
        return self.state()
