"""Work out a period that a question states relative to an earlier one, such as "the year before"."""

from __future__ import annotations

import re
from calendar import month_name
from typing import TYPE_CHECKING, Final

from carag.labelling.numerals import NUMBER_WORDS
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.periods import Period, Span, periods_of

if TYPE_CHECKING:
    from carag.retrieval.reading.patterns import Place


_QUARTERS: Final = ("first", "second", "third", "fourth")
_UNITS: Final = {"year": 12, "quarter": 3, "month": 1}


def relative_in(text: str) -> tuple[int, str, Place] | None:
    """Return how many units after the earlier period a text asks about (fewer than 0: before), the unit and the place.

    The unit is ``year``, ``quarter``, ``month`` or ``period``; or ``part``, with the number of a quarter of the earlier
    year, or 0 for all of the year; or a month of that year, perhaps with a day, such as ``May 16``.
    """
    if found := pattern("STEP").search(text):
        count = (found["count"] or "one").casefold()
        steps = {"a": 1, "an": 1, **NUMBER_WORDS}.get(count) or int(count)
        unit = (found["unit"] or found["its"]).casefold()
        return -steps if found["back"] or found["last"] else steps, unit, found.span()
    if found := pattern("PART").search(text):
        if found["month"]:
            return 0, f"{found['month']} {found['day'] or ''}".strip(), found.span()
        quarter = _QUARTERS.index(found["quarter"].casefold()) + 1 if found["quarter"] else 0
        return int(found["short"] or quarter), "part", found.span()
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
    period = periods[0 if steps < 0 else -1]
    begun = period.first if steps < 0 or period.span is not Span.YEARS else period.last.replace(month=1)
    if unit not in (*_UNITS, "period"):
        if unit != "part":
            return f"{unit}{',' if unit[-1].isdigit() else ''} {begun.year}", f"in the year of {said}"
        whole = _worded(begun.year, max(0, steps - 1) * 3, 3 if steps else 12, said)
        return whole, f"in the year of {said}"
    months = _months(period)
    unit = next((name for name, one in _UNITS.items() if one == months), "") if unit == "period" else unit
    if _UNITS.get(unit, 0) < months:
        return None
    year, month = divmod(begun.year * 12 + begun.month - 1 + steps * _UNITS[unit], 12)
    many = f"the {unit}" if abs(steps) == 1 else f"{abs(steps)} {unit}s"
    return _worded(year, month, months, said), f"{many} {'before' if steps < 0 else 'after'} {said}"


def _months(period: Period) -> int:
    """Return how many months a step keeps: those of a year, a quarter or a month; 13 for other days."""
    if period.span is not Span.DAYS:
        return 12 if period.span is Span.YEARS else 3
    is_month = period.first.day == 1 < period.last.day and period.first.month == period.last.month
    return 1 if is_month else 13


def _worded(year: int, month: int, months: int, like: str) -> str:
    """Write a period of some months, which begins in a month from 0, as the earlier one was written."""
    fiscal = pattern("FISCAL").search(like)
    of = f"{fiscal[0]} {year}" if fiscal else f"{year}"
    if months == _UNITS["quarter"]:
        short = re.search(r"Q\d|\dQ", like, re.IGNORECASE)
        return f"Q{month // 3 + 1} {of}" if short else f"{_QUARTERS[month // 3]} quarter of {of}"
    return of if months > 1 else f"{month_name[month + 1]} {year}"
