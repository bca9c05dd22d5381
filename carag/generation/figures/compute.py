"""Work out a formula from looked-up cells: each must have the right entry, year and unit, or there is no answer."""

from __future__ import annotations

import ast
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Final

from carag.generation.figures.concepts import CONCEPTS
from carag.generation.figures.formulas import Result
from carag.generation.figures.quoting import Figure, quotes, said
from carag.generation.figures.stated import Dimension, Operand
from carag.generation.figures.times import is_of
from carag.generation.figures.whole import rows_of
from carag.retrieval.reading import Period, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from carag.generation.figures.entries import Entry
    from carag.generation.figures.formulas import Asked


_CONTEXT: Final = Context(prec=34, rounding=ROUND_HALF_UP)
"""Precision of IEEE 754 decimal128: far more digits than any statement prints, so only the end is rounded."""
_WORK: Final[Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]]] = {
    ast.Add: _CONTEXT.add,
    ast.Sub: _CONTEXT.subtract,
    ast.Mult: _CONTEXT.multiply,
    ast.Div: _CONTEXT.divide,
}
_DIGITS: Final = re.compile(r"[\d,]*\.?\d+")
_LEAF: Final = re.compile(r"_\d+")


def computed(asked: Asked, period: Period, entries: Sequence[Entry]) -> Figure | None:
    """Work out what a question asks for; None if an operand is missing or the operands do not go together."""
    if period.span is not Span.YEARS:
        return None
    year = period.first.year if period.first.year == period.last.year else None
    found: dict[str, Entry] = {}
    for name, leaf in asked.formula.leaves.items():
        if isinstance(leaf, Operand):
            entry = _cell(leaf, leaf.year or year, entries)
            if entry is None:
                return None
            found[name] = entry
    if not _go_together(found.values()):
        return None
    value = _value(
        asked.formula.tree,
        {name: _number(one, found.get(name)) for name, one in asked.formula.leaves.items()},
    )
    return None if value is None else _figure(asked, value, found)


def _cell(operand: Operand, year: int | None, entries: Sequence[Entry]) -> Entry | None:
    """Return the cell of an operand; None if there is no such cell, cells disagree, or its sign makes no sense."""
    if year is None:
        return None
    of = Period.years(year)
    found = rows_of(CONCEPTS[operand.concept], [one for one in entries if is_of(one.time, of)])
    known = {_scaled(one) for one in found if one.unit.scale is not None}
    printed = {one.number.value for one in found if one.unit.scale is None}
    if not found or len(known) > 1 or len(printed) > 1:
        return None
    return None if operand.must_be_positive and found[0].number.value <= 0 else found[0]


def _go_together(entries: Collection[Entry]) -> bool:
    """Tell whether amounts may be combined: one currency, and known scales or one table."""
    currencies = {one.unit.currency for one in entries} - {""}
    scales = {one.unit.scale for one in entries}
    return len(currencies) <= 1 and (
        None not in scales or (len(scales) == 1 and len({one.table for one in entries}) == 1)
    )


def _scaled(entry: Entry) -> Decimal:
    return entry.number.value * (entry.unit.scale or 1)


def _number(leaf: Operand | Decimal, entry: Entry | None) -> Decimal:
    if isinstance(leaf, Decimal) or entry is None:
        return Decimal(str(leaf))
    return abs(_scaled(entry)) if leaf.is_paid else _scaled(entry)


def _value(part: ast.expr, numbers: Mapping[str, Decimal]) -> Decimal | None:
    """Work out a part of a formula; None if it divides by zero."""
    if not isinstance(part, ast.BinOp):
        return numbers[ast.unparse(part)]
    left, right = _value(part.left, numbers), _value(part.right, numbers)
    if left is None or right is None or (isinstance(part.op, ast.Div) and right == 0):
        return None
    return _WORK[type(part.op)](left, right)


def _shown(leaf: Operand | Decimal, entry: Entry | None, *, with_scale: bool) -> str:
    """Write a number as the cell prints it."""
    if isinstance(leaf, Decimal) or entry is None:
        return str(leaf)
    digits = _DIGITS.search(entry.cell.text)
    minus = "-" if entry.number.value < 0 and not leaf.is_paid else ""
    text = f"{minus}{digits[0] if digits else entry.number.value}"
    return f"({text} * {entry.unit.scale:,})" if with_scale and entry.unit.scale != 1 else text


def _figure(asked: Asked, value: Decimal, found: Mapping[str, Entry]) -> Figure:
    formula, places = asked.formula, asked.places
    if formula.dimension == Dimension(tens=2):  # the formula multiplies by 100 itself
        value /= 100
    entries = tuple(dict.fromkeys(found.values()))
    scales = {one.unit.scale for one in entries}
    leaves = {
        name: _shown(leaf, found.get(name), with_scale=len(scales) > 1)
        for name, leaf in formula.leaves.items()
    }
    steps = _LEAF.sub(lambda name: leaves[name[0]], ast.unparse(formula.tree))
    if asked.result is Result.AMOUNT:
        scale = scales.pop() if len(scales) == 1 else None
        places = max(places, *(-int(one.number.value.as_tuple().exponent) for one in entries))
        end = f"{rounded(value / (scale or 1), places):,}"
    elif asked.result is Result.PERCENT:
        end = f"{rounded(value * 100, places):,} %"
    else:
        end = f"{rounded(value, places):,}{' days' if asked.result is Result.DAYS else ''}"
    cited = tuple(dict.fromkeys(one.cell.position for one in entries))
    marks = "".join(f" [{at + 1}]" for at in cited)
    digits = "digit" if places == 1 else "digits"
    lines = [f"{asked.name} = {steps} = {end} (rounded to {places} {digits} after the decimal point){marks}"]
    lines += [f"{said(one)} [{one.cell.position + 1}]" for one in entries]
    every = tuple(dict.fromkeys(quote for one in entries for quote in quotes(one)))
    is_scaled = asked.result is not Result.AMOUNT or all(one.unit.scale is not None for one in entries)
    return Figure("\n".join(lines), cited, every, value, is_scaled, lines[0])


def rounded(value: Decimal, places: int) -> Decimal:
    """Round half away from zero, to a number of decimals."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_CONTEXT)
