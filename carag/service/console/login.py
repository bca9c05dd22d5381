"""Keep a verified token in a cookie, and refuse forms that another site sends with it.

There is no server-side session: the cookie is the token, and every request verifies it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from carag.service.problems import Problem
from carag.service.requests import read_body

if TYPE_CHECKING:
    from starlette.requests import Request


_COOKIE: Final = "__Host-carag"
"""Browsers accept a cookie with this prefix only from this host, over TLS or loopback, and for all its paths."""
_ATTRIBUTES: Final = "Path=/; HttpOnly; Secure; SameSite=Strict"
_MAX_TOKEN: Final = 3800
"""Longest token for a cookie: browsers keep 4,096 bytes of name, value and attributes (RFC 6265 6.1)."""
_MAX_FIELDS: Final = 32
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
"""For every page."""
VERIFY_HEADERS: Final = {
    **HEADERS,
    "Content-Security-Policy": "frame-ancestors 'none'",
}
"""For the page that verifies receipts: it states its own policy, with hashes of its script and style and without
hosts."""


def cookie(token: str, expires: int) -> str:
    """Return the header that keeps a token until it expires; raise Problem ``TOKEN_TOO_LONG``."""
    if len(token) > _MAX_TOKEN:
        raise Problem("TOKEN_TOO_LONG")
    return f"{_COOKIE}={token}; {_ATTRIBUTES}; Max-Age={max(0, expires - int(time.time()))}"


def forgotten() -> str:
    """Return the header that removes the cookie."""
    return f"{_COOKIE}=; {_ATTRIBUTES}; Max-Age=0"


def token_in(request: Request) -> str:
    """Return the token of a request; empty without one, or with several, one of which must be somebody else's."""
    found = [
        value.strip()
        for header in request.headers.getlist("cookie")
        for name, _, value in (pair.partition("=") for pair in header.split(";"))
        if name.strip() == _COOKIE
    ]
    return found[0] if len(found) == 1 else ""


def check_same_site(request: Request) -> None:
    """Raise Problem ``CROSS_SITE`` unless a form was sent from a page of this console.

    ``Sec-Fetch-Site``, which no page can set, decides (W3C Fetch Metadata). ``Origin`` alone could not: with
    ``Referrer-Policy: no-referrer`` browsers send ``null`` with a form (Fetch standard, "append a request Origin
    header"). If it names an origin, it must be this one.
    """
    site, origin = request.headers.getlist("sec-fetch-site"), request.headers.getlist("origin")
    is_own = not origin or origin == ["null"] or urlsplit(origin[0]).netloc == request.headers.get("host")
    if site != ["same-origin"] or len(origin) > 1 or not is_own:
        raise Problem("CROSS_SITE")


async def posted(request: Request, most: int) -> dict[str, str]:
    """Read a form, with each field once; empty fields are left out.

    Raises Problem ``CROSS_SITE``, ``BODY_TOO_LARGE``, ``TIME_LIMIT`` or ``INVALID_REQUEST``.
    """
    check_same_site(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem("INVALID_REQUEST")
    try:
        text = (await read_body(request, most)).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise Problem("INVALID_REQUEST") from None
    if len(dict(pairs)) < len(pairs):
        raise Problem("INVALID_REQUEST")
    return {name: value for name, value in pairs if value.strip()}
