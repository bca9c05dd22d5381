"""Read a formula that a question states itself, such as ``gross margin, defined as (revenue - COGS) / revenue``.

It is read completely or not at all: every word must be an entry of statements, a number or an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from carag.generation.figures.arithmetic import Constant, Operand
from carag.generation.figures.concepts import CONCEPTS

if TYPE_CHECKING:
    from carag.generation.figures.arithmetic import Expression

__all__ = ["Definition", "definitions_in", "expression_of"]

_DEFINITION: Final = re.compile(
    r"\b(?:defined|calculated|computed)\s(?:here\s)?(?:as|by)\b\s*:?\s*(?P<formula>(?:[^.?!;]|\.(?=\d))+)",
    re.IGNORECASE,
)
_OPENS_PART: Final = re.compile(
    r"[.?!;:,(]|\b(?:where|whose|with|when|while|once|if|that|given|assum(?:e|ing)|note)\b|\bhere\b(?!\s(?:is|are)\b)",
    re.IGNORECASE,
)
"""What comes before the term that is defined."""
_IS: Final = re.compile(r"\b(?:is|are|was|were|be|being)\s*$", re.IGNORECASE)
_NO_TERM: Final = re.compile(
    r"\s*(?:it|this|that|which)?\s*(?:is|are|(?:should|can|to)\sbe)?\s*", re.IGNORECASE
)
_ASKS: Final = re.compile(r"\b(?:what|how\s(?:much|many))\b[^?]*\??\s*$", re.IGNORECASE)
_PERIOD: Final = re.compile(
    r",?\s(?:in|for|of|at\sthe\send\sof)\s(?:FY|fiscal(?:\syear)?|the\syear)?\s?(?:19|20)\d\d$", re.IGNORECASE
)
"""The year at its end, which the question asks about."""
_TOKEN: Final = re.compile(
    r"\s*(?P<token>[()]|\d+(?:\.\d+)?%?|(?:divided\sby|over|times|multiplied\sby|minus|less|plus)\b|[-–−+*×/÷]"
    r"|(?:(?!\b(?:divided\sby|over|times|multiplied\sby|minus|less|plus)\b|\s[-–−]\s)[^()+*×/÷−])+)",
    re.IGNORECASE,
)
_SIGNS: Final = {
    **dict.fromkeys(("+", "plus"), "+"),
    **dict.fromkeys(("-", "–", "−", "minus", "less"), "-"),
    **dict.fromkeys(("*", "×", "times", "multiplied by"), "*"),
    **dict.fromkeys(("/", "÷", "divided by", "over"), "/"),
}
_SAYS_NOTHING: Final = re.compile(r"^(?:the|its|total)\s", re.IGNORECASE)
_PAID: Final = {"cost of sales", "capital expenditure", "depreciation and amortization", "dividends paid"}
"""Entries that statements print in parentheses or not."""
_MOST_TOKENS: Final = 40


@dataclass(frozen=True, slots=True)
class Definition:
    """A formula that a question states."""

    formula: str
    """As written."""
    term: str | None
    """What it defines; None if it belongs to what is asked, empty if it cannot be determined."""
    start: int
    """Position of the term."""
    end: int


def definitions_in(text: str) -> list[Definition]:
    """Return the formulas that a text states, each with what it defines.

    Examples
    --------
    >>> [found] = definitions_in("What is its FY2018 debt ratio, defined as total liabilities / total assets?")
    >>> found.formula, found.term
    ('total liabilities / total assets', None)
    >>> definitions_in("What is its gross profit, where EBIT is defined as revenue - COGS?")[0].term
    'EBIT is'
    """
    found = []
    for match in _DEFINITION.finditer(text):
        before = text[: match.start()]
        start = max((one.end() for one in _OPENS_PART.finditer(before)), default=0)
        part: str | None = before[start:]
        if _NO_TERM.fullmatch(before, start):
            part = None if _ASKS.search(before[:start]) else ""
        elif _ASKS.search(before, start):
            part = "" if _IS.search(before) else None
        formula = _PERIOD.sub("", match["formula"].strip())
        start = match.start() if part is None else start
        found.append(Definition(formula, part and part.strip(), start, match.end()))
    return found


def expression_of(definition: str) -> Expression | None:
    """Return what a definition computes; None if a part of it is not an entry, a number or an operator.

    Examples
    --------
    >>> [one.concept for one in expression_of("(net sales minus COGS) / net sales").operands()]
    ['revenue', 'cost of sales', 'revenue']
    >>> expression_of("(revenue - marketing of the cloud unit) / revenue")
    """
    tokens, at = [], 0
    while match := _TOKEN.match(definition, at):
        tokens.append(" ".join(match["token"].split()))
        at = match.end()
    if definition[at:].strip() or len(tokens) > _MOST_TOKENS:
        return None
    reading = _Reading([one for one in tokens if one])
    found = reading.sum()
    return found if not reading.rest else None


class _Reading:
    """Recursive-descent parser of a definition."""

    def __init__(self, rest: list[str]) -> None:
        self.rest = rest

    def sum(self) -> Expression | None:
        found = self._product()
        while found is not None and (sign := self._sign("+-")):
            other = self._product()
            found = None if other is None else found + other if sign == "+" else found - other
        return found

    def _product(self) -> Expression | None:
        found = self._part()
        while found is not None and (sign := self._sign("*/")):
            other = self._part()
            found = None if other is None else found * other if sign == "*" else found / other
        return found

    def _sign(self, among: str) -> str | None:
        sign = _SIGNS.get(self.rest[0].lower()) if self.rest else None
        if sign is None or sign not in among:
            return None
        self.rest.pop(0)
        return sign

    def _part(self) -> Expression | None:
        first = self.rest.pop(0) if self.rest else ""
        if first == "(":
            found = self.sum()
            return found if self.rest and self.rest.pop(0) == ")" else None
        if first and first[0].isdigit():
            number = Decimal(first.rstrip("%"))
            return Constant(number / 100 if first.endswith("%") else number)
        return _operand(first)


def _operand(phrase: str) -> Operand | None:
    """Return the entry that a whole phrase names; None if several entries match."""
    for said in (phrase, _SAYS_NOTHING.sub("", phrase)):
        named = [one.name for one in CONCEPTS.values() if one.asks.fullmatch(said)]
        if len(named) == 1:
            return Operand(named[0], is_paid=named[0] in _PAID)
    return None
