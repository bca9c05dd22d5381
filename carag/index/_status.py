"""Translate every status code of the core into one of CARAG's exceptions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from carag.errors import CaragError, CorruptFile, InvalidArgument
from carag.index._core import ffi, lib

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from carag.index._core import CData


def text(cdata: CData) -> str:
    return ffi.string(cdata).decode("utf-8")


def new_fault() -> CData:
    return ffi.new("carag_fault *")


def raise_for(
    status: int,
    fault: CData,
    *,
    noun: str = "vector",
    keys: NDArray[Any] | None = None,
    words: NDArray[Any] | None = None,
    path: str = "",
) -> None:
    """Raise the exception for a status; ``noun`` names the caller's vectors, ``keys`` and ``words`` its batch."""
    if status != lib.CARAG_OK:
        _raise(status, fault, noun, keys, words, path)


def _raise(
    status: int, fault: CData, noun: str, keys: NDArray[Any] | None, words: NDArray[Any] | None, path: str
) -> NoReturn:
    row = int(fault.row)
    what, where = text(fault.what), text(fault.where)
    if status == lib.CARAG_NO_MEMORY:
        raise MemoryError("the index could not get the memory it needs; nothing was changed")
    if status == lib.CARAG_IO:
        raise OSError(int(fault.os_error), f"{what}: {os.strerror(int(fault.os_error))}", path)
    if status == lib.CARAG_CORRUPT:
        section = f" in section {where!r}" if where else ""
        raise CorruptFile(f"{path}: {what}{section}; restore the file from a copy or rebuild it")
    messages = {
        lib.CARAG_BAD_ARGUMENT: what,
        lib.CARAG_FULL: what,
        lib.CARAG_NOT_FINITE: f"{noun} {row} holds NaN or infinity; want finite numbers",
        lib.CARAG_ZERO_VECTOR: f"{noun} {row} is zero, which has no direction; drop it",
        lib.CARAG_BAD_WORD: f"word {row}, {_at(words, row):#010x}, has control bits set: {what}; "
        "make words with carag.policy_word, delete rows with delete(), and pass allow_quarantine=True "
        "to store quarantined rows",
        lib.CARAG_BAD_KEY: f"key {row} is {_at(keys, row)}, negative; want 0 <= key < 2**63",
        lib.CARAG_DUPLICATE_KEY: f"key {_at(keys, row)} (position {row}) is a duplicate: {what}; "
        "delete the old row first, or choose another key",
        lib.CARAG_UNKNOWN_KEY: f"key {_at(keys, row)} (position {row}) is not in the index",
        lib.CARAG_OVERLAP: f"the window of label {_at(keys, row)} (position {row}) overlaps that of another live "
        "label of its chunk; close that label in the same call, or end it earlier",
        lib.CARAG_BAD_PREDICATE: what,
        lib.CARAG_BAD_KERNEL: what,
    }
    if status in messages:
        raise InvalidArgument(messages[status])
    raise CaragError(f"the core returned status {status}: {text(lib.carag_status_text(status))}")


def _at(values: NDArray[Any] | None, row: int) -> int:
    return row if values is None or row >= values.size else int(values[row])
