"""Decide where a store's rows are; the store notes it, so that it is not opened over other rows by mistake."""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from carag.backends import backend_by_url
from carag.engine.rows.backend import noted, unfollowed
from carag.errors import InvalidArgument
from carag.index import Plan
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.backends import Capabilities, IndexState, VectorBackend
    from carag.store.store import CorpusStore

__all__ = [
    "COPY",
    "FILLED",
    "NATIVE",
    "PLACE",
    "check_promises",
    "follow_anew",
    "leave_backend",
    "parts_of",
    "place_of",
    "settled_backend",
]

NATIVE: Final = "native"
"""The index of this process, in a file beside the store."""
PLACE: Final = "backend"
"""The store's note of the kind of backend and the collection; absent for the native index."""
FILLED: Final = "backend_filled"
"""The store's note of the last backend that it filled, to which it may return from the native index."""
_BETWEEN: Final = ", collection "
"""Separates the two in the name of a place."""
COPY: Final = "shadow"
"""The store's note of the backend that holds a copy of its rows, to which it may move."""


@contextmanager
def settled_backend(store: CorpusStore, given: str | VectorBackend | None) -> Iterator[VectorBackend | None]:
    """Lend the backend that holds a store's rows, until the context ends; None for the native index.

    None as ``given`` must mean the native index, because a store keeps no address and no credential.
    """
    last = store.meta_get(PLACE) or NATIVE
    if given is None and last != NATIVE:
        raise InvalidArgument(
            f"the rows of {store.path} are in {last}; name it with backend=..., on the command line --backend, or "
            f"have the index made here with {NATIVE!r}"
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
            f"the rows of {store.path} are in {last}, and {here} was named; name the first, or move with carag "
            "backend copy and switch"
        )
    # The notes are written first, so that a killed run continues where its rows are.
    if store.meta_get(FILLED) == here:
        store.meta_set(PLACE, here)
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
    """Note that a copy of a store has no rows in a backend: those that are there belong to the original."""
    store.meta_update({PLACE: NATIVE, FILLED: "", COPY: ""})


def follow_anew(store: CorpusStore) -> None:
    """Have all labels written again wherever rows are, at the next opening, because they were changed in place."""
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
