"""Find the formula that a question states for what it asks, or the change from one year to the next.

A ratio that is only named is not computed: most ratios have several definitions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.generation.figures.concepts import concept_named, concepts_in
from carag.generation.figures.stated import Dimension, change_of, definitions_in, formula_of
from carag.generation.words import terms
from carag.retrieval.reading import Span

if TYPE_CHECKING:
    from carag.generation.figures.stated import Definition, Formula
    from carag.retrieval.reading import Period


class Result(StrEnum):
    """What a formula results in."""

    PERCENT = "percent"
    RATIO = "ratio"
    DAYS = "days"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True)
class Asked:
    """A formula that a question asks for."""

    name: str
    formula: Formula
    result: Result
    said: tuple[str, ...]
    """The words of the question that are used."""
    places: int
    """Decimals of the answer."""


_CHANGE: Final = re.compile(
    r"(?:year[- ](?:over|on)[- ]year|yoy|annual)? ?"
    r"(?:growth(?: rate)?|(?:percent(?:age)?|%) (?:change|increase|growth|decrease))"
    r"(?: rate)?(?: (?:of|in))?|year[- ](?:over|on)[- ]year (?:change|increase)(?: (?:of|in))?",
    re.IGNORECASE,
)
_WORD: Final = (
    r"\b(?:adjusted|asset|assets|capital|cash|conversion|cost|coverage|current|days?|debt|dividend|efficiency|equity|fixed"
    r"|flow|free|gross|income|intensity|interest|inventory|leverage|liabilities|liquidity|margin|net|operating|outstanding"
    r"|payable|payables|payout|percent(?:age)?|profit|quick|rate|ratio|receivables?|return|sales|share|tax|total|turnover"
    r"|working|yield)\b"
)
_NAME_WORD: Final = re.compile(_WORD, re.IGNORECASE)
"""Words in the names of ratios, none of which names a part of a company."""
_NAME: Final = re.compile(rf"{_WORD}(?:[\s/-](?:(?:to|of|on|over|and)\s)?{_WORD})*", re.IGNORECASE)
_IS_SHARE: Final = re.compile(r"\b(?:margin|percent(?:age)?|rate|share|yield)\b", re.IGNORECASE)
_RATIO: Final = re.compile(r"\b(?:margin|ratio|turnover|rate|yield)\b(?:\s(?:ratio|rate)\b)?", re.IGNORECASE)
_FISCAL_YEAR: Final = re.compile(r"\b(?:FY ?)?(?:19|20)\d\d\b")
_PLACES: Final = re.compile(r"\bround\b[^.?!]{0,40}\b(one|two|three|four|\d) decimal", re.IGNORECASE)
_WORDS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
_USUAL: Final = {Result.PERCENT: 1, Result.RATIO: 2, Result.DAYS: 2, Result.AMOUNT: 0}
_MOST_PLACES: Final = 6


def formula_asked(question: str, clause: str, period: Period) -> Asked | None:
    """Return the formula that a question states for what it asks; None if it states none, or one for something else.

    ``question`` is the whole question, for definitions and rounding; ``clause`` is the part that asks.
    """
    if stated := definitions_in(question):
        return _as_stated(question, clause, stated)
    change, named = _CHANGE.search(clause), concept_named(clause)
    is_next_year = period.span is Span.YEARS and period.last.year == period.first.year + 1
    if change is None or named is None or not is_next_year:
        return None
    concept, match = named
    formula = change_of(concept.name, period.first.year, period.last.year)
    name = f"growth of {concept.name} {period.last.year}"
    return Asked(name, formula, Result.PERCENT, (change[0], match[0]), _places(question, Result.PERCENT))


def _as_stated(question: str, clause: str, stated: list[Definition]) -> Asked | None:
    outside = clause
    for one in reversed(definitions_in(clause)):
        outside = outside[: one.start] + outside[one.end :]
    names = _NAME_WORD.findall(outside)
    asked = terms(" ".join(names))
    mine = [one for one in stated if one.term is None or _is_asked(one.term, outside, asked)]
    definition = mine[0] if len(mine) == 1 else None
    formula = formula_of(definition.formula) if definition else None
    if definition is None or formula is None:
        return None
    used = {operand.concept for operand in formula.operands}
    others = " ; ".join(one.term for one in stated if one.term and one is not definition)
    is_redefined = any(concept.name in used for concept, _ in concepts_in(others))
    result = _result_of(formula.dimension, " ".join(names))
    if result is None or is_redefined or not used or _names_another(outside, asked, used):
        return None
    said = (*names, definition.term or "", definition.formula, "defined calculated computed")
    return Asked(definition.formula, formula, result, said, _places(question, result))


def _is_asked(term: str, outside: str, asked: frozenset[str]) -> bool:
    """Tell whether a term is what is asked for, by its name or by the abbreviation after its name: ``... (DPO)``."""
    said = terms(_FISCAL_YEAR.sub(" ", term))
    abbreviations = (terms(one) for one in re.findall(r"\(([A-Z&/]+)\)", outside))
    return bool(asked) and (said == asked or said in abbreviations)


def _result_of(dimension: Dimension | None, name: str) -> Result | None:
    """Return what a stated formula results in; None if that cannot be said, or its name demands days."""
    if re.search(r"\bdays\b", name, re.IGNORECASE):
        return Result.DAYS if dimension == Dimension(days=1) else None
    if dimension == Dimension(tens=2):
        return Result.PERCENT
    if dimension == Dimension():
        return Result.PERCENT if _IS_SHARE.search(name) else Result.RATIO
    if dimension == Dimension(days=1):
        return Result.RATIO
    is_amount = dimension is not None and (dimension.money, dimension.days) == (1, 0)
    return Result.AMOUNT if is_amount else None


def _names_another(outside: str, asked: frozenset[str], used: set[str]) -> bool:
    """Tell whether more is asked for than the formula: another entry or ratio."""
    names = list(_NAME.finditer(outside))
    if len(names) > 1 or len(_RATIO.findall(outside)) > 1:
        return True
    for concept, match in concepts_in(outside):
        in_name = any(match.start() <= one.end() and one.start() <= match.end() + 1 for one in names)
        begins_name = _NAME_WORD.match(outside, match.end() + 1) is not None
        if not in_name or not (concept.name in used or terms(match[0]) == asked or begins_name):
            return True
    return False


def _places(question: str, result: Result) -> int:
    match = _PLACES.search(question)
    if match is None:
        return _USUAL[result]
    said = match[1].lower()
    return min(_WORDS.get(said) or int(said), _MOST_PLACES)
