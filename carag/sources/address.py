"""Normalise web addresses, decide which of them a mirror covers, and name their files."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from carag.errors import InvalidArgument
from carag.limits import quoted

MAX_URL: Final = 2048
"""Greatest number of characters of an address; RFC 9110, 4.1, recommends supporting 8,000."""
_PORTS: Final = {"http": 80, "https": 443}
_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""RFC 3986, 2.3: these characters mean the same whether escaped or not."""
_PATH: Final = "/:@!$&'()*+,;=~%"
_QUERY: Final = _PATH + "?"
_SLUG: Final = 60
"""Greatest number of characters in a file's name that come from the address."""
_DIGITS: Final = 20
"""Hexadecimal digits of the address's SHA-256 in a file's name: 80 bits, so that two addresses never share one."""


@dataclass(frozen=True, slots=True)
class Address:
    """An http or https address in the normal form of RFC 3986, 6.2; the query is kept as it is.

    Examples
    --------
    >>> str(Address.of("HTTP://Example.ORG:80/a/../%7Eb/ü.html?Id=2#top"))
    'http://example.org/~b/%C3%BC.html?Id=2'
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str | None

    @classmethod
    def of(cls, url: str, base: str = "") -> Address:
        """Read an address, possibly relative to another.

        Raises InvalidArgument if it is neither http nor https, names a user, or is too long.
        """
        try:
            parts = urlsplit(urljoin(base, url.strip()))
            named, port = parts.hostname or "", parts.port
            host = str(ipaddress.ip_address(named)) if ":" in named else named.encode("idna").decode().lower()
        except ValueError:
            raise InvalidArgument(
                f"{quoted(url)} is not a web address; want http:// or https:// and a host"
            ) from None
        if parts.scheme not in _PORTS or not host or port == 0:
            raise InvalidArgument(f"{quoted(url)} is not a web address; want http:// or https:// and a host")
        if (
            parts.username is not None or parts.password is not None
        ):  # the message does not repeat the address, which may hold a secret
            raise InvalidArgument("an address names a user; want one that anyone may request")
        if not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
            raise InvalidArgument(f"{quoted(host)} is not a host; want a name or an IP address")
        if "?" in url or parts.query:
            query: str | None = _escaped(parts.query, _QUERY)
        else:
            query = None
        made = cls(
            parts.scheme,
            host,
            port or _PORTS[parts.scheme],
            _without_dots(_escaped(parts.path, _PATH)),
            query,
        )
        if len(str(made)) > MAX_URL:
            raise InvalidArgument(f"an address has {len(str(made))} characters; want {MAX_URL} at most")
        return made

    @property
    def origin(self) -> str:
        """Scheme, host and port: the scope of one ``robots.txt`` (RFC 9309, 2.3)."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{shown}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def target(self) -> str:
        """Path and query: what a request sends."""
        return self.path + ("" if self.query is None else f"?{self.query}")

    def __str__(self) -> str:
        return self.origin + self.target

    @property
    def is_usual(self) -> bool:
        """Whether the port is the scheme's default."""
        return self.port == _PORTS[self.scheme]

    @property
    def is_own(self) -> bool:
        """Whether the address names a machine directly, by IP address or as ``localhost``, without a name server."""
        with suppress(ValueError):
            return bool(ipaddress.ip_address(self.host))
        return self.host == "localhost"

    def stands_for(self, one: Address) -> bool:
        """Tell whether another address is on this server: same scheme, host and port, or https on default ports."""
        is_same = (one.scheme, one.port) == (self.scheme, self.port)
        is_safer = self.scheme == "http" and one.scheme == "https" and self.is_usual and one.is_usual
        return one.host == self.host and (is_same or is_safer)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is mirrored: everything below some paths of the start's host, and everything on the other hosts named.

    Examples
    --------
    >>> scope = Scope.of(Address.of("https://example.org/circulars/index.html"))
    >>> [scope.covers(Address.of(one)) for one in ("https://example.org/circulars/7", "https://example.org/press")]
    [True, False]
    >>> scope = Scope.of(Address.of("https://example.org/circulars/"), also=("files.example.org",))
    >>> [scope.covers(Address.of(one)) for one in ("https://files.example.org/7.pdf", "http://files.example.org/7.pdf")]
    [True, False]
    """

    start: Address
    prefixes: tuple[str, ...]
    also: tuple[Address, ...] = ()
    """The roots of the other hosts."""
    twin: str = ""
    """The host that the start redirects to: the start's own name with or without ``www.``."""

    @classmethod
    def of(cls, start: Address, prefixes: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> Scope:
        """Make the scope of a start; without prefixes, the folder of the start.

        Raises InvalidArgument if a prefix is not a path, the start is outside all prefixes, or another host is not
        valid.
        """
        for one in prefixes:
            if not one.startswith("/"):
                raise InvalidArgument(f"the prefix {quoted(one)} is not a path; want one such as /circulars/")
        paths = tuple(_without_dots(_escaped(one, _PATH)) for one in prefixes)
        hosts = {str(one): one for one in (_root(host, start) for host in also)}
        scope = cls(start, paths or (start.path[: start.path.rindex("/") + 1],), (*hosts.values(),))
        if not scope.covers(start):
            raise InvalidArgument(
                f"{start} is not below {' or '.join(paths)}; want a start below one of the prefixes"
            )
        return scope

    def covers(self, one: Address) -> bool:
        """Tell whether an address may be requested: below a prefix or on another named host; never http after https."""
        if any(other.stands_for(one) for other in self.also):
            return True
        homes = [self.start, *([replace(self.start, host=self.twin)] if self.twin else [])]
        # A server may take %2F for a slash: an address that leaves the prefix when read that way is outside.
        read = _without_dots(unquote(one.path).replace("\\", "/"))
        return (
            any(home.stands_for(one) for home in homes)
            and any(one.path.startswith(prefix) for prefix in self.prefixes)
            and any(read.startswith(unquote(prefix)) for prefix in self.prefixes)
        )

    def of_link(self, one: Address) -> Address | None:
        """Return where a link leads if that is covered; on a site mirrored over https, http links are read as https."""
        if self.start.scheme == "https" and one.scheme == "http" and self.start.is_usual and one.is_usual:
            one = replace(one, scheme="https", port=_PORTS["https"])
        return one if self.covers(one) else None

    def with_twin(self, to: Address) -> Scope | None:
        """Return the scope with the host that the start redirects to, if that is its own with or without ``www.``."""
        names = {self.start.host.removeprefix("www."), to.host.removeprefix("www.")}
        if self.start.is_own or to.host == self.start.host or len(names) > 1:
            return None
        wider = replace(self, twin=to.host)
        return wider if wider.covers(to) else None

    @property
    def private(self) -> tuple[Address, ...]:
        """Servers that may be private: none if the start is on the Internet, where strangers write links."""
        return (self.start, *self.also) if self.start.is_own else ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host that may be requested."""
        return tuple(
            dict.fromkeys(
                host for host in (self.start.host, self.twin, *(one.host for one in self.also)) if host
            )
        )

    def __str__(self) -> str:
        others = ", ".join(sorted(one.origin for one in self.also))
        return f"{self.start.origin} below {', '.join(self.prefixes)}" + (f", and {others}" if others else "")


def _root(host: str, start: Address) -> Address:
    if re.search(r"[\s/?#@*]", host) or not host:
        raise InvalidArgument(f"{quoted(host)} is not a host; want an exact name, such as files.example.org")
    one = Address.of(f"{start.scheme}://{host}")
    if one.stands_for(start):
        raise InvalidArgument(
            f"{quoted(host)} is the host of the start; want a different host, or a --prefix on this one"
        )
    return one


def file_name(address: Address, ending: str) -> str:
    """Return the name of an address's file, which is always the same and valid on every system.

    Examples
    --------
    >>> file_name(Address.of("https://example.org/x/Display.aspx?Id=12"), ".html")
    'display-aspx-id-12-...html'
    """
    last = unquote(f"{address.path.rstrip('/').rpartition('/')[2]} {address.query or ''}".strip())
    slug = re.sub("[^a-z0-9]+", "-", last.lower().removesuffix(ending))[:_SLUG].strip("-") or "index"
    return f"{slug}-{hashlib.sha256(str(address).encode()).hexdigest()[:_DIGITS]}{ending}"


def _escaped(text: str, safe: str) -> str:
    """Escape only what needs it, with capitals in escapes (RFC 3986, 6.2.2)."""

    def same(found: re.Match[str]) -> str:
        sign = chr(int(found[1], 16))
        return sign if sign in _UNRESERVED else found[0].upper()

    lone = re.sub("%(?![0-9A-Fa-f]{2})", "%25", text)
    return _ESCAPE.sub(same, quote(lone, safe=safe, errors="replace"))


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1:] in ([".."], ["."]):
        kept.append("")
    return "/" + "/".join(kept)
