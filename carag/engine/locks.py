"""Many readers or one writer: what is searched and what is proved are of one state."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turns"]


class Turns:
    """A lock that readers share and a writer has alone. A writer who waits goes before readers who come later.

    Examples
    --------
    >>> turns = Turns()
    >>> with turns.reading(), turns.reading():
    ...     pass
    >>> with turns.writing():
    ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._waiting = 0
        self._is_written = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read; nothing is written meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_written or self._waiting))
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write; nobody reads meanwhile."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not (self._is_written or self._readers))
                self._is_written = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_written = False
                self._changed.notify_all()
