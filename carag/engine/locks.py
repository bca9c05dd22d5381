"""Share a resource between many readers or one writer, so that a search and its proofs see one state."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ReadWriteLock"]


class ReadWriteLock:
    """A lock that readers share and a writer holds alone. New readers wait if a writer is waiting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._waiting_writers = 0
        self._is_written = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude writers; other readers may enter."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_written or self._waiting_writers))
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Exclude readers and other writers."""
        with self._changed:
            self._waiting_writers += 1
            try:
                self._changed.wait_for(lambda: not (self._is_written or self._readers))
                self._is_written = True
            finally:
                self._waiting_writers -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_written = False
                self._changed.notify_all()
