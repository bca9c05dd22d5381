"""What was known at an instant, as an index: so that a past question can be asked again, and answered as it was.

The store keeps every label with the time from which and until which it was known. An index of those known at an
instant answers exactly what was answered then; since exact plans do not depend on how an index came about, one
index is moved from instant to instant by what differs between them, in either direction.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from carag.corpus import CorpusStore

__all__ = ["PastIndex", "add_labels"]

_BATCH: Final = 4096


def add_labels(index: Index, store: CorpusStore, keys: NDArray[np.int64]) -> None:
    """Add the rows of some labels, with their windows and entities, quarantined ones included."""
    labels, vectors = store.rows(keys)
    index.add(
        vectors,
        labels.words,
        labels.keys,
        public_at=labels.public_at,
        expires_at=labels.expires_at,
        entities=labels.entities,
        allow_quarantine=True,
    )


class PastIndex:
    """An index of the labels that were known at the instant last asked for.

    Parameters
    ----------
    store : CorpusStore
    dim : int
    """

    def __init__(self, store: CorpusStore, dim: int) -> None:
        self._store = store
        self._dim = dim
        self._lock = Lock()
        self._start()

    @contextmanager
    def at(self, known_at: int) -> Iterator[Index]:
        """Lend the index of an instant in microseconds, to one asker at a time; only exact plans are worth asking."""
        with self._lock:
            known = self._store.known(
                known_at
            )  # between two instants at which something was learnt nothing changes
            if known != self._known:
                self._move(known)
            yield self._index

    def _start(self) -> None:
        # No search walks the graph, so a small one will do; the smallest takes the tuning of its width too long.
        self._index = Index(self._dim, M=8, ef_construction=20)
        self._known = -1
        self._deleted = 0

    def _move(self, known: int) -> None:
        wanted = self._store.open_labels(known_at=known)
        gone = np.setdiff1d(self._index.keys(), wanted, assume_unique=True)
        if self._deleted + len(gone) > len(wanted):  # mostly deleted rows, which keep their room
            self._start()
            gone = gone[:0]
        self._index.delete(gone)
        self._deleted += len(gone)
        new = np.setdiff1d(wanted, self._index.keys(), assume_unique=True)
        for start in range(0, len(new), _BATCH):
            add_labels(self._index, self._store, new[start : start + _BATCH])
        self._known = known
