"""Open what is searched: a store, which is the truth, and its index and state, copies of its labels at one instant."""

from __future__ import annotations

import hashlib
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.engine.corpus import NO_EMBEDDER, KeptEmbedder, is_same, kept_profile, open_corpus, settle_profile
from carag.engine.rows import (
    COPY_FILE,
    FORGOTTEN,
    KeptBackend,
    KeptFile,
    follow_anew,
    has_other_copy,
    settled_backend,
)
from carag.engine.state import StoreState
from carag.errors import CorruptFile, InvalidArgument, StoreLocked
from carag.retrieval import (
    DEFAULT_EMBEDDER,
    EMBEDDERS,
    Catalogue,
    KeptWords,
    embedder_by_name,
    is_embedder,
    own_embedder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from carag.backends import VectorBackend
    from carag.engine.rows import KeptRows
    from carag.index import TextIndex
    from carag.policy import Profile
    from carag.retrieval import Embedder
    from carag.store.store import CorpusStore


_SUFFIXES: Final = {"index": ".carag", "words": ".words", "state": ".state"}
_READER_NOTE: Final = "reader"
"""The store's note of the kind of reader that makes its rows."""


class Progress(Protocol):
    """Receives how far a stage is: ``"filings"`` counts bytes read, ``"index"`` rows; a total of 0 means unknown."""

    def __call__(self, stage: str, done: int, total: int, note: str, /) -> None:
        """Receive one report."""


def no_progress(stage: str, done: int, total: int, note: str, /) -> None:
    """Ignore the report."""


class Vectors(NamedTuple):
    """The vectors of some texts, in their order."""

    vectors: NDArray[np.float32]
    hashes: list[bytes]
    """SHA-256 of each text."""
    embedded: int
    """Number of texts that were embedded; the store had the vectors of all others."""


class Collection:
    """A store's passages, searchable and provable at one instant of the store.

    In a large file, words, times and keys are checked before it is searched. Vectors and graph are checked meanwhile;
    if that fails, the next search and :meth:`close` raise.
    """

    def __init__(
        self,
        store: CorpusStore,
        embedder: Embedder,
        index_path: Path,
        profile: Profile | None = None,
        *,
        backend: VectorBackend | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.profile = profile or settle_profile(store, None)
        self._path = index_path
        self._lock = ReadWriteLock()
        self._writer, self._following = threading.RLock(), threading.RLock()
        self.erasures = 0
        """How often something was erased since this was opened."""
        self._is_erasing = False
        self.state = StoreState(store, index_path.with_suffix(_SUFFIXES["state"]))
        try:
            self._rows: KeptRows = (
                KeptFile(store, index_path, lambda: embedder.dim)
                if backend is None
                else KeptBackend(store, backend, embedder.dim)
            )
            self.index = self._rows.index
            self.catalogue = Catalogue(store, self.profile)
            self._words = KeptWords(
                store, index_path.with_suffix(_SUFFIXES["words"]), self.profile.vocabulary.heading
            )
            self.refresh(progress)
        except BaseException:
            self.state.close()
            raise

    def vectors_of(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, headings included; embed each once, if the store has no vector of it."""
        hashes = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        found = self.store.vectors_of(hashes)
        new = {one: text for one, text in zip(hashes, texts, strict=True) if one not in found}
        if new:
            found.update(zip(new, self.embedder.embed_documents([*new.values()]), strict=True))
        vectors = np.array([found[one] for one in hashes], np.float32).reshape(-1, self.embedder.dim)
        return Vectors(vectors, hashes, len(new))

    @property
    def known_at(self) -> int:
        """The instant of the store that the index reflects, in microseconds since 1970; -1 before the first."""
        return self._rows.known_at

    @property
    def added(self) -> int:
        """Rows added to the index since it was opened."""
        return self._rows.added

    @property
    def words(self) -> TextIndex:
        """The words of the passages, under the same labels as the rows."""
        return self._words.index

    @property
    def words_read(self) -> int:
        """How many passages had their words read from the store since the file of words was loaded."""
        return self._words.read

    @classmethod
    @contextmanager
    def open(
        cls,
        home: Path,
        *,
        create: bool,
        embedder: object | None,
        clock: Callable[[], int],
        profile: str | PathLike[str] | Profile | None = None,
        backend: str | VectorBackend | None = None,
        accept: frozenset[str] = frozenset(),
        progress: Progress = no_progress,
    ) -> Iterator[Self]:
        """Open the collection in a store directory, until the context ends; see :meth:`carag.Engine.open`."""
        with open_corpus(home, create=create, clock=clock) as store:
            kept = store.meta_get("embedder")
            if embedder is None:
                embedder = kept or DEFAULT_EMBEDDER
                if embedder not in EMBEDDERS:
                    # A store may come from anyone: names in it must not decide which files are loaded or where text
                    # goes.
                    how = f"embedder_by_name({embedder!r}, ...)" if is_embedder(embedder) else "that object"
                    raise InvalidArgument(
                        f"the store was written with {embedder!r}, which cannot be made from its name alone; give "
                        f"{how} as embedder=... (on the command line, --embedder NAME or --embedder MODULE:FACTORY)"
                    )
            chosen: Embedder
            if embedder is NO_EMBEDDER:
                chosen = KeptEmbedder(store, home / "index.carag")
            else:
                chosen = embedder_by_name(embedder) if isinstance(embedder, str) else own_embedder(embedder)
            if kept is None:
                store.meta_update({"embedder": chosen.name, "embedder_fingerprint": chosen.fingerprint})
            elif (kept, store.meta_get("embedder_fingerprint")) != (chosen.name, chosen.fingerprint):
                raise InvalidArgument(
                    f"the store was written with {kept!r}, and its vectors cannot be compared with those of "
                    f"{chosen.name!r}; leave the embedder out, or ingest into a new store"
                )
            settled = settle_profile(store, profile, accept="policy" in accept)
            if "labels" in accept:
                follow_anew(store)
            with (
                settled_backend(store, backend) as place,
                closing(
                    cls(
                        store,
                        chosen,
                        home / "index.carag",
                        settled,
                        backend=place,
                        progress=progress,
                    )
                ) as collection,
            ):
                yield collection

    @contextmanager
    def reading(self) -> Iterator[int]:
        """Keep the index at one instant while something is searched; yield that instant, as in ``known_at``."""
        with self._lock.reading():
            self._rows.check_sound()
            yield self.known_at

    @contextmanager
    def writing(self, reader: str) -> Iterator[None]:
        """Let one writer at a time store what ``reader`` makes; a store refuses every kind of reader but its own."""
        with self.alone():
            kept = self.store.meta_get(_READER_NOTE)
            if self.store.epoch and self.reader != reader:
                raise InvalidArgument(
                    f"this store holds what the reader {self.reader!r} made, so {reader!r} cannot write to "
                    "it; keep "
                    "filings (ingest) and documents (add) in separate stores"
                )
            if kept != reader:
                self.store.meta_set(_READER_NOTE, reader)
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other thread write."""
        with self._writer:
            yield

    def refresh(self, progress: Progress) -> None:
        """Bring state and index up to the store as it is now, without what other processes add meanwhile."""
        with self._following:
            known = self.store.known()
            # The state goes first, because it can still prove what a search finds in the index of an earlier instant.
            self.state.refresh(known)
            self.catalogue.refresh()
            if (self.known_at, self._words.known_at) != (known, known):
                self._follow(known, progress)
            self._rows.settle()
            self._words.save(least=True)
            if not self._is_erasing:
                self._forget()

    def _forget(self) -> None:
        """Remove what files still hold of documents that were erased; a process that was killed does it at opening."""
        last = self.store.erasures.last()
        if last <= int(self.store.own_get(FORGOTTEN) or -1):
            return
        self.erasures += 1
        self.store.forget()
        self.catalogue.forget()
        self._rows.forget()
        self._words.forget()
        for unused in self._unused_files():
            unused.unlink()
        self.store.purge()
        self.store.own_update({FORGOTTEN: str(last)})

    def _unused_files(self) -> list[Path]:
        """Return files of rows that are not searched: a copy, and an index from before the rows were in a backend."""
        index = [self._path] if isinstance(self._rows, KeptBackend) and self._path.exists() else []
        return [*index, *self._path.parent.glob(f"{COPY_FILE}*")]

    @property
    def reader(self) -> str:
        """The kind of reader that makes the store's rows; early stores, which hold filings, do not say it."""
        return self.store.meta_get(_READER_NOTE) or "edgar"

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Erase documents, in as many turns as it takes; then remove them from the files, which are written once."""
        self._is_erasing = True
        try:
            yield
        finally:
            self._is_erasing = False
        self.refresh(no_progress)

    @property
    def places(self) -> tuple[str, ...]:
        """Codes of the places from which an erasure removes everything."""
        return (*self.store.places, *self._rows.places, "words")

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of the places that may hold what was erased, and that CARAG cannot reach."""
        copy = ("backend-copy",) if has_other_copy(self.store) else ()
        return ("backups", *self.store.beyond, *self._rows.beyond, *copy)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let no search run, so that none reads a text that is being erased."""
        with self._following, self._lock.writing():
            self.erasures += 1
            yield

    @contextmanager
    def unerased(self, since: int, chunk_ids: Sequence[str]) -> Iterator[None]:
        """Let nothing be erased until the context ends; StoreLocked if one of these passages was.

        ``since`` is what :attr:`erasures` was before they were found.
        """
        with self._lock.reading():
            if self.erasures != since and self.store.erasures.are_gone(chunk_ids):
                raise StoreLocked("a document that was found was erased meanwhile; ask again")
            yield

    def keep_up(self) -> str | None:
        """Bring state and index up to what other processes wrote, so that what comes next sees it.

        Return the note of the last change of what is in force; None for a store that no other process writes.
        """
        if not self.store.is_shared:
            return None
        known, change = self.store.standing()
        if known != self.known_at:
            self.refresh(no_progress)
        return change

    def follow_profile(self) -> str:
        """Take over the profile that the store keeps now; return the note of the change that put it in force.

        Only within :meth:`carag.engine.configuration.ConfigurationLog.changing`.
        """
        change, kept = self.store.standing()[1], kept_profile(self.store)
        if kept is not None and not is_same(kept, self.profile):
            self.catalogue.follow(kept)
            self.profile = kept
        return change

    def check(self) -> None:
        """Raise CorruptFile unless index, words and state hold exactly the store's open labels, at its last instant."""
        self._rows.check_sound()
        labels = self.store.labels.of(self.store.labels.open())
        keys, passages = np.sort(labels.keys), np.unique(labels.passages)
        wrong = {
            "index": not self._rows.is_copy_of(labels),
            "words": not np.array_equal(np.sort(self.words.labels()), keys)
            or not np.isin(passages, self.words.chunks()).all(),
        }
        known = {"index": self.known_at, "words": self._words.known_at, "state": self.state.known_at}
        for name, at in known.items():
            if at != self.store.known() or wrong.get(name):
                raise CorruptFile(
                    f"{self._path.with_suffix(_SUFFIXES[name])} is not a copy of what the store holds; delete it, "
                    "and the next opening builds it again"
                )

    def close(self) -> None:
        """Save what is not saved yet, after any change in progress, and free index and state; the store stays open."""
        with self._following:  # a file and the note about its content belong to one instant
            try:
                self._rows.close()
            finally:
                self._words.close()
                self.state.close()

    def _follow(self, known: int, progress: Progress) -> None:
        """Bring rows and words to an instant of the store; a search meanwhile sees the one before, never a mixture."""
        rows = self._rows.prepare(progress, known)
        words = self._words.prepare(progress, known)
        with self._lock.writing():
            self._rows.switch(rows, known)
            self._words.switch(words, known)


class ReadWriteLock:
    """A lock that readers share and a writer holds alone. New readers wait if a writer is waiting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._waiting_writers = 0
        self._is_written = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude writers; other readers may enter."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_written or self._waiting_writers))
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclude readers and other writers."""
        with self._changed:
            self._waiting_writers += 1
            try:
                self._changed.wait_for(lambda: not (self._is_written or self._readers))
                self._is_written = True
            finally:
                self._waiting_writers -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_written = False
                self._changed.notify_all()
