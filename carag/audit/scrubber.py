"""Scrubs a log that is being written: re-hashes it at a rate, and remembers what is damaged."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from carag.audit.scrub import Rehash, paced
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit.evidence import Evidence
    from carag.audit.recovery import Tip

__all__ = ["Scrubber"]


class Scrubber:
    """Re-hashes a log on demand, or again and again in a thread of its own.

    Parameters
    ----------
    evidence : Evidence
    origin : str
    tip : callable
        Returns where the log ends now.
    """

    def __init__(self, evidence: Evidence, origin: str, tip: Callable[[], Tip]) -> None:
        self._evidence, self._origin, self._tip = evidence, origin, tip
        self._starting, self._stopping = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self.damage: str | None = None
        """What does not hold together, once that was found: nothing may be written any more."""

    def scrub(self, rate: float | None = None) -> int:
        """Re-hash what the log holds now; return how many records were read, fewer if it was stopped.

        Raises
        ------
        CorruptFile
            Naming the first thing that does not hold together.
        """
        tip = self._tip()
        rehash = Rehash(self._evidence, self._origin)
        try:
            for _ in paced(rehash.advance(tip.frontier.size), rate, self._stopping.wait):
                if self._stopping.is_set():
                    return rehash.frontier.size
            rehash.expect(tip.frontier.size, tip.frontier.root())
        except CorruptFile as damage:
            self.damage = str(damage)
            raise
        return rehash.frontier.size

    def start(self, rate: float, every: float) -> None:
        """Scrub in a thread until stopped; harmless when repeated.

        Raises
        ------
        InvalidArgument
            Unless both are above zero.
        """
        if not (rate > 0 and every > 0):
            raise InvalidArgument(
                f"the scrub reads {rate} records a second, every {every} seconds; want both above 0"
            )
        with self._starting:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=self._go_on, args=(rate, every), name="carag-audit-scrub", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Stop, also in the middle of a pass, and wait for the thread."""
        self._stopping.set()
        with self._starting:
            if self._thread is not None:
                self._thread.join()

    def _go_on(self, rate: float, every: float) -> None:
        while not self._stopping.is_set():
            try:
                self.scrub(rate)
            except CorruptFile:
                return  # kept as the damage, which the next append reports
            except AuditUnavailable as error:
                if not self._stopping.is_set():
                    self.damage = f"it cannot be read for the scrub ({error})"
                return
            self._stopping.wait(every)
