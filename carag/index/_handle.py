"""Hold an object of the core until it is closed, or until no call needs it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from carag.errors import InvalidArgument
from carag.index._core import ffi

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.index._core import CData

__all__ = ["Handle"]


class Handle:
    """What both indexes share: one object of the core, and the path of its file."""

    __slots__ = ("_handle", "_path")

    def _hold(self, core: CData, free: Callable[[CData], None], path: str) -> None:
        self._handle: CData | None = ffi.gc(core, free)
        self._path = path

    @property
    def _core(self) -> CData:
        """The handle. A call keeps its own reference, so close() in another thread cannot free it midway."""
        if self._handle is None:
            raise InvalidArgument("the index is closed; make or load another")
        return self._handle

    def close(self) -> None:
        """Free the index; idempotent. Calls running in other threads finish first."""
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
