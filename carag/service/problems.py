"""Report errors as ``application/problem+json`` (RFC 9457): a stable code, and nothing of the request."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from carag.errors import (
    AuditUnavailable,
    AuthorizerUnavailable,
    CorruptFile,
    InvalidArgument,
    ModelUnavailable,
    Refused,
    StoreLocked,
)

MEDIA_TYPE: Final = "application/problem+json"

_UNAUTHORIZED: Final = {
    "TOKEN_MISSING": "The request has no bearer token.",
    "TOKEN_MALFORMED": "The token is malformed.",
    "TOKEN_ALGORITHM": "The token's algorithm is not that of its key.",
    "TOKEN_KEY_UNKNOWN": "The issuer does not publish the token's key.",
    "TOKEN_SIGNATURE": "The token's signature is not valid.",
    "TOKEN_EXPIRED": "The token has expired.",
    "TOKEN_NOT_YET_VALID": "The token is not valid yet.",
    "TOKEN_LIFE": "The token is valid for longer than this service accepts.",
    "TOKEN_ISSUER": "The token is from another issuer.",
    "TOKEN_AUDIENCE": "The token is for another audience.",
    "TOKEN_CLAIM_MISSING": "The token lacks a claim.",
    "TOKEN_CLAIM_INVALID": "A claim of the token is not valid.",
    "TOKEN_GROUPS_LEFT_OUT": "The issuer left groups out of the token, because there are too many.",
}
TITLES: Final[dict[str, tuple[int, str]]] = {
    **{code: (401, title) for code, title in _UNAUTHORIZED.items()},
    "TOKEN_CELL": (403, "The token does not grant this role and purpose."),
    "TOKEN_CELL_UNCLEAR": (403, "The token grants several roles and purposes; name one of each."),
    "TOKEN_DUTY": (403, "The token does not grant this duty."),
    "TOKEN_SUBJECT": (403, "The token belongs to another person."),
    "NOT_BREAK_GLASS": (403, "The cell does not open by breaking the glass."),
    "APPROVER_REQUIRED": (403, "The cell needs the approval of a second person, by a token of their own."),
    "BREAK_GLASS_UNKNOWN": (403, "No glass is broken by this name for this person and cell; break it again."),
    "LEGAL_HOLD": (403, "A legal hold covers a document; two people must release it first."),
    "RETENTION": (403, "A document must still be kept, and the basis waits for that."),
    "TOKEN_TOO_LONG": (413, "The token is too long for a cookie."),
    "CROSS_SITE": (403, "The form was not sent from a page of this console."),
    "TOKEN_KEYS_UNAVAILABLE": (503, "The issuer's keys are not available at the moment."),
    "JSON_MALFORMED": (400, "The body must be a JSON object in UTF-8 with finite numbers."),
    "JSON_DUPLICATE_KEY": (400, "The body has the same key twice."),
    "IDEMPOTENCY_KEY_MISSING": (400, "The request needs one Idempotency-Key of 1 to 128 visible characters."),
    "NOT_FOUND": (404, "There is nothing here, or nothing of yours."),
    "METHOD_NOT_ALLOWED": (405, "This address needs another method."),
    "BODY_TOO_LARGE": (413, "The body is too large."),
    "CONTENT_TYPE": (415, "The body must be application/json."),
    "INVALID_REQUEST": (422, "The request does not match the interface's description."),
    "INVALID_ARGUMENT": (422, "A value of the request cannot be used."),
    "IDEMPOTENCY_KEY_REUSED": (422, "The Idempotency-Key was used for another body."),
    "FILINGS_ONLY": (422, "This store holds filings, which cannot be added by a request."),
    "RATE_LIMITED": (429, "You ask too often."),
    "TOKEN_UNCHECKED": (429, "Too many tokens are being refused at the moment; this one was not checked."),
    "TOO_MANY_AT_ONCE": (429, "Too many of your requests are being worked on."),
    "BREAK_GLASS_LIMIT": (429, "Too many cells are open for you; use one of them, or wait until one shuts."),
    "INTERNAL": (500, "The service failed."),
    "STORE_CORRUPT": (500, "The store failed its own checks."),
    "AUDIT_UNAVAILABLE": (503, "The audit log cannot be written, so nothing is answered."),
    "MODEL_UNAVAILABLE": (503, "An embedder or generator failed."),
    "AUTHORIZER_UNAVAILABLE": (503, "The authority that is asked about documents gave no verdict."),
    "STORE_LOCKED": (503, "Another process holds the store, or changed who may see documents meanwhile."),
    "GRANTS_UNREADABLE": (503, "The grants file cannot be read, so nothing is granted."),
    "BUSY": (503, "Too many requests are being worked on."),
    "QUEUE_FULL": (503, "Too many jobs are waiting."),
    "DRAINING": (503, "The service is shutting down."),
    "TIME_LIMIT": (504, "The request took too long; what was done is recorded."),
}
"""Status and title of each code."""


class ProblemBody(BaseModel):
    """What is sent in place of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    """``urn:carag:error:CODE``."""
    title: str
    status: int
    code: str
    at: list[str] | None = None
    """The fields in question, by the interface's own names."""
    wanted: dict[str, str] | None = None
    """What each of these fields should be; ``request`` stands for the whole. Never what was sent."""


class Problem(Exception):
    """End a request with one of :data:`TITLES`.

    - ``at``: the fields in question, by the interface's own names.
    - ``wanted``: what each field should be, never what was sent.
    - ``retry_after``: seconds.
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
        """Return the JSON document."""
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
        """Return the headers for it."""
        found = {"Cache-Control": "no-store"}
        if self.retry_after is not None:
            found["Retry-After"] = str(self.retry_after)
        if self.status == 401:  # RFC 6750 section 3: no error code without a token
            found["WWW-Authenticate"] = (
                "Bearer" if self.code == "TOKEN_MISSING" else 'Bearer error="invalid_token"'
            )
        return found


def problem_of(error: BaseException) -> Problem:
    """Return the problem that reports an error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):  # these come from the router, which alone raises them
        return Problem(
            {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "INVALID_REQUEST")
        )
    if isinstance(error, Refused):
        code = error.code if error.code in TITLES else "TOKEN_CLAIM_INVALID"
        return Problem(code, retry_after=30 if TITLES[code][0] == 503 else None)
    for kind, code in (
        (InvalidArgument, "INVALID_ARGUMENT"),
        (AuditUnavailable, "AUDIT_UNAVAILABLE"),
        (ModelUnavailable, "MODEL_UNAVAILABLE"),
        (AuthorizerUnavailable, "AUTHORIZER_UNAVAILABLE"),
        (StoreLocked, "STORE_LOCKED"),
        (CorruptFile, "STORE_CORRUPT"),
    ):
        if isinstance(error, kind):
            return Problem(code, retry_after=5 if TITLES[code][0] == 503 else None)
    return Problem("INTERNAL")
