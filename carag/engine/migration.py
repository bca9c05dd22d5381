"""Migrate a store's rows from one place to another: copy them, compare both copies, and switch, in separate commands.

A copy is searched only if its state root is that of the store's own labels and vectors.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.audit import AuditLog, Move, RowsIn
from carag.backends import Checked, NativeBackend, backend_by_url, copy_rows, rows_of
from carag.backends import Copied as Copied
from carag.backends.moving import same_root
from carag.backends.root import rows_at
from carag.engine.collection import Collection, no_progress
from carag.engine.corpus import NO_EMBEDDER
from carag.engine.rows import (
    COPY,
    COPY_FILE,
    FILLED,
    FORGOTTEN,
    NATIVE,
    PLACE,
    KeptBackend,
    check_promises,
    noted,
    notes_of_file,
    parts_of,
    place_of,
)
from carag.errors import BackendFault, InvalidArgument
from carag.index import Index
from carag.policy import NEVER, POLICY_BITS, Mask, known_at_microseconds
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from carag.backends import Rows, VectorBackend
    from carag.backends.moving import Moved


_NEAREST: Final = 10
"""Rows that each search of a comparison asks for."""


def copy_backend(
    home: Path,
    source: str | VectorBackend,
    target: str | VectorBackend,
    *,
    restart: bool = False,
    progress: Moved | None = None,
) -> Copied:
    """Copy a store's rows from where they are searched to another place, and note that the copy is there.

    The same call continues a run that was killed; ``restart`` drops what an earlier run wrote and did not publish.
    """
    with _searched(home, source) as (store, dim, here), _lent(target) as place:
        _check_other(store, place)
        if place is None:
            if restart:
                (home / COPY_FILE).unlink(missing_ok=True)
            with closing(NativeBackend(dim, path=home / COPY_FILE)) as file:
                return copy_rows(here, file, store.labels.open(), restart=restart, progress=progress)
        state = place.state()
        check_promises(state.backend, place.capabilities)
        if sum(shard.rows for shard in state.shards) == 0:
            # The epoch that the copy will have; until it gets there, it is not taken for a copy.
            store.meta_update({COPY: _name(place), **noted(COPY, store.known(), state.epoch + 1)})
        elif store.meta_get(COPY) == _name(place):
            _follow(KeptBackend(store, place, dim, notes=COPY), store.known())
        copied = copy_rows(here, place, store.labels.open(), restart=restart, progress=progress)
        store.meta_update({COPY: _name(place), **noted(COPY, store.known(), copied.state.epoch)})
        return copied


def compare_backend(
    home: Path,
    source: str | VectorBackend,
    target: str | VectorBackend,
    *,
    searches: int = 100,
    progress: Moved | None = None,
) -> Copied:
    """Compare a store's rows with a copy of them to the last bit, then the answers of both to exact searches.

    Each search uses a vector from the store; half of them run under a policy that forbids a bit in that row's word.
    Nothing is changed; raise BackendFault if anything differs.
    """
    with (
        _searched(home, source) as (store, dim, here),
        _lent(target) as given,
        _copy_of(store, home, given) as copy,
    ):
        keys = store.labels.open()
        root = same_root(rows_at(here, keys), rows_at(copy, keys), keys, progress)
        places = np.unique(np.linspace(0, len(keys) - 1, min(searches, len(keys))).astype(np.int64))
        labels, vectors = store.labels.rows(keys[places])
        both = [Checked(one, store.labels, dim) for one in (here, copy)]
        differ = 0
        for number, (vector, word) in enumerate(zip(vectors, labels.words.tolist(), strict=True)):
            lowest = word & POLICY_BITS & -word if number % 2 else 0
            ours, theirs = (
                one.search(vector, _NEAREST, Mask(forbidden=lowest), plan="exact", as_of=NEVER - 1)
                for one in both
            )
            differ += not (
                np.array_equal(ours.keys, theirs.keys)
                and np.array_equal(ours.similarities, theirs.similarities)
                and ours.stats.admissible == theirs.stats.admissible
            )
            if progress is not None:
                progress("searched", number + 1, len(places))
        if differ:
            raise BackendFault(
                f"{differ} of {len(places)} searches found other rows, similarities or counts in the copy, though the "
                "rows are the same; do not switch to it"
            )
        return Copied(len(keys), root, copy.state())


@contextmanager
def _searched(home: Path, source: str | VectorBackend) -> Iterator[tuple[CorpusStore, int, VectorBackend]]:
    """Open a store, and lend the place where its rows are searched and the length of their vectors."""
    with (
        AuditLog.open(home),  # its lock is the store's
        _lent(source) as given,
        Collection.open(
            home, create=False, embedder=NO_EMBEDDER, clock=_now, backend=given or NATIVE
        ) as collection,
    ):
        collection.check()
        store, dim, index = collection.store, collection.embedder.dim, collection.index
        here = given
        if isinstance(index, Index):
            here = NativeBackend(dim, index=index, collection=f"rows of {store.known()}")
        assert here is not None  # noqa: S101 - what is searched without a backend is an index
        yield store, dim, here


def _check_other(store: CorpusStore, target: VectorBackend | None) -> None:
    if (store.meta_get(PLACE) or NATIVE) == _name(target):
        raise InvalidArgument("source and target are the same place; name another target")


def _follow(rows: KeptBackend, known: int) -> None:
    """Bring a copy up to ``known``, the last instant of its store."""
    if rows.known_at != known:
        rows.switch(rows.prepare(no_progress, known), known)
    rows.settle()


def switch_backend(home: Path, target: str | VectorBackend, *, progress: Moved | None = None) -> Copied:
    """From now on search a store's rows in their copy, if the copy is exact to the last bit.

    Both places and the state root go on record before anything is noted; the previous place becomes the copy.
    """
    with (
        AuditLog.open(home) as log,
        CorpusStore.open(home / "corpus.db", create=False, clock=_now) as store,
        _lent(target) as given,
        _copy_of(store, home, given) as place,
    ):
        keys = store.labels.open()
        root = same_root(lambda some: _rows_of(store, some), rows_at(place, keys), keys, progress)
        state = place.state()
        log.append(
            Move(
                at=log.now(),
                before=_rows_before(store),
                after=None if given is None else RowsIn(state.backend, state.collection, state.epoch),
                rows=len(keys),
                root=bytes.fromhex(root),
                why="SWITCHED",
            )
        )
        if given is None:
            notes = {PLACE: NATIVE, **notes_of_file(home / COPY_FILE, store.known())}
        else:
            before = noted("backend").keys()
            notes = {
                **{name.replace("backend", COPY, 1): store.meta_get(name) or "-1" for name in before},
                COPY: store.meta_get(FILLED) or "",
                PLACE: _name(given),
                FILLED: _name(given),
                **noted("backend", store.known(), state.epoch),
            }
        store.meta_update({**notes, FORGOTTEN: ""})  # the copy may still hold rows that were erased
        if given is None:
            # This comes after the notes: if the process is killed before this, the next opening builds the file from
            # the store.
            (home / COPY_FILE).replace(home / "index.carag")
        return Copied(len(keys), root, state)


def _rows_before(store: CorpusStore) -> RowsIn | None:
    """Say where a store's rows are, from its notes; the place itself is not asked, and may be gone."""
    if (here := store.meta_get(PLACE) or NATIVE) == NATIVE:
        return None
    name, collection = parts_of(here)
    return RowsIn(name, collection, max(0, int(store.meta_get("backend_epoch") or 0)))


def _copy_of(
    store: CorpusStore, home: Path, given: VectorBackend | None
) -> AbstractContextManager[VectorBackend]:
    """Open the copy that is to be searched; raise an error if the store did not make the copy."""
    here, there = store.meta_get(PLACE) or NATIVE, _name(given)
    if here == there:
        raise InvalidArgument(f"the rows of {store.path} are searched in {there} already")
    dim = store.dim
    if dim is None or (not (home / COPY_FILE).exists() if given is None else store.meta_get(COPY) != there):
        raise InvalidArgument(
            f"there is no copy of the rows of {store.path} in {there}; make one with carag backend copy"
        )
    if given is None:
        return closing(NativeBackend(dim, path=home / COPY_FILE))
    check_promises(given.state().backend, given.capabilities)
    return nullcontext(given)


def _rows_of(store: CorpusStore, keys: Sequence[int]) -> Rows:
    labels, vectors = store.labels.rows(np.asarray(keys, np.int64))
    return rows_of(
        vectors,
        labels.words,
        labels.keys,
        public_at=labels.public_at,
        expires_at=labels.expires_at,
        entities=labels.entities,
        audiences=labels.audiences,
    )


@contextmanager
def _lent(given: str | VectorBackend) -> Iterator[VectorBackend | None]:
    """Lend the backend at a URL, or a given backend, which its owner still has to close; None for the native index."""
    if given == NATIVE:
        yield None
        return
    with closing(backend_by_url(given)) if isinstance(given, str) else nullcontext(given) as backend:
        yield backend


def _name(place: VectorBackend | None) -> str:
    return NATIVE if place is None else place_of(place.state())


def _now() -> int:
    return known_at_microseconds(datetime.now(UTC))
