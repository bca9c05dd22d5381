"""Work out a formula from looked-up cells: each must be of the right entry, year and unit, or there is no answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from carag.generation.figures.arithmetic import rounded
from carag.generation.figures.concepts import CONCEPTS
from carag.generation.figures.formulas import Result
from carag.generation.figures.quoting import Figure, quotes, said
from carag.generation.figures.times import is_of
from carag.generation.figures.whole import rows_of
from carag.retrieval.reading import Period, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.arithmetic import Expression, Operand
    from carag.generation.figures.entries import Entry
    from carag.generation.figures.formulas import Asked

__all__ = ["Operands", "computed"]

_DIGITS: Final = re.compile(r"[\d,]*\.?\d+")
_FIRST_YEAR: Final = 1901
_MOST_YEARS: Final = 10
_HUNDRED: Final = Decimal(100)


class Operands:
    """Finds the cells for operands among the entries of one company as a whole."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def find(self, operand: Operand, year: int) -> Entry | None:
        """Return the cell for an operand; None if there is no such cell, cells disagree, or its sign makes no sense."""
        concept, of = CONCEPTS[operand.concept], Period.years(year - operand.years_before)
        found = rows_of(concept, [one for one in self._entries if is_of(one.time, of)])
        if len({_scaled(one) for one in found if one.unit.scale is not None}) > 1:
            return None
        if len({one.number.value for one in found if one.unit.scale is None}) > 1:
            return None
        if not found or (operand.must_be_positive and found[0].number.value <= 0):
            return None
        return found[0]


@dataclass(frozen=True, slots=True)
class _Worked:
    value: Decimal
    shown: str
    entries: tuple[Entry, ...]


def computed(asked: Asked, period: Period, operands: Operands) -> Figure | None:
    """Work out what a question asks for; None if an operand is missing or they do not go together.

    ``period`` is a year, or for a mean the years from the first to the last.
    """
    years = range(period.first.year, period.last.year + 1)
    if period.span is not Span.YEARS or not years[0] >= _FIRST_YEAR or len(years) > _MOST_YEARS:
        return None
    if asked.is_change and not asked.over_years and len(years) == 2:
        years = years[1:]
    if asked.over_years != (len(years) > 1):
        return None
    for expression in asked.formula.expressions:
        worked = [one for year in years if (one := _worked(expression, year, operands))]
        if len(worked) == len(years) and _go_together([entry for one in worked for entry in one.entries]):
            return _figure(asked, years, worked)
    return None


def _worked(expression: Expression, year: int, operands: Operands) -> _Worked | None:
    found: dict[Operand, Entry] = {}
    for operand in expression.operands():
        entry = operands.find(operand, year)
        if entry is None:
            return None
        found[operand] = entry
    if not _go_together(list(found.values())):
        return None
    scales = {entry.unit.scale for entry in found.values()}

    def number(operand: Operand) -> Decimal:
        value = found[operand].number.value * (found[operand].unit.scale or 1)
        return abs(value) if operand.is_paid else value

    def printed(operand: Operand) -> str:
        entry = found[operand]
        digits = _DIGITS.search(entry.cell.text)
        minus = "-" if entry.number.value < 0 and not operand.is_paid else ""
        scale = f" * {entry.unit.scale:,}" if len(scales) > 1 and entry.unit.scale != 1 else ""
        text = f"{minus}{digits[0] if digits else entry.number.value}{scale}"
        return f"({text})" if scale else text

    value = expression.value(number)
    if value is None:
        return None
    return _Worked(value, expression.shown(printed), tuple(dict.fromkeys(found.values())))


def _go_together(entries: Sequence[Entry]) -> bool:
    """Tell whether amounts may be combined: one currency, and known scales or one table."""
    currencies = {one.unit.currency for one in entries} - {""}
    scales = {one.unit.scale for one in entries}
    return len(currencies) <= 1 and (
        None not in scales or (len(scales) == 1 and len({one.table for one in entries}) == 1)
    )


def _scaled(entry: Entry) -> Decimal:
    return entry.number.value * (entry.unit.scale or 1)


def _figure(asked: Asked, years: range, worked: Sequence[_Worked]) -> Figure:
    formula, places = asked.formula, asked.places
    value = sum((one.value for one in worked), Decimal(0)) / len(worked)
    if formula.times_hundred:
        value /= _HUNDRED
    entries = tuple(dict.fromkeys(entry for one in worked for entry in one.entries))
    if len(worked) == 1:
        about, steps = f"{formula.name} {years[0]}", worked[0].shown
    else:
        parts = " + ".join(one.shown for one in worked)
        about, steps = f"{formula.name}, mean of {years[0]} to {years[-1]}", f"({parts}) / {len(worked)}"
    if formula.result is Result.PERCENT:
        end = f"{rounded(value * _HUNDRED, places):,} %"
    elif formula.result is Result.DAYS:
        end = f"{rounded(value, places):,} days"
    elif formula.result is Result.AMOUNT:
        scales = {one.unit.scale for one in entries}
        scale = scales.pop() if len(scales) == 1 else None
        exact = value / (scale or 1)
        places = max(places, *(-int(one.number.value.as_tuple().exponent) for one in entries))
        end = f"{rounded(exact, places):,}"
    else:
        end = f"{rounded(value, places):,}"
    cited = tuple(dict.fromkeys(one.cell.position for one in entries))
    marks = "".join(f" [{at + 1}]" for at in cited)
    digits = "digit" if places == 1 else "digits"
    lines = [f"{about} = {steps} = {end} (rounded to {places} {digits} behind the point){marks}"]
    lines += [f"{said(one)} [{one.cell.position + 1}]" for one in entries]
    every = tuple(dict.fromkeys(quote for one in entries for quote in quotes(one)))
    is_scaled = formula.result is not Result.AMOUNT or all(one.unit.scale is not None for one in entries)
    return Figure("\n".join(lines), cited, every, value, is_scaled)
