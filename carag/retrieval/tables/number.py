"""Read one cell of a table as a number: sign, currency and per cent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from carag.labelling.furniture import NOTE_MARK

NOTES: Final = rf"(?:\s*(?:{NOTE_MARK}|\(\s?(?:[a-z]|\d{{1,2}})\s?\)|[*†‡§]+|[¹²³⁴⁵⁶⁷⁸⁹⁰]+))*"
"""Marks of notes behind a label or a figure."""
_CURRENCY: Final = r"US\$|[A-Z]{1,2}\$|[$€£¥₹]|RMB|Rs\.?"
_FIGURE: Final = re.compile(
    rf"(?P<a>{_CURRENCY})?\s?(?P<open>\()?\s?(?P<minus>[-−–])?\s?(?P<b>{_CURRENCY})?\s?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,15}(?:\.\d{1,9})?|\.\d{1,9})\s?(?P<p>%)?\s?"
    rf"(?P<close>\))?\s?(?P<q>%)?{NOTES}",
    re.IGNORECASE,
)
_MOST: Final = 60
"""Characters in the longest cell that may be a figure."""
_NIL: Final = re.compile(rf"(?:{_CURRENCY})?\s?(?:[-−–—]+|nil)\s?%?{NOTES}", re.IGNORECASE)
_YEAR: Final = re.compile(rf"(?:19|20)\d\d{NOTES}")


@dataclass(frozen=True, slots=True)
class Number:
    """A figure as printed, before any scale."""

    value: Decimal
    """Signed: parentheses are a minus."""
    percent: bool
    currency: str
    """As printed, or empty."""


def read_number(text: str) -> Number | None:
    """Read a cell, or return None if it is not a figure; a bare year is not, because it names a column."""
    if (match := figure_in(text)) is None:
        return None
    value = Decimal(match["digits"].replace(",", ""))
    if match["open"] or match["minus"]:
        value = -value
    return Number(value, bool(match["p"] or match["q"]), match["a"] or match["b"] or "")


def figure_in(text: str) -> re.Match[str] | None:
    """Return the parts of a cell that :func:`read_number` reads, or None."""
    text = text.strip()
    match = _FIGURE.fullmatch(text) if len(text) <= _MOST and not is_year(text) else None
    return match if match and bool(match["open"]) == bool(match["close"]) else None


def is_nil(text: str) -> bool:
    """Tell whether a cell says that there is no figure, as "—", "$ -" and "nil" do; an empty one does not."""
    text = text.strip()
    return len(text) <= _MOST and _NIL.fullmatch(text) is not None


def is_year(text: str) -> bool:
    """Tell whether a text is a year of four digits, with or without footnote marks."""
    return _YEAR.fullmatch(text.strip()) is not None
