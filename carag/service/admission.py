"""Limit how often and how much at once each person and all together may ask."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from carag.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Admission", "Person"]

_MAX_PERSONS: Final = 100_000
"""Greatest number of persons whose rate is remembered; whoever asked longest ago is forgotten first."""

Person = tuple[str, str]
"""Issuer and subject."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Admission:
    """A token bucket a person, and a count of requests in work. Safe to share between threads.

    Parameters
    ----------
    rate, burst : int
        Requests a second that one person may make, and how many at once after a pause.
    most, most_each : int
        Requests in work at the same time, of all and of one person.
    clock : callable
        Seconds that never run backwards.
    """

    def __init__(
        self,
        *,
        rate: int,
        burst: int,
        most: int,
        most_each: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst, self._most, self._most_each = rate, burst, most, most_each
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Person, _Bucket] = OrderedDict()
        self._working: dict[Person, int] = {}
        self._all = 0

    @property
    def working(self) -> int:
        """Requests in work."""
        return self._all

    def enter_all(self) -> None:
        """Take a place among all, before anything is known of the asker; :meth:`leave_all` gives it back.

        Raises
        ------
        Problem
            ``BUSY``.
        """
        with self._lock:
            if self._all >= self._most:
                raise Problem("BUSY", retry_after=1)
            self._all += 1

    def leave_all(self) -> None:
        """Give the place back."""
        with self._lock:
            self._all -= 1

    def enter(self, person: Person) -> None:
        """Admit one request of a person; :meth:`leave` ends it.

        Raises
        ------
        Problem
            ``RATE_LIMITED`` or ``TOO_MANY_AT_ONCE``.
        """
        with self._lock:
            now = self._clock()
            bucket = self._buckets.pop(person, None) or _Bucket(float(self._burst), now)
            bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
            bucket.at = now
            self._buckets[person] = bucket
            if len(self._buckets) > _MAX_PERSONS:
                self._buckets.popitem(last=False)
            if bucket.tokens < 1:
                raise Problem("RATE_LIMITED", retry_after=ceil((1 - bucket.tokens) / self._rate))
            if self._working.get(person, 0) >= self._most_each:
                raise Problem("TOO_MANY_AT_ONCE", retry_after=1)
            bucket.tokens -= 1
            self._working[person] = self._working.get(person, 0) + 1

    def leave(self, person: Person) -> None:
        """End a request of a person."""
        with self._lock:
            self._working[person] -= 1
            if not self._working[person]:
                del self._working[person]
