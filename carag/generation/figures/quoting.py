"""Write a figure in an answer: its cell word for word, with label, head and unit, and the position of each."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from carag.generation.figures.units import Kind
from carag.generation.marks import escaped

if TYPE_CHECKING:
    from carag.generation.figures.entries import Entry, Quote


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that answers a question."""

    text: str
    """The answer's text, with its citations."""
    cited: tuple[int, ...]
    """Positions of the passages that the answer rests on, from 0, each once."""
    quotes: tuple[Quote, ...]
    """Every label, head, unit and cell in the text, with its position."""
    value: Decimal
    """In ones if the scale is known, otherwise as printed; per cent as hundredths."""
    is_scaled: bool
    """Whether the scale is known."""
    worked: str = ""
    """The line of the text that is worked out and not quoted."""


def of_entry(entry: Entry) -> Figure:
    """Make the answer that consists of one cell."""
    scale = Decimal("0.01") if entry.unit.kind is Kind.PERCENT else entry.unit.scale or Decimal(1)
    position = entry.cell.position
    return Figure(
        f"{said(entry)} [{position + 1}]",
        (position,),
        quotes(entry),
        entry.number.value * scale,
        entry.unit.scale is not None,
    )


def said(entry: Entry) -> str:
    """Write a cell with its label, heads and unit as the passage does, with brackets like citation marks escaped."""
    heads = ", ".join(one.text for one in _shown_heads(entry)).replace(",,", ",")
    unit = f" {_in_parentheses(entry.unit_quote.text)}" if _shows_unit(entry) and entry.unit_quote else ""
    label = " ".join(entry.label.text.split())  # one line, as the guard reads a sentence
    return escaped(f"{label}{', ' if heads else ''}{heads}: {entry.cell.text}{unit}")


def quotes(entry: Entry) -> tuple[Quote, ...]:
    """Return all that :func:`said` quotes."""
    unit = (entry.unit_quote,) if _shows_unit(entry) and entry.unit_quote else ()
    return (entry.label, *_shown_heads(entry), entry.cell, *unit)


def _shown_heads(entry: Entry) -> tuple[Quote, ...]:
    """Return the heads, and the section if the section alone states the time."""
    heads = tuple(one for one in entry.heads if one != entry.unit_quote)
    return (entry.section, *heads) if entry.section and entry.time_in_section else heads


def _shows_unit(entry: Entry) -> bool:
    return entry.unit_quote is not None and entry.unit_quote not in (entry.label,)


def _in_parentheses(text: str) -> str:
    return text if text.startswith("(") and text.endswith(")") else f"({text})"
