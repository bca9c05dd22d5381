"""Record refused tokens: the first of a kind at once, the rest of its minute as a count, so a flood fills no disk."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.audit import Denial

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit import AuditLog


_WINDOW: Final = 60_000_000
"""Microseconds during which further refusals of a kind are only counted."""
_Kind = tuple[str, str | None, str | None]


@dataclass(slots=True)
class _Waiting:
    opened: int
    first: int = 0
    last: int = 0
    count: int = 0


class Denials:
    """Counts and records refusals; safe to share between threads. ``clock`` returns microseconds since 1970."""

    def __init__(self, log: AuditLog, clock: Callable[[], int]) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[_Kind, _Waiting] = {}

    def add(self, why: str, *, issuer: str | None, audience: str | None, count: int = 1) -> None:
        """Count one refusal, or several that were counted elsewhere, and record what is due."""
        now, kind = self._clock(), (why, issuer, audience)
        with self._lock:
            self._write(opened_by=now - _WINDOW)
            if kind not in self._waiting:
                self._log.append(_denial(kind, now, now, count))
                self._waiting[kind] = _Waiting(opened=now)
                return
            one = self._waiting[kind]
            one.first = one.first or now
            one.last, one.count = max(one.last, now), one.count + count

    def flush(self) -> None:
        """Record everything that is counted and not recorded; AuditUnavailable if that is not possible."""
        with self._lock:
            self._write(opened_by=None)

    def _write(self, *, opened_by: int | None) -> None:
        for kind, one in list(self._waiting.items()):
            if opened_by is None or one.opened <= opened_by:
                if one.count:
                    last = one.first if one.count == 1 else one.last
                    self._log.append(_denial(kind, one.first, last, one.count))
                del self._waiting[kind]


def _denial(kind: _Kind, first: int, last: int, count: int) -> Denial:
    why, issuer, audience = kind
    return Denial(first=first, last=last, count=count, why=why, issuer=issuer, audience=audience)
