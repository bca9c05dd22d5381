"""Tell what went wrong as ``application/problem+json`` (RFC 9457): a stable code, and nothing of what came.

An error's own message is never sent: it quotes what the caller wrote, and may hold text that is not on record.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from carag.errors import (
    AuditUnavailable,
    CorruptFile,
    InvalidArgument,
    ModelUnavailable,
    Refused,
    StoreLocked,
)

__all__ = ["MEDIA_TYPE", "TITLES", "Problem", "ProblemBody", "problem_of"]

MEDIA_TYPE: Final = "application/problem+json"

_UNAUTHORIZED: Final = {
    "TOKEN_MISSING": "The request has no bearer token.",
    "TOKEN_MALFORMED": "This is no token.",
    "TOKEN_ALGORITHM": "The token's algorithm is not the one of its key.",
    "TOKEN_KEY_UNKNOWN": "The issuer publishes no such key.",
    "TOKEN_SIGNATURE": "The token's signature does not fit.",
    "TOKEN_EXPIRED": "The token has expired.",
    "TOKEN_NOT_YET_VALID": "The token is not valid yet.",
    "TOKEN_LIFE": "The token is valid for longer than is accepted here.",
    "TOKEN_ISSUER": "The token is of another issuer.",
    "TOKEN_AUDIENCE": "The token is for another audience.",
    "TOKEN_CLAIM_MISSING": "The token lacks a claim.",
    "TOKEN_CLAIM_INVALID": "A claim of the token is not valid.",
}
TITLES: Final[dict[str, tuple[int, str]]] = {
    **{code: (401, title) for code, title in _UNAUTHORIZED.items()},
    "TOKEN_CELL": (403, "The token grants no such role and purpose."),
    "TOKEN_CELL_UNCLEAR": (403, "The token grants several roles and purposes; name one."),
    "TOKEN_DUTY": (403, "The token grants no such duty."),
    "TOKEN_SUBJECT": (403, "The token is another person's."),
    "TOKEN_TOO_LONG": (413, "The token is longer than a browser keeps in a cookie."),
    "CROSS_SITE": (403, "The form was not sent from a page of this console."),
    "TOKEN_KEYS_UNAVAILABLE": (503, "The issuer's keys cannot be had at the moment."),
    "JSON_MALFORMED": (400, "The body is no JSON object in UTF-8 whose numbers are finite."),
    "JSON_DUPLICATE_KEY": (400, "The body states a key twice."),
    "IDEMPOTENCY_KEY_MISSING": (400, "The request needs one Idempotency-Key of 1 to 128 visible characters."),
    "NOT_FOUND": (404, "There is nothing here, or nothing of yours."),
    "METHOD_NOT_ALLOWED": (405, "This address takes another method."),
    "BODY_TOO_LARGE": (413, "The body is too large."),
    "CONTENT_TYPE": (415, "The body must be application/json."),
    "INVALID_REQUEST": (422, "The request does not have the form that the interface describes."),
    "INVALID_ARGUMENT": (422, "A value of the request cannot be used."),
    "IDEMPOTENCY_KEY_REUSED": (422, "The Idempotency-Key stands for another body."),
    "FILINGS_ONLY": (422, "This store holds filings, which no request brings."),
    "RATE_LIMITED": (429, "You ask too often."),
    "TOKEN_UNCHECKED": (429, "So many tokens are refused at the moment that this one was not looked at."),
    "TOO_MANY_AT_ONCE": (429, "Too many of your requests are in work."),
    "INTERNAL": (500, "The service failed."),
    "STORE_CORRUPT": (500, "The store fails its own checks."),
    "AUDIT_UNAVAILABLE": (503, "The audit log cannot be written, so nothing is answered."),
    "MODEL_UNAVAILABLE": (503, "An embedder or generator failed."),
    "STORE_LOCKED": (503, "Another process holds the store."),
    "GRANTS_UNREADABLE": (503, "The file of grants cannot be read, so nothing is granted."),
    "BUSY": (503, "Too many requests are in work."),
    "QUEUE_FULL": (503, "Too many jobs wait."),
    "DRAINING": (503, "The service is about to end."),
    "TIME_LIMIT": (504, "It took too long; what was done is on record."),
}
"""Status and title of each code."""


class ProblemBody(BaseModel):
    """What is sent instead of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    """``urn:carag:error:CODE``."""
    title: str
    status: int
    code: str
    at: list[str] | None = None
    """Of ``INVALID_REQUEST`` and ``INVALID_ARGUMENT``: which of the interface's own fields are meant."""
    wanted: dict[str, str] | None = None
    """What each of these should be, or ``request`` for the whole; never what came."""


class Problem(Exception):
    """Ends a request with one of :data:`TITLES`.

    Parameters
    ----------
    code : str
    at : list of str, optional
        Fields of the interface, by their own names.
    wanted : dict of str, optional
        By field, what it should be, in words of the interface alone.
    retry_after : int, optional
        Seconds after which to ask again.
    """

    def __init__(
        self,
        code: str,
        *,
        at: list[str] | None = None,
        wanted: dict[str, str] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code)
        self.code, self.at, self.wanted, self.retry_after = code, at, wanted, retry_after
        self.status, self.title = TITLES[code]

    def body(self) -> bytes:
        """Return the document."""
        made = ProblemBody(
            type=f"urn:carag:error:{self.code}",
            title=self.title,
            status=self.status,
            code=self.code,
            at=self.at,
            wanted=self.wanted,
        )
        return made.model_dump_json(exclude_none=True).encode()

    def headers(self) -> dict[str, str]:
        """Return the headers that go with it."""
        found = {"Cache-Control": "no-store"}
        if self.retry_after is not None:
            found["Retry-After"] = str(self.retry_after)
        if self.status == 401:  # RFC 6750 section 3: without a token no error is named
            found["WWW-Authenticate"] = (
                "Bearer" if self.code == "TOKEN_MISSING" else 'Bearer error="invalid_token"'
            )
        return found


def problem_of(error: BaseException) -> Problem:
    """Return the problem that an error is told as."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Refused):
        code = error.code if error.code in TITLES else "TOKEN_CLAIM_INVALID"
        return Problem(code, retry_after=30 if TITLES[code][0] == 503 else None)
    for kind, code in (
        (InvalidArgument, "INVALID_ARGUMENT"),
        (AuditUnavailable, "AUDIT_UNAVAILABLE"),
        (ModelUnavailable, "MODEL_UNAVAILABLE"),
        (StoreLocked, "STORE_LOCKED"),
        (CorruptFile, "STORE_CORRUPT"),
    ):
        if isinstance(error, kind):
            return Problem(code, retry_after=5 if TITLES[code][0] == 503 else None)
    return Problem("INTERNAL")
