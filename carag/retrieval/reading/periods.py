"""Read the periods that a question names, and tell how well a document's period of report fits one.

A question seldom says whether a year is a calendar or a fiscal year, so both are tried. What is ambiguous is left out:
of 03/04/2022 only the year is read.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Callable


class Span(StrEnum):
    """The unit of a period."""

    YEARS = "years"
    QUARTER = "quarter"
    DAYS = "days"


class ReportKind(StrEnum):
    """The period that a document reports for."""

    ANNUAL = "annual"
    INTERIM = "interim"
    """A quarter."""
    OTHER = "other"
    """No period, only a date."""


_SAME: Final = 1.0
_NEXT_HALF: Final = 0.8
"""A year that ends by June of the next year: retailers name it after the year in which it began."""
_PART: Final = 0.5
"""A report that covers the period among others: a year's report for a quarter, or one that shows the period as an
earlier year."""
_LATER: Final = 0.3
"""A report that may still mention the period."""
_COVERED_YEARS: Final = 3
"""Years of the income statements in an annual report, its own included (Regulation S-X, 17 CFR 210.3-02(a))."""
_LATER_YEARS: Final = 5
"""Years of selected data in annual reports until 2021 (Regulation S-K, Item 301)."""
_NEAR_END: Final = timedelta(days=7)
"""A year of 52 or 53 weeks ends within a week of its month's end (26 U.S.C. 441(f))."""
_INTO_MONTH: Final = timedelta(days=14)
"""Subtracted from the end of a period to find its month: a year that ends on 2 January counts as December's."""
_JUNE: Final = 6
_FIRST_YEAR, _LAST_YEAR = 1900, 2099
"""Years that four digits in a question can mean; a document's date in another year counts as unknown."""
LAST_DAY: Final = date(_LAST_YEAR, 12, 31)
"""The end of an open period, as in "since March 2024"."""


@dataclass(frozen=True, slots=True)
class Period:
    """Years, a quarter or days that a question names, made by :meth:`years`, :meth:`quarter` or :meth:`days`.

    Its bounds are the calendar's; :meth:`fits` also tries the fiscal year.
    """

    first: date
    last: date
    span: Span

    def __post_init__(self) -> None:
        if not (self.first.year >= _FIRST_YEAR and self.first <= self.last and self.last.year <= _LAST_YEAR):
            raise InvalidArgument(
                f"the period begins {self.first} and ends {self.last}; want an end that is not before the beginning, "
                f"and both in {_FIRST_YEAR} to {_LAST_YEAR}"
            )

    @classmethod
    def years(cls, first: int, last: int | None = None) -> Period:
        """Make a period of one year, or from the first to the last."""
        last = first if last is None else last
        return cls(_day(first, 1, 1), _day(last, 12, 31), Span.YEARS)

    @classmethod
    def quarter(cls, year: int, number: int) -> Period:
        """Make a quarter, 1 to 4."""
        if number not in (1, 2, 3, 4):
            raise InvalidArgument(f"the quarter is {quoted(number)}; want 1, 2, 3 or 4")
        month = 3 * number
        return cls(_day(year, month - 2, 1), _end_of_month(year, month), Span.QUARTER)

    @classmethod
    def days(cls, first: date, last: date | None = None) -> Period:
        """Make a period of one day, or from the first to the last."""
        return cls(first, first if last is None else last, Span.DAYS)

    def fits(
        self, period_of_report: date | None, fiscal_year_end: str | None, kind: ReportKind | str
    ) -> float:
        """Tell how well a document's period of report fits this period, from 0 to 1.

        A year's own annual report fits with 1, that of a year ending by June of the next with .8, later ones that cover
        it with .5, those up to four years later with .3, and other documents of the year with .5. A quarter's own
        report fits with 1, by the calendar's or the fiscal quarter; the annual report of its year with .5, or 1 in a
        fourth quarter. For days, a report that ends on one fits with 1, one that covers one with .5, and an annual
        report that covers one in an earlier year with .3.

        The period of report is the last day of the document's period, or its date; None fits nothing. The fiscal year's
        end is month and day as EDGAR writes them, ``"0930"``; with None only the calendar counts.

        Examples
        --------
        >>> Period.years(2018).fits(date(2018, 12, 31), "1231", "annual")
        1.0
        >>> Period.quarter(2023, 2).fits(date(2022, 12, 31), "0630", "interim")  # fiscal quarter
        1.0
        """
        kind = _kind(kind)
        end_month = None if fiscal_year_end is None else _month_of(fiscal_year_end)
        if isinstance(period_of_report, datetime):
            raise InvalidArgument(
                f"the period of report is {quoted(period_of_report)}; want a date without a time"
            )
        if period_of_report is None or not _FIRST_YEAR <= period_of_report.year <= _LAST_YEAR + 1:
            return 0.0
        if self.span is Span.DAYS:
            return self._days_fit(period_of_report, kind)
        ended = period_of_report - _INTO_MONTH if kind is not ReportKind.OTHER else period_of_report
        if self.span is Span.QUARTER:
            return self._quarter_fits(ended, end_month, kind)
        return max(_year_fits(year, ended, end_month, kind) for year in self._named_years(ended))

    def reach(self, kind: ReportKind | str) -> tuple[date, date]:
        """Return the first and last period of report with which a document of a kind can fit at all.

        A fiscal year begins at most eleven months before the calendar year of its name, and ends at most six after; an
        annual report may mention a year four years later. A few weeks are added on either side.
        """
        later = timedelta(days=366 * _LATER_YEARS if _kind(kind) is ReportKind.ANNUAL else 220)
        return self.first - timedelta(days=400), self.last + later

    def _named_years(self, ended: date) -> set[int]:
        """Return the years of the period nearest to a report's end, of which one fits best."""
        near = (ended.year - 1, ended.year, ended.year + 1)
        return {min(max(year, self.first.year), self.last.year) for year in near}

    def _quarter_fits(self, ended: date, end_month: int | None, kind: ReportKind) -> float:
        year, number = self.last.year, self.last.month // 3
        behind = (ended.year - year) * 12 + ended.month - self.last.month
        if kind is ReportKind.ANNUAL:
            called = _called(year, ended)
            whole = called if number == 4 else min(called, _PART)
            return max(whole, _SAME if behind == 0 else _PART if 0 < behind < 12 else 0.0)
        full = _SAME if kind is ReportKind.INTERIM else _PART
        calendar = full if -3 < behind <= 0 else 0.0
        if end_month is None:
            return calendar
        fiscal_year, fiscal_quarter = _fiscal(ended, end_month)
        fiscal = _as_called(year, fiscal_year, end_month) if fiscal_quarter == number else 0.0
        return max(calendar, min(full, fiscal))

    def _days_fit(self, day: date, kind: ReportKind) -> float:
        if kind is ReportKind.OTHER:
            return _SAME if self.first <= day <= self.last else 0.0
        if self.first - _NEAR_END <= day <= self.last + _NEAR_END:
            return _SAME
        if self.first > day:
            return 0.0
        months = 12 if kind is ReportKind.ANNUAL else 3
        if self.last > _months_before(day, months):
            return _PART
        covers = kind is ReportKind.ANNUAL and self.last > _months_before(day, 12 * _COVERED_YEARS)
        return _LATER if covers else 0.0

    def described(self) -> str:
        """Return the period in words."""
        if self.span is Span.QUARTER:
            return f"quarter {self.last.month // 3} of {self.last.year}"
        first, last = (
            (f"{self.first.year}", f"{self.last.year}")
            if self.span is Span.YEARS
            else (self.first.isoformat(), self.last.isoformat())
        )
        if self.last == LAST_DAY:
            return f"{first} and later"
        return first if first == last else f"{first} to {last}"


# --- periods and the calendar -----------------------------------------------------------------------------


def _kind(kind: ReportKind | str) -> ReportKind:
    try:
        return ReportKind(kind)
    except ValueError:
        raise InvalidArgument(
            f"the kind of report is {quoted(kind)}; want one of {', '.join(ReportKind)}"
        ) from None


def _month_of(fiscal_year_end: str) -> int:
    try:
        end = datetime.strptime(f"2000{fiscal_year_end}", "%Y%m%d").date()  # noqa: DTZ007 - a day; 2000 has every one
    except ValueError:
        raise InvalidArgument(
            f"the fiscal year's end is {quoted(fiscal_year_end)}; want month and day, such as '0930'"
        ) from None
    return (end - _INTO_MONTH).month


def _day(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{quoted((year, month, day))} is not a day: {error}") from error


def _end_of_month(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _months_before(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _called(year: int, ended: date) -> float:
    """Tell how well a year's number names a year that ended on a day."""
    return _as_called(year, ended.year, ended.month)


def _as_called(year: int, ends_in: int, end_month: int) -> float:
    if ends_in == year:
        return _SAME
    return _NEXT_HALF if ends_in == year + 1 and end_month <= _JUNE else 0.0


def _fiscal(ended: date, end_month: int) -> tuple[int, int]:
    """Return the calendar year in which a month's fiscal year ends, and the fiscal quarter."""
    months = (ended.month - end_month - 1) % 12
    return ended.year + (ended.month > end_month), months // 3 + 1


def _year_fits(year: int, ended: date, end_month: int | None, kind: ReportKind) -> float:
    if kind is ReportKind.ANNUAL:
        later = ended.year - year
        covered = _PART if 0 < later < _COVERED_YEARS else _LATER if 0 < later < _LATER_YEARS else 0.0
        return max(_called(year, ended), covered)
    fiscal = end_month is not None and _as_called(year, _fiscal(ended, end_month)[0], end_month)
    return _PART if ended.year == year or fiscal else 0.0


# --- periods in a question --------------------------------------------------------------------------------
# What was read is replaced by NUL, which no question has, so that nothing is read twice or across it. White space is a
# single character and lists have bounded length, so no question takes long to read.

_Read = TypeVar("_Read")
_NUL: Final = "\0"
MONTHS: Final = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?"),
    *("july?", "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
MONTH: Final = "|".join(MONTHS)
_FOUR: Final = r"(?:19|20)\d\d"
DATE: Final = re.compile(
    rf"(?<![\w.,/-])(?:(?P<y>{_FOUR})-(?P<m>\d\d)-(?P<d>\d\d)"
    rf"|(?P<de>\d\d?)\.\s?(?P<me>\d\d?)\.\s?(?P<ye>{_FOUR})"
    rf"|(?P<a>\d\d?)/(?P<b>\d\d?)/(?P<ys>{_FOUR})"
    rf"|(?P<d1>\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{MONTH})\.?,?\s(?P<y1>{_FOUR})"
    rf"|(?P<m2>{MONTH})\.?\s(?:(?P<d2>\d\d?)(?:st|nd|rd|th)?,?\s)?(?P<y2>{_FOUR}))(?![\w-]|[.,]\d)",
    re.IGNORECASE,
)
"""A day in figures or words, or a month with its year."""
_TO: Final = r"\s?(?:to|through|thru|until|till|[-‐‑–—])\s?(?:the\s)?"
_UP_TO: Final = re.compile(_TO, re.IGNORECASE)
_FISCAL: Final = r"(?:FYE?|CY|(?:fiscal|financial|calendar)(?:\syears?)?|years?)"
_SHORT_YEAR: Final = r"(?:FYE?|CY)\s?['’]?\d\d(?!\d)"
_YEAR: Final = rf"(?:(?:{_FISCAL}[\s'’-]?[\s'’-]?)?{_FOUR}(?!\d)|{_SHORT_YEAR})"
_SOME_YEARS: Final = re.compile(
    rf"(?<![\w$€£¥#])(?<!\d[.,/-])(?:(?P<between>between\s{_YEAR}\sand\s{_YEAR})"
    rf"|(?P<range>{_YEAR}{_TO}{_YEAR}|{_YEAR}[/‐‑–-]['’]?(?:{_FOUR}|\d\d)(?!\d)"
    rf"|{_SHORT_YEAR}{_TO}['’]?\d\d(?!\d))|(?P<one>{_YEAR}))(?![\w%]|[.,]\d|-\d)",
    re.IGNORECASE,
)
_ORDINALS: Final = ("first|1st", "second|2nd", "third|3rd", "fourth|4th|last|final")
_ORDINAL: Final = "|".join(_ORDINALS)
_ONE_QUARTER: Final = (
    rf"(?:Q[1-4]|[1-4]Q|(?:quarter|qtr\.?)\s[1-4]|(?:{_ORDINAL})(?:[\s-](?:fiscal|financial|calendar))?"
    r"(?:[\s-](?:quarters?|qtrs?\b\.?))?)"
)
_ALSO: Final = r"\s?(?:,(?:\s?and)?|&|and|or|vs\.?|versus)\s?(?:the\s)?"
_QUARTERS: Final = rf"{_ONE_QUARTER}(?:(?>{_TO}|{_ALSO}){_ONE_QUARTER}){{0,7}}"
_YEAR_OF_QUARTER: Final = rf"(?:{_YEAR}|['’]\d\d(?!\d)|(?<=[1-4]Q)\d\d(?!\d))"
_SOME_QUARTERS: Final = re.compile(
    rf"(?<!\w)(?:(?P<year>{_YEAR})\s?[-/(]?\s?(?P<after>{_QUARTERS})"
    rf"|(?P<before>{_QUARTERS})\s?(?:,|/|-|\(|(?:of|in|for)\b)?\s?(?:the\s)?(?P<its>{_YEAR_OF_QUARTER}))(?!\w)",
    re.IGNORECASE,
)
_QUARTER: Final = re.compile(_ONE_QUARTER, re.IGNORECASE)
_AND: Final = re.compile(r"\s?and\s?", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\bbetween\s[^.?!]*$", re.IGNORECASE)
_SINCE: Final = re.compile(r"\bsince\s$", re.IGNORECASE)
"""This does not match "since the March 2024 review", which is about something published then."""
_ONWARDS: Final = re.compile(
    r"\sonwards?\b|\sand\s(?:later|after(?:wards)?)\b(?=\s?(?:[.,;:?!)]|$))", re.IGNORECASE
)
"""This does not match "in 2019 and after the merger"."""
_LOOK_BEHIND: Final = 40
"""Characters before the end of a period that are searched for "between"."""
_MOST_QUARTERS: Final = 12
"""In a longer run of quarters only the first and last are read."""


def taken(
    pattern: re.Pattern[str], text: str, read: Callable[[re.Match[str]], list[_Read]]
) -> tuple[list[tuple[int, int, _Read]], str]:
    """Return what is read from each match, with its start and end, and the text without the matches."""
    found = []
    for match in pattern.finditer(text):
        if said := read(match):
            found += [(*match.span(), one) for one in said]
            text = f"{text[: match.start()]}{_NUL * len(match[0])}{text[match.end() :]}"
    return found, text


def placed(text: str) -> tuple[list[tuple[int, int, Period]], str]:
    """Return each period that a text names with its start and end, in order, and the text without them.

    Examples
    --------
    >>> [(start, end, one.described()) for start, end, one in placed("In Q3 2023 and 2024")[0]]
    [(3, 10, 'quarter 3 of 2023'), (15, 19, '2024')]
    """
    days, rest = taken(DATE, text, days_of)
    quarters, rest = taken(_SOME_QUARTERS, rest, _quarters_of)
    years, rest = taken(_SOME_YEARS, rest, _years_of)
    found = [*days, *quarters, *years]
    return sorted(
        found, key=lambda one: one[:2]
    ), rest  # stable, so that quarters in one match keep their order


def periods_of(text: str) -> tuple[list[Period], str]:
    """Return the periods in a text, those from one to another as one, and the text without them."""
    found, rest = placed(text)
    periods: list[Period] = []
    ended, before = 0, None
    for start, end, one in found:
        if before is not None and before.span is one.span and before.last < one.first and start > ended:
            between, ahead = text[ended:start], text[max(0, ended - _LOOK_BEHIND) : ended]
            if _UP_TO.fullmatch(between) or (_AND.fullmatch(between) and _BETWEEN.search(ahead)):
                periods[-1:] = _filled(before, one)
                ended, before = end, None
                continue
        periods.append(_opened(one, text, start, end))
        ended, before = end, one
    return periods, rest


def _opened(one: Period, text: str, start: int, end: int) -> Period:
    """Return a period without an end if the words around it open it, as "since" does, and it is not a range."""
    is_range = one.span is Span.YEARS and one.first.year != one.last.year
    if is_range or not (
        _SINCE.search(text, max(0, start - _LOOK_BEHIND), start) or _ONWARDS.match(text, end)
    ):
        return one
    return Period(one.first, LAST_DAY, Span.DAYS if one.span is Span.QUARTER else one.span)


def _filled(first: Period, last: Period) -> list[Period]:
    """Return the periods from one to another: one span of days or years, or each quarter."""
    if first.span is not Span.QUARTER:
        return [Period(first.first, last.last, first.span)]
    begin, end = (one.last.year * 4 + one.last.month // 3 - 1 for one in (first, last))
    if end - begin >= _MOST_QUARTERS:
        return [first, last]
    return [Period.quarter(number // 4, number % 4 + 1) for number in range(begin, end + 1)]


def days_of(match: re.Match[str]) -> list[Period]:
    """Return the day or month in a match of :data:`DATE`; only the year of an ambiguous day; nothing if invalid."""
    year = int(match["y"] or match["ye"] or match["ys"] or match["y1"] or match["y2"])
    if match["m2"] and not match["d2"]:
        month = month_named(match["m2"])
        return [Period.days(date(year, month, 1), _end_of_month(year, month))]
    if match["ys"]:
        a, b = int(match["a"]), int(match["b"])
        if a != b and max(a, b) <= 12:  # 03/04/2022 can mean two days; the year is clear
            return [Period.years(year)]
        month, day = (b, a) if a > 12 else (a, b)
    elif name := match["m1"] or match["m2"]:
        month, day = month_named(name), int(match["d1"] or match["d2"])
    else:
        month, day = int(match["m"] or match["me"]), int(match["d"] or match["de"])
    try:
        return [Period.days(date(year, month, day))]
    except ValueError:  # no such day
        return []


def month_named(name: str) -> int:
    """Return the number of a month."""
    return next(number for number, one in enumerate(MONTHS, 1) if one[:3] == name[:3].casefold())


def _quarters_of(match: re.Match[str]) -> list[Period]:
    run = match["after"] or match["before"]
    if "q" not in run.casefold():  # ordinals of something other than quarters
        return []
    year = _year_of(match["year"] or match["its"])
    found: list[Period] = []
    ended = 0
    for one in _QUARTER.finditer(run):
        period = Period.quarter(year, _number_of(one[0]))
        if found and found[-1].last < period.first and _UP_TO.fullmatch(run, ended, one.start()):
            found[-1:] = _filled(found[-1], period)
        else:
            found.append(period)
        ended = one.end()
    return found


def _number_of(quarter: str) -> int:
    if digit := re.search("[1-4]", quarter):
        return int(digit[0])
    return next(number for number, one in enumerate(_ORDINALS, 1) if re.match(one, quarter, re.IGNORECASE))


def _years_of(match: re.Match[str]) -> list[Period]:
    if match["one"]:
        return [Period.years(_year_of(match["one"]))]
    numbers = re.findall(r"\d+", match[0])
    first = _year_of(numbers[0])
    last = int(numbers[1]) if len(numbers[1]) == 4 else first - first % 100 + int(numbers[1])
    return [Period.years(first, last)] if first <= last <= _LAST_YEAR else [Period.years(first)]


def _year_of(said: str) -> int:
    """Return a year of four digits, or of two as in POSIX: 69 to 99 belong to the last century."""
    digits = re.findall(r"\d+", said)[-1]
    year = int(digits)
    return year if len(digits) == 4 else year + (1900 if year >= 69 else 2000)
