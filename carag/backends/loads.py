"""Say in the same words what every backend with loads refuses: a second load, a gap, another change meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.backends.protocol import LoadingBackend
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.backends.protocol import VectorBackend


def loading(backend: VectorBackend) -> LoadingBackend:
    """Return a backend as one that takes loads; raise InvalidArgument if it does not."""
    if not isinstance(backend, LoadingBackend):
        raise InvalidArgument(
            f"{backend.state().backend} takes no loads, so rows would be visible too early; use another backend"
        )
    return backend


def is_new(position: int, begin: int, end: int) -> bool:
    """Return whether rows ``begin`` to ``end`` of a stream remain to be written after ``position`` rows.

    Raises InvalidArgument if they leave a gap, or are partly written.

    Examples
    --------
    >>> is_new(10, 10, 20), is_new(20, 10, 20)
    (True, False)
    """
    if end <= position:
        return False
    if begin != position:
        raise InvalidArgument(
            f"{position:,} rows of the load are written, but those from {begin:,} to {end:,} were sent; go on from "
            f"{position:,}"
        )
    return True


def load_is_open() -> InvalidArgument:
    """Return the error that refuses a change, or another load, while a load is open."""
    return InvalidArgument(
        "a load of this collection is open, and nothing else may change it meanwhile; repeat the call that began it "
        "to finish it, or discard it: unload(), or --restart for a copy"
    )


def no_load() -> InvalidArgument:
    """Return the error for a load that was discarded or never begun."""
    return InvalidArgument("no load of this name is open; it may have been discarded, so begin it again")
