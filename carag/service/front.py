"""Run one front worker: HTTP, TLS and headers here, and every request to the engine's process, which decides it.

A worker opens no store, holds no key of the log, no grant and no issuer's key, and verifies no token. It gets what it
needs in one argument, which is no secret, and its way to the engine as open sockets: they have no name, so nobody else
can come by them. When the engine ends, these end, and so does the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from carag.service.frames import (
    ANSWERED,
    HEADER,
    OPERATIONS,
    REPLIES,
    BrokenFrame,
    Frame,
    announced,
    learn,
    problem_in,
)
from carag.service.logs import shown
from carag.service.problems import Problem
from carag.service.release import Asker, ExactLoop
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COUNTS", "READY", "FrontSettings", "RemoteService", "main"]

_logger = logger(__name__)
READY, COUNTS = 0, 1
"""What a worker tells the engine besides requests: that it listens, and what it has counted."""
_COUNT_SECONDS: Final = 0.5
"""How often it tells that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """What a worker needs: descriptors that it inherits, and limits."""

    listener: int
    control: int
    places: list[int]
    certificate: str | None
    max_body: int
    max_ingest: int
    seconds: float
    drain_seconds: int
    slots: dict[str, float] | None
    log: Literal["json", "text"] | None

    def to_json(self) -> str:
        """Return the worker's argument."""
        return json.dumps(asdict(self))


class _Counted:
    """Keeps what is counted until it is told to the engine, whose second listener shows the counts of all."""

    def __init__(self) -> None:
        self._requests: list[tuple[str, int, float]] = []
        self._problems: list[str] = []
        self._overruns: list[str] = []
        self._too_short: list[str] = []

    def request(self, operation: str, status: int, seconds: float) -> None:
        self._requests.append((operation, status, seconds))

    def problem(self, code: str) -> None:
        self._problems.append(code)

    def overrun(self, operation: str) -> None:
        self._overruns.append(operation)

    def too_short(self, operation: str) -> None:
        self._too_short.append(operation)

    def taken(self) -> Frame | None:
        said = {
            "requests": self._requests,
            "problems": self._problems,
            "overruns": self._overruns,
            "too_short": self._too_short,
        }
        if not any(said.values()):
            return None
        self._requests, self._problems, self._overruns, self._too_short = [], [], [], []
        return Frame(COUNTS, body=json.dumps(said).encode())


class RemoteService:
    """Stands in for a :class:`carag.service.service.Service` that is in another process.

    Parameters
    ----------
    places : list of socket
        Connected to the engine's process, where a thread serves each; as many requests can be in work.
    max_body, max_ingest : int
    seconds : float
        After which a request is given up; its work goes on to its record.
    slots : dict, optional
        As :attr:`carag.service.service.Service.slots`.
    """

    def __init__(
        self,
        places: list[socket.socket],
        *,
        max_body: int,
        max_ingest: int,
        seconds: float,
        slots: dict[str, float] | None = None,
    ) -> None:
        self.max_body, self.max_ingest, self.slots, self._seconds = max_body, max_ingest, slots, seconds
        self.metrics = _Counted()
        self.is_draining = False
        self._free = places
        self._whole = len(places)
        self._tasks: set[asyncio.Task[Frame]] = set()
        for place in places:
            place.setblocking(False)

    async def answered(self, operation: str, asker: Asker, asked: bytes = b"") -> bytes:
        """Have a request answered; errors as for :meth:`carag.service.service.Service.done`.

        Raises
        ------
        Problem
            ``ENGINE_UNAVAILABLE`` if the engine's process has ended or sends what is no answer.
        """
        if self.is_draining:
            raise Problem("DRAINING", retry_after=5)
        if not self._free:
            raise Problem("BUSY" if self._whole else "ENGINE_UNAVAILABLE", retry_after=1)
        frame = Frame(OPERATIONS.index(operation), asker.token.encode("utf-8", "replace"), asked)
        # A request that is given up keeps its place until its answer has come, which is then nobody's.
        task = asyncio.create_task(self._exchanged(self._free.pop(), frame))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            reply = await asyncio.wait_for(asyncio.shield(task), self._seconds)
            learn(asker, reply)
            if reply.kind == ANSWERED:
                return reply.body
            raise problem_in(reply)
        except TimeoutError:
            raise Problem("TIME_LIMIT") from None
        except (BrokenFrame, OSError, EOFError) as error:
            _logger.error("the engine does not answer: %s", type(error).__name__)  # noqa: TRY400
            raise Problem("ENGINE_UNAVAILABLE", retry_after=1) from None

    def _ended(self, task: asyncio.Task[Frame]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, for whoever waited for it may have gone

    async def _exchanged(self, place: socket.socket, frame: Frame) -> Frame:
        try:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(place, frame.to_bytes())
            kind, head, size = announced(await _received(place, HEADER.size), REPLIES)
            reply = Frame(kind, await _received(place, head), await _received(place, size))
        except BaseException:
            self._whole -= 1
            place.close()
            raise
        self._free.append(place)
        return reply


async def _received(place: socket.socket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), bytearray(size)
    rest = memoryview(data)
    while rest:
        count = await loop.sock_recv_into(place, rest)
        if not count:
            raise EOFError
        rest = rest[count:]
    return bytes(data)


async def _run(said: FrontSettings) -> None:
    from carag.service.app import application
    from carag.service.http import first_server

    places = [socket.socket(fileno=number) for number in said.places]
    listener, control = socket.socket(fileno=said.listener), socket.socket(fileno=said.control)
    control.setblocking(False)
    service = RemoteService(
        places,
        max_body=said.max_body,
        max_ingest=said.max_ingest,
        seconds=said.seconds,
        slots=said.slots,
    )
    server = first_server(
        application(service), certificate=said.certificate, drain_seconds=said.drain_seconds
    )

    def stop() -> None:
        service.is_draining = server.should_exit = True

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    ended = asyncio.create_task(_until_closed(control, stop))
    told = asyncio.create_task(_tell(control, service.metrics, lambda: server.started))
    try:
        await server.serve([listener])
    finally:
        told.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await told
        ended.cancel()
        if (last := service.metrics.taken()) is not None:
            with contextlib.suppress(OSError):  # the engine has gone before
                await loop.sock_sendall(control, last.to_bytes())


async def _until_closed(control: socket.socket, stop: Callable[[], None]) -> None:
    """Stop as soon as the engine's process has ended; it says nothing on this socket."""
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_recv(control, 1)
    stop()


async def _tell(control: socket.socket, counted: _Counted, is_started: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    while not is_started():
        await asyncio.sleep(0.01)
    await loop.sock_sendall(control, Frame(READY).to_bytes())
    while True:
        await asyncio.sleep(_COUNT_SECONDS)
        if (frame := counted.taken()) is not None:
            # Half a frame would break the connection, so a cancellation waits for its end.
            await asyncio.shield(loop.create_task(_sent(control, frame)))


async def _sent(control: socket.socket, frame: Frame) -> None:
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(control, frame.to_bytes())


def main(arguments: list[str]) -> int:
    """Run until SIGTERM, or until the engine's process ends."""
    said: dict[str, Any] = json.loads(arguments[0])
    settings = FrontSettings(**said)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the engine's, which ends its workers in order
    with (
        shown(settings.log) if settings.log else contextlib.nullcontext(),
        asyncio.Runner(loop_factory=ExactLoop) as runner,
    ):
        runner.run(_run(settings))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
