"""Compute EDGAR's business days in US Eastern time, and the next trading session after a day.

EDGAR is closed at weekends and on the federal holidays of 5 U.S.C. 6103. Closures by executive order (days of national
mourning, some Christmas Eves) are not known here. No filing date falls on such a day, so the only error is a session
that comes one day early for a filing made the day before.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final

from carag.policy import EASTERN

FIRST_YEAR, LAST_YEAR = 1970, 8999
"""Supported years; a date in another year counts as not stated."""
_SESSION: Final = time(9, 30)
"""Regular trading begins (Eastern): by then, a filing dated the day before is public, whatever its hour."""
_OPENS: Final = time(6)
"""EDGAR disseminates from 06:00 Eastern on business days (17 CFR 232.12(c))."""
_SAME_DAY: Final = time(17, 30)
"""A submission sent after this Eastern time is filed the next business day (17 CFR 232.13(a)(2))."""
_SAME_DAY_LATE: Final = time(22)
"""The same for the forms of 17 CFR 232.13(a)(3) and (4), Eastern time; EDGAR closes then."""
_DAY: Final = timedelta(days=1)
_SATURDAY, _SUNDAY = 5, 6
_MONDAY, _THURSDAY = 0, 3
_JUNETEENTH_SINCE: Final = 2021
"""First year in which Juneteenth is a federal holiday (Pub. L. 117-17)."""


def next_session(day: date) -> datetime:
    """Return 09:30 Eastern on the first business day after ``day``."""
    return datetime.combine(_next_business_day(day), _SESSION, tzinfo=EASTERN)


def _next_business_day(day: date) -> date:
    day += _DAY
    while not is_business_day(day):
        day += _DAY
    return day


def disseminated(accepted: datetime, filed: date | None = None, *, until_ten: bool = False) -> datetime:
    """Return when EDGAR disseminated a filing: at its acceptance (aware), or when EDGAR next opened.

    A filing sent after 17:30 Eastern is disseminated at 06:00 on the next business day, and dated that day; with
    ``until_ten``, for a form that may be sent until 22:00, only filings sent after that are. Nothing is public before
    EDGAR opens on the day ``filed`` (``FILED AS OF DATE``). A filing accepted after 17:30 but dated the same day was
    either sent earlier or had its date adjusted (Rule 13(b)); no fact tells which, so this filing also counts from the
    next opening.

    Examples
    --------
    >>> disseminated(datetime(2024, 7, 3, 18, 8, tzinfo=EASTERN)).isoformat()
    '2024-07-05T06:00:00-04:00'
    """
    local = accepted.astimezone(EASTERN)
    day = local.date()
    late = local.time() > (_SAME_DAY_LATE if until_ten else _SAME_DAY)
    if late or not is_business_day(day):
        day = _next_business_day(day)
    if filed is not None and filed > day:
        day = filed
    return max(local, datetime.combine(day, _OPENS, tzinfo=EASTERN))


def end_of_year(year: int) -> datetime:
    """Return the last minute of a year in Eastern time."""
    return datetime(year, 12, 31, 23, 59, tzinfo=EASTERN)


def is_business_day(day: date) -> bool:
    """Tell whether EDGAR operates on a day."""
    return day.weekday() < _SATURDAY and day not in federal_holidays(day.year)


@lru_cache(maxsize=256)
def federal_holidays(year: int) -> frozenset[date]:
    """Return the days of a year on which a federal holiday is observed.

    A holiday on a Saturday is observed on the Friday before, and one on a Sunday on the Monday after. New Year's Day
    may therefore be observed on 31 December of the year before.
    """
    named = [
        date(year, 1, 1),
        _nth_weekday(year, 1, _MONDAY, 3),  # Martin Luther King Jr.
        _nth_weekday(year, 2, _MONDAY, 3),  # Washington's Birthday
        _last_monday_of_may(year),  # Memorial Day
        date(year, 7, 4),
        _nth_weekday(year, 9, _MONDAY, 1),  # Labor Day
        _nth_weekday(year, 10, _MONDAY, 2),  # Columbus Day
        date(year, 11, 11),  # Veterans Day
        _nth_weekday(year, 11, _THURSDAY, 4),  # Thanksgiving
        date(year, 12, 25),
    ]
    if year >= _JUNETEENTH_SINCE:
        named.append(date(year, 6, 19))
    observed = {_observed(day) for day in named}
    if date(year, 12, 31).weekday() == _SATURDAY - 1:
        observed.add(date(year, 12, 31))
    return frozenset(day for day in observed if day.year == year)


def _observed(day: date) -> date:
    if day.weekday() == _SATURDAY:
        return day - _DAY
    return day + _DAY if day.weekday() == _SUNDAY else day


def _nth_weekday(year: int, month: int, weekday: int, n: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (n - 1))


def _last_monday_of_may(year: int) -> date:
    last = date(year, 5, 31)
    return last - timedelta(days=last.weekday())
