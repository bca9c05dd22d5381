"""What was known at an instant, as an index: so that a past question can be asked again, and answered as it was.

The store keeps every label with the time from which and until which it was known. An index of those known at an
instant answers exactly what was answered then; since exact plans depend neither on how an index came about nor on its
closed rows, one index is moved from instant to instant by what differs between them, in either direction: a row is
added once, and closed and opened again by its word.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index import Index
from carag.policy import QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from carag.corpus.store import CorpusStore

__all__ = ["PastIndex", "add_labels"]

_BATCH: Final = 4096
_BETWEEN: Final = -2


def add_labels(
    index: Index, store: CorpusStore, keys: NDArray[np.int64], *, closed: bool = False
) -> NDArray[np.uint32]:
    """Add the rows of some labels, with their windows and entities, quarantined ones included; return their words.

    All are ``closed`` on demand, so that no search finds them before :meth:`~carag.index.Index.relabel` opens them.
    """
    labels, vectors = store.rows(keys)
    index.add(
        vectors,
        labels.words | QUARANTINE if closed else labels.words,
        labels.keys,
        public_at=labels.public_at,
        expires_at=labels.expires_at,
        entities=labels.entities,
        allow_quarantine=True,
    )
    return labels.words


class PastIndex:
    """An index whose open rows are the labels that were known at the instant last asked for.

    It holds every label of the instants asked for so far, at most as many as the store ever had.

    Parameters
    ----------
    store : CorpusStore
    dim : int
    """

    def __init__(self, store: CorpusStore, dim: int) -> None:
        self._store = store
        self._lock = Lock()
        # No search walks the graph, so a small one will do; the smallest takes the tuning of its width too long.
        self._index = Index(dim, M=8, ef_construction=20)
        self._open = np.empty(0, np.int64)
        self._known = -1

    @contextmanager
    def at(self, known_at: int) -> Iterator[Index]:
        """Lend the index of an instant in microseconds, to one asker at a time; only exact plans are worth asking."""
        with self._lock:
            # Between two instants at which something was learnt nothing changes.
            known = self._store.known(known_at)
            if known != self._known:
                self._move(known)
            yield self._index

    def _move(self, known: int) -> None:
        wanted = self._store.open_labels(known_at=known)
        # Neither until all is done: the next move makes good what fails on the way.
        self._known = _BETWEEN
        gone = np.setdiff1d(self._open, wanted, assume_unique=True)
        self._index.relabel(gone, self._index.words(gone) | QUARANTINE, allow_quarantine=True)
        self._open = np.intersect1d(self._open, wanted, assume_unique=True)
        back = np.setdiff1d(wanted, self._open, assume_unique=True)
        is_here = np.isin(back, self._index.keys(), assume_unique=True)
        for keys in _batches(back[is_here]):
            self._index.relabel(keys, self._store.labels(keys).words, allow_quarantine=True)
            self._open = np.union1d(self._open, keys)
        for keys in _batches(back[~is_here]):
            add_labels(self._index, self._store, keys)
            self._open = np.union1d(self._open, keys)
        self._known = known


def _batches(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
