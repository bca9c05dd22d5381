"""Send requests at stated instants over a few connections, and clock their responses as an attacker would.

One connection waits a slot for each response. Several share the time without disturbing each other: their requests
leave at even steps, so that the work on one ends, at most a few milliseconds later, before another's response leaves.
"""

from __future__ import annotations

import os
import select
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


CORE: Final = 1
"""Where the client runs alone; the service has core 0."""
_SPIN_NS: Final = 300_000
"""Nanoseconds before a step that are polled, for a sleeper wakes late."""


@dataclass(frozen=True, slots=True)
class Clocked:
    """One response: nanoseconds from sending to the first and last byte, and bytes in all."""

    first: int
    last: int
    size: int
    status: int


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    trial: int = -1
    sent: int = 0
    first: int = 0
    data: bytearray = field(default_factory=bytearray)


class Connections:
    """Connections that are kept, in one thread that is pinned to a core.

    Parameters
    ----------
    port : int
    number : int
        Of connections.
    step : float
        Seconds between two requests, of any connections.
    """

    def __init__(self, port: int, number: int, step: float) -> None:
        os.sched_setaffinity(0, {CORE})
        self._step = round(step * 1e9)
        self._all = [_Connection(socket.create_connection(("127.0.0.1", port))) for _ in range(number)]
        for one in self._all:
            one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.late = 0
        """Requests that waited for the response before them on their connection."""

    def send(self, requests: Sequence[bytes]) -> list[Clocked]:
        """Send requests in their order, and return their responses in the same."""
        found: dict[int, Clocked] = {}
        due = time.perf_counter_ns()
        for number, request in enumerate(requests):
            one = self._all[number % len(self._all)]
            self._receive(found, until=due)
            if one.trial >= 0:
                self.late += 1
                while one.trial >= 0:
                    self._receive(found, until=time.perf_counter_ns() + 1_000_000)
                due = time.perf_counter_ns()
            one.trial, one.first = number, 0
            one.data.clear()
            one.sent = time.perf_counter_ns()
            one.socket.sendall(request)
            due += self._step
        while len(found) < len(requests):
            self._receive(found, until=time.perf_counter_ns() + 1_000_000)
        return [found[number] for number in range(len(requests))]

    def close(self) -> None:
        """Close all."""
        for one in self._all:
            one.socket.close()

    def _receive(self, found: dict[int, Clocked], *, until: int) -> None:
        """Clock what arrives until an instant."""
        while (left := until - time.perf_counter_ns()) > 0:
            waiting = {one.socket.fileno(): one for one in self._all if one.trial >= 0}
            ready, _, _ = select.select(waiting, (), (), max(0, left - _SPIN_NS) / 1e9)
            now = time.perf_counter_ns()
            for file in ready:
                one = waiting[file]
                data = one.socket.recv(1 << 20)
                if not data:
                    raise ConnectionError("the service closed a connection")
                one.first = one.first or now
                one.data += data
                if (size := _whole(one.data)) is not None:
                    status = int(one.data[9:12])
                    found[one.trial] = Clocked(one.first - one.sent, now - one.sent, size, status)
                    one.trial = -1


def _whole(data: bytearray) -> int | None:
    """Return the length of a response that is complete."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    if b"transfer-encoding" in head.lower():
        return len(data) if body.endswith(b"0\r\n\r\n") else None
    (length,) = (
        int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")
    )
    return len(data) if len(body) >= length else None
