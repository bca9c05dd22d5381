"""Know which words hold now: those in the label store, restricted by changes that are under way.

A backend may be behind: its rows are as of an epoch. Rows closed since then count as closed.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from carag.backends.protocol import Rows
from carag.errors import BackendFault, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted, IndexState, VectorBackend


class Words(Protocol):
    """The label store, as far as a search needs it."""

    def words_of(self, keys: Sequence[int]) -> Mapping[int, int]:
        """Return the current words of rows, a closed one for deleted rows; unknown keys are left out."""
        ...


class CurrentWords:
    """A label store and a backend."""

    def __init__(self, labels: Words, backend: VectorBackend) -> None:
        self._labels = labels
        self._backend = backend
        self._held: dict[int, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, words: dict[int, int]) -> Iterator[None]:
        """Admit rows only if their new words are admitted too, until the change is confirmed or refused."""
        with self._lock:
            self._held = self._held | words
        try:
            yield
        except InvalidArgument:
            self._release(words)
            raise
        self._release(words)

    def _release(self, words: dict[int, int]) -> None:
        with self._lock:
            self._held = {key: word for key, word in self._held.items() if key not in words}

    def lagged(self, rows: Rows, admitted: Admitted, at: IndexState) -> NDArray[np.int64]:
        """Return the keys of those rows, found at an epoch, that are closed by now.

        Raises BackendFault if the store never had a row, or the backend describes a closed one differently when asked
        for it by key.
        """
        # Read before the label store is, because that already has whatever is released afterwards.
        held, keys = self._held, rows.keys.tolist()
        words = self._labels.words_of(keys)
        if len(words) < len(keys):
            raise BackendFault("the backend returned a row that the store never had")
        is_open = [
            all(admitted.policy.admits(word, *about) for word in (words[key], held.get(key, words[key])))
            for key, *about in zip(keys, rows.entities.tolist(), rows.audiences.tolist(), strict=True)
        ]
        closed = Rows(*(column[~np.array(is_open, bool)] for column in rows))
        if closed.keys.size:
            again = self._backend.get(closed.keys.tolist(), at=at.epoch)
            if sorted(_tested(closed)) != sorted(_tested(again)):
                raise BackendFault(
                    "the backend returned a row whose word or times differ from those that it gives for its key"
                )
        return closed.keys


def _tested(rows: Rows) -> Iterator[tuple[int, ...]]:
    """Yield the key of each row and what a policy tests."""
    columns = rows.keys, *rows[2:]
    return zip(*(column.tolist() for column in columns), strict=True)
