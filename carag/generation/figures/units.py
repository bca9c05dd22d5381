"""Tell the scale and the kind of a figure from its row, heads and captions: millions, per cent, per share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.retrieval.tables.number import read_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.tables.table import Span


class Kind(StrEnum):
    """What a figure counts."""

    AMOUNT = "amount"
    PERCENT = "percent"
    PER_SHARE = "per share"
    COUNT = "count"
    """Shares, people, days: nothing that money is divided by in these formulas."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The kind and scale of a figure, and where these are stated."""

    kind: Kind
    scale: Decimal | None
    """What the figure is multiplied by; None if not stated."""
    currency: str
    """The currency as stated; empty if not stated."""
    span: Span | None
    """The head or caption that states the scale."""


_CODES: Final = "USD|EUR|GBP|JPY|INR|CAD|AUD|CHF|RMB"
_MONEY: Final = rf"(?:[$€£¥]|\b(?:{_CODES}))\s?"
_SCALES: Final = (
    (re.compile(rf"\bbillions?\b|{_MONEY}bn\b", re.IGNORECASE), Decimal(10**9)),
    (re.compile(r"\bcrores?\b", re.IGNORECASE), Decimal(10**7)),
    (re.compile(rf"\bmillions?\b|\bmm\b|{_MONEY}mn?\b|['’]000,000", re.IGNORECASE), Decimal(10**6)),
    (re.compile(r"\blakhs?\b", re.IGNORECASE), Decimal(10**5)),
    (
        re.compile(rf"\bthousands?\b|['’]000s?\b|{_MONEY}(?:000s?|k)\b|\b000['’]?s\b", re.IGNORECASE),
        Decimal(1000),
    ),
)
_IN_PARENTHESES: Final = re.compile(r"\([^()]{1,120}\)")
_IN_SCALE: Final = re.compile(
    r"\bin\s(?:\w+\s(?:of\s)?)?(?:thousand|lakh|million|crore|billion)s?\b", re.IGNORECASE
)
_SHORT: Final = 60
"""Characters of the longest text that is quoted completely as a unit."""
_PER_SHARE: Final = re.compile(
    r"\bper\s(?:\w+\s){0,3}(?:share|unit|ads?)\b|\beps\b|\(cents\)|\bearnings\sper\b", re.IGNORECASE
)
_COUNTS: Final = re.compile(
    r"\bshares?\b(?!holder)(?!\s*(?:-based|repurchas|premium|capital|compensation))(?=.*\b(?:outstanding|issued|basic|diluted|number|average)\b)"
    r"|\bweighted[\s-]average\b(?!\s*(?:rate|exercise|price|cost|interest|discount))"
    r"|\bnumber\sof\b|\bemployees\b|\bheadcount\b|\b(?:days|years|stores|units|customers)\b(?!\sended)",
    re.IGNORECASE,
)
_PERCENT: Final = re.compile(r"%|\bper\s?cent(?:age)?\b", re.IGNORECASE)
_EXCEPT_SHARES: Final = re.compile(
    r"\bexcept\b[^)]*\bshares?\b(?!\s*(?:amount|data)s?\b.*\bper\b)", re.IGNORECASE
)
_CURRENCY: Final = re.compile(
    rf"US\$|[$€£¥₹]|\b(?:{_CODES})\b|\b(?:euro|yen|pounds?|dollars?)\b", re.IGNORECASE
)
_SIGNS: Final = {
    "us$": "$",
    "usd": "$",
    "dollar": "$",
    "dollars": "$",
    "eur": "€",
    "euro": "€",
    "gbp": "£",
    "pound": "£",
    "pounds": "£",
    "jpy": "¥",
    "yen": "¥",
}


def unit_of(text: str, figure: str, label: str, heads: Sequence[Span], captions: Sequence[Span]) -> Unit:
    """Read the unit of a figure, given its cell and the label of its row.

    Parameters
    ----------
    text : str
        The text that the spans refer to.
    heads : sequence of (int, int)
        The heads above the cell and above the labels, the nearest first.
    captions : sequence of (int, int)
        Lines above the table, the nearest first.
    """
    number = read_number(figure.replace("|", ""))
    said = [(text[slice(*span)], span) for span in (*heads, *captions)]
    currency = _currency(number.currency if number else "", [label, *(one for one, _ in said)])
    over = text[slice(*heads[0])] if heads else ""
    if (number and number.percent) or _PERCENT.search(label) or _PERCENT.search(over):
        return Unit(Kind.PERCENT, Decimal(1), "", None)
    if _PER_SHARE.search(label):
        return Unit(Kind.PER_SHARE, Decimal(1), currency, None)
    kind = Kind.COUNT if _COUNTS.search(label) else Kind.AMOUNT
    if (own := _scale(label)) is not None:
        return Unit(kind, own, currency, None)
    for one, span in said:
        scale = _scale(one)
        if scale is not None:
            if kind is Kind.COUNT and _EXCEPT_SHARES.search(one):
                return Unit(kind, None, "", None)
            return Unit(kind, scale, currency, _phrase(one, span[0]))
    return Unit(kind, None, currency, None)


def without_scale(text: str) -> str:
    """Return a text with blanks for the parentheses that state a scale, whose words say nothing else."""
    return _IN_PARENTHESES.sub(lambda one: " " * len(one[0]) if _scale(one[0]) is not None else one[0], text)


def scale_stated(text: str) -> Decimal | None:
    """Return the scale that a text states for all of its figures, as "(in millions)" does."""
    return _scale(match[0]) if (match := _IN_SCALE.search(text)) else None


def _scale(text: str) -> Decimal | None:
    return next((scale for pattern, scale in _SCALES if pattern.search(text)), None)


def _phrase(text: str, start: int) -> Span:
    """Return the span that states a scale: the parentheses around the scale, or all of a short text."""
    for one in _IN_PARENTHESES.finditer(text):
        if _scale(one[0]) is not None:
            return (start + one.start(), start + one.end())
    if len(text) > _SHORT and (match := _IN_SCALE.search(text)):
        return (start + match.start(), start + match.end())
    return (start, start + len(text))


def _currency(own: str, said: Sequence[str]) -> str:
    found = own or next((match[0] for one in said if (match := _CURRENCY.search(one))), "")
    return _SIGNS.get(found.lower(), found)
