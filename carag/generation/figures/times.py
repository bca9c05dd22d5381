"""Tell whether the time of a figure is the period that a question names, and nothing else."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.columns import Time
    from carag.generation.figures.entries import Entry
    from carag.retrieval.reading import Period


_YEAR: Final = 12
_QUARTER: Final = 3


def is_of(time: Time, period: Period, *, months: int | None = None, by_calendar: bool = False) -> bool:
    """Tell whether a head names exactly this period.

    A year that ends in January or February may be named after either year (retailers count from its beginning), so a
    head with such a day names no year; a head with the bare year does. A head means a quarter if it names that quarter
    or, for a company whose fiscal years are calendar years (``by_calendar``), if it names three months that end with
    the quarter. ``months`` is the length that the question states for the time up to its day.
    """
    if time.year is None:
        return False
    if period.span is Span.YEARS:
        if period.first.year != period.last.year or time.year != period.first.year:
            return False
        return time.months in (None, _YEAR) and time.quarter is None and not time.is_early
    if period.span is Span.QUARTER:
        if time.year != period.last.year or time.months not in (None, _QUARTER):
            return False
        if time.quarter is not None:
            return time.quarter == period.last.month // 3
        return (
            by_calendar
            and time.day is not None
            and (time.day[0], time.months or _QUARTER) == (period.last.month, _QUARTER)
        )
    if time.day is None:
        return False
    try:
        day = date(time.year, *time.day)
    except ValueError:  # no such day
        return False
    return period.first <= day <= period.last and time.months in (
        (None, _YEAR) if months is None else (months,)
    )


def speaks_of_calendar_years(entries: Sequence[Entry]) -> bool:
    """Tell whether a company's tables name years that end in December, and none that end in another month."""
    ends = {one.time.day[0] for one in entries if one.time.day is not None and one.time.months == _YEAR}
    return ends == {_YEAR}
