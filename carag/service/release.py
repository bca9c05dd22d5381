"""Send responses at times that reveal nothing: one, two, four or eight slots after the request."""

from __future__ import annotations

import asyncio
import select
import selectors
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from carag.service.admission import Person
    from carag.service.metrics import Metrics


_logger = logger(__name__)

OPERATIONS: Final = ("ask", "retrieve", "explain", "receipts", "policy", "other")
"""Operations with a slot of their own; each name but the last is a segment of the paths that it serves."""
EPOCH_REQUESTS: Final = 1_000
"""Requests of one person that are lengthened after an overrun."""
EPOCH_SECONDS: Final = 3600.0
"""Seconds after which the lengthening ends, if this comes sooner."""
WINDOW: Final = 1_000
"""Requests of one role over which overruns are counted."""
RATION: Final = 10
"""Overruns in a window, 1 %, beyond which the role's slot doubles."""
MOST_DOUBLINGS: Final = 4
"""Most doublings of a role's slot, to 16 times its length, whatever its own people provoke."""
_MAX_EPOCHS: Final = 100_000
"""Most epochs remembered; as many as persons in :mod:`carag.service.admission`."""
_CLASSES: Final = (1 << 10, 4 << 10, 16 << 10, 64 << 10)
"""Sizes of bodies in bytes; beyond the last size, its multiples."""
_SPIN: Final = 0.002
"""Seconds of polling before the instant, in a loop with coarse timers: twice their rounding."""
_STREAM: Final = "text/event-stream"


@dataclass(slots=True)
class Asker:
    """Who asks: a bearer token, and what has been verified of it so far. The work on a request fills it in.

    - ``person``: None until the token is verified.
    - ``may_know``: whether the session may know what is hidden from it, so that its response need not wait.
    """

    token: str = field(default="", repr=False)
    person: Person | None = field(default=None, repr=False)
    role: str | None = None
    may_know: bool = False


@dataclass(slots=True)
class _Epoch:
    level: int
    left: int
    until: float


@dataclass(slots=True)
class _Ration:
    level: int = 0
    requests: int = 0
    overruns: int = 0


class Schedule:
    """Decide when a response leaves, from its operation's slot and earlier overruns. For one thread.

    - ``slots``: seconds for each of :data:`OPERATIONS`.
    - ``metrics``: counts overruns.
    """

    def __init__(self, slots: Mapping[str, float], metrics: Metrics | None = None) -> None:
        self._slots = {name: slots[name] for name in OPERATIONS}
        self._metrics = metrics
        self._epochs: OrderedDict[tuple[str, Person], _Epoch] = OrderedDict()
        self._rations: dict[tuple[str, str | None], _Ration] = {}

    def release(self, operation: str, arrival: float, ready: float, asker: Asker | None = None) -> float:
        """Return when a response leaves: ``arrival`` plus a power of two of slots, not before ``ready``."""
        slot, who = self._slots[operation], asker or Asker()
        ration = self._rations.setdefault((operation, who.role), _Ration())
        epoch = None if who.person is None else self._epoch((operation, who.person), arrival)
        due = ration.level if epoch is None else max(ration.level, epoch.level)
        level = level_of(ready - arrival, slot, at_least=due)
        if level > due and who.person is not None:
            self._epochs[operation, who.person] = _Epoch(level, EPOCH_REQUESTS, arrival + EPOCH_SECONDS)
            if len(self._epochs) > _MAX_EPOCHS:
                self._epochs.popitem(last=False)
        self._ration(operation, ration, is_overrun=level > due)
        return arrival + slot * (1 << level)

    def _epoch(self, key: tuple[str, Person], now: float) -> _Epoch | None:
        """Count a request against the epoch that the person's last overrun began, unless that epoch is over."""
        epoch = self._epochs.get(key)
        if epoch is not None:
            epoch.left -= 1
            if epoch.left < 0 or now >= epoch.until:
                del self._epochs[key]
                return None
        return epoch

    def _ration(self, operation: str, ration: _Ration, *, is_overrun: bool) -> None:
        if is_overrun and self._metrics is not None:
            self._metrics.overrun(operation)
        ration.requests += 1
        ration.overruns += is_overrun
        if ration.overruns > RATION:
            ration.level = min(ration.level + 1, MOST_DOUBLINGS)
            ration.requests = ration.overruns = 0
            if self._metrics is not None:
                self._metrics.too_short(operation)
            longer = self._slots[operation] * (1 << ration.level) * 1000
            said = {"event": "SLOT_TOO_SHORT", "operation": operation}
            _logger.warning("SLOT_TOO_SHORT: %s, for one role now %.0f ms", operation, longer, extra=said)
        elif ration.requests >= WINDOW:
            ration.requests = ration.overruns = 0


def level_of(took: float, slot: float, *, at_least: int = 0) -> int:
    """Return how often a slot must be doubled to cover the time that the work took."""
    level = at_least
    while took > slot * (1 << level):
        level += 1
    return level


def operation_of(path: str) -> str:
    """Return the operation whose slot a path has, wherever that operation is served."""
    return next((part for part in path.split("/") if part in OPERATIONS), "other")


def padded(body: bytes, media_type: str) -> bytes:
    r"""Pad a body to its size class with what readers skip.

    JSON may end in white space (RFC 8259, section 2); in an event stream a line that starts with a colon is a comment
    (HTML, section 9.2.6). Raises ValueError if no padding is known for the media type.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind == _STREAM:
        return body + b":".ljust(_size(len(body) + 3) - len(body) - 2) + b"\n\n"
    if kind and not kind.startswith("text/") and not kind.endswith(("/json", "+json")):
        raise ValueError(
            f"no padding is known for {kind}; serve it at a public path, where responses do not wait"
        )
    return body.ljust(_size(len(body)))


def _size(length: int) -> int:
    last = _CLASSES[-1]
    return next((size for size in _CLASSES if length <= size), -(-length // last) * last)


class Released:
    """Hold the responses of an ASGI application back until their slots, except for sessions that may know.

    A request arrives when everything that is read of it has been read. If time counted from its first byte, a client
    that sends the last byte late could choose how much of the slot is left for the work, and measure the work by the
    doubling.

    - ``app``: puts an :class:`Asker` at ``scope["state"]["asker"]``.
    - ``schedule``: if None, nothing waits.
    - ``public``: prefixes of paths whose responses cannot depend on anything hidden; these do not wait.
    """

    def __init__(
        self, app: Callable[..., Any], schedule: Schedule | None, public: Collection[str] = ()
    ) -> None:
        self._app, self._schedule, self._public = app, schedule, tuple(public)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request."""
        schedule = self._schedule
        if schedule is None or scope["type"] != "http" or scope["path"].startswith(self._public):
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        arrival, start, body = loop.time(), {}, bytearray()
        state = scope.setdefault("state", {})
        is_free = False

        async def received() -> Any:
            nonlocal arrival
            message = await receive()
            if message["type"] == "http.request":
                arrival = loop.time()
            return message

        async def held(message: dict[str, Any]) -> None:
            nonlocal is_free
            if message["type"] == "http.response.start":
                is_free = state.get("asker", _UNKNOWN).may_know
                start.update(message)
            if is_free:
                await send(message)
            else:
                body.extend(message.get("body", b""))

        await self._app(scope, received, held)
        if is_free or not start:
            return
        data = _sized(start, bytes(body))
        at = schedule.release(operation_of(scope["path"]), arrival, loop.time(), state.get("asker"))
        await _until(loop, at)
        await send(start)
        await send(data)


_UNKNOWN: Final = Asker()


def _sized(start: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Pad the body, and state its length in the head."""
    headers = [
        (name, value)
        for name, value in start.get("headers", ())
        if name.lower() not in (b"content-length", b"transfer-encoding")
    ]
    kind = next((value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"), "")
    data = padded(body, kind)
    start["headers"] = [*headers, (b"content-length", b"%d" % len(data))]
    return {"type": "http.response.body", "body": data}


async def _until(loop: asyncio.AbstractEventLoop, instant: float) -> None:
    """Wait until an instant, in a way whose end does not depend on when the wait began."""
    is_exact = isinstance(loop, ExactLoop)
    waited = loop.create_future()
    timer = loop.call_at(instant if is_exact else instant - _SPIN, waited.set_result, None)
    try:
        await waited
    finally:
        timer.cancel()
    while loop.time() < instant:
        await asyncio.sleep(0)


class _ExactSelector(selectors.DefaultSelector):
    """Wait exactly as long as asked: ``epoll_wait`` counts in milliseconds, ``select`` in microseconds."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0 and hasattr(self, "fileno"):
            select.select((self.fileno(),), (), (), timeout)  # an epoll instance can be waited for as a file
            timeout = 0
        return super().select(timeout)


class ExactLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers are not rounded to milliseconds."""

    def __init__(self) -> None:
        super().__init__(_ExactSelector())
