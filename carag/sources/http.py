"""Send one GET to a public address, with a bound on how far its body may unpack.

The host is resolved here, and the connection goes to the address that was checked, so that no answer from a name server
leads to a private network.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
import zlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from carag.errors import CorruptFile
from carag.http import NoAnswer, Reply, Server, send
from carag.limits import quoted
from carag.readers.packed import Unpacked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from carag.sources.address import Address


_CONNECT_SECONDS: Final = 10.0
"""Longest wait for one connection."""
_FREE: Final = 1 << 20
"""Bytes that a gzipped body may always unpack to, whatever its size; beyond this its growth is limited."""
_PIECE: Final = 1 << 16
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


class Sender:
    """Sends requests to servers, one at a time.

    Parameters
    ----------
    agent : mapping
        Headers that say who is asking.
    private : collection of Address
        Servers whose host and port may be private or loopback, if they are given as an IP address or as ``localhost``.
    seconds : float
        For one whole request; looking up the host's name may take longer.
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
        reply = send(
            "GET",
            Server(address.scheme, address.host, address.port),
            address.target,
            {"Accept-Encoding": "gzip", **self._agent, **headers},
            seconds=self._seconds,
            most=most,
            wants=lambda status, kind: status == 200 and (kinds is None or kind in kinds),
            connect=partial(self._connected, address),
            tls=self._tls,
        )
        if reply.body is None:
            return reply
        encoding = reply.headers.get("content-encoding", "").strip().lower()
        return replace(reply, body=_decoded(reply.body, encoding, most))

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
                return socket.create_connection((place, address.port), min(_CONNECT_SECONDS, self._seconds))
            except OSError as error:
                why = type(error).__name__
        raise NoAnswer(f"there is no connection to {address.host} ({why})")


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
