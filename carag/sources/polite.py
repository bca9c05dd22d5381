"""Send requests politely: one at a time, never faster than agreed, and never sooner than the server wants."""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING, Final

from carag.errors import CaragError
from carag.http import NoAnswer, retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from carag.http import Reply
    from carag.sources.address import Address
    from carag.sources.http import Sender


TRIES: Final = 4
"""Greatest number of requests for one address in a run."""
_FIRST_WAIT: Final = 2.0
"""Seconds; the wait before the n-th retry is at most this times 2**n, and is drawn from 0 to that bound
("full jitter": https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)."""
MAX_WAIT: Final = 600.0
"""Longest wait, in seconds, that a run sits out; if a server asks for a longer one, the run ends."""
_BUSY: Final = frozenset({429, 503})
"""The server wants fewer requests: Too Many Requests (RFC 6585, 4), Service Unavailable (RFC 9110, 15.6.4)."""
_RETRIED: Final = _BUSY | {500, 502, 504}


class Paused(CaragError):
    """A host gets no more requests in this run, and none before ``not_before`` (seconds since 1970)."""

    def __init__(self, why: str, not_before: float = 0.0) -> None:
        super().__init__(why)
        self.not_before = not_before


class TimeIsOver(Paused):
    """The run ends here, whichever host is next; the next run continues from here."""

    def __init__(self) -> None:
        super().__init__("the run's time is over")


class Polite:
    """Sends requests with pauses between them, until the clock says ``ends``."""

    def __init__(
        self, sender: Sender, *, clock: Callable[[], float], sleep: Callable[[float], None], ends: float
    ) -> None:
        self._sender, self._clock, self._sleep, self._ends = sender, clock, sleep, ends
        self._last: dict[str, float] = {}
        """When each host was last sent a request."""
        self.requests = 0

    def get(
        self,
        address: Address,
        headers: Mapping[str, str],
        *,
        interval: float,
        kinds: Collection[str] | None,
        most: int,
    ) -> Reply:
        """Send a GET when its turn comes, and send it again if the answer says that it may succeed later.

        ``interval`` is the least number of seconds since the host's last request; the other arguments are those of
        :meth:`carag.sources.http.Sender.get`. Raises NoAnswer if no usable answer came, Paused if the server asks for a
        longer pause, TimeIsOver if the run's time is over.
        """
        for tried in range(1, TRIES + 1):
            self._take_turn(address.host, interval)
            asked, busy = 0.0, False
            try:
                reply = self._sender.get(address, headers, kinds=kinds, most=most)
            except NoAnswer as error:
                if error.is_final:
                    raise
                failure = error
            else:
                if reply.status not in _RETRIED:
                    return reply
                busy = reply.status in _BUSY
                asked = retry_after(reply.headers.get("retry-after", ""), self._clock())
                failure = NoAnswer(f"status {reply.status}")
            if asked > MAX_WAIT or (busy and tried == TRIES):
                until = self._clock() + max(asked, MAX_WAIT)
                raise Paused(f"{address.host} asks for a longer pause ({failure}, {asked:g} s)", until)
            if tried < TRIES:
                self._pause(max(asked, SystemRandom().uniform(0, min(MAX_WAIT, _FIRST_WAIT * 2**tried))))
        raise failure

    def _take_turn(self, host: str, interval: float) -> None:
        last = self._last.get(host)
        if last is not None:
            self._pause(last + interval - self._clock())
        if self._clock() >= self._ends:
            raise TimeIsOver
        self._last[host] = self._clock()
        self.requests += 1

    def _pause(self, seconds: float) -> None:
        if seconds <= 0:
            return
        if self._clock() + seconds >= self._ends:
            raise TimeIsOver
        self._sleep(seconds)
