"""Limit what a connection may use before its request is complete: a head's size and time, and connections per peer."""

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


MAX_HEAD: Final = 16 << 10
"""Most bytes in a request's head, give or take one piece; a token with many groups takes a few thousand."""
_PIECE: Final = 4 << 10
"""Bytes parsed at once, so that one large read cannot bring in a whole head beyond the limit."""
HEAD_SECONDS: Final = 10.0
"""Time allowed for a TLS handshake, and for a head since the connection or the previous answer."""
_REFUSED_AT_ONCE: Final = 64
"""Connections refused in a row before the event loop gets its turn."""
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class PeerListener(socket.socket):
    """A listening socket that limits each peer's connections and at once closes any beyond the limit.

    - ``listener``: the socket that this one replaces.
    - ``most_each``: connections that one peer may have at once; an IPv6 peer is a /64 network, since one host may own
      all of it.
    - ``is_plain``: whether a peer can be sent an HTTP answer: not with TLS.
    """

    def __init__(self, listener: socket.socket, most_each: int, *, is_plain: bool) -> None:
        super().__init__(listener.family, listener.type, listener.proto, listener.detach())
        self._most_each, self._is_plain = most_each, is_plain
        self._taken: Counter[str | bytes] = Counter()

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection from a peer that is within its limit."""
        for _ in range(_REFUSED_AT_ONCE):
            made, address = super().accept()
            peer = _peer(address[0])
            if self._taken[peer] < self._most_each:
                return _Taken(made, self._taken, peer), address
            with made, contextlib.suppress(OSError):  # the peer is gone
                made.setblocking(False)
                if self._is_plain:
                    made.send(_FULL)
        raise BlockingIOError  # as if no connection were left; the loop comes back for the rest


class _Taken(socket.socket):
    """A connection, counted until it is closed or garbage-collected."""

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
    """An event loop whose servers allow a TLS handshake :data:`HEAD_SECONDS`; uvicorn leaves asyncio's 60 s."""

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:
        """Return a server, with the shorter time for a handshake."""
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = HEAD_SECONDS
        return await super().create_server(*given, **named)


class Door(H11Protocol):
    """One connection of the first listener."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as there
        """Start timing the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop timing."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse in pieces; close the connection on too long a head, even one pipelined behind another request."""
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _PIECE])
            if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) > MAX_HEAD:
                self.transport.close()

    def handle_events(self) -> None:
        """Stop timing once the head is complete."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Start timing the next head."""
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
