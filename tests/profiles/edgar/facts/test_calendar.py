"""Business days and the sessions that open on them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import EASTERN
from carag.profiles.edgar.facts.calendar import (
    disseminated,
    end_of_year,
    federal_holidays,
    is_business_day,
    next_session,
)

DAYS = st.dates(date(1990, 1, 1), date(2060, 12, 31))


@pytest.mark.parametrize(
    "day",
    [
        date(2021, 12, 31),  # New Year's Day 2022 fell on a Saturday
        date(2023, 1, 2),  # ... and 2023 on a Sunday
        date(2024, 1, 15),
        date(2024, 2, 19),
        date(2024, 5, 27),
        date(2022, 6, 20),
        date(2021, 7, 5),
        date(2024, 9, 2),
        date(2024, 10, 14),
        date(2024, 11, 11),
        date(2024, 11, 28),
        date(2022, 12, 26),
    ],
)
def test_edgar_is_closed_on_the_observed_holiday(day: date) -> None:
    """Each federal holiday closes EDGAR on the weekday it is observed."""
    assert not is_business_day(day)


def test_juneteenth_closes_since_2021() -> None:
    """19 June was an ordinary day before it was a holiday."""
    assert is_business_day(date(2020, 6, 19))
    assert not is_business_day(date(2023, 6, 19))


@given(DAYS)
def test_the_next_session_is_the_first_business_day_after(day: date) -> None:
    """The session is at 09:30 on a business day, and every day between is closed."""
    session = next_session(day)
    assert (session.hour, session.minute) == (9, 30)
    assert is_business_day(session.date())
    between = [day + timedelta(n) for n in range(1, (session.date() - day).days)]
    assert not any(is_business_day(closed) for closed in between)


@given(st.integers(1990, 2060))
def test_a_year_has_ten_or_eleven_holidays_and_all_are_weekdays(year: int) -> None:
    """New Year's Day may move into the year before, so counts differ by one."""
    holidays = federal_holidays(year)
    assert 9 + (year >= 2021) <= len(holidays) <= 11 + (year >= 2021)
    assert all(day.weekday() < 5 and day.year == year for day in holidays)


def test_daylight_saving_is_eastern() -> None:
    """The same wall time is another instant in winter."""
    assert next_session(date(2024, 3, 8)).utcoffset() == timedelta(hours=-4)
    assert next_session(date(2024, 3, 7)).utcoffset() == timedelta(hours=-5)
    assert end_of_year(2024).isoformat() == "2024-12-31T23:59:00-05:00"


MOMENTS = st.datetimes(datetime(1993, 1, 1), datetime(2060, 1, 1)).map(  # noqa: DTZ001 - the zone follows
    lambda moment: moment.replace(tzinfo=EASTERN)
)


@given(MOMENTS, st.none() | DAYS, st.booleans())
def test_nothing_is_disseminated_early_or_while_edgar_is_closed(
    accepted: datetime, filed: date | None, until_ten: bool
) -> None:
    """Never before acceptance, never before the filing date; a later moment is an opening at 06:00."""
    public = disseminated(accepted, filed, until_ten=until_ten)
    assert public >= accepted
    assert filed is None or public.date() >= filed
    if public == accepted:
        assert is_business_day(public.date())
        assert time(6) <= public.time() <= (time(22) if until_ten else time(17, 30))
    else:
        assert public.time() == time(6)
        assert is_business_day(public.date()) or public.date() == filed


@given(MOMENTS, MOMENTS, st.none() | DAYS)
def test_dissemination_keeps_the_order_of_acceptance(
    one: datetime, other: datetime, filed: date | None
) -> None:
    """Of two filings dated alike, the one accepted later is never public earlier."""
    first, last = sorted((one, other))
    assert disseminated(first, filed) <= disseminated(last, filed)
    assert disseminated(first, filed, until_ten=True) <= disseminated(first, filed)
