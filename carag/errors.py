"""Define every exception that CARAG raises on purpose.

::

    CaragError
    ├── InvalidArgument (ValueError)   the caller's input; nothing was changed
    │   └── PolicyConflict             a bit both required and forbidden
    ├── Refused                        the session may search nothing
    ├── CorruptFile                    an index, store or receipt that fails its own checks
    ├── StoreLocked                    another writer holds the store
    ├── AuditUnavailable               the log cannot be written, so nothing may be returned
    ├── AnchorUnavailable              a checkpoint could not be confirmed outside; what was logged stays logged
    ├── ModelUnavailable               an embedder or generator failed or is not installed
    ├── BackendUnavailable             a vector backend, or a part of it, did not answer
    ├── BackendFault                   a vector backend returned an impossible result
    ├── Incomplete                     a vector backend found fewer rows than are admissible
    ├── ServiceUnavailable             a service asked over HTTP did not answer; try again later
    └── MissingExtra (ImportError)     an optional package is absent; the message names the extra

    UnlabelledWarning (UserWarning)    rows were stored that no policy admits
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import Final

__all__ = [
    "MALFORMED",
    "AnchorUnavailable",
    "AuditUnavailable",
    "AuthorizerUnavailable",
    "BackendFault",
    "BackendUnavailable",
    "CaragError",
    "CorruptFile",
    "Incomplete",
    "InvalidArgument",
    "MissingExtra",
    "ModelUnavailable",
    "PolicyConflict",
    "Refused",
    "ServiceUnavailable",
    "StoreLocked",
    "UnlabelledWarning",
    "type_and_place",
]


MALFORMED: Final = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""What parsing malformed input may raise: callers catch all of these and report one refusal."""


class CaragError(Exception):
    """Root of every error raised by CARAG."""


class InvalidArgument(CaragError, ValueError):
    """The caller's input cannot be used; nothing was changed."""


class PolicyConflict(InvalidArgument):
    """A mask requires and forbids the same bit."""


class Refused(CaragError):
    """The session may search nothing, whatever the store holds.

    ``code`` is a stable reason, such as ``"UNKNOWN_ROLE"``, which goes into the audit record.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CorruptFile(CaragError):
    """A file fails its own checks (magic, version, length, checksum, bounds)."""


class StoreLocked(CaragError):
    """Another writer holds the store."""


class AuditUnavailable(CaragError):
    """The audit log cannot be written, so no text may be returned."""


class AnchorUnavailable(CaragError):
    """An anchor cannot be reached, refuses, or gives an answer that cannot be verified; try again later."""


class AuthorizerUnavailable(CaragError):
    """An authorizer outside the store failed, or gave no verdict in time; nothing is returned."""


class ModelUnavailable(CaragError):
    """An embedder or generator failed, timed out or was denied."""


class ServiceUnavailable(CaragError):
    """A service asked over HTTP cannot be reached, is busy, or sent a reply that cannot be used."""


class BackendUnavailable(CaragError):
    """A vector backend, or a part of it, cannot be reached; nothing is returned, and nothing is left half done."""


class BackendFault(CaragError):
    """A vector backend returned an impossible result, such as an inadmissible row; nothing is returned."""


class Incomplete(CaragError):
    """A vector backend returned fewer rows than are admissible, even when asked again for all of them."""


class MissingExtra(CaragError, ImportError):
    """An optional package is absent; the message names the extra that brings it."""


class UnlabelledWarning(UserWarning):
    """Rows were added with words that lack the schema version, which no policy admits."""


def type_and_place(error: BaseException) -> str:
    """Name an error by its type and where it was raised, without its message, which may hold unrecorded text.

    Examples
    --------
    >>> type_and_place(KeyError("a secret"))
    'KeyError'
    """
    *_, last = extract_tb(error.__traceback__) or [None]
    return type(error).__name__ + (f" at {Path(last.filename).name}:{last.lineno}" if last else "")


def without_frames(error: BaseException) -> None:
    """Remove stack frames from an error and its causes, because their variables hold text not yet recorded as released.

    A note on each error says where it was raised.
    """
    links: list[BaseException | None] = [error]
    seen: set[int] = set()
    while links:
        link = links.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        if link.__traceback__ is not None:
            last = extract_tb(link.__traceback__)[-1]
            link.add_note(f"raised in {last.name}, {last.filename}:{last.lineno}")
            link.__traceback__ = None
        links += (link.__cause__, link.__context__)
        if isinstance(link, BaseExceptionGroup):
            links += link.exceptions
