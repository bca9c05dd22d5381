"""Limit how often each person may ask, and how many requests each person and all people together may send at once."""

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


_MAX_PERSONS: Final = 100_000
"""Greatest number of persons whose rate is remembered; the one who asked longest ago is forgotten first."""

_MAX_TOKENS: Final = 10_000
"""Most accepted tokens that are remembered, and most refused ones; the least recently seen go first."""

Person = tuple[str, str]
"""Issuer and subject."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Admission:
    """A token bucket for each person, and a count of the requests being worked on. Thread-safe.

    - ``rate``, ``burst``: requests per second for one person, and how many at once after a pause.
    - ``most``, ``most_each``: requests being worked on at the same time, in all and for one person.
    - ``clock``: monotonic seconds.
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
        """Requests being worked on."""
        return self._all

    def enter_all(self) -> None:
        """Take one of the places before anything is known about the caller; raise Problem ``BUSY`` if none is free."""
        with self._lock:
            if self._all >= self._most:
                raise Problem("BUSY", retry_after=1)
            self._all += 1

    def leave_all(self) -> None:
        """Give the place back."""
        with self._lock:
            self._all -= 1

    def enter(self, person: Person) -> None:
        """Admit a person's request until :meth:`leave`; raise ``RATE_LIMITED`` or ``TOO_MANY_AT_ONCE``."""
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
        """End a person's request."""
        with self._lock:
            self._working[person] -= 1
            if not self._working[person]:
                del self._working[person]


class Strangers:
    """One token bucket for all tokens that are refused, so that a flood of them uses no threads and fills no log.

    Checking a signature takes a thread and time, and every refusal is recorded. So beyond ``rate`` refusals a second
    only tokens that were accepted at their last check are let through: people who have asked before are not delayed.
    Someone with a new token gets one of the checks that the bucket still allows. Half of the bucket is reserved for
    tokens never seen before, so a client that repeats an expired token cannot use it up. Only hashes of tokens are
    kept. Thread-safe.

    - ``rate``: refusals per second, and as many at once after a pause.
    - ``clock``: monotonic seconds.
    """

    def __init__(self, rate: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._lock = threading.Lock()
        self._bucket = _Bucket(float(rate), clock())
        # Two tables, so that no number of bad tokens can displace a good one.
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._bad: OrderedDict[bytes, None] = OrderedDict()
        self._unchecked = 0

    def check(self, token: str) -> None:
        """Let a token through to be checked; raise Problem ``TOKEN_UNCHECKED`` during a flood."""
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
        """Note that a token was accepted."""
        with self._lock:
            _move(_digest(token), self._bad, self._good)

    def refused(self, token: str) -> None:
        """Note that a token was refused."""
        with self._lock:
            _move(_digest(token), self._good, self._bad)
            self._bucket.tokens = max(0.0, self._bucket.tokens - 1)

    def take_unchecked(self) -> int:
        """Return how many tokens were turned away unchecked since the last call."""
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
