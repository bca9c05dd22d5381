"""Send one HTTP request to an anchor: bounded in time and size, no redirect followed."""

from __future__ import annotations

import http.client
import time
import urllib.request
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit

from carag.errors import AnchorUnavailable, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reply", "check_url", "post"]

MAX_REPLY_BYTES: Final = 1 << 20
"""Largest body of a reply."""
TIMEOUT_SECONDS: Final = 10.0
"""Default time for one request."""


class Reply(NamedTuple):
    """A reply of an anchor, whatever its status."""

    status: int
    content_type: str
    body: bytes


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would send the request to a server that was not configured."""

    def redirect_request(self, *_: object) -> None:
        return None


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
    request = urllib.request.Request(check_url(url), body, dict(headers), method="POST")  # noqa: S310 # checked
    deadline = time.monotonic() + timeout
    try:
        try:
            answer = urllib.request.build_opener(_Stay).open(request, timeout=timeout)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            data = b""
            while chunk := answer.read1(1 << 16):
                data += chunk
                if len(data) > MAX_REPLY_BYTES:
                    raise AnchorUnavailable(f"{url} answers with more than {MAX_REPLY_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise AnchorUnavailable(f"{url} does not finish its answer within {timeout:g} s")
            return Reply(answer.status, answer.headers.get("Content-Type", ""), data)
    except (OSError, http.client.HTTPException) as error:
        raise AnchorUnavailable(f"{url} cannot be reached: {error}; it will be tried again") from error
