"""Send one HTTP request, bounded in time and size.

:mod:`http.client` follows no redirect, reads no proxy from the environment and keeps no cookie, so a request goes to
the server named and to no other. Nothing is logged, and no error quotes a request or an answer.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Timer
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from carag.errors import MALFORMED, CaragError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_CONNECT_SECONDS: Final = 5.0
"""Longest wait for one connection, so that a lost packet leaves time for another try."""
_PIECE: Final = 1 << 16


class NoAnswer(CaragError):
    """No usable answer came; ``is_final`` if the same request would fail again."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class Server(NamedTuple):
    """Where a request goes."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """The headers, by their names in lower case."""
    kind: str
    """The content type, without parameters; empty if the header is missing."""
    charset: str
    """The value as the header states it, or empty."""
    body: bytes | None
    """The body; None if it was not wanted."""


def server_of(url: str) -> tuple[Server, str]:
    """Return the server in an http or https address, and what to ask the server for.

    Examples
    --------
    >>> server_of("https://example.org/a?b")
    (Server(scheme='https', host='example.org', port=443), '/a?b')
    """
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    query = f"?{parts.query}" if parts.query else ""
    return Server(parts.scheme, parts.hostname or "", port), (parts.path or "/") + query


def retry_after(stated: str, now: float) -> float:
    """Read a ``Retry-After`` header, seconds or a date (RFC 9110, 10.2.3), as seconds from now; 0 if it is neither.

    ``now`` is in seconds since 1970.

    Examples
    --------
    >>> retry_after("3", 0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 20), retry_after("soon", 0)
    (3.0, 40.0, 0.0)
    """
    if re.fullmatch("[0-9]{1,9}", stated.strip(), re.ASCII):
        return float(stated)
    try:
        return max(0.0, (parsedate_to_datetime(stated) - datetime.fromtimestamp(now, UTC)).total_seconds())
    except MALFORMED:
        return 0.0


def send(
    method: str,
    server: Server,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    seconds: float,
    most: int,
    wants: Callable[[int, str], bool] = lambda _status, _kind: True,
    connect: Callable[[], socket.socket] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    """Send a request, and read its whole answer.

    Parameters
    ----------
    method, server, target, headers, body
        The request.
    seconds : float
        The limit for the whole request; only looking up the host's name may take longer.
    most : int
        The greatest number of bytes of a body.
    wants : callable, optional
        Tells from status and content type whether to read the body.
    connect : callable, optional
        Makes the connection; by default to the server's host.
    tls : ssl.SSLContext, optional
        For callers who send often, because reading the system's certificates takes milliseconds. By default, a new one.

    Raises
    ------
    NoAnswer
        If no complete answer came in time, its body is too large, or the certificate is not valid.
    """
    late = NoAnswer(f"there was no complete answer within {seconds:g} s")
    sock: socket.socket | None = None
    hung_up = False

    def hang_up() -> None:
        nonlocal hung_up
        hung_up = True
        if sock is not None:
            with suppress(OSError):  # the connection has ended already
                # This is below the TLS layer, which another thread is reading.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    # A socket's time-out starts again with every byte, so a server that sends a byte now and then never reaches it.
    timer = Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    connection = http.client.HTTPConnection(server.host, server.port)
    try:
        sock = _connected(server, seconds) if connect is None else connect()
        sock.settimeout(seconds)
        if server.scheme == "https":
            # The handshake comes later, so that the timer can end it as well.
            sock = wrapped = (tls or ssl.create_default_context()).wrap_socket(
                sock, server_hostname=server.host, do_handshake_on_connect=False
            )
            wrapped.do_handshake()
        if hung_up:
            raise late
        connection.sock = sock
        connection.request(method, target, body, {"Connection": "close", **headers})
        with connection.getresponse() as answer:
            reply = _received(answer, wants, most)
    except ssl.SSLCertVerificationError as error:
        raise NoAnswer(f"its certificate is not valid: {error.verify_message}", is_final=True) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if hung_up or (isinstance(error, TimeoutError) and sock is not None):
            raise late from None
        raise NoAnswer(f"the connection failed ({type(error).__name__})") from None
    finally:
        timer.cancel()
        connection.close()
        if sock is not None:
            sock.close()
    if hung_up:
        raise late
    return reply


def _connected(server: Server, seconds: float) -> socket.socket:
    return socket.create_connection((server.host, server.port), min(seconds, _CONNECT_SECONDS))


def _received(answer: http.client.HTTPResponse, wants: Callable[[int, str], bool], most: int) -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    # Without the header, get_content_type() says text/plain, which is only a guess.
    kind = answer.headers.get_content_type() if "content-type" in headers else ""
    body = _body(answer, most) if wants(answer.status, kind) else None
    return Reply(answer.status, headers, kind, answer.headers.get_content_charset() or "", body)


def _body(answer: http.client.HTTPResponse, most: int) -> bytes:
    too_large = NoAnswer(f"its answer has more than {most} bytes", is_final=True)
    if (answer.length or 0) > most:
        raise too_large
    data = bytearray()
    while chunk := answer.read1(_PIECE):
        data += chunk
        if len(data) > most:
            raise too_large
    if answer.length:  # bytes that the header promised but that did not come
        raise NoAnswer("the connection ended in the middle of its answer")
    return bytes(data)
