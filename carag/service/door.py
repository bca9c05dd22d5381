"""Bound what a connection may take before a request is whole: the size of a head, its time, and how many a peer has.

uvicorn bounds neither: its limit of a head holds only for one that a read left incomplete, a connection that never ends
its head stays as long as it likes, and one peer may have them all.
"""

from __future__ import annotations

import ipaddress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["MAX_HEAD", "Door", "door"]

MAX_HEAD: Final = 16 << 10
"""Greatest number of bytes of a request's head, up to a piece; a token with many groups has a few thousand."""
_PIECE: Final = 4 << 10
"""Bytes that are parsed at once, so that no read, however large, brings a whole head beyond the limit."""
HEAD_SECONDS: Final = 10.0
"""Time for a head, from the connection, or from the answer before it."""
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class Door(H11Protocol):
    """One connection of the first listener.

    Parameters
    ----------
    most_each : int
        Connections that one peer may have at once; of IPv6 a peer is a network of 64 bits, which one host may have.
    """

    def __init__(self, *given: Any, most_each: int, **named: Any) -> None:
        super().__init__(*given, **named)
        self.peer: str | bytes = ""
        self._most_each = most_each
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as there
        """Take a connection, if its peer has not too many."""
        super().connection_made(transport)
        self.peer = _peer(self.client[0] if self.client else "")
        if sum(one.peer == self.peer for one in self.connections if isinstance(one, Door)) > self._most_each:
            transport.write(_FULL)
            transport.close()
        else:
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


def door(most_each: int) -> Callable[..., Door]:
    """Return what makes the connections of a server."""
    return partial(Door, most_each=most_each)


def _peer(host: str) -> str | bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return host if address.version == 4 else address.packed[:8]
