"""Whether an engine may be used: not after it was closed, and not in a process that was forked from its own."""

from __future__ import annotations

import os

from carag.errors import AuditUnavailable, InvalidArgument

__all__ = ["Lifetime"]


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
