"""List and choose the distance kernels. All give the same bits; a process uses one; ``CARAG_KERNEL`` can force it."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument
from carag.index._core import ffi, lib
from carag.index._status import new_fault, raise_for, text

if TYPE_CHECKING:
    from collections.abc import Iterator


def known() -> tuple[str, ...]:
    """List every kernel of the library, widest first, whether or not this machine can run it."""
    return tuple(text(lib.carag_kernel_name(i)) for i in range(lib.carag_kernel_count()))


def available() -> tuple[str, ...]:
    """List the kernels that this machine can run, the preferred one first."""
    return tuple(name for i, name in enumerate(known()) if lib.carag_kernel_is_available(i))


@cache
def active() -> str:
    """Name the kernel in use; cached until :func:`use` changes it."""
    name, fault = ffi.new("const char **"), new_fault()
    if lib.carag_kernel_active(name, fault) != lib.CARAG_OK:
        raise InvalidArgument(
            f"CARAG_KERNEL in the environment: {text(fault.what)}; unset it, or use one of "
            f"{', '.join(available())}"
        )
    return text(name[0])


@contextmanager
def use(name: str) -> Iterator[None]:
    """Use one kernel inside a ``with`` block, in the whole process; for tests and measurements."""
    before = active()
    _set(name)
    try:
        yield
    finally:
        _set(before)


def _set(name: str) -> None:
    fault = new_fault()
    status = lib.carag_set_kernel(name.encode(), fault)
    active.cache_clear()
    if status == lib.CARAG_BAD_KERNEL:
        raise InvalidArgument(f"kernel {name!r}: {text(fault.what)}; available: {', '.join(available())}")
    raise_for(status, fault)
