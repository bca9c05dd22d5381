"""Keep the rows that are searched, copies of a store's open labels, in an index file next to it or in a backend.

A missing file is built from the store, and a file that is behind is updated. In a backend, rows are added as closed,
then opened and closed in one batch, and closed rows are deleted later. A backend applies each batch, known by its name,
only once. A backend at an earlier epoch than the store noted gets all open labels again.
"""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from carag.backends import Checked, GraphBackend, backend_by_url, rows_of
from carag.errors import BackendUnavailable, CorruptFile, InvalidArgument
from carag.index import OLDEST_FILE_VERSION, Index, Plan
from carag.limits import quoted
from carag.policy import QUARANTINE, VERSION_WORD
from carag.retrieval import add_labels
from carag.retrieval.words import header_hash
from carag.store.values import EVER
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.backends import AnyIndex, Capabilities, IndexState, VectorBackend
    from carag.store.store import CorpusStore
    from carag.store.values import Labels


class Change(NamedTuple):
    """Labels to open and to close in one turn."""

    opened: NDArray[np.int64]
    words: NDArray[np.uint32]
    """Words of the opened labels."""
    closed: NDArray[np.int64]


class KeptRows(Protocol):
    """Rows keyed by the store's labels, as of one instant of the store."""

    @property
    def index(self) -> AnyIndex:
        """What is searched."""
        ...

    @property
    def known_at(self) -> int:
        """The instant of its labels, in microseconds since 1970; -1 before the first."""
        ...

    @property
    def added(self) -> int:
        """Rows added since these were opened."""
        ...

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> Change:
        """Add the labels that came since, as closed rows, and return what :meth:`switch` needs to open them."""
        ...

    def switch(self, change: Change, known: int) -> None:
        """Open and close rows in one turn, as known at an instant."""
        ...

    def settle(self) -> None:
        """Tidy up and save a large change, after a switch; nothing waits for it."""
        ...

    @property
    def places(self) -> tuple[str, ...]:
        """Codes of what :meth:`forget` writes again."""
        ...

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may hold rows that were erased, and is beyond its reach."""
        ...

    def forget(self) -> None:
        """Write the rows again without those that are closed, because documents were erased."""
        ...

    def is_copy_of(self, labels: Labels) -> bool:
        """Tell whether the rows are exactly these labels, which are all the open ones."""
        ...

    def check_sound(self) -> None:
        """Raise an error if the rows must not be searched."""
        ...

    def close(self) -> None:
        """Save what is not saved, and release it."""
        ...


_logger = logger(__name__)

_INDEX_BATCH: Final = 4096
"""Labels read from the store and added to the index at a time, at least."""
_INDEX_BYTES: Final = 1 << 28
"""Greatest size of vectors added at a time: a batch no smaller than the index is linked several times faster."""
_HEADER_BYTES: Final = 768
"""Size of the header of an index file (csrc/FORMAT.md)."""
_VERSION_AT: Final = slice(8, 12)
"""Offset of the format version in it, little-endian."""
_VERIFIED_AT_ONCE: Final = 1 << 26
"""Greatest size in bytes of an index file that is verified in full before it is searched; a larger file is mapped."""
_SAVE_ROWS: Final = 1 << 16
"""Rows added between two saves while an index is built: the most that must be added again after a kill."""
_SAVE_FRACTION: Final = 16
"""Save at once if more than 1/16 of the rows changed, because saving writes every row; otherwise at ``close``."""


def notes_of_file(path: Path, known: int, deleted: int = 0) -> dict[str, str]:
    """Return what a store notes about its index file: the header, the instant, and how many rows it lost."""
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
        at_once = max(_INDEX_BATCH, _INDEX_BYTES // (4 * self.index.dim))
        for start in range(0, len(new), at_once):
            some = new[start : start + at_once]
            words[some] = add_labels(self.index, self._store, opened[some], closed=True).words
            done = start + len(some)
            self._unsaved += len(some)
            self.added += len(some)
            progress("index", done, len(new), f"{done} of {len(new)} rows")
            if done % _SAVE_ROWS < at_once and done >= _SAVE_ROWS:
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

    @property
    def places(self) -> tuple[str, ...]:
        """The file."""
        return ("index",)

    @property
    def beyond(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def forget(self) -> None:
        """Consolidate the index, and save it."""
        self.index.consolidate()
        self._deleted = 0
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
        if _version_of(self._path) < OLDEST_FILE_VERSION:
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


_CLOSED: Final = QUARANTINE | VERSION_WORD
"""The word of a row that no search may find; it is the same for all rows, because a backend lists its words."""
_BATCH: Final = 4096
"""Rows added, or asked for, at a time."""
_KNOWN: Final = "known"
"""The store's note of the instant of its labels that the backend holds, in microseconds since 1970."""
_EPOCH: Final = "epoch"
"""The store's note of the backend's epoch at that time."""
_SWEPT: Final = "swept"
"""The store's note of the instant up to which closed labels are deleted there."""


def noted(notes: str, known: int = -1, epoch: int = -1) -> dict[str, str]:
    """Return what a store notes about a backend that holds its labels as of an instant; by default, about a new one."""
    values = {_KNOWN: known, _EPOCH: epoch, _SWEPT: known}
    return {f"{notes}_{name}": str(value) for name, value in values.items()}


def unfollowed(notes: str) -> dict[str, str]:
    """Return the notes that make a store write all its labels to the backend again, in batches with new names."""
    return {f"{notes}_{name}": "-1" for name in (_KNOWN, _SWEPT)}


class KeptBackend:
    """Rows in a backend; ``notes`` is the prefix of the names of the store's notes about it."""

    def __init__(
        self, store: CorpusStore, backend: VectorBackend, dim: int, *, notes: str = "backend"
    ) -> None:
        self._store = store
        self._notes = notes
        self.added = 0
        self.index = Checked(backend, store.labels, dim)
        self._is_unsure = False
        self.known_at = self._noted(_KNOWN)
        if self.index.state().epoch < self._noted(_EPOCH):
            _logger.warning("the backend is behind what this store wrote to it; writing all labels again")
            self.known_at = -1
            self._note({_SWEPT: -1})

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> Change:
        """Add the new labels, closed."""
        opened = self._store.labels.open(after=self._store.labels.count_by(self.known_at) - 1, known_at=known)
        new = opened[~self._are_here(opened)]
        for start in range(0, len(new), _BATCH):
            some = new[start : start + _BATCH]
            labels, vectors = self._store.labels.rows(some)
            rows = rows_of(
                vectors,
                np.full(len(some), _CLOSED, np.uint32),
                labels.keys,
                public_at=labels.public_at,
                expires_at=labels.expires_at,
                entities=labels.entities,
                audiences=labels.audiences,
            )
            self.index.add(rows, batch=self._name("add", some))
            self.added += len(some)
            done = start + len(some)
            progress("index", done, len(new), f"{done} of {len(new)} rows")
        closed = self._store.labels.closed(after=self.known_at, until=known)
        return Change(opened, self._store.labels.of(opened).words, closed[self._are_here(closed)])

    def switch(self, change: Change, known: int) -> None:
        """Open and close rows in one batch. If it fails, nothing is searched until it has been done again."""
        keys = np.concatenate([change.opened, change.closed])
        words = np.concatenate([change.words, np.full(len(change.closed), _CLOSED, np.uint32)])
        self._is_unsure = True
        if keys.size:
            self.index.relabel(keys.tolist(), words.tolist(), batch=self._name(f"switch to {known}", keys))
        self._note({_KNOWN: known, _EPOCH: self.index.state().epoch})
        self.known_at = known
        self._is_unsure = False

    def settle(self) -> None:
        """Delete the closed rows."""
        swept = self._noted(_SWEPT)
        if swept == self.known_at:
            return
        closed = self._store.labels.closed(after=swept)
        gone = closed[self._are_here(closed)]
        if gone.size:
            self.index.delete(gone.tolist(), batch=self._name(f"sweep to {self.known_at}", gone))
        self._note({_SWEPT: self.known_at, _EPOCH: self.index.state().epoch})

    @property
    def places(self) -> tuple[str, ...]:
        """The backend's rows."""
        return ("backend",)

    @property
    def beyond(self) -> tuple[str, ...]:
        """What the backend says about itself."""
        return self.index.beyond

    def forget(self) -> None:
        """Delete the closed rows, and ask the backend to free what they took."""
        self.settle()
        self.index.purge()

    def is_copy_of(self, labels: Labels) -> bool:
        """Compare labels with those in the backend."""
        found: dict[int, int] = {}
        for some in _batches(labels.keys):
            found |= self.index.words(some.tolist())
        self.index.state()
        return len(self.index) == len(labels.keys) and found == dict(
            zip(labels.keys.tolist(), labels.words.tolist(), strict=True)
        )

    def check_sound(self) -> None:
        """Raise an error if the last change was not confirmed."""
        if self._is_unsure:
            raise BackendUnavailable(
                "the last change of the backend's rows was not confirmed, so nothing is searched; ingest again, or "
                "close the store and open it again"
            )

    def close(self) -> None:
        """Do nothing: the backend's owner closes it."""

    def _are_here(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        here: list[int] = []
        for some in _batches(keys):
            here += self.index.words(some.tolist())
        return np.isin(keys, np.array(here, np.int64))

    def _name(self, what: str, keys: NDArray[np.int64]) -> str:
        return f"{what}, {len(keys)} from {keys[0]} to {keys[-1]}, after epoch {self._noted(_EPOCH)}"

    def _noted(self, name: str) -> int:
        return int(self._store.meta_get(f"{self._notes}_{name}") or -1)

    def _note(self, values: dict[str, int]) -> None:
        self._store.meta_update({f"{self._notes}_{name}": str(value) for name, value in values.items()})


def _batches(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))


NATIVE: Final = "native"
"""The index of this process, in a file beside the store."""
PLACE: Final = "backend"
"""The store's note of the kind of backend and the collection; absent for the native index."""
FILLED: Final = "backend_filled"
"""The store's note of the last backend that it filled, to which it may return after using the native index."""
_BETWEEN: Final = ", collection "
"""Separates kind and collection in the name of a place."""
COPY: Final = "shadow"
"""The store's note of the backend that holds a copy of its rows, to which it may move."""
COPY_FILE: Final = "index.copy"
"""The file, in a store, of a copy that is not searched yet; it later takes the place of the index file."""
FORGOTTEN: Final = "erased"
"""The note of the last erasure whose documents the files of this process no longer hold, by its record."""


def has_other_copy(store: CorpusStore) -> bool:
    """Tell whether a backend in which rows are not searched now may hold some, and may still be asked to."""
    here = store.meta_get(PLACE) or NATIVE
    return any(store.meta_get(note) not in (None, "", NATIVE, here) for note in (COPY, FILLED))


@contextmanager
def settled_backend(store: CorpusStore, given: str | VectorBackend | None) -> Iterator[VectorBackend | None]:
    """Lend the backend that holds a store's rows, until the context ends; None for the native index.

    None as ``given`` must mean the native index, because a store keeps no address and no credential.
    """
    last = store.meta_get(PLACE) or NATIVE
    if given is None and last != NATIVE:
        raise InvalidArgument(
            f"the rows of {store.path} are in {last}; name that backend with backend=... (on the command line, "
            f"--backend), or have the index made here with {NATIVE!r}"
        )
    if given is None or given == NATIVE:
        if last != NATIVE:
            store.meta_set(PLACE, NATIVE)
        yield None
        return
    _check_alone(store)
    made = closing(backend_by_url(given)) if isinstance(given, str) else nullcontext(given)
    with made as backend:
        state = backend.state()
        check_promises(state.backend, backend.capabilities)
        _check_place(store, last, state)
        yield backend


def _check_alone(store: CorpusStore) -> None:
    if store.is_shared:
        raise InvalidArgument(
            f"{store.path} is shared by several processes, each with its own index; leave the backend out"
        )


def place_of(state: IndexState) -> str:
    """Return the name of a backend in a store's notes: its kind and collection, never an address."""
    return f"{state.backend.partition(' ')[0].rstrip(',')}{_BETWEEN}{state.collection}"


def parts_of(place: str) -> tuple[str, str]:
    """Split the name of a place into its kind of backend and its collection."""
    kind, _, collection = place.partition(_BETWEEN)
    return kind, collection


def _check_place(store: CorpusStore, last: str, state: IndexState) -> None:
    here = place_of(state)
    if last == here:
        return
    if last != NATIVE:
        raise InvalidArgument(
            f"the rows of {store.path} are in {last}, and {here} was named; name the place where they are, or move "
            "them with carag backend copy and switch"
        )
    # The notes are written first, so that a killed run continues where its rows are.
    if store.meta_get(FILLED) == here:
        store.meta_update({PLACE: here, FORGOTTEN: ""})  # it may still hold what was erased meanwhile
        return
    if store.meta_get(COPY) == here:
        raise InvalidArgument(
            f"{here} holds a copy of the rows of {store.path}; to search it, run carag backend switch --to URL, "
            "which compares both"
        )
    if held := sum(shard.rows for shard in state.shards):
        raise InvalidArgument(
            f"{here} holds {held:,} rows from a store other than {store.path}; name a separate collection"
        )
    store.meta_update({PLACE: here, FILLED: here, **noted("backend")})


def leave_backend(store: CorpusStore) -> None:
    """Record that a copy of a store has no rows in a backend: the rows there belong to the original."""
    store.meta_update({PLACE: NATIVE, FILLED: "", COPY: ""})


def follow_anew(store: CorpusStore) -> None:
    """Have all labels written again at the next opening, wherever rows are, because they were changed in place."""
    store.own_update({"index_header": ""})
    store.meta_update({**unfollowed("backend"), **unfollowed(COPY)})


def check_promises(name: str, promised: Capabilities) -> None:
    """Raise an error if a backend cannot do what every engine needs."""
    has = {
        "an exact plan": bool(promised.plans & {Plan.EXACT, Plan.CERTIFIED}),
        "reading what was written (read_your_writes)": promised.read_your_writes,
        "changes that are seen as a whole (atomic_batches)": promised.atomic_batches,
    }
    if missing := [what for what, there in has.items() if not there]:
        raise InvalidArgument(
            f"{quoted(name)} does not promise {' or '.join(missing)}, which an engine needs; use another backend"
        )


class Built(NamedTuple):
    """A graph."""

    rows: int
    """Number of rows in it."""
    recall: float | None
    """Recall that the backend declares for its plan ``graph``."""


def build_graph(url: str, *, memory_mb: int | None = None) -> Built:
    """Make the backend at a URL build its graph: :class:`~carag.backends.GraphBackend`."""
    with closing(backend_by_url(url)) as place:
        if not isinstance(place, GraphBackend):
            raise InvalidArgument("this kind of backend does not build a graph; name one in PostgreSQL")
        place.build_graph(memory_mb=memory_mb)
        return Built(sum(shard.rows for shard in place.state().shards), place.capabilities.recall)
