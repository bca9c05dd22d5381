"""Derive when a filing became public, from its acceptance time, its dates or its accession number.

Each fact gives the latest moment that it allows, so a session in the past never sees a filing too early. The fact that
was used is kept as the source of the time. Of 2,865 real headers with an acceptance time, 238 were accepted after 17:30
Eastern: 231 are dated the next business day; of the other seven, one is a Form 4, five came within three minutes and
one within the hour.

EDGAR's submissions JSON marks acceptance times ``Z``, but not all are UTC. Of 661 accessions whose SGML header and
submissions row could be compared, 583 were in UTC and 78 were the header's Eastern time followed by ``Z``. No field
tells the two kinds apart, so a ``Z`` has two readings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.policy import EASTERN, NEVER, as_of_minutes
from carag.profiles.edgar.facts.calendar import FIRST_YEAR, LAST_YEAR, disseminated, end_of_year, next_session
from carag.profiles.edgar.facts.cover_page import foreign_report_date, latest_date, meeting_date
from carag.profiles.edgar.facts.forms import FormFamily, accepted_until_ten, form_families

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing


_YEARS: Final = range(FIRST_YEAR, LAST_YEAR + 1)


class PublicAtSource(StrEnum):
    """The facts from which ``public_at`` may be derived, the strongest first."""

    ACCEPTANCE = "acceptance"
    """``<ACCEPTANCE-DATETIME>``, if EDGAR disseminated the filing at once."""
    DISSEMINATION = "dissemination"
    """EDGAR's opening on the business day after ``<ACCEPTANCE-DATETIME>``, or on a later ``FILED AS OF DATE``: a
    submission sent after 17:30 Eastern is disseminated then (17 CFR 232.13(a)(2))."""
    RELEASE = "release"
    """The session after ``PUBLIC-REL-DATE``, for a filing that was accepted in private."""
    FILING_DATE = "filing date"
    """The session after ``FILED AS OF DATE``."""
    ACCESSION_YEAR = "accession year"
    """The end of the accession number's year."""
    PERIOD = "period of report"
    """The end of the year after ``CONFORMED PERIOD OF REPORT``, or a later date on the cover page."""
    COVER_PAGE = "cover page"
    """The end of the year after the date on the cover page, or after the meeting that a proxy statement calls."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PublicTime:
    """A minute, and the fact from which it was derived."""

    minutes: int
    """Minutes since 1970-01-01T00:00Z; ``NEVER`` if unknown."""
    source: PublicAtSource


UNKNOWN: Final = PublicTime(NEVER, PublicAtSource.UNKNOWN)

_ORDERS: Final = frozenset({"SEC STAFF ACTION"})
"""Orders by the staff on the Commission's behalf, such as one that declares a registration effective."""

_COVER_DATED: Final = frozenset(
    {FormFamily.ANNUAL, FormFamily.INTERIM, FormFamily.CURRENT, FormFamily.FOREIGN_CURRENT}
)


def public_time(filing: Filing) -> PublicTime:
    """Derive when a filing became public.

    A filing accepted in private (drafts, staff letters and replies, ``<PRIVATE-TO-PUBLIC>``) became public when
    released; no earlier date counts.
    """
    if accepted_in_private(filing):
        if released := _usable(filing.released):
            return _at(next_session(released), PublicAtSource.RELEASE)
        return UNKNOWN
    if filing.base_form in _ORDERS:
        return _of_order(filing)
    if filing.accepted is not None and filing.accepted.year in _YEARS:
        accepted = filing.accepted
        aware = accepted if accepted.utcoffset() is not None else accepted.replace(tzinfo=EASTERN)
        until_ten = accepted_until_ten(filing.base_form, aware.astimezone(EASTERN).date())
        public = disseminated(aware, _usable(filing.filed), until_ten=until_ten)
        return _at(public, PublicAtSource.ACCEPTANCE if public == aware else PublicAtSource.DISSEMINATION)
    if filed := _usable(filing.filed):
        return _at(next_session(filed), PublicAtSource.FILING_DATE)
    if filing.accession_year is not None and filing.accession_year in _YEARS:
        return _at(_last_session_of(filing.accession_year), PublicAtSource.ACCESSION_YEAR)
    return _from_period(filing)


def _of_order(filing: Filing) -> PublicTime:
    """Return the session after an order's date or its acceptance, whichever is later.

    An order is public when entered (5 U.S.C. 552(a)(2)(A)), but no rule states when EDGAR disseminates the Commission's
    own documents: 17 CFR 232.13 is about filers.
    """
    accepted = filing.accepted.astimezone(EASTERN).date() if filing.accepted else None
    days = [day for day in map(_usable, (filing.filed, accepted, filing.released)) if day]
    if days:
        return _at(next_session(max(days)), PublicAtSource.FILING_DATE)
    if filing.accession_year is not None and filing.accession_year in _YEARS:
        return _at(_last_session_of(filing.accession_year), PublicAtSource.ACCESSION_YEAR)
    return _from_period(filing)


def _last_session_of(year: int) -> datetime:
    return next_session(date(year, 12, 31))


def accepted_in_private(filing: Filing) -> bool:
    """Tell whether a filing reached EDGAR before the public could see it."""
    families = form_families(filing.base_form)
    return filing.private_to_public or bool(families & {FormFamily.LETTER, FormFamily.DRAFT})


def _from_period(filing: Filing) -> PublicTime:
    """Return the end of the year after the period; of 1,778 filings that state both, 2 were filed later."""
    period = _usable(filing.period)
    cover = _usable(_date_on_cover(filing))
    if period is not None:
        last = period if cover is None else max(period, cover)
        return _at(end_of_year(last.year + 1), PublicAtSource.PERIOD)
    if cover is not None:
        return _at(end_of_year(cover.year + 1), PublicAtSource.COVER_PAGE)
    return UNKNOWN


def _date_on_cover(filing: Filing) -> date | None:
    families = form_families(filing.base_form)
    text = filing.documents[0].text if filing.documents else ""
    if FormFamily.PROXY in families:
        return meeting_date(text)
    if not families & _COVER_DATED:
        return None
    dates = [latest_date(text)]
    if FormFamily.FOREIGN_CURRENT in families:
        dates.append(foreign_report_date(text))
    return max(filter(None, dates), default=None)


def _usable(day: date | None) -> date | None:
    return day if day is not None and day.year in _YEARS else None


def _at(moment: datetime, source: PublicAtSource) -> PublicTime:
    epoch = datetime(1970, 1, 2, tzinfo=UTC)
    return PublicTime(as_of_minutes(max(moment, epoch)), source)


def eastern(digits: str) -> datetime | None:
    """Parse ``YYYYMMDDHHMMSS`` as US Eastern time; in an hour that occurs twice, the second occurrence is meant."""
    try:
        moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=EASTERN, fold=1)
    except ValueError:
        return None
    return moment if 1970 < moment.year < 9000 else None


def acceptance_readings(stated: str) -> tuple[datetime, ...]:
    """Return every moment that an acceptance time may mean, the latest first; empty if it states no moment.

    A stated offset is trusted. ``Z`` has an Eastern and a UTC reading; if either is midnight, it is a date without a
    time.

    Examples
    --------
    >>> [moment.isoformat() for moment in acceptance_readings("2025-04-30T16:32:30.000Z")]
    ['2025-04-30T16:32:30-04:00', '2025-04-30T12:32:30-04:00']
    """
    moment = eastern(re.sub(r"\D", "", stated)[:14])
    if moment is None:
        return ()
    if re.search(r"[+-]\d\d:\d\d$", stated):
        try:
            return (datetime.fromisoformat(stated).astimezone(EASTERN),)
        except ValueError:
            return ()
    if not stated.endswith("Z"):
        return (moment,)
    as_utc = moment.replace(tzinfo=UTC)
    readings = (moment, as_utc.astimezone(EASTERN))
    clocks = {(reading.hour, reading.minute, reading.second) for reading in (as_utc, readings[1])}
    return () if (0, 0, 0) in clocks else readings
