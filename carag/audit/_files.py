"""Write files atomically and durably, and lock a directory for one writer."""

from __future__ import annotations

import contextlib
import os
import secrets
import weakref
from pathlib import Path
from typing import Final

from carag.errors import StoreLocked

_PIECE: Final = 1 << 20
"""The number of bytes overwritten at a time."""


def write_atomically(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """Replace a file durably: temporary file, fsync, rename, fsync of the directory."""
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable (POSIX: a rename survives a power cut only after this)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def overwrite(descriptor: int, size: int) -> None:
    """Durably overwrite the first ``size`` bytes of a file with zeros."""
    for start in range(0, size, _PIECE):
        os.pwrite(descriptor, bytes(min(_PIECE, size - start)), start)
    os.fsync(descriptor)


class WriterLock:
    """An exclusive lock on a file, held until :meth:`release` or the end of the process.

    Raises StoreLocked if another writer, in this process or another, holds it.
    """

    def __init__(self, path: Path) -> None:
        import fcntl  # POSIX only; verifying a receipt works everywhere and takes no lock

        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise StoreLocked(f"another writer holds {path.parent}; close it first") from error
        _held.add(self)

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


# The lock is the open file's, which a child of fork has too: it would outlive a parent that is killed.

_held: Final[weakref.WeakSet[WriterLock]] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
