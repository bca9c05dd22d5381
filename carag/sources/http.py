"""Send one GET to a public address, bounded in time, size and growth; without redirects, proxies or cookies.

:mod:`http.client` follows no redirect and reads no proxy from the environment. The host is resolved here and the
connection goes to the address that was checked, so that no answer of a name server leads to a private network.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import zlib
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Final

from carag.errors import CaragError, CorruptFile
from carag.limits import quoted
from carag.readers.packed import Unpacked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from carag.sources.address import Address

__all__ = ["NoAnswer", "Reply", "Sender"]

_CONNECT_SECONDS: Final = 10.0
"""Longest wait for one connection."""
_FREE: Final = 1 << 20
"""Bytes that a gzipped body may always unpack to, whatever its size; beyond this its growth is limited."""
_PIECE: Final = 1 << 16
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


class NoAnswer(CaragError):
    """No usable answer came; ``is_final`` if the same request would fail again."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    kind: str
    """The content type, without parameters."""
    charset: str
    """As the header states it, or empty."""
    body: bytes | None
    """Decoded; None unless the status is 200 and the type is one of those wanted."""


class Sender:
    """Sends requests to servers, one at a time.

    Parameters
    ----------
    agent : mapping
        Headers that say who asks.
    private : collection of Address
        Servers whose host and port may be private or loopback, if they are given as an IP address or as ``localhost``.
    seconds : float
        For one request in all; looking up the host's name may take longer.
    """

    def __init__(
        self, agent: Mapping[str, str], *, private: Collection[Address] = (), seconds: float = 60.0
    ) -> None:
        self._agent, self._seconds = dict(agent), seconds
        self._private = {(one.host, one.port) for one in private if one.is_own}
        self._tls = ssl.create_default_context()

    def get(
        self, address: Address, headers: Mapping[str, str], *, kinds: Collection[str] | None, most: int
    ) -> Reply:
        """Send a GET and read the answer.

        ``kinds`` are the content types whose body is read, None for any; ``most`` is the greatest number of bytes of a
        body, decoded or not. Raises NoAnswer if nothing came in time, the body is too large, or the host has a private
        address.
        """
        sock = self._connected(address)
        late = False

        def hang_up() -> None:
            nonlocal late
            late = True
            with suppress(OSError):  # the connection has ended already
                # Below the TLS layer, which another thread is reading.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

        # The socket's time-out counts from the last byte; a server that sends one now and then never reaches it.
        timer = Timer(self._seconds, hang_up)
        timer.daemon = True
        timer.start()
        connection = http.client.HTTPConnection(address.host, address.port)
        try:
            if address.scheme == "https":
                connection = http.client.HTTPSConnection(address.host, address.port, context=self._tls)
                # The handshake comes later, so that the time-out can end it as well.
                sock = tls = self._tls.wrap_socket(
                    sock, server_hostname=address.host, do_handshake_on_connect=False
                )
                tls.do_handshake()
            connection.sock = sock
            told = {"Accept-Encoding": "gzip", "Connection": "close", **self._agent, **headers}
            connection.request("GET", address.target, headers=told)
            with connection.getresponse() as answer:
                reply = _received(answer, kinds, most)
        except ssl.SSLCertVerificationError as error:
            raise NoAnswer(f"its certificate is not valid: {error.verify_message}", is_final=True) from None
        except (OSError, EOFError, http.client.HTTPException, ValueError) as error:
            if late:
                raise NoAnswer(f"there was no complete answer within {self._seconds:g} s") from None
            raise NoAnswer(f"the connection failed ({type(error).__name__})") from None
        finally:
            timer.cancel()
            connection.close()
            sock.close()
        if late:
            raise NoAnswer(f"there was no complete answer within {self._seconds:g} s")
        return reply

    def _connected(self, address: Address) -> socket.socket:
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NoAnswer(f"{address.host} was not found ({type(error).__name__})") from None
        places = list(dict.fromkeys(str(one[4][0]) for one in found))
        if (address.host, address.port) not in self._private:
            for place in places:
                if not _is_public(place):
                    raise NoAnswer(
                        f"{address.host} is {place}, which is not a public address; nothing was requested",
                        is_final=True,
                    )
        why = "no address"
        for place in places:
            try:
                made = socket.create_connection((place, address.port), min(_CONNECT_SECONDS, self._seconds))
            except OSError as error:
                why = type(error).__name__
            else:
                made.settimeout(self._seconds)
                return made
        raise NoAnswer(f"there is no connection to {address.host} ({why})")


def _received(answer: http.client.HTTPResponse, kinds: Collection[str] | None, most: int) -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    # Without the header, get_content_type() says text/plain, which would be a guess.
    kind = answer.headers.get_content_type() if "content-type" in headers else ""
    charset = answer.headers.get_content_charset() or ""
    body = None
    if answer.status == 200 and (kinds is None or kind in kinds):
        body = _decoded(_body(answer, most), headers.get("content-encoding", "").strip().lower(), most)
    return Reply(answer.status, headers, kind, charset, body)


def _body(answer: http.client.HTTPResponse, most: int) -> bytes:
    too_large = NoAnswer(f"it has more than {most} bytes; it was not kept", is_final=True)
    if (answer.length or 0) > most:
        raise too_large
    data = bytearray()
    while chunk := answer.read1(_PIECE):
        data += chunk
        if len(data) > most:
            raise too_large
    if answer.length:  # the header promised more bytes than came
        raise NoAnswer("the connection ended in the middle of its answer")
    return bytes(data)


def _decoded(body: bytes, encoding: str, most: int) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise NoAnswer(f"it is encoded as {quoted(encoding)}, but only gzip was asked for", is_final=True)
    try:
        with Unpacked(io.BytesIO(body), len(body), free=_FREE) as stream:
            data = bytearray()
            while chunk := stream.read(_PIECE):
                data += chunk
                if len(data) > most:
                    raise NoAnswer(f"it has more than {most} bytes; it was not kept", is_final=True)
    except CorruptFile as error:
        raise NoAnswer(f"its gzip {error}", is_final=True) from None
    except (OSError, EOFError, zlib.error):
        raise NoAnswer("its gzip is damaged") from None
    return bytes(data)


def _is_public(place: str) -> bool:
    """Tell whether an address, and the IPv4 address that it may embed, is on the public Internet."""
    one = ipaddress.ip_address(place.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        held = one.ipv4_mapped or one.sixtofour
        if one in _NAT64:
            held = ipaddress.IPv4Address(int(one) & 0xFFFFFFFF)
        if held is not None:
            return _is_public(str(held))
    return one.is_global and not one.is_multicast
