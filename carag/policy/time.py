"""Read a policy's two clocks: what was public as of a given instant, and what was known at a given instant.

As-of is whole minutes since 1970-01-01T00:00Z, because EDGAR's times are accurate to about a minute; known-at is
microseconds, as in the audit record.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.bits import whole_number

EASTERN: ZoneInfo
"""EDGAR's clock: acceptance times are Eastern, and a filing day ends at midnight Eastern."""

NEVER: Final = 0xFFFF_FFFF
"""``public_at`` of a passage that is never public, in minutes since the epoch: greater than any as-of instant."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _eastern() -> ZoneInfo:
    return ZoneInfo("America/New_York")  # ZoneInfo caches it


def __getattr__(name: str) -> ZoneInfo:
    # Loaded on first use, because an index that is searched at given minutes needs no time zone data.
    if name == "EASTERN":
        return _eastern()
    raise AttributeError(f"module 'carag.policy.time' has no attribute {name!r}")


def as_of_minutes(value: datetime | date, zone: ZoneInfo | None = None, *, name: str = "as_of") -> int:
    """Convert an instant, or the end of a day, to minutes since the epoch, ``0 <= minutes < NEVER``.

    A datetime must be aware, and is rounded down to the minute; a date means the last minute of that day in ``zone``,
    by default US Eastern.

    Examples
    --------
    >>> as_of_minutes(date(1970, 1, 1))
    1739
    """
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise InvalidArgument(
                f"{name} {value.isoformat()} has no time zone; give an aware datetime, or a date for the "
                f"end of that day in {zone or 'US Eastern time'}"
            )
        instant = value
    elif isinstance(value, date):
        instant = datetime.combine(value, time(23, 59), tzinfo=zone or _eastern())
    else:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an aware datetime or a date")
    minutes = (instant - _EPOCH) // timedelta(minutes=1)
    if not 0 <= minutes < NEVER:
        raise InvalidArgument(f"{name} {value.isoformat()} is before 1970; nothing was public then")
    return minutes


def from_minutes(minutes: int) -> datetime:
    """Convert minutes since the epoch back to an aware UTC datetime.

    Examples
    --------
    >>> from_minutes(1739).isoformat()
    '1970-01-02T04:59:00+00:00'
    """
    return _EPOCH + timedelta(minutes=minutes)


def known_at_microseconds(value: datetime) -> int:
    """Convert an aware instant, 1970 or later, to whole microseconds since the epoch.

    Examples
    --------
    >>> known_at_microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidArgument(f"known_at is {quoted(value)}; want an aware datetime")
    microseconds = (value - _EPOCH) // timedelta(microseconds=1)
    if microseconds < 0:
        raise InvalidArgument(f"known_at {value.isoformat()} is before 1970; nothing was known then")
    return microseconds


def instants(as_of: datetime | date | int | None, alive_at: datetime | date | int | None) -> tuple[int, int]:
    """Read the minutes at which a row must be public, by default 0, and not expired, by default the same minute."""
    public = 0 if as_of is None else _minutes("as_of", as_of)
    alive = public if alive_at is None else _minutes("alive_at", alive_at)
    if alive < public:
        raise InvalidArgument(
            f"alive_at (minute {alive}) is before as_of (minute {public}); want as_of or later"
        )
    return public, alive


def _minutes(name: str, instant: datetime | date | int) -> int:
    if isinstance(instant, date):
        return as_of_minutes(instant, name=name)
    try:
        number = whole_number(instant)
    except TypeError:
        number = -1
    if not 0 <= number < NEVER:
        raise InvalidArgument(
            f"{name} is {quoted(instant)}; want an instant, or minutes from 0 to {NEVER - 1}"
        )
    return number


def parse_moment(text: str) -> datetime | date:
    """Read a date or a time in ISO 8601; the caller checks its zone.

    Examples
    --------
    >>> parse_moment("2025-05-01")
    datetime.date(2025, 5, 1)
    """
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text)
        except (ValueError, TypeError):
            continue
    raise InvalidArgument(
        f"{quoted(text)} is neither a date nor a time in ISO 8601; write 2025-05-01 or 2025-05-01T09:30Z"
    )
