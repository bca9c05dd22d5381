"""Find the times that a sentence names, and tell which of them each of its figures is for."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.generation.figures.columns import time_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.columns import Time


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES: Final = "|".join(_MONTHS)
_MENTION: Final = re.compile(
    rf"(?:\b(?P<m1>{_NAMES})[a-z]{{0,6}}\.?\s(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?,?\s)?"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m2>{_NAMES})[a-z]{{0,6}}\.?,?\s)?"
    r"(?<![\w,./$€£₹#-])(?P<year>(?:19|20)\d\d)(?:[-–/](?P<to>\d\d))?(?![\w%]|[,.-]\d|\s?%)"
    rf"|\b(?P<m3>{_NAMES})[a-z]{{0,6}}\.?\s(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?![,.]\d)"
    r"|\bF(?:Y|iscal)\s?['’]?(?P<short>\d\d)\b(?!\d)",
    re.IGNORECASE,
)
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

    def fits(self, stated: When) -> bool:
        """Tell whether a figure that is stated for a time may be said to be for this one."""
        if self.years and self.years != stated.years:
            return False
        pairs = (
            *((self.month, stated.month), (self.day, stated.day)),
            *((self.quarter, stated.quarter), (self.months, stated.months)),
        )
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def is_same(self, stated: When) -> bool:
        """Tell whether a text states this date, or a part of the year that has it."""
        return self.fits(stated) and (self.day is None or self.day == stated.day)


def times_in(text: str) -> list[When]:
    """Return the times that a text names, in order."""
    found: list[When] = []
    for match in _MENTION.finditer(text):
        month = match["m1"] or match["m2"] or match["m3"]
        day = match["d1"] or match["d2"] or match["d3"]
        year = match["year"] or (match["short"] and f"20{match['short']}")
        years = frozenset([int(year)] if year else [])
        if year and match["to"]:
            years |= {int(f"{year[:2]}{match['to']}")}
        before = time_of(text[max(found[-1].end if found else 0, match.start() - _BEFORE) : match.start()])
        found.append(
            When(
                *match.span(),
                years,
                _MONTHS.index(month.lower()) + 1 if month else None,
                int(day) if day else None,
                before.quarter,
                before.months,
            )
        )
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
