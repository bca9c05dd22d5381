"""Send one GET to a public address: bounded in time, size and growth; no redirect followed, no proxy, no cookie.

:mod:`http.client` follows no redirect and reads no proxy from the environment. The host is resolved here and the
connection made to the address that was checked, so that no answer of a name server leads to the machines within.
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
"""Bytes that may come out of a gzipped body whatever its size; the growth of what is more is limited."""
_PIECE: Final = 1 << 16
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an address of IPv4."""


class NoAnswer(CaragError):
    """No answer came that can be used; ``is_final`` if the same request would fare no better."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    kind: str
    """The content type, without parameters."""
    charset: str
    """As the header states it, or empty."""
    body: bytes | None
    """Decoded; None unless the status is 200 and the type one of those wanted."""


class Sender:
    """Sends requests to servers, one at a time.

    Parameters
    ----------
    agent : mapping
        Headers that say who asks.
    private : collection of Address
        Whose host and port may be private or loopback ones, if they are given as a number or as ``localhost``.
    seconds : float
        For one request in all; the look-up of the host's name may take longer.
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

        Parameters
        ----------
        address : Address
        headers : mapping
        kinds : collection of str, optional
            Content types of which the body is read; None for any.
        most : int
            Greatest number of bytes of a body, decoded or not.

        Raises
        ------
        NoAnswer
            If none came in time, or it is too large, or the host is a private address.
        """
        sock = self._connected(address)
        late = False

        def hang_up() -> None:
            nonlocal late
            late = True
            with suppress(OSError):  # it has ended
                # Below TLS, which another thread reads.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

        # A time-out of the socket counts from the last byte; a server that sends one now and then never meets it.
        timer = Timer(self._seconds, hang_up)
        timer.daemon = True
        timer.start()
        connection = http.client.HTTPConnection(address.host, address.port)
        try:
            if address.scheme == "https":
                connection = http.client.HTTPSConnection(address.host, address.port, context=self._tls)
                # The handshake comes after, so that the time-out can end it as well.
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
                raise NoAnswer(f"no whole answer within {self._seconds:g} s") from None
            raise NoAnswer(f"the connection failed ({type(error).__name__})") from None
        finally:
            timer.cancel()
            connection.close()
            sock.close()
        if late:
            raise NoAnswer(f"no whole answer within {self._seconds:g} s")
        return reply

    def _connected(self, address: Address) -> socket.socket:
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NoAnswer(f"{address.host} is not found ({type(error).__name__})") from None
        places = list(dict.fromkeys(str(one[4][0]) for one in found))
        if (address.host, address.port) not in self._private:
            for place in places:
                if not _is_public(place):
                    raise NoAnswer(
                        f"{address.host} is {place}, which is no public address; it is not asked",
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
        raise NoAnswer(f"no connection to {address.host} ({why})")


def _received(answer: http.client.HTTPResponse, kinds: Collection[str] | None, most: int) -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    # get_content_type() says text/plain where nothing is stated, which would be a guess.
    kind = answer.headers.get_content_type() if "content-type" in headers else ""
    charset = answer.headers.get_content_charset() or ""
    body = None
    if answer.status == 200 and (kinds is None or kind in kinds):
        body = _decoded(_body(answer, most), headers.get("content-encoding", "").strip().lower(), most)
    return Reply(answer.status, headers, kind, charset, body)


def _body(answer: http.client.HTTPResponse, most: int) -> bytes:
    too_large = NoAnswer(f"more than {most} bytes; not kept", is_final=True)
    if (answer.length or 0) > most:
        raise too_large
    data = bytearray()
    while chunk := answer.read1(_PIECE):
        data += chunk
        if len(data) > most:
            raise too_large
    if answer.length:  # bytes that the header promised and that did not come
        raise NoAnswer("the connection ended within its answer")
    return bytes(data)


def _decoded(body: bytes, encoding: str, most: int) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise NoAnswer(f"it is encoded as {quoted(encoding)}, and gzip was asked for", is_final=True)
    try:
        with Unpacked(io.BytesIO(body), len(body), free=_FREE) as stream:
            data = bytearray()
            while chunk := stream.read(_PIECE):
                data += chunk
                if len(data) > most:
                    raise NoAnswer(f"more than {most} bytes; not kept", is_final=True)
    except CorruptFile as error:
        raise NoAnswer(f"its gzip {error}", is_final=True) from None
    except (OSError, EOFError, zlib.error):
        raise NoAnswer("its gzip is damaged") from None
    return bytes(data)


def _is_public(place: str) -> bool:
    """Tell whether an address, and the one of IPv4 that it may hold, is of the public Internet."""
    one = ipaddress.ip_address(place.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        held = one.ipv4_mapped or one.sixtofour
        if one in _NAT64:
            held = ipaddress.IPv4Address(int(one) & 0xFFFFFFFF)
        if held is not None:
            return _is_public(str(held))
    return one.is_global and not one.is_multicast
