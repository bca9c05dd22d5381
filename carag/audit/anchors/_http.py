"""Send one HTTP request to an anchor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from carag.errors import AnchorUnavailable, InvalidArgument
from carag.http import NoAnswer, Reply, send, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_REPLY_BYTES: Final = 1 << 20
"""Largest body of a reply."""
TIMEOUT_SECONDS: Final = 10.0
"""Default time for one request."""


def check_url(url: str) -> str:
    """Return an absolute http or https URL without its last slash; InvalidArgument for anything else."""
    try:
        parts = urlsplit(url)
        port_is_one = parts.port is None or 0 < parts.port < 65536
    except ValueError:
        parts, port_is_one = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_one or parts.fragment:
        raise InvalidArgument(f"{url!r} is not the address of an anchor; want http:// or https:// and a host")
    return url.rstrip("/")


def post(url: str, body: bytes, headers: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> Reply:
    """Send a POST and read the whole answer, whatever its status; AnchorUnavailable if none arrives in time."""
    server, target = server_of(check_url(url))
    try:
        return send("POST", server, target, headers, body, seconds=timeout, most=MAX_REPLY_BYTES)
    except NoAnswer as error:
        raise AnchorUnavailable(f"{url} cannot be reached: {error}; it will be tried again") from error
