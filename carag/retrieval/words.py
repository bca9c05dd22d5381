"""Index the words of a store's passages: text under the passage's number, labels under their keys."""

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


_logger = logger(__name__)

_BATCH: Final = 4096
"""Labels whose words are added at a time."""
_SAVE_PASSAGES: Final = 1 << 16
"""Passages between two saves while words are added: the most to read again after the process is killed."""
_SAVE_FRACTION: Final = 16
"""Save at once if more than 1/16 of the labels changed, as for vectors."""
_HEADER_BYTES: Final = 640
"""Size of the header of a file of words (csrc/FORMAT.md)."""


def add_words(words: TextIndex, store: CorpusStore, labels: Labels, heading: Sequence[str]) -> int:
    """Add the missing passages of some labels, with a profile's ``heading``, and return their number.

    None is admissible before :func:`carag.retrieval.words.label_words`. CorruptFile if a text does not have the stored
    hash.
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
    """Open labels and close others in one step; those already open, or absent, are left alone."""
    here = words.labels()
    is_new = ~np.isin(labels.keys, here, assume_unique=True)
    words.label(
        labels.keys[is_new],
        labels.passages[is_new],
        labels.words[is_new],
        public_at=labels.public_at[is_new],
        expires_at=labels.expires_at[is_new],
        entities=labels.entities[is_new],
        audiences=labels.audiences[is_new],
        closes=_among(np.asarray(closes, np.int64), here),
        allow_quarantine=True,
    )


def _among(keys: NDArray[np.int64], those: NDArray[np.int64]) -> NDArray[np.int64]:
    return keys[np.isin(keys, those, assume_unique=True)]


class LabelChanges(NamedTuple):
    """Labels that a store has opened since an instant, and the keys of those that it has closed."""

    opened: Labels
    closed: NDArray[np.int64]


class KeptWords:
    """The words of a store's passages under its open labels, in a file next to the store that can be rebuilt.

    It is rebuilt if it is missing, damaged in its header, made with other rules for terms, or not the one that this
    store saved last. CorruptFile if it fails other checks.

    - ``known_at``: the store's instant of the labels, in microseconds since 1970; -1 before the first.
    - ``read``: passages whose words were read from the store since the file was loaded.
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
        """Add the passages known by an instant, and return what :meth:`switch` needs to make them searchable."""
        first = self._store.labels.count_by(self.known_at)
        opened = self._store.labels.of(self._store.labels.open(after=first - 1, known_at=known))
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
        return LabelChanges(opened, self._store.labels.closed(after=self.known_at, until=known))

    def switch(self, changes: LabelChanges, known: int) -> None:
        """Open and close labels in one step, as known at an instant, without reading the store."""
        label_words(self.index, changes.opened, closes=changes.closed)
        self.known_at = known
        self._unsaved += len(changes.opened.keys) + len(changes.closed)

    def forget(self) -> None:
        """Write the file again without the words of erased passages."""
        gone = _among(np.array(self._store.erasures.keys(), np.int64), self.index.chunks())
        self.index.delete(gone)
        self._unsaved += len(gone)
        self.save()

    def save(self, *, least: bool = False) -> None:
        """Save what is not saved; with ``least``, only if that is much or there is no file."""
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
        """Save what is not saved, and free the index."""
        try:
            self.save()
        finally:
            self.index.close()

    def _load(self) -> TextIndex:
        if not self._path.exists():
            return TextIndex()
        kept = self._store.own_get("words_header"), self._store.own_get("words_made_of")
        if kept != (header_hash(self._path, _HEADER_BYTES), self._made_of):
            _logger.warning("%s is not what this store saved last; reading all words again", self._path)
            return TextIndex()
        try:
            index = TextIndex.load(self._path)
        except CorruptFile as error:
            raise CorruptFile(f"{error}; delete {self._path}, and the next opening rebuilds it") from error
        self.known_at = int(self._store.own_get("words_known") or -1)
        return index


def header_hash(path: Path, size: int) -> str:
    """Hash the first ``size`` bytes, an index file's header, which has all sections' checksums and so identifies it."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(size)).hexdigest()
    except OSError as error:
        raise CorruptFile(
            f"{path} cannot be read: {error.strerror}; delete it, and the next opening rebuilds it"
        ) from error
