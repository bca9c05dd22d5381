"""Move a store's rows from one place to another: copy them, compare, and switch, in separate commands.

A copy is the store's *shadow*, and searched only if its state root is that of the store's own labels and vectors.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.audit import AuditLog, Move, RowsIn
from carag.backends import Copied, NativeBackend, backend_by_url, copy_rows, rows_of
from carag.backends.moving import same_root
from carag.backends.root import rows_at
from carag.engine.collection import Collection, no_progress
from carag.engine.kept_embedder import NO_EMBEDDER
from carag.engine.rows.backend import KeptBackend, noted
from carag.engine.rows.file import notes_of_file
from carag.engine.rows.settled import FILLED, NATIVE, PLACE, SHADOW, check_promises, parts_of, place_of
from carag.engine.rows.shadowed import follow
from carag.errors import InvalidArgument
from carag.index import Index
from carag.policy import known_at_microseconds
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from carag.backends import Rows, VectorBackend
    from carag.backends.moving import Moved

__all__ = ["Copied", "copy_backend", "switch_backend"]

_COPY: Final = "index.copy"
"""The file, in a store, of a copy that is not searched yet; it later takes the place of the index file."""


def copy_backend(
    home: Path,
    source: str | VectorBackend,
    target: str | VectorBackend,
    *,
    restart: bool = False,
    progress: Moved | None = None,
) -> Copied:
    """Copy a store's rows from where they are searched to another place, and note that they are there.

    The same call continues a run that was killed; ``restart`` drops what an earlier run wrote and did not publish.
    """
    with (
        AuditLog.open(home),  # its lock is the store's
        _lent(source) as given,
        Collection.open(
            home, create=False, embedder=NO_EMBEDDER, clock=_now, backend=given or NATIVE
        ) as collection,
        _lent(target) as place,
    ):
        if _name(given) == _name(place):
            raise InvalidArgument("source and target are the same place; name another target")
        collection.check()
        store, dim = collection.store, collection.embedder.dim
        index = collection.index
        here = given
        if isinstance(index, Index):
            here = NativeBackend(dim, index=index, collection=f"rows of {store.known()}")
        assert here is not None  # noqa: S101 - what is searched without a backend is an index
        if place is None:
            if restart:
                (home / _COPY).unlink(missing_ok=True)
            with closing(NativeBackend(dim, path=home / _COPY)) as file:
                return copy_rows(here, file, store.open_labels(), restart=restart, progress=progress)
        state = place.state()
        check_promises(state.backend, place.capabilities)
        if sum(shard.rows for shard in state.shards) == 0:
            # What it will be; until its epoch gets there, it is not taken for a copy.
            store.meta_update({SHADOW: _name(place), **noted("shadow", store.known(), state.epoch + 1)})
        elif store.meta_get(SHADOW) == _name(place):
            follow(KeptBackend(store, place, dim, notes="shadow"), store.known(), no_progress)
        copied = copy_rows(here, place, store.open_labels(), restart=restart, progress=progress)
        store.meta_update({SHADOW: _name(place), **noted("shadow", store.known(), copied.state.epoch)})
        return copied


def switch_backend(home: Path, target: str | VectorBackend, *, progress: Moved | None = None) -> Copied:
    """Search a store's rows where a copy of them is, if the copy is exact to the last bit.

    Both places and the state root go on record before anything is noted; the previous place becomes the shadow.
    """
    with (
        AuditLog.open(home) as log,
        CorpusStore.open(home / "corpus.db", create=False, clock=_now) as store,
        _lent(target) as given,
        _copy_of(store, home, given) as place,
    ):
        keys = store.open_labels()
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
            notes = {PLACE: NATIVE, **notes_of_file(home / _COPY, store.known())}
        else:
            before = noted("backend").keys()
            notes = {
                **{name.replace("backend", "shadow", 1): store.meta_get(name) or "-1" for name in before},
                SHADOW: store.meta_get(FILLED) or "",
                PLACE: _name(given),
                FILLED: _name(given),
                **noted("backend", store.known(), state.epoch),
            }
        store.meta_update(notes)
        if given is None:
            # After the notes: if killed before this, the next opening builds the file from the store.
            (home / _COPY).replace(home / "index.carag")
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
    """Open the copy that is to be searched; raise an error if the store did not make it."""
    here, there = store.meta_get(PLACE) or NATIVE, _name(given)
    if here == there:
        raise InvalidArgument(f"the rows of {store.path} are searched in {there} already")
    dim = store.dim
    if dim is None or (not (home / _COPY).exists() if given is None else store.meta_get(SHADOW) != there):
        raise InvalidArgument(
            f"there is no copy of the rows of {store.path} in {there}; make one with carag backend copy"
        )
    if given is None:
        return closing(NativeBackend(dim, path=home / _COPY))
    check_promises(given.state().backend, given.capabilities)
    return nullcontext(given)


def _rows_of(store: CorpusStore, keys: Sequence[int]) -> Rows:
    labels, vectors = store.rows(np.asarray(keys, np.int64))
    return rows_of(
        vectors,
        labels.words,
        labels.keys,
        public_at=labels.public_at,
        expires_at=labels.expires_at,
        entities=labels.entities,
    )


@contextmanager
def _lent(given: str | VectorBackend) -> Iterator[VectorBackend | None]:
    """Lend the backend at a URL, or a backend itself, which stays its owner's to close; None for the native index."""
    if given == NATIVE:
        yield None
        return
    with closing(backend_by_url(given)) if isinstance(given, str) else nullcontext(given) as backend:
        yield backend


def _name(place: VectorBackend | None) -> str:
    return NATIVE if place is None else place_of(place.state())


def _now() -> int:
    return known_at_microseconds(datetime.now(UTC))
