"""Work out a period that a question states relative to an earlier one, such as "the year before"."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.periods import Period, Span, periods_of

if TYPE_CHECKING:
    from carag.retrieval.reading.patterns import Place


_COUNTS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_STEP: Final = pattern("STEP")
_MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_QUARTERS: Final = ("first", "second", "third", "fourth")
_PART: Final = pattern("PART")
_FISCAL: Final = pattern("FISCAL")


def relative_in(text: str) -> tuple[int, str, Place] | None:
    """Return how many units after the earlier period a text asks about (fewer than 0: before), the unit and the place.

    The unit is ``year``, ``quarter``, ``month`` or ``period``, or ``part``: then the number is that of a quarter of the
    earlier year, or 0 for all of the year.
    """
    if found := _STEP.search(text):
        count = (found["count"] or "one").casefold()
        steps = int(count) if count.isdigit() else 1 if count in ("a", "an") else _COUNTS.index(count) + 1
        back = found["back"] or found["last"]
        return -steps if back else steps, (found["unit"] or found["its"]).casefold(), found.span()
    if (found := _PART.search(text)) and found["month"]:
        return 0, f"in {found['month']} {found['day'] or ''}".strip(), found.span()
    if found:
        number = int(found["short"]) if found["short"] else 0
        number = _QUARTERS.index(found["quarter"].casefold()) + 1 if found["quarter"] else number
        return number, "part", found.span()
    return None


def shifted(said: str, steps: int, unit: str) -> tuple[str, str] | None:
    """Return the period some units after an earlier one, in words, and how it follows; None if that is not clear.

    Examples
    --------
    >>> shifted("fiscal 2020", -1, "year"), shifted("Q1 2020", -1, "quarter")
    (('fiscal 2019', 'the year before fiscal 2020'), ('Q4 2019', 'the quarter before Q1 2020'))
    """
    periods = periods_of(said)[0]
    if not periods:
        return None
    period = periods[0] if steps < 0 else periods[-1]
    if unit.startswith("in "):
        comma = "," if unit[-1].isdigit() else ""
        return f"{unit.removeprefix('in ')}{comma} {period.last.year}", f"in the year of {said}"
    unit = _own_unit(period) if unit == "period" else unit
    try:
        found = _part(period, steps) if unit == "part" else _moved(period, steps, unit)
    except InvalidArgument:  # beyond the years that four digits can mean
        return None
    if found is None:
        return None
    text = _worded(found, said)
    if unit == "part":
        return text, f"in the year of {said}"
    way = "before" if steps < 0 else "after"
    many = f"the {unit}" if abs(steps) == 1 else f"{abs(steps)} {unit}s"
    return text, f"{many} {way} {said}"


def _own_unit(period: Period) -> str:
    is_month = period.span is Span.DAYS and period.first.day == 1
    return {Span.YEARS: "year", Span.QUARTER: "quarter"}.get(period.span, "month" if is_month else "year")


def _part(period: Period, number: int) -> Period | None:
    if period.first.year != period.last.year:
        return None
    year = period.first.year
    return Period.quarter(year, number) if number else Period.years(year)


def _moved(period: Period, steps: int, unit: str) -> Period | None:
    end = period.first if steps < 0 else period.last
    if period.span is Span.YEARS:
        return Period.years(end.year + steps) if unit == "year" else None
    if period.span is Span.QUARTER:
        if unit == "month":
            return None
        quarter = period.last.year * 4 + period.last.month // 3 - 1 + steps * (4 if unit == "year" else 1)
        return Period.quarter(quarter // 4, quarter % 4 + 1)
    if unit == "quarter" or (period.first.year, period.first.month) != (period.last.year, period.last.month):
        return None
    months = period.first.year * 12 + period.first.month - 1 + steps * (12 if unit == "year" else 1)
    year, month = months // 12, months % 12 + 1
    if period.first == period.last:
        try:
            return Period.days(date(year, month, period.first.day))
        except ValueError:  # the month has fewer days
            return None
    return periods_of(f"{_MONTH_NAMES[month - 1]} {year}")[0][0]


def _worded(period: Period, like: str) -> str:
    """Write a period as the earlier one was written."""
    fiscal = _FISCAL.search(like)
    year = f"{fiscal[0]} {period.last.year}" if fiscal else f"{period.last.year}"
    if period.span is Span.YEARS:
        return year
    if period.span is Span.QUARTER:
        number = period.last.month // 3
        is_short = re.search(r"Q\d|\dQ", like, re.IGNORECASE)
        return f"Q{number} {year}" if is_short else f"{_QUARTERS[number - 1]} quarter of {year}"
    month = f"{_MONTH_NAMES[period.first.month - 1]} {period.first.year}"
    return f"{period.first.day} {month}" if period.first == period.last else month
