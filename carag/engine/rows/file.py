"""Keep rows in an index file next to the store; a missing file is built from the store, one behind is updated."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.engine.rows.protocol import Change
from carag.errors import CorruptFile
from carag.index import FILE_VERSION, Index
from carag.retrieval import add_labels
from carag.retrieval.words import header_hash
from carag.store.values import EVER
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.store.store import CorpusStore
    from carag.store.values import Labels


_logger = logger(__name__)

_INDEX_BATCH: Final = 4096
"""Labels read from the store and added to the index at a time."""
_HEADER_BYTES: Final = 768
"""Size of the header of an index file (csrc/FORMAT.md)."""
_VERSION_AT: Final = slice(8, 12)
"""Offset of the format version in it, little-endian."""
_VERIFIED_AT_ONCE: Final = 1 << 26
"""Greatest size in bytes of an index file that is verified in full before it is searched; a larger one is mapped."""
_SAVE_ROWS: Final = 1 << 16
"""Rows between two saves while an index is built: the most that must be added again after a kill."""
_SAVE_FRACTION: Final = 16
"""Save at once if more than 1/16 of the rows changed, because saving writes every row; otherwise at ``close``."""


def notes_of_file(path: Path, known: int, deleted: int = 0) -> dict[str, str]:
    """Return what a store notes about its index file: its header, its instant, and how many rows it lost."""
    return {
        "index_header": header_hash(path, _HEADER_BYTES),
        "index_known": str(known),
        "index_deleted": str(deleted),
    }


def _version_of(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_HEADER_BYTES)[_VERSION_AT], "little")


class KeptFile:
    """Rows in an index of this process, and its file; ``dim`` returns the length of a vector, for a new index."""

    def __init__(self, store: CorpusStore, path: Path, dim: Callable[[], int]) -> None:
        self._store = store
        self._path = path
        self._dim = dim
        self._unsaved = 0
        self._deleted = 0
        self._verifying: threading.Thread | None = None
        self._damage: CorruptFile | None = None
        self.known_at = -1
        self.added = 0
        self.index = self._load()

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> Change:
        """Add labels in the order of their keys, so that the same store gives the same graph."""
        opened = self._store.labels.open(after=self._store.labels.count_by(self.known_at) - 1, known_at=known)
        is_here = np.isin(opened, self.index.keys(), assume_unique=True)
        words = np.empty(len(opened), np.uint32)
        words[is_here] = self._store.labels.of(opened[is_here]).words
        new = np.flatnonzero(~is_here)
        for start in range(0, len(new), _INDEX_BATCH):
            some = new[start : start + _INDEX_BATCH]
            words[some] = add_labels(self.index, self._store, opened[some], closed=True).words
            done = start + len(some)
            self._unsaved += len(some)
            self.added += len(some)
            progress("index", done, len(new), f"{done} of {len(new)} rows")
            if done % _SAVE_ROWS < _INDEX_BATCH and done >= _SAVE_ROWS:
                self._save()
        closed = self._store.labels.closed(after=self.known_at, until=known).tolist()
        return Change(opened, words, np.array([key for key in closed if key in self.index], np.int64))

    def switch(self, change: Change, known: int) -> None:
        """Open and close rows in one turn."""
        self.index.delete(change.closed)
        self.index.relabel(change.opened, change.words, allow_quarantine=True)
        self.known_at = known
        self._unsaved += len(change.closed)
        self._deleted += len(change.closed)

    def settle(self) -> None:
        """Save a large change."""
        if self._deleted > len(self.index):  # deleted rows cost memory and time until they are consolidated
            self.index.consolidate()
            self._deleted = 0
        if self._unsaved * _SAVE_FRACTION > len(self.index) or not self._path.exists():
            self._save()

    def is_copy_of(self, labels: Labels) -> bool:
        """Compare labels with those in the index."""
        return np.array_equal(np.sort(self.index.keys()), np.sort(labels.keys)) and np.array_equal(
            self.index.words(labels.keys), labels.words
        )

    def check_sound(self) -> None:
        """Raise an error if the file turned out to be damaged."""
        if self._damage is not None:
            raise CorruptFile(str(self._damage))

    def close(self) -> None:
        """Save the rest, and free the index."""
        try:
            if self._unsaved:
                self._save()
            if self._verifying is not None:
                self._verifying.join()
            self.check_sound()
        finally:
            self.index.close()

    def _load(self) -> Index:
        if not self._path.exists():
            return Index(self._dim())
        if self._store.own_get("index_header") != header_hash(self._path, _HEADER_BYTES):
            _logger.warning(
                "%s is not the file that this store saved last; building the index again", self._path
            )
            return Index(self._dim())
        if _version_of(self._path) < FILE_VERSION:
            _logger.warning("%s has an earlier format; building the index again", self._path)
            return Index(self._dim())
        is_large = self._path.stat().st_size > _VERIFIED_AT_ONCE
        try:
            index = Index.load(self._path, mmap=is_large)
        except CorruptFile as error:
            raise self._damaged(error) from error
        if is_large:
            self._verifying = threading.Thread(
                target=self._verify, args=(index,), name="carag-verify", daemon=True
            )
            self._verifying.start()
        self.known_at = int(self._store.own_get("index_known") or -1)
        self._deleted = int(self._store.own_get("index_deleted") or 0)
        return index

    def _verify(self, index: Index) -> None:
        try:
            index.verify()
        except (CorruptFile, OSError, MemoryError) as error:  # what cannot be verified must not be searched
            self._damage = self._damaged(error)
            _logger.warning("%s", self._damage)

    def _damaged(self, error: Exception) -> CorruptFile:
        return CorruptFile(f"{error}; delete {self._path}, and the next opening builds it again")

    def _save(self) -> None:
        self.index.save(self._path)
        self._store.own_update(notes_of_file(self._path, self.known_at, self._deleted))
        self._unsaved = 0
