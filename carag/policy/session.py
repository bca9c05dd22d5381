"""Who asks, for which purpose, and as of when."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from carag.errors import InvalidArgument
from carag.policy.time import as_of_minutes, known_at_microseconds

if TYPE_CHECKING:
    from datetime import date, datetime

__all__ = ["Session", "SessionSource"]


class SessionSource(StrEnum):
    """How the engine came to know the session; the audit record says which."""

    ASSERTED = "asserted"
    """The caller says so; nothing was checked."""
    VERIFIED = "verified"
    """A verifier checked a signed token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The subject, action and environment of one or more questions (NIST SP 800-162).

    Role and purpose come from the session alone; nothing in a question can widen them.

    Parameters
    ----------
    role, purpose : str
        A cell of the policy table, such as ``"buy_side"`` and ``"invest"``. An unknown cell is refused when
        the session is used, so that the refusal is on record.
    subject : str, optional
        Who asks. Recorded only as a salted commitment.
    as_of : datetime or date, optional
        What was public then. An aware datetime, or a date meaning the end of that day in US Eastern time;
        the moment of the question if absent, or if that is earlier.
    known_at : datetime, optional
        What the store had been told by then, so that a past question can be asked again: aware; the moment of the
        question if absent, or if that is earlier.

    Raises
    ------
    InvalidArgument
        If role, purpose or subject is no text, or a time has no time zone.

    Examples
    --------
    >>> from datetime import date
    >>> Session(role="buy_side", purpose="invest", as_of=date(2025, 5, 1)).source.value
    'asserted'
    """

    role: str
    purpose: str
    subject: str | None = None
    as_of: datetime | date | None = None
    known_at: datetime | None = None
    source: SessionSource = field(init=False, default=SessionSource.ASSERTED)

    def __post_init__(self) -> None:
        for name in ("role", "purpose"):
            if not isinstance(value := getattr(self, name), str) or not value:
                raise InvalidArgument(f"session {name} is {value!r}; want text such as 'buy_side'")
        if self.subject is not None and not isinstance(self.subject, str):
            raise InvalidArgument(f"session subject is {self.subject!r}; want text or None")
        if self.as_of is not None:
            as_of_minutes(self.as_of)
        if self.known_at is not None:
            known_at_microseconds(self.known_at)
