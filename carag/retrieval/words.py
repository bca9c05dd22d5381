"""Index the words of a store's passages beside their vectors: text under the passage's number, labels under their keys.

The text of a passage never changes, so its words are indexed once, with what its document is headed by, as for
vectors. Labels come and go; postings never hear of it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.errors import CorruptFile
from carag.index import TOKENS_VERSION, TextIndex, tokenize
from carag.labelling.canonical_json import canonical_json
from carag.labelling.naming import named
from carag.store.values import EVER, Labels
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk

__all__ = ["KeptWords", "LabelChanges", "add_words", "header_hash", "label_words"]

_logger = logger(__name__)

_BATCH: Final = 4096
"""Labels whose words are added at a time."""
_SAVE_PASSAGES: Final = 1 << 16
"""Passages between two saves while words are added, and so the most that a kill has to read again."""
_SAVE_FRACTION: Final = 16
"""Save at once if more than 1/16 of the labels changed, as for vectors."""
_HEADER_BYTES: Final = 640
"""Size of the header of a file of words (csrc/FORMAT.md)."""


def add_words(words: TextIndex, store: CorpusStore, labels: Labels, heading: Sequence[str]) -> int:
    """Add the passages of some labels that are not there yet; return their number.

    None is admissible before :func:`carag.retrieval.words.label_words`.

    Parameters
    ----------
    heading : sequence of str
        The profile's: what a document is headed by.

    Raises
    ------
    CorruptFile
        If a text does not have the stored hash.
    """
    passages, first = np.unique(labels.passages, return_index=True)
    is_new = ~np.isin(passages, words.chunks(), assume_unique=True)
    found = store.chunks(labels.keys[first[is_new]])
    by_filing: defaultdict[int, list[StoredChunk]] = defaultdict(list)
    for one in found:
        by_filing[one.filing].append(one)
    words.add(
        [one.number for some in by_filing.values() for one in some],
        [one.filing for some in by_filing.values() for one in some],
        [tokenize(one.text) for some in by_filing.values() for one in some],
        headings={
            filing: tokenize(" ".join(named(heading, some[0].stated))) for filing, some in by_filing.items()
        },
    )
    return len(found)


def label_words(words: TextIndex, labels: Labels, *, closes: ArrayLike = ()) -> None:
    """Open labels and close others in one step; those that are open already, or not there, stay so."""
    here = words.labels()
    is_new = ~np.isin(labels.keys, here, assume_unique=True)
    words.label(
        labels.keys[is_new],
        labels.passages[is_new],
        labels.words[is_new],
        public_at=labels.public_at[is_new],
        expires_at=labels.expires_at[is_new],
        entities=labels.entities[is_new],
        closes=_among(np.asarray(closes, np.int64), here),
        allow_quarantine=True,
    )


def _among(keys: NDArray[np.int64], those: NDArray[np.int64]) -> NDArray[np.int64]:
    return keys[np.isin(keys, those, assume_unique=True)]


class LabelChanges(NamedTuple):
    """Labels that a store has opened, and the keys of those that it has closed, since an instant."""

    opened: Labels
    closed: NDArray[np.int64]


class KeptWords:
    """The words of a store's passages under its open labels, in a file beside the store, which is a copy of it.

    A file that is missing, damaged in its header, of another way to cut text into terms, or not the one that this store
    saved last, is made anew.

    Parameters
    ----------
    store : CorpusStore
    path : Path
    heading : sequence of str
        What a document is headed by.

    Attributes
    ----------
    index : TextIndex
    known_at : int
        The instant of the store that the labels are of, in microseconds since 1970; -1 before the first.
    read : int
        Passages whose words were read from the store since the file was loaded.

    Raises
    ------
    CorruptFile
        If the file fails its checks; without it, the next opening reads all passages again.
    """

    def __init__(self, store: CorpusStore, path: Path, heading: Sequence[str]) -> None:
        self._store = store
        self._path = path
        self._heading = heading
        self._made_of = hashlib.sha256(
            canonical_json([TOKENS_VERSION, list(heading)], "words").encode()
        ).hexdigest()
        self._unsaved = 0
        self.read = 0
        self.known_at = -1
        self.index = self._load()

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> LabelChanges:
        """Add the passages known by an instant, and return what :meth:`switch` needs for a search to find them."""
        first = self._store.labels_by(self.known_at)
        opened = self._store.labels(self._store.open_labels(after=first - 1, known_at=known))
        count, saved = len(opened.keys), 0
        for start in range(0, count, _BATCH):
            some = Labels._make(column[start : start + _BATCH] for column in opened)
            added = add_words(self.index, self._store, some, self._heading)
            self._unsaved += added
            self.read += added
            saved += added
            done = start + len(some.keys)
            progress("words", done, count, f"{done} of {count} labels")
            if saved >= _SAVE_PASSAGES:
                self.save()
                saved = 0
        return LabelChanges(opened, self._store.closed_labels(after=self.known_at, until=known))

    def switch(self, changes: LabelChanges, known: int) -> None:
        """Open and close labels in one step, as known at an instant; the store is not read, so nobody waits for it."""
        label_words(self.index, changes.opened, closes=changes.closed)
        self.known_at = known
        self._unsaved += len(changes.opened.keys) + len(changes.closed)

    def save(self, *, least: bool = False) -> None:
        """Save what is not saved; ``least``: only if it is much, or there is no file."""
        if not self._unsaved or (
            least and self._path.exists() and self._unsaved * _SAVE_FRACTION <= self.index.label_count
        ):
            return
        self.index.save(self._path)
        self._store.own_update(
            {
                "words_header": header_hash(self._path, _HEADER_BYTES),
                "words_known": str(self.known_at),
                "words_made_of": self._made_of,
            }
        )
        self._unsaved = 0

    def close(self) -> None:
        """Save what is not saved, and free the words."""
        try:
            self.save()
        finally:
            self.index.close()

    def _load(self) -> TextIndex:
        if not self._path.exists():
            return TextIndex()
        kept = self._store.own_get("words_header"), self._store.own_get("words_made_of")
        if kept != (header_hash(self._path, _HEADER_BYTES), self._made_of):
            _logger.warning("%s is not what this store saved last; reading all words anew", self._path)
            return TextIndex()
        try:
            index = TextIndex.load(self._path)
        except CorruptFile as error:
            raise CorruptFile(f"{error}; delete {self._path}, and the next opening makes it anew") from error
        self.known_at = int(self._store.own_get("words_known") or -1)
        return index


def header_hash(path: Path, size: int) -> str:
    """Hash an index file's header of so many bytes, which holds the checksum of every section and so identifies it."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(size)).hexdigest()
    except OSError as error:
        raise CorruptFile(
            f"{path} cannot be read: {error.strerror}; delete it, and the next opening makes it anew"
        ) from error
