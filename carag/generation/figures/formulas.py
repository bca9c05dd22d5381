"""Define the ratios that questions ask for: what a question calls them, and how they follow from entries of statements.

Each is defined as in analysts' textbooks and the questions of FinanceBench (arXiv 2311.11944). If there are two
definitions in practice, the answer shows the arithmetic, and a question that states a different one is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.generation.figures.arithmetic import Constant, Dimension, Operand, average
from carag.generation.figures.concepts import concept_named, concepts_in
from carag.generation.figures.stated import definitions_in, expression_of
from carag.generation.words import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.figures.arithmetic import Expression
    from carag.generation.figures.stated import Definition

__all__ = ["Asked", "Formula", "Result", "formula_asked"]


class Result(StrEnum):
    """What a formula results in."""

    PERCENT = "percent"
    RATIO = "ratio"
    DAYS = "days"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True)
class Formula:
    """A ratio or a difference of entries of statements."""

    name: str
    asks: re.Pattern[str]
    expressions: tuple[Expression, ...]
    """The first whose operands are all found is used."""
    result: Result
    stated: re.Pattern[str] | None = None
    """What the definition in a question must say, without its years; None if any definition is refused."""
    only_if_stated: bool = False
    """Whether it is used only if the question states this definition."""
    times_hundred: bool = False
    """Whether it multiplies by 100 itself, so that its result is in per cent."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A formula that a question asks for."""

    formula: Formula
    said: tuple[str, ...]
    """The words of the question that are used."""
    over_years: bool
    """Whether the mean of several years is asked for."""
    is_change: bool
    """Whether two consecutive years are asked about together: the change from one to the other."""
    places: int
    """Decimals of the answer."""


def _formula(
    name: str,
    asks: str,
    result: Result,
    *expressions: Expression,
    stated: str = "",
    only_if_stated: bool = False,
) -> Formula:
    pattern = re.compile(rf"\b(?:{asks})", re.IGNORECASE)
    return Formula(
        name,
        pattern,
        expressions,
        result,
        re.compile(stated, re.IGNORECASE) if stated else None,
        only_if_stated,
    )


def _two_years(concept: str) -> Expression:
    return average(Operand(concept), Operand(concept, 1))


_YEAR: Final = Constant(Decimal(365))
_REVENUE: Final = Operand("revenue")
_SALES_COST: Final = Operand("cost of sales", is_paid=True)
_NET_INCOME: Final = Operand("net income")
_ASSETS: Final = Operand("current assets")
_DEBTS: Final = Operand("current liabilities")
_STOCK: Final = Operand("inventories")
_CAPEX: Final = Operand("capital expenditure", is_paid=True)
_OF_SALES: Final = (
    r" (?:as an? )?(?:%|percent(?:age)?|share|to|proportion)(?: of)?(?: its| total| net)? (?:revenues?|sales)"
)

_FORMULAS: Final = (
    _formula(
        "gross margin",
        r"gross (?:profit )?margin\b(?! dollars)",
        Result.PERCENT,
        Operand("gross profit") / _REVENUE,
        (_REVENUE - _SALES_COST) / _REVENUE,
    ),
    _formula(
        "operating margin",
        r"operating (?:income |profit )?margin\b",
        Result.PERCENT,
        Operand("operating income") / _REVENUE,
    ),
    _formula(
        "net margin",
        r"net (?:income |profit )?margin\b|profit margin\b",
        Result.PERCENT,
        _NET_INCOME / _REVENUE,
    ),
    _formula(
        "cost of sales as a share of revenue",
        rf"(?:costs? of (?:goods sold|sales|revenues?)|cogs){_OF_SALES}\b",
        Result.PERCENT,
        _SALES_COST / _REVENUE,
    ),
    _formula(
        "capital expenditure as a share of revenue",
        rf"(?:cap[- ]?ex|capital (?:expenditures?|spending)){_OF_SALES}\b",
        Result.PERCENT,
        _CAPEX / _REVENUE,
    ),
    _formula(
        "depreciation and amortization as a share of revenue",
        rf"(?:depreciation (?:and|&) amorti[sz]ation|d&a)(?: expense)?{_OF_SALES}\b|d&a margin\b",
        Result.PERCENT,
        Operand("depreciation and amortization", is_paid=True) / _REVENUE,
    ),
    _formula(
        "working capital",
        r"(?:net )?working capital\b(?! ratio)",
        Result.AMOUNT,
        _ASSETS - _DEBTS,
        stated=r"current assets (?:minus|less|-|–|−) (?:total )?current liabilities",
    ),
    _formula(
        "current ratio",
        r"(?:current|working capital) ratio\b",
        Result.RATIO,
        _ASSETS / _DEBTS,
        stated=r"current assets (?:divided by|/|over) (?:total )?current liabilities",
    ),
    _formula(
        "quick ratio",
        r"(?:quick|acid[- ]test) ratio\b",
        Result.RATIO,
        (_ASSETS - _STOCK - Operand("prepaid expenses")) / _DEBTS,
    ),
    _formula(
        "days payable outstanding",
        r"days payables? outstanding\b|\bdpo\b",
        Result.DAYS,
        _YEAR * _two_years("accounts payable") / _SALES_COST,
    ),
    _formula(
        "days payable outstanding",
        r"days payables? outstanding\b|\bdpo\b",
        Result.DAYS,
        _YEAR * _two_years("accounts payable") / (_SALES_COST + (_STOCK - Operand("inventories", 1))),
        stated=r"365 ?[*x×] ?\(?average accounts payable.{0,99}/ ?\(.{0,30}(?:cogs|cost of \w+).{0,60}"
        r"\+ ?change in inventor",
        only_if_stated=True,
    ),
    _formula(
        "days sales outstanding",
        r"days(?:['’])? sales outstanding\b|\bdso\b",
        Result.DAYS,
        _YEAR * _two_years("receivables") / _REVENUE,
        stated=r"365 ?[*x×] ?\(?average (?:accounts )?receivables?.{0,99}"
        r"/ ?\(? ?(?:total )?(?:revenue|net sales|sales)",
    ),
    _formula(
        "days inventory outstanding",
        r"days(?:['’])? (?:of )?inventor(?:y|ies) outstanding\b|\bdio\b",
        Result.DAYS,
        _YEAR * _two_years("inventories") / _SALES_COST,
        stated=r"365 ?[*x×] ?\(?average (?:total )?inventor.{0,99}/ ?\(? ?(?:cogs|costs? of \w+)",
    ),
    _formula(
        "inventory turnover",
        r"inventory turnover(?: ratio)?\b",
        Result.RATIO,
        _SALES_COST / _two_years("inventories"),
        stated=r"(?:cogs|costs? of \w+(?: sold)?)\)? ?(?:/|divided by) ?\(?average (?:total )?inventor",
    ),
    _formula(
        "fixed asset turnover",
        r"fixed assets? turnover(?: ratio)?\b",
        Result.RATIO,
        _REVENUE / _two_years("property, plant and equipment, net"),
        stated=r"revenues? ?(?:/|divided by) ?\(?average pp",
    ),
    _formula(
        "asset turnover",
        r"(?:total )?assets? turnover(?: ratio)?\b",
        Result.RATIO,
        _REVENUE / _two_years("total assets"),
        stated=r"revenues? ?(?:/|divided by) ?\(?average total assets",
    ),
    _formula(
        "return on assets",
        r"return on (?:total )?assets\b|\broa\b",
        Result.RATIO,
        _NET_INCOME / _two_years("total assets"),
        stated=r"net income ?(?:/|divided by) ?\(?average total assets",
    ),
    _formula(
        "return on equity",
        r"return on (?:(?:share|stock)holders['’]? )?equity\b|\broe\b",
        Result.PERCENT,
        _NET_INCOME / _two_years("shareholders' equity"),
    ),
    _formula(
        "dividend payout ratio",
        r"(?:dividend )?pay-?out ratio\b",
        Result.RATIO,
        Operand("dividends paid", is_paid=True) / _NET_INCOME,
        stated=r"(?:cash )?dividends paid ?(?:/|divided by) ?net income",
    ),
    _formula(
        "effective tax rate",
        r"effective (?:income )?tax rate\b",
        Result.PERCENT,
        Operand("income tax", must_be_positive=True) / Operand("income before taxes", must_be_positive=True),
    ),
)
_GROWTH: Final = re.compile(
    r"(?:year[- ](?:over|on)[- ]year|yoy|annual)? ?"
    r"(?:growth(?: rate)?|(?:percent(?:age)?|%) (?:change|increase|growth|decrease))"
    r"(?: rate)?(?: (?:of|in))?|year[- ](?:over|on)[- ]year (?:change|increase)(?: (?:of|in))?",
    re.IGNORECASE,
)
_OVER_YEARS: Final = re.compile(
    r"(?:(?:\d|two|three|four|five)[- ]years? )?average(?: of)?|mean(?: of)?", re.IGNORECASE
)
_DEFINES: Final = re.compile(r"\bdefin(?:e[ds]?|ed as|ition)\b|\bcalculated as\b", re.IGNORECASE)
_NAME: Final = re.compile(
    r"\b(?:adjusted|asset|assets|capital|cash|conversion|cost|coverage|current|days?|debt|dividend|efficiency|equity|fixed"
    r"|flow|free|gross|income|intensity|interest|inventory|leverage|liabilities|liquidity|margin|net|operating|outstanding"
    r"|payable|payables|payout|percent(?:age)?|profit|quick|rate|ratio|receivables?|return|sales|share|tax|total|turnover"
    r"|working|yield)\b",
    re.IGNORECASE,
)
"""Words in the names of ratios, none of which is a part of a company."""
_IS_SHARE: Final = re.compile(r"\b(?:margin|percent(?:age)?|rate|share|yield)\b", re.IGNORECASE)
_RATIO: Final = re.compile(r"\b(?:margin|ratio|turnover|rate|yield)\b(?:\s(?:ratio|rate)\b)?", re.IGNORECASE)
_FISCAL_YEAR: Final = re.compile(r"\b(?:FY ?)?(?:19|20)\d\d\b")
_PLACES: Final = re.compile(r"\bround\b[^.?!]{0,40}\b(one|two|three|four|\d) decimal", re.IGNORECASE)
_WORDS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
_USUAL: Final = {Result.PERCENT: 1, Result.RATIO: 2, Result.DAYS: 2, Result.AMOUNT: 0}
_MOST_PLACES: Final = 6


def formula_asked(question: str, clause: str) -> Asked | None:
    """Return the formula that a question asks for; None if it asks for none, or defines it differently.

    ``question`` is all of it, for definitions and rounding; ``clause`` is the part that asks.
    """
    stated = [(one, expression_of(one.formula)) for one in definitions_in(question)]
    if any(expression for _, expression in stated):
        return _as_stated(question, clause, stated)
    defines = _DEFINES.search(question)
    definition = " ".join(_FISCAL_YEAR.sub(" ", question[defines.start() :]).split()) if defines else None
    over_years = _OVER_YEARS.search(clause)
    for formula in _FORMULAS:
        match = formula.asks.search(clause)
        if match is None:
            continue
        own = formula.stated.search(definition) if formula.stated and definition else None
        if definition is not None and own is None:
            continue
        if definition is None and formula.only_if_stated:
            continue
        said = [*(one[0] for one in formula.asks.finditer(clause)), *([over_years[0]] if over_years else [])]
        return Asked(formula, tuple(said), over_years is not None, False, _places(question, formula.result))
    growth = _GROWTH.search(clause)
    if growth is None or definition is not None:
        return None
    named = concept_named(clause)
    if named is None:
        return None
    concept, match = named
    operand = Operand(concept.name)
    before = Operand(concept.name, 1, must_be_positive=True)
    formula = Formula(f"growth of {concept.name}", _GROWTH, ((operand - before) / before,), Result.PERCENT)
    said = [growth[0], match[0], *([over_years[0]] if over_years else [])]
    return Asked(formula, tuple(said), over_years is not None, True, _places(question, formula.result))


def _as_stated(
    question: str, clause: str, stated: Sequence[tuple[Definition, Expression | None]]
) -> Asked | None:
    """Return the formula that a question states for what it asks, and for nothing else."""
    outside = clause
    for one in reversed(definitions_in(clause)):
        outside = outside[: one.start] + outside[one.end :]
    names = _NAME.findall(outside)
    asked = terms(" ".join(names))
    mine = [
        (one, expression)
        for one, expression in stated
        if one.term is None or (asked and terms(_FISCAL_YEAR.sub(" ", one.term)) == asked)
    ]
    definition, expression = mine[0] if len(mine) == 1 else (None, None)
    if definition is None or expression is None:
        return None
    used = {operand.concept for operand in expression.operands()}
    others = " ; ".join(one.term for one, _ in stated if one.term and one is not definition)
    is_redefined = any(concept.name in used for concept, _ in concepts_in(others))
    result = _result_of(expression, " ".join(names))
    if result is None or is_redefined or not used or _names_another(outside, asked, used):
        return None
    times_hundred = expression.dimension() == Dimension(tens=2)
    formula = Formula(definition.formula, _NAME, (expression,), result, times_hundred=times_hundred)
    said = (*names, definition.formula, "defined calculated computed")
    return Asked(formula, said, False, False, _places(question, result))


def _result_of(expression: Expression, name: str) -> Result | None:
    """Return what a stated formula results in; None if that cannot be said, or its name demands days."""
    dimension = expression.dimension()
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
    known = {match.span(): one for one in reversed(_FORMULAS) for match in one.asks.finditer(outside)}
    entries = [
        (concept, match)
        for concept, match in concepts_in(outside)
        if not any(match.start() < end and start < match.end() for start, end in known)
    ]
    has_ratio = any(one.result is not Result.AMOUNT for one in known.values())
    return (
        len(_RATIO.findall(outside)) > 1
        or (has_ratio and bool(entries))
        or (has_ratio and any(one.result is Result.AMOUNT for one in known.values()))
        or any(
            concept.name not in used
            and terms(match[0]) != asked
            and not _NAME.match(outside, match.end() + 1)
            for concept, match in entries
        )
    )


def _places(question: str, result: Result) -> int:
    match = _PLACES.search(question)
    if match is None:
        return _USUAL[result]
    said = match[1].lower()
    return min(_WORDS.get(said) or int(said), _MOST_PLACES)
