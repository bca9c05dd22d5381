"""State what backends that take loads refuse, in the same words: a second load, a gap, another change meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.backends.protocol import LoadingBackend
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.backends.protocol import VectorBackend

__all__ = ["is_new", "load_is_open", "loading", "no_load"]


def loading(backend: VectorBackend) -> LoadingBackend:
    """Return a backend as one that takes loads.

    Raises
    ------
    InvalidArgument
        If it takes none.
    """
    if not isinstance(backend, LoadingBackend):
        raise InvalidArgument(
            f"{backend.state().backend} takes no load, so rows would be seen before all are there; take another"
        )
    return backend


def is_new(position: int, begin: int, end: int) -> bool:
    """Tell whether the rows from ``begin`` to ``end`` of a stream are to be written, of which ``position`` are there.

    Raises
    ------
    InvalidArgument
        If they leave a gap, or are there in part.

    Examples
    --------
    >>> is_new(10, 10, 20), is_new(20, 10, 20)
    (True, False)
    """
    if end <= position:
        return False
    if begin != position:
        raise InvalidArgument(
            f"{position:,} rows of the load are written, and those from {begin:,} to {end:,} came; go on from there"
        )
    return True


def load_is_open() -> InvalidArgument:
    """Return what refuses a change, or another load, while a load is open."""
    return InvalidArgument(
        "a load of this collection is open, and nothing else changes it meanwhile; run what began it again to finish "
        "it, or give it up: unload(), and for a copy --restart"
    )


def no_load() -> InvalidArgument:
    """Return what refuses to go on with a load that is not open: it was given up, or never begun."""
    return InvalidArgument("no load by this name is open; it was given up, so begin it anew")
