"""Index the labels, vectors and words known at a past instant, so that a past question gets the same answer."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index import Index, TextIndex
from carag.policy import QUARANTINE
from carag.retrieval.words import add_words, label_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from carag.store.store import CorpusStore
    from carag.store.values import Labels


_BATCH: Final = 4096
"""Labels that are opened or added at a time."""
_BETWEEN: Final = -2
"""In place of an instant, while the index is moved from one to another."""


def add_labels(index: Index, store: CorpusStore, keys: NDArray[np.int64], *, closed: bool = False) -> Labels:
    """Add the rows of some labels, quarantined ones included, and return the labels.

    If ``closed``, no search finds them before :meth:`~carag.index.Index.relabel` opens them.
    """
    labels, vectors = store.labels.rows(keys)
    index.add(
        vectors,
        labels.words | QUARANTINE if closed else labels.words,
        labels.keys,
        public_at=labels.public_at,
        expires_at=labels.expires_at,
        entities=labels.entities,
        audiences=labels.audiences,
        allow_quarantine=True,
    )
    return labels


class PastIndex:
    """An index whose open rows are the labels known at the last instant asked for, with each text under its heading.

    It holds every label of the instants asked for so far: at most all that the store ever had.
    """

    def __init__(self, store: CorpusStore, dim: int, heading: Sequence[str]) -> None:
        self._store = store
        self._heading = heading
        self._words = TextIndex()
        self._lock = Lock()
        # Exact plans do not walk the graph, so a small one is enough; with a smaller M, tuning it takes too long.
        self._index = Index(dim, M=8, ef_construction=20)
        self._open = np.empty(0, np.int64)
        self._known = self._erased = -1

    @contextmanager
    def at(self, known_at: int) -> Iterator[tuple[Index, TextIndex]]:
        """Lend rows and words of an instant (microseconds since 1970) to one caller at a time, for exact plans."""
        with self._lock:
            # Nothing changes between two instants at which the store learned something, unless it is erased.
            known, erased = self._store.known(known_at), self._store.erasures.last()
            if (known, erased) != (self._known, self._erased):
                self._move(known)
                self._erased = erased
            yield self._index, self._words

    def _move(self, known: int) -> None:
        wanted = self._store.labels.open(known_at=known, erased=False)
        # This is neither instant until everything is done, so that the next move completes one that failed.
        self._known = _BETWEEN
        gone = np.setdiff1d(self._open, wanted, assume_unique=True)
        self._words.close_labels(np.intersect1d(gone, self._words.labels(), assume_unique=True))
        self._index.relabel(gone, self._index.words(gone) | QUARANTINE, allow_quarantine=True)
        self._open = np.intersect1d(self._open, wanted, assume_unique=True)
        back = np.setdiff1d(wanted, self._open, assume_unique=True)
        is_here = np.isin(back, self._index.keys(), assume_unique=True)
        for keys in _batches(back[is_here]):
            labels = self._store.labels.of(keys)
            self._index.relabel(keys, labels.words, allow_quarantine=True)
            label_words(self._words, labels)
            self._open = np.union1d(self._open, keys)
        for keys in _batches(back[~is_here]):
            labels = add_labels(self._index, self._store, keys)
            add_words(self._words, self._store, labels, self._heading)
            label_words(self._words, labels)
            self._open = np.union1d(self._open, keys)
        self._known = known


def _batches(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
