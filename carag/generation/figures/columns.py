"""Read the columns of a table: their years, days, quarters and months, and whether they compare or restate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading.periods import month_named

if TYPE_CHECKING:
    from carag.retrieval.tables.table import Cell, Row, Span, Table


_MONTH: Final = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_MONTH_AND_DAY: Final = re.compile(rf"\b{_MONTH}\.?\s(\d{{1,2}})\b|\b(\d{{1,2}})\s{_MONTH}\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"(?<![\d,.$€£])((?:19|20)\d\d)(?![\d,]|\.\d)")
_SHORT_YEAR: Final = re.compile(r"(?:\bF(?:Y|iscal)?\s?['’]?|(?<!\w)['’])(\d\d)(?!\d|\w)", re.IGNORECASE)
_MONTHS_ENDED: Final = re.compile(
    r"\b(three|six|nine|twelve|3|6|9|12)[\s-]+months?\b"
    r"|\b(thirteen|fourteen|twenty-?\s?six|twenty-?\s?seven|thirty-?\s?nine|forty|fifty-?\s?two|fifty-?\s?three"
    r"|13|14|26|27|39|40|52|53)[\s-]+weeks?\b",
    re.IGNORECASE,
)
_OF_MONTHS: Final = {"three": 3, "3": 3, "six": 6, "6": 6, "nine": 9, "9": 9, "twelve": 12, "12": 12}
_OF_WEEKS: Final = {
    "thirt": 3,
    "fourt": 3,
    "twent": 6,
    "fifty": 12,
    "forty": 9,
    "13": 3,
    "14": 3,
    "26": 6,
    "27": 6,
}
_QUARTER: Final = re.compile(
    r"\bq([1-4])\b|\b([1-4])q\b|\b(first|second|third|fourth|1st|2nd|3rd|4th)(?:\sfiscal)?[\s-]quarter\b",
    re.IGNORECASE,
)
_ORDINALS: Final = ("first", "second", "third", "fourth")
_EARLY: Final = re.compile(
    r"\b(?:jan|feb)[a-z]{0,6}\.?\s\d{1,2},?\s(?:19|20)\d\d|\b\d{1,2}\s(?:jan|feb)[a-z]{0,6},?\s(?:19|20)\d\d",
    re.IGNORECASE,
)
_QUARTER_ENDED: Final = re.compile(r"\bquarters?\s+ended\b|\bquarterly\b", re.IGNORECASE)
_OVER_LABELS: Final = re.compile(r"[:,]$|\b(?:thousands|millions|billions)\b|^\(.*\)$", re.IGNORECASE)
"""A cell above the labels that is not the head of a column."""
_COMPARES: Final = re.compile(
    r"\bchanges?\b|\bincreases?\b|\bdecreases?\b|\bvar(?:iance|\.)?\b|\bvs\b|\bversus\b|\bover\b|\bgrowth\b|[%$]\s?chg|Δ",
    re.IGNORECASE,
)
_RESTATES: Final = re.compile(
    r"\bas\s(?:previously\s)?(?:restated|adjusted|recast|revised|reported|originally)\b|\brestated\b|\bpro[\s-]?forma\b"
    r"|\badjust\w+\b|\bwithout\b|\beffects?\sof\b|\bconstant\scurrency\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Time:
    """What a head says about time."""

    years: frozenset[int] = frozenset()
    day: tuple[int, int] | None = None
    """Month and day on which the period ends."""
    months: int | None = None
    """Number of months that figures cover; None if not stated, as for a balance."""
    quarter: int | None = None
    """The number of the quarter, as the head names it."""
    is_early: bool = False
    """Whether it names a day in January or February: some companies name that year after the one before."""
    compares: bool = False
    """Whether it concerns two times, or the change between them."""
    restates: bool = False
    """Whether it is one of several versions of the same time."""

    @property
    def year(self) -> int | None:
        """The only year, or None."""
        return next(iter(self.years)) if len(self.years) == 1 else None


def time_of(text: str) -> Time:
    """Read a head."""
    years = {int(one) for one in _YEAR.findall(text)}
    if not years:
        years = {2000 + int(one) if int(one) < 69 else 1900 + int(one) for one in _SHORT_YEAR.findall(text)}
    dated = _MONTH_AND_DAY.search(text)
    quarter = None
    if match := _QUARTER.search(text):
        said = (match[1] or match[2] or match[3]).lower()
        quarter = int(said[0]) if said[0].isdigit() else _ORDINALS.index(said) + 1
    return Time(
        years=frozenset(years),
        day=dated and (month_named(dated[1] or dated[4]), int(dated[2] or dated[3])),
        months=_months(text),
        quarter=quarter,
        is_early=_EARLY.search(text) is not None,
        compares=_COMPARES.search(text) is not None,
        restates=_RESTATES.search(text) is not None,
    )


def _months(text: str) -> int | None:
    found = set()
    for match in _MONTHS_ENDED.finditer(text):
        if match[1]:
            found.add(_OF_MONTHS[match[1].lower()])
        else:
            said = match[2].lower()
            weeks = next((months for words, months in _OF_WEEKS.items() if said.startswith(words)), None)
            found.add(9 if said in ("39", "40") or said.startswith("thirty") else weeks or 12)
    if len(found) == 1:
        return found.pop()
    if found:
        return 0  # several years differ, so none fits
    if _QUARTER_ENDED.search(text):
        return 3
    return 12 if re.search(r"\b(?:years?|annual|fiscal)\b", text, re.IGNORECASE) else None


def heads_above(text: str, table: Table, row: Row, cell: Cell) -> tuple[Span, ...] | None:
    """Return the heads above a cell from the top, or None if a row of heads cannot be assigned.

    A head over several columns is somewhere above them in the source: each column takes the nearest, in parts of equal
    width if possible.
    """
    found: list[Span] = []
    for number, head in enumerate(table.heads):
        if not table.is_grid:
            over = _ragged(text, head, len(row.cells), cell.at)
            if over is None:
                return None
            found.append(over.span)
            continue
        cells = [one for one in head if one.at >= 0]
        lower = {one.at for below in table.heads[number + 1 :] for one in below if one.at >= 0}
        own = next((one for one in cells if one.at == cell.at), None)
        if own is not None and (not lower or cell.at not in lower):
            found.append(own.span)
        elif lower and cell.at in lower:
            spanning = [one for one in cells if one.at in lower]
            if spanning:
                places = sorted(lower)
                found.append(_over(spanning, places, cell.at).span)
        elif len(table.heads) == 1 and len(cells) == 1:
            found.append(cells[0].span)
    return tuple(found)


def _ragged(text: str, head: tuple[Cell, ...], many: int, at: int) -> Cell | None:
    """Return the head above one of ``many`` cells where blank cells are dropped, or None if it cannot be determined."""
    first = text[slice(*head[0].span)]
    is_over_labels = len(head) == many + 1 or (len(head) > 1 and _OVER_LABELS.search(first) is not None)
    if is_over_labels and not _YEAR.search(first):
        head = head[1:]
    if len(head) == 1 or many % len(head) == 0:
        return head[at * len(head) // many]
    return None


def _over(spanning: list[Cell], places: list[int], at: int) -> Cell:
    if len(places) % len(spanning) == 0:
        return spanning[places.index(at) * len(spanning) // len(places)]
    return min(spanning, key=lambda one: (abs(one.at - at), one.at))
