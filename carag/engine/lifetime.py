"""Say how long an engine and its parts may be used, and close what it opened, in one order, however it ends.

An engine ends when it is closed or dropped, or is still open when the interpreter exits. Finalizers of its parts would
run in any order, so resources are closed after the program's last statement.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import os
import threading
import warnings
import weakref
from contextlib import ExitStack
from typing import Final, Protocol

from carag.errors import AuditUnavailable, InvalidArgument


class Lifetime:
    """The time in which an engine's parts may be used; they share one."""

    def __init__(self) -> None:
        self.is_over = False
        self._pid = os.getpid()

    def check(self) -> None:
        """Raise InvalidArgument after the end, AuditUnavailable in a forked process."""
        if self.is_over:
            raise InvalidArgument("this engine is closed; open the store again with carag.Engine.open(...)")
        if os.getpid() != self._pid:  # log, files and connections belong to the parent process
            raise AuditUnavailable(
                "this engine was opened before the process forked; open the store in the child instead"
            )


_open: Final[dict[Ending, None]] = {}
"""What is open, in the order of opening."""


class Closes(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it; idempotent."""


class Ending:
    """The end of what one owner opened.

    Nothing in ``resources`` may refer to ``owner``; when it is gone, they are closed.
    """

    def __init__(self, owner: Closes, what: str, resources: ExitStack) -> None:
        self._what, self._resources, self._pid = what, resources, os.getpid()
        self._closing = threading.RLock()
        self._owner = weakref.ref(owner, self._dropped)
        _open[self] = None

    @property
    def owner(self) -> Closes | None:
        """The owner; None once it is gone."""
        return self._owner()

    def close(self) -> None:
        """Close everything, the last opened first; idempotent. In a forked child do nothing: the parent owns it all."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            try:
                self._resources.close()
            finally:
                _open.pop(self, None)

    def _dropped(self, _: object) -> None:
        """Close in a separate thread: the collector may have interrupted this one while it holds a lock."""
        if os.getpid() == self._pid and self in _open:
            _thread.start_new_thread(self.close, ())
            warnings.warn(
                f"{self._what} was not closed; close it, or open it in a with statement",
                ResourceWarning,
                stacklevel=2,
            )


def close_dropped() -> None:
    """Close what was dropped and is not closed yet, or wait until it is, so that its store can be opened again."""
    for ending in list(_open):
        if ending.owner is None:
            ending.close()


def _close_all() -> None:
    with ExitStack() as all_open:
        for ending in list(_open):
            all_open.callback((ending.owner or ending).close)


def _leave_to_parent() -> None:
    """Keep what was inherited, forever: SQLite forbids a child even to close a connection (How To Corrupt, 2.6)."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dict(_open)))
    _open.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_leave_to_parent)
