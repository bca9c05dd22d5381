"""Close what an engine opened, in one order, however it ends: closed, dropped, or open as the interpreter goes.

A file that nobody closes is closed by the collector, and so is an engine, with the same warning. But never by
finalizers of its parts, which the collector runs in no order, nor while modules are torn down: what is open is held
here, and closed as the last statement of the program has run, while everything still works.
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

__all__ = ["Ending", "close_dropped"]

_open: Final[dict[Ending, None]] = {}
"""What is open, in the order of opening."""


class Closes(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it; idempotent."""


class Ending:
    """The end of what one owner opened.

    Parameters
    ----------
    owner : Closes
        Whose ``close`` closes this. Nothing in ``resources`` refers to it; when it is gone, they are closed.
    what : str
        How the warning calls it.
    resources : ExitStack

    Examples
    --------
    >>> class Owner:
    ...     def close(self):
    ...         ending.close()
    >>> owner, resources = Owner(), ExitStack()
    >>> _ = resources.callback(print, "closed")
    >>> ending = Ending(owner, "an owner", resources)
    >>> owner.close()
    closed
    >>> owner.close()
    """

    def __init__(self, owner: Closes, what: str, resources: ExitStack) -> None:
        self._what, self._resources, self._pid = what, resources, os.getpid()
        self._closing = threading.RLock()
        self._owner = weakref.ref(owner, self._dropped)
        _open[self] = None

    @property
    def owner(self) -> Closes | None:
        """None once it is gone."""
        return self._owner()

    def close(self) -> None:
        """Close everything, the last opened first; idempotent. In a child of fork do nothing: it is the parent's."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            try:
                self._resources.close()
            finally:
                _open.pop(self, None)

    def _dropped(self, _: object) -> None:
        """Close in a thread of its own: the collector may have stopped this one while it holds what closing takes."""
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
    """Keep what was inherited for ever: SQLite forbids a child even to close a connection (How To Corrupt, 2.6)."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dict(_open)))
    _open.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_leave_to_parent)
