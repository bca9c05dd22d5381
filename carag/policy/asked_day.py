"""Decide whether the day that a question names becomes the instant as of which it is answered.

It does so only if the session states no instant, its cell may ask ``as_of``, and the question names one day that is
over; no day is guessed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.policy.time import as_of_minutes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime
    from zoneinfo import ZoneInfo


_FIRST_YEAR: Final = 1970
"""The year of the earliest valid instant."""


class DayUse(StrEnum):
    """What the day of a question led to; stable codes, for records."""

    USED = "USED"
    """The answer is as of the end of that day."""
    NO_RIGHT = "NO_RIGHT"
    """The cell may not ask about the past."""
    STATED = "STATED"
    """The session states another instant, and that one counts."""
    SEVERAL = "SEVERAL"
    """The question names several days."""
    UNREADABLE = "UNREADABLE"
    """The day can be read as two days, does not exist, or is before 1970, when nothing was public."""
    NOT_OVER = "NOT_OVER"
    """The day is today or in the future."""


_SAID: Final = {
    DayUse.USED: "The answer is as of the end of {days}, the day that the question names.",
    DayUse.NO_RIGHT: (
        "The question names {days}; this session may not ask about the past, and the answer is as of today."
    ),
    DayUse.STATED: "The question names {days}; the session states another instant, and the answer is as of that.",
    DayUse.SEVERAL: "The question names several days, {days}; no day is guessed, and the answer is as of today.",
    DayUse.UNREADABLE: (
        "The question names a day that does not exist, can be read as two days, or is before 1970; no day is guessed, "
        "and the answer is as of today. Write the day as in 1 March 2024."
    ),
    DayUse.NOT_OVER: "The question names {days}, which is not over; the answer is as of today.",
}


class AskedDay(NamedTuple):
    """The day that a question names, and what it led to."""

    use: DayUse
    named: tuple[date, ...] = ()
    """Each day once, in the order of the question; empty if no day can be read."""

    @classmethod
    def of(
        cls,
        named: Sequence[date | None],
        *,
        stated: datetime | date | None,
        may_ask: bool,
        now: datetime,
        zone: ZoneInfo,
    ) -> AskedDay | None:
        """Decide, from the ``named`` days and the session's ``stated`` instant; None if the question names no day.

        Examples
        --------
        >>> from datetime import UTC, date, datetime
        >>> from zoneinfo import ZoneInfo
        >>> AskedDay.of([date(2024, 3, 1)], stated=None, may_ask=False, now=datetime.now(UTC), zone=ZoneInfo("UTC")).use
        <DayUse.NO_RIGHT: 'NO_RIGHT'>
        """
        if not named:
            return None
        days = tuple(dict.fromkeys(day for day in named if day is not None and day.year >= _FIRST_YEAR))
        is_one = len(days) == len(set(named)) == 1
        if stated is not None and not (is_one and stated == days[0]):
            use = DayUse.STATED
        elif len(days) < len(set(named)):
            use = DayUse.UNREADABLE
        elif days[1:]:
            use = DayUse.SEVERAL
        elif as_of_minutes(days[0], zone) >= as_of_minutes(now):
            use = DayUse.NOT_OVER
        else:
            use = DayUse.USED if may_ask else DayUse.NO_RIGHT
        return cls(use, days)

    @property
    def day(self) -> date | None:
        """The day as of which to answer; None if that is not the question's day."""
        return self.named[0] if self.use is DayUse.USED else None

    def to_json(self) -> dict[str, str | list[str]]:
        """Return plain values."""
        days = [day.isoformat() for day in self.named]
        return {"use": self.use.value, "named": days, "said": self.described()}

    def described(self) -> str:
        """State in one sentence as of when the answer is, and why."""
        return _SAID[self.use].format(days=" and ".join(day.isoformat() for day in self.named) or "a day")
