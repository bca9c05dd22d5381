"""Find the times that a sentence names, and tell which of them each of its figures is for."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.generation.figures.columns import time_of
from carag.retrieval.reading.periods import MONTH, Span, month_named, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.columns import Time
    from carag.retrieval.reading.periods import Period


_DAY: Final = re.compile(
    rf"\b(?:(?P<month>{MONTH})\.?\s(?P<day>\d\d?)(?:st|nd|rd|th)?\b(?![,.]\d)"
    rf"|(?P<day2>\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?(?-i:(?=[A-Z]))(?P<month2>{MONTH})\b)",
    re.IGNORECASE,
)
"""A day without a year; "to 4 may" names none."""
_BEFORE: Final = 40
"""Characters before a year that may say which part of it is meant."""
_LISTED: Final = re.compile(
    r"\s*(?:\([^()]*\)\s*)?,?\s*(?:and|or|&|to)?\s*(?:approximately|about|the|years?|fiscal)?\s*",
    re.IGNORECASE,
)
_APART: Final = re.compile(r"[,;:]|\b(?:and|or|but|while|compared|versus)\b", re.IGNORECASE)

Place = tuple[int, int]


class When(NamedTuple):
    """A time that a text names."""

    start: int
    end: int
    years: frozenset[int]
    month: int | None = None
    day: int | None = None
    quarter: int | None = None
    months: int | None = None
    """How many it covers; None if not stated."""

    @classmethod
    def of(cls, time: Time) -> When:
        """Return the time of a column."""
        month, day = time.day or (None, None)
        return cls(0, 0, time.years, month, day, time.quarter, time.months)

    @classmethod
    def named(cls, start: int, end: int, period: Period, text: str) -> When:
        """Return a period that a text names; a day in figures that may be two days fits none."""
        first, last = period.first, period.last
        years = frozenset(range(first.year, last.year + 1))
        if period.span is Span.QUARTER:
            return cls(start, end, years, quarter=last.month // 3)
        if period.span is Span.DAYS:
            return cls(start, end, years, first.month, first.day if first == last else None)
        return cls(start, end, years, *((0, 0) if "/" in text[start:end][:3] else ()))

    def fits(self, stated: When) -> bool:
        """Tell whether a figure that is stated for a time may be said to be for this one."""
        if self.years and self.years != stated.years:
            return False
        if self.quarter and not (stated.quarter or stated.month or stated.months == 3):
            return False  # a part of the year for which it is stated
        pairs = (
            *((self.month, stated.month), (self.day, stated.day)),
            *((self.quarter, stated.quarter), (self.months, stated.months)),
        )
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def is_same(self, stated: When) -> bool:
        """Tell whether a text states this date, or a part of the year that has it."""
        is_within = self.quarter is None or stated.month is None or self.quarter == (stated.month + 2) // 3
        return self.fits(stated) and is_within and (self.day is None or self.day == stated.day)


def times_in(text: str) -> list[When]:
    """Return the times that a text names, in order."""
    periods, rest = placed(text)
    found = [When.named(*one, text) for one in periods]
    for match in _DAY.finditer(rest):
        month = month_named(match["month"] or match["month2"])
        found.append(When(*match.span(), frozenset(), month, int(match["day"] or match["day2"])))
    found.sort(key=lambda one: one[:2])
    for at, one in enumerate(found):
        before = time_of(text[max(found[at - 1].end if at else 0, one.start - _BEFORE) : one.start])
        found[at] = one._replace(quarter=one.quarter or before.quarter, months=before.months)
    return [_complete(one, after) for one, after in zip(found, [*found, None][1:], strict=True)]


def _complete(one: When, after: When | None) -> When:
    """Give a day without a year the year of the next time: "June 30 and December 31, 2023"."""
    return one if one.years or after is None else one._replace(years=after.years)


def runs(text: str, places: Sequence[Place]) -> list[list[int]]:
    """Group places that are only listed beside each other, as in ``$5, $4 and $3 million``; by number."""
    found = [[0]] if places else []
    for number, (one, after) in enumerate(pairwise(places), start=1):
        if _LISTED.fullmatch(text, one[1], max(one[1], after[0])):
            found[-1].append(number)
        else:
            found.append([number])
    return found


def times_of(text: str, figures: Sequence[Place], times: Sequence[When]) -> list[When | None]:
    """Return for each figure of a sentence the time that it is for; None if the sentence does not say."""
    found: list[When | None] = [None] * len(figures)
    listed = runs(text, [one[:2] for one in times])
    groups = runs(text, figures)
    for number, group in enumerate(groups):
        first, last = figures[group[0]][0], figures[group[-1]][1]
        since = figures[groups[number - 1][-1]][1] if number else 0
        until = figures[groups[number + 1][0]][0] if number + 1 < len(groups) else len(text)
        fitting = [one for one in listed if len(one) == len(group) > 1]
        if fitting:
            nearest = min(fitting, key=lambda one: abs(times[one[0]].start - first))
            for at, time in zip(group, nearest, strict=True):
                found[at] = times[time]
            continue
        behind = [one for one in times if last <= one.start < until]
        before = [one for one in times if since <= one.start < first]
        leading = [one for one in times if one.start < figures[0][0]]
        if behind and not _APART.search(text, last, behind[0].start):
            chosen: When | None = behind[0]
        else:
            chosen = next(iter([*reversed(before), *behind, *reversed(leading)]), None)
        for at in group:
            found[at] = chosen
    return found
