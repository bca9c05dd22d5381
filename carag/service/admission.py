"""Limit how often and how much at once each person and all together may ask."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from carag.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Admission", "Person", "Strangers"]

_MAX_PERSONS: Final = 100_000
"""Greatest number of persons whose rate is remembered; whoever asked longest ago is forgotten first."""

_MAX_TOKENS: Final = 10_000
"""Greatest number of good tokens that are remembered, and of bad ones; those not seen for longest go first."""

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


class Strangers:
    """One token bucket for all tokens that are refused, so that a flood of them costs no thread and fills no log.

    Checking a signature takes a thread and time, and what is refused goes on record. So beyond ``rate`` refusals a
    second no token is looked at but those that the last look accepted: whoever has asked before is not held up at all.
    A person who comes during a flood with a new token gets in with one of the looks that the bucket still grants, and
    half of it is kept for tokens that were never seen: one client that repeats an expired token leaves that half alone.
    What it knows of a token is a hash. Safe to share between threads.

    Parameters
    ----------
    rate : int
        Refusals a second, and as many at once after a pause.
    clock : callable
        Seconds that never run backwards.
    """

    def __init__(self, rate: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._lock = threading.Lock()
        self._bucket = _Bucket(float(rate), clock())
        # Two, so that no number of bad tokens makes a good one forgotten.
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._bad: OrderedDict[bytes, None] = OrderedDict()
        self._unchecked = 0

    def check(self, token: str) -> None:
        """Let a token through to be looked at.

        Raises
        ------
        Problem
            ``TOKEN_UNCHECKED``.
        """
        digest = _digest(token)
        with self._lock:
            if digest in self._good:
                return
            now, bucket = self._clock(), self._bucket
            bucket.tokens = min(self._rate, bucket.tokens + (now - bucket.at) * self._rate)
            bucket.at = now
            if bucket.tokens < ((1 + self._rate) / 2 if digest in self._bad else 1):
                self._unchecked += 1
                raise Problem("TOKEN_UNCHECKED", retry_after=1)

    def accepted(self, token: str) -> None:
        """Note that a token is a good one."""
        with self._lock:
            _move(_digest(token), self._bad, self._good)

    def refused(self, token: str) -> None:
        """Note that a token was refused."""
        with self._lock:
            _move(_digest(token), self._good, self._bad)
            self._bucket.tokens = max(0.0, self._bucket.tokens - 1)

    def take_unchecked(self) -> int:
        """Return how many tokens were not looked at since the last time."""
        with self._lock:
            count, self._unchecked = self._unchecked, 0
            return count


def _move(digest: bytes, source: OrderedDict[bytes, None], target: OrderedDict[bytes, None]) -> None:
    source.pop(digest, None)
    target[digest] = None
    target.move_to_end(digest)
    if len(target) > _MAX_TOKENS:
        target.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
