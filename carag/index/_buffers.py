"""Lend numpy arrays to the core as C pointers; an array must outlive the call that it is lent to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.index._core import ffi

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.index._core import CData


_POINTERS: Final = {
    np.dtype(np.float32): ffi.typeof("float[]"),
    np.dtype(np.int64): ffi.typeof("int64_t[]"),
    np.dtype(np.uint8): ffi.typeof("uint8_t[]"),
    np.dtype(np.uint32): ffi.typeof("uint32_t[]"),
    np.dtype(np.uint64): ffi.typeof("uint64_t[]"),
}


def lent(array: NDArray[Any]) -> CData:
    """Let the core read an array."""
    return ffi.from_buffer(_POINTERS[array.dtype], array)


def room(array: NDArray[Any]) -> CData:
    """Let the core write into an array."""
    return ffi.from_buffer(_POINTERS[array.dtype], array, True)
