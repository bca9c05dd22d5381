"""Read a formula that a question states itself, such as ``gross margin, defined as (revenue - COGS) / revenue``.

The formula is read completely or not at all: every word must be an entry of statements, a number or an operator. The
formula is then a Python expression, in which names stand for entries and numbers.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from carag.generation.figures.concepts import CONCEPTS

if TYPE_CHECKING:
    from collections.abc import Mapping


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
"""The year at the end of the formula, which the question asks about."""
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
_OF_YEARS: Final = re.compile(
    r"(?P<what>average|change\sin)\s(?P<entry>.+)\s(?:between|from)\s(?:FY ?)?(?P<first>(?:19|20)\d\d)"
    r"\s(?:and|to)\s(?:FY ?)?(?P<last>(?:19|20)\d\d)",
    re.IGNORECASE,
)
_OF_YEAR: Final = re.compile(r"(?:FY ?)?(?P<year>(?:19|20)\d\d)\s(?P<entry>.+)", re.IGNORECASE)
_SAYS_NOTHING: Final = re.compile(r"^(?:the|its|total)\s", re.IGNORECASE)
_PAID: Final = {"cost of sales", "capital expenditure", "depreciation and amortization", "dividends paid"}
"""Entries that some statements print in parentheses and others do not."""
_OPERATORS: Final = ("(", ")", "+", "-", "*", "/")
_MOST_TOKENS: Final = 40
_DAYS_OF_A_YEAR: Final = (360, 365, 366)
_PARTS: Final = (ast.BinOp, ast.Name, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True, slots=True)
class Operand:
    """An entry of a statement."""

    concept: str
    """Its name in :data:`carag.generation.figures.concepts.CONCEPTS`."""
    year: int | None = None
    """None for the year asked about."""
    must_be_positive: bool = False
    """Whether a value of zero or less makes the formula meaningless."""

    @property
    def is_paid(self) -> bool:
        """Whether some statements print it in parentheses and others do not, so that its sign is dropped."""
        return self.concept in _PAID


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a formula results in, as powers of its units."""

    money: int = 0
    tens: int = 0
    """Powers of ten, such as 100, which turns a share into a percentage."""
    days: int = 0
    """The power of the days of a year."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A Python expression whose names stand for entries and numbers."""

    tree: ast.expr
    leaves: Mapping[str, Operand | Decimal]

    @property
    def operands(self) -> list[Operand]:
        """The entries, from left to right."""
        return [one for one in self.leaves.values() if isinstance(one, Operand)]

    @property
    def dimension(self) -> Dimension | None:
        """What the formula results in; None if it adds things of different kinds, such as an amount and a number."""
        return self._dimension(self.tree)

    def _dimension(self, part: ast.expr) -> Dimension | None:
        if isinstance(part, ast.BinOp):
            left, right = self._dimension(part.left), self._dimension(part.right)
            if left is None or right is None or isinstance(part.op, ast.Add | ast.Sub):
                return left if left == right else None
            power = 1 if isinstance(part.op, ast.Mult) else -1
            return Dimension(
                left.money + power * right.money,
                left.tens + power * right.tens,
                left.days + power * right.days,
            )
        leaf = self.leaves[ast.unparse(part)]
        if isinstance(leaf, Operand):
            return Dimension(money=1)
        is_power = leaf > 0 and leaf.scaleb(-leaf.adjusted()) == 1
        return Dimension(tens=leaf.adjusted() if is_power else 0, days=int(leaf in _DAYS_OF_A_YEAR))


@dataclass(frozen=True, slots=True)
class Definition:
    """A formula that a question states."""

    formula: str
    """As written."""
    term: str | None
    """The term that it defines; None if it belongs to what is asked, empty if the term cannot be determined."""
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


def change_of(concept: str, first: int, last: int) -> Formula:
    """Return the relative change of an entry from one year to another."""
    tree = ast.parse("(_1 - _0) / _0", mode="eval").body
    return Formula(tree, {"_1": Operand(concept, last), "_0": Operand(concept, first, must_be_positive=True)})


def formula_of(definition: str) -> Formula | None:
    """Return what a definition computes; None if a part of it is not an entry, a number or an operator.

    Examples
    --------
    >>> [one.concept for one in formula_of("(net sales minus COGS) / net sales").operands]
    ['revenue', 'cost of sales', 'revenue']
    >>> formula_of("(revenue - marketing of the cloud unit) / revenue")
    """
    tokens, at = [], 0
    while match := _TOKEN.match(definition, at):
        tokens.append(" ".join(match["token"].split()))
        at = match.end()
    if definition[at:].strip() or len(tokens) > _MOST_TOKENS:
        return None
    leaves: dict[str, Operand | Decimal] = {}

    def name(leaf: Operand | Decimal) -> str:
        leaves[f"_{len(leaves)}"] = leaf
        return f"_{len(leaves) - 1}"

    written = []
    for token in filter(None, tokens):
        if _SIGNS.get(token.lower(), token) in _OPERATORS:
            written.append(_SIGNS.get(token.lower(), token))
        elif token[0].isdigit():
            number = Decimal(token.rstrip("%"))
            written.append(name(number / 100 if token.endswith("%") else number))
        elif match := _OF_YEARS.fullmatch(token):
            last, first = (_operand(match["entry"], int(match[year])) for year in ("last", "first"))
            if last is None or first is None:
                return None
            is_mean = match["what"].lower() == "average"
            written.append(
                f"(({name(last)} + {name(first)}) / {name(Decimal(2))})"
                if is_mean
                else f"({name(last)} - {name(first)})"
            )
        else:
            of_year = _OF_YEAR.fullmatch(token)
            entry, year = (of_year["entry"], int(of_year["year"])) if of_year else (token, None)
            operand = _operand(entry, year)
            if operand is None:
                return None
            written.append(name(operand))
    return _parsed(" ".join(written), leaves)


def _parsed(written: str, leaves: Mapping[str, Operand | Decimal]) -> Formula | None:
    try:
        tree = ast.parse(written, mode="eval").body
    except SyntaxError:
        return None
    return Formula(tree, leaves) if all(isinstance(one, _PARTS) for one in ast.walk(tree)) else None


def _operand(phrase: str, year: int | None) -> Operand | None:
    """Return the entry that a whole phrase names; None if several entries match."""
    for said in (phrase, _SAYS_NOTHING.sub("", phrase)):
        named = [one.name for one in CONCEPTS.values() if one.asks.fullmatch(said)]
        if len(named) == 1:
            return Operand(named[0], year)
    return None
