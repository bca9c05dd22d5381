"""Own a core object until it is closed, or until no call needs it any more."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Self

from carag.errors import InvalidArgument
from carag.index._core import ffi

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.index._core import CData


def owned(core: CData, free: Callable[[CData], None], *needs: CData) -> CData:
    """Free a core object when the last reference to it is gone, before the objects that it ``needs``.

    Not ``ffi.gc``: in a reference cycle the collector runs finalizers in arbitrary order.
    """
    end = weakref.finalize(core, _free, free, ffi.cast(ffi.typeof(core), core), needs)
    end.atexit = False
    return core


def _free(free: Callable[[CData], None], core: CData, needs: tuple[CData, ...]) -> None:
    free(core)
    del needs


class Handle:
    """One object of the core and the path of its file; the base of both indexes."""

    __slots__ = ("_handle", "_path")

    def _hold(self, core: CData, free: Callable[[CData], None], path: str) -> None:
        self._handle: CData | None = owned(core, free)
        self._path = path

    @property
    def _core(self) -> CData:
        """The handle. A call keeps its own reference, so close() in another thread cannot free it midway."""
        if (core := self._handle) is None:
            raise InvalidArgument("the index is closed; make or load another")
        return core

    def close(self) -> None:
        """Free the index; idempotent. Calls running in other threads finish first."""
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
