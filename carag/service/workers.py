"""Start front workers and keep as many running, serve what they ask, and end them in order.

Each gets sockets of its own that have no name and so no path, mode or peer to check: only the process that inherits
them has them. A thread of the engine's process serves each, so a request meets no event loop here. The listening socket
is shared: where a worker ends, what waits to be accepted is accepted by the others, which SO_REUSEPORT would lose.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carag.errors import ServiceUnavailable
from carag.service import telemetry
from carag.service.frames import (
    OPERATIONS,
    Bounds,
    BrokenFrame,
    Frame,
    FrameReader,
    reply,
)
from carag.service.front import COUNTS, READY, FrontSettings
from carag.service.problems import Problem
from carag.service.release import OPERATIONS as SLOTS
from carag.service.release import Asker
from carag.service.requests import MAX_KEY
from carag.visible import logger

if TYPE_CHECKING:
    from carag.service.service import Service

__all__ = ["ENVIRONMENT", "Workers"]

_logger = logger(__name__)
ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LC_CTYPE")
"""All that a worker sees of the environment: where programs and packages are, and the locale."""
MAX_TOKEN: Final = 64 << 10
"""Greatest number of bytes of a token: longer than the headers of a request may be."""
_CONTROL: Final = Bounds(2, 0, 16 << 20)
_START_SECONDS: Final = 30.0
"""Longest time that the first workers have to listen."""
_PAUSES: Final = (0.1, 30.0)
"""Seconds before a worker that ended is started again: the first time, doubled each time, and at most. One that lived
longer than the most begins anew."""
_END_SECONDS: Final = 5.0
"""Time beyond that for draining after which a worker is killed."""


_Slot = Annotated[str, Field(pattern=f"^({'|'.join(SLOTS)})$")]
"""Whose slot it was: a worker writes no label of its own."""


class _Counts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    requests: list[tuple[str, Annotated[int, Field(ge=100, le=599)], Annotated[float, Field(ge=0)]]]
    problems: list[str]
    overruns: list[_Slot]
    too_short: list[_Slot]


class Workers:
    """As many front workers as the settings say, over one listening socket.

    Parameters
    ----------
    service : Service
    listener : socket
        Bound and listening; stays the caller's to close.
    """

    def __init__(self, service: Service, listener: socket.socket) -> None:
        self._service, self._listener = service, listener
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._ready = threading.Semaphore(0)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._threads = [
            threading.Thread(target=self._keep, args=(number,), name=f"carag-front-{number}")
            for number in range(service.settings.workers)
        ]

    def start(self) -> None:
        """Start all, and wait until they listen.

        Raises
        ------
        ServiceUnavailable
            If one does not; those that do are ended.
        """
        for thread in self._threads:
            thread.start()
        until = time.monotonic() + _START_SECONDS
        for _ in self._threads:
            if not self._ready.acquire(timeout=max(0.0, until - time.monotonic())):
                self.stop()
                raise ServiceUnavailable(
                    f"no front worker listens after {_START_SECONDS:.0f} s; what they say on standard error tells why"
                )

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        with self._lock:
            return [process.pid for process in self._running.values()]

    def stop(self) -> None:
        """Let every worker end what it has in work, and wait for it; idempotent."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        until = time.monotonic() + self._service.settings.drain_seconds + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            _logger.error("a front worker does not end, and is killed")
            self._signal(signal.SIGKILL)
        for thread in self._threads:
            thread.join()

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            for process in self._running.values():
                process.send_signal(number)  # to none that has been waited for

    def _keep(self, number: int) -> None:
        """Run one worker after another until all are to stop."""
        pause, most = _PAUSES
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._run(number)
            except OSError as error:
                _logger.error("a front worker cannot be started: %s", type(error).__name__)  # noqa: TRY400
            if self._stopping.is_set():
                return
            pause = _PAUSES[0] if time.monotonic() - started > most else pause
            _logger.error("a front worker has ended, and is started again in %.1f s", pause)
            self._stopping.wait(pause)
            pause = min(most, 2 * pause)

    def _run(self, number: int) -> None:
        """Run one worker to its end."""
        with contextlib.ExitStack() as stack:
            pairs = [socket.socketpair() for _ in range(1 + self._service.settings.concurrency)]
            for ours, theirs in pairs:
                stack.enter_context(ours)
                stack.enter_context(theirs)
            with self._lock:
                if self._stopping.is_set():
                    return
                process = self._running[number] = self._started([theirs for _, theirs in pairs])
            serving = [
                threading.Thread(target=self._serve, args=(ours,), name="carag-place")
                for ours, _ in pairs[1:]
            ]
            for _, theirs in pairs:
                theirs.close()  # so that the end of the process is the end of the connection
            for thread in serving:
                thread.start()
            try:
                self._listen(pairs[0][0])
            finally:
                if not self._stopping.is_set():
                    process.kill()  # it has ended, or said what no worker says
                process.wait()
                with self._lock:
                    del self._running[number]
                for thread in serving:
                    thread.join()

    def _started(self, theirs: list[socket.socket]) -> subprocess.Popen[bytes]:
        settings = self._service.settings
        numbers = [one.fileno() for one in theirs]
        said = FrontSettings(
            listener=self._listener.fileno(),
            control=numbers[0],
            places=numbers[1:],
            certificate=settings.certificate,
            max_body=settings.max_body,
            max_ingest=settings.max_ingest,
            seconds=settings.seconds,
            drain_seconds=settings.drain_seconds,
            slots=self._service.slots,
            log=settings.log if _logger.isEnabledFor(logging.INFO) else None,
        )
        return subprocess.Popen(  # noqa: S603 - our own program and numbers of our own
            [sys.executable, "-m", "carag.service.front", said.to_json()],
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            stdin=subprocess.DEVNULL,
            pass_fds=[said.listener, *numbers],
            start_new_session=True,  # a terminal's Ctrl+C is for the engine, which ends its workers in order
        )

    def _listen(self, control: socket.socket) -> None:
        """Take what a worker tells of itself, until it ends."""
        frames = FrameReader(control, _CONTROL)
        try:
            while (frame := frames.receive()) is not None:
                if frame.kind == READY:
                    self._ready.release()
                elif frame.kind == COUNTS:
                    counts = _Counts.model_validate_json(frame.body)
                    for request in counts.requests:
                        self._service.metrics.request(*request)
                    for code in counts.problems:
                        self._service.metrics.problem(code)
                    for operation in counts.overruns:
                        self._service.metrics.overrun(operation)
                    for operation in counts.too_short:
                        self._service.metrics.too_short(operation)
        except (BrokenFrame, ValidationError, OSError) as error:
            _logger.error("a front worker is broken: %s", type(error).__name__)  # noqa: TRY400

    def _serve(self, place: socket.socket) -> None:
        """Answer one request after another of one place, until the worker ends."""
        settings = self._service.settings
        most = max(settings.max_body, MAX_KEY + 1 + settings.max_ingest)
        frames = FrameReader(place, Bounds(len(OPERATIONS), MAX_TOKEN, most))
        try:
            while (frame := frames.receive()) is not None:
                place.sendall(self._answer(frame).to_bytes())
        except (BrokenFrame, OSError) as error:
            _logger.info("a place of a front worker is closed: %s", type(error).__name__)
        finally:
            with contextlib.suppress(OSError):
                place.shutdown(socket.SHUT_RDWR)

    def _answer(self, frame: Frame) -> Frame:
        try:
            asker = Asker(frame.head.decode("utf-8"))
        except UnicodeDecodeError:
            return reply(Asker(), Problem("TOKEN_MALFORMED"))
        operation = OPERATIONS[frame.kind]
        with telemetry.request("POST", None):  # the worker has no exporter, and its asker's trace ends there
            telemetry.note({"carag.operation": operation})
            found = self._service.answer(operation, asker, frame.body)
            if isinstance(found, Problem):
                telemetry.note({"carag.code": found.code, "http.response.status_code": found.status})
        return reply(asker, found)
