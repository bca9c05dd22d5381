"""Bound what a connection may take before a request is whole: the size of a head, its time, and how many a peer has.

uvicorn bounds neither: its limit of a head holds only for one that a read left incomplete, a connection that never ends
its head stays as long as it likes, and one peer may have them all. A peer's connections are counted where they are
accepted, so that one too many costs little, and one that never ends its TLS handshake counts as well.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from carag.service.release import ExactLoop

if TYPE_CHECKING:
    import asyncio

__all__ = ["MAX_HEAD", "Door", "DoorLoop", "Listener"]

MAX_HEAD: Final = 16 << 10
"""Greatest number of bytes of a request's head, up to a piece; a token with many groups has a few thousand."""
_PIECE: Final = 4 << 10
"""Bytes that are parsed at once, so that no read, however large, brings a whole head beyond the limit."""
HEAD_SECONDS: Final = 10.0
"""Time for a TLS handshake; and for a head, from the connection, or from the answer before it."""
_REFUSED_AT_ONCE: Final = 64
"""Connections that are refused before what is in work goes on."""
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class Listener(socket.socket):
    """A listening socket that takes so many connections of one peer, and closes what goes beyond at once.

    Parameters
    ----------
    listener : socket.socket
        Whose place this takes.
    most_each : int
        Connections that one peer may have at once; of IPv6 a peer is a network of 64 bits, which one host may have.
    is_plain : bool
        Whether a peer can be told so: without TLS.
    """

    def __init__(self, listener: socket.socket, most_each: int, *, is_plain: bool) -> None:
        super().__init__(listener.family, listener.type, listener.proto, listener.detach())
        self._most_each, self._is_plain = most_each, is_plain
        self._taken: Counter[str | bytes] = Counter()

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection of a peer that has not too many."""
        for _ in range(_REFUSED_AT_ONCE):
            made, address = super().accept()
            peer = _peer(address[0])
            if self._taken[peer] < self._most_each:
                return _Taken(made, self._taken, peer), address
            with made, contextlib.suppress(OSError):  # gone already
                made.setblocking(False)
                if self._is_plain:
                    made.send(_FULL)
        raise BlockingIOError  # as if there were no more; the loop comes back for them


class _Taken(socket.socket):
    """A connection, counted until it is closed or forgotten."""

    def __init__(self, made: socket.socket, taken: Counter[str | bytes], peer: str | bytes) -> None:
        super().__init__(made.family, made.type, made.proto, made.detach())
        taken[peer] += 1
        self._leave = weakref.finalize(self, _leave, taken, peer)

    def close(self) -> None:
        self._leave()
        super().close()


def _leave(taken: Counter[str | bytes], peer: str | bytes) -> None:
    taken[peer] -= 1
    if not taken[peer]:
        del taken[peer]


class DoorLoop(ExactLoop):
    """An event loop whose servers wait for a TLS handshake as long as for a head; uvicorn leaves asyncio's 60 s."""

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:
        """Return a server, as any loop does."""
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = HEAD_SECONDS
        return await super().create_server(*given, **named)


class Door(H11Protocol):
    """One connection of the first listener."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as there
        """Take a connection."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse in pieces; a head that is too long ends the connection, also one that waits for an answer before it."""
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _PIECE])
            if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) > MAX_HEAD:
                self.transport.close()

    def handle_events(self) -> None:
        """Wait no longer for a head that has come."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Wait for the next head."""
        self._wait_for_head()
        super().on_response_complete()

    def _wait_for_head(self) -> None:
        self._end_wait()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _peer(host: str) -> str | bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return host if address.version == 4 else address.packed[:8]
