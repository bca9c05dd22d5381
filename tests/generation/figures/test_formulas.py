"""Claims about formulas that a question states: worked out by hand, refused where an operand is wrong."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from carag.generation.figures import look_up_alone
from carag.generation.figures.compute import rounded
from tests.generation.conftest import build_passage

if TYPE_CHECKING:
    from carag.generation.figures import Figure
    from carag.retrieval.evidence import Passage

INCOME = """\
Consolidated Statements of Income
(In millions, except per share data)
Year Ended December 31, | 2018 | 2017 | 2016
Net sales | $12,000 | $10,000 | $8,000
Cost of sales | 7,300 | 6,000 | 5,000
Gross profit | 4,700 | 4,000 | 3,000
Operating income | 3,000 | 2,000 | 1,000
Income before income taxes | 2,500 | 1,600 | 900
Provision for income taxes | 500 | 400 | 300
Net income | $2,000 | $1,200 | $600
"""
BALANCE = """\
Consolidated Balance Sheets
(In millions)
December 31, | 2018 | 2017
Cash and cash equivalents | $900 | $800
Accounts receivable, net | 1,100 | 900
Inventories | 700 | 500
Prepaid expenses | 100 | 90
Total current assets | 4,000 | 3,500
Property, plant and equipment, net | 5,000 | 3,000
Total assets | $10,000 | $6,000
Accounts payable | 730 | 570
Total current liabilities | 2,000 | 1,900
Total stockholders' equity | 6,000 | 4,000
"""
CASH = """\
Consolidated Statements of Cash Flows
(In thousands) | 2018 | 2017
Net cash provided by operating activities | 3,100,000 | 2,400,000
Depreciation and amortization | 360,000 | 300,000
Inventories | (200,000) | 10,000
Purchases of property, plant and equipment | (600,000) | (400,000)
Dividends paid | (500,000) | (400,000)
"""


MARGIN = "What is the FY2018 operating margin for Acme Widgets, defined as operating income / revenue?"


def passage(text: str, company: str = "Acme Widgets Inc.", at: int = 0) -> Passage:
    return build_passage(text, ordinal=at, company=company)


def ask(question: str, *texts: str) -> Figure | None:
    texts = texts or (INCOME, BALANCE, CASH)
    return look_up_alone(question, [passage(one, at=at) for at, one in enumerate(texts)])


def worked(question: str, *texts: str) -> str:
    """Return the answer's text, or nothing."""
    figure = ask(question, *texts)
    return figure.text if figure else ""


@pytest.mark.parametrize(
    "what",
    [
        *("gross margin", "operating margin", "net profit margin", "D&A margin", "effective tax rate"),
        *("COGS as a % of revenue", "capex as a percentage of net sales", "share of COGS in revenue"),
        *("working capital", "current ratio", "quick ratio", "days payable outstanding", "DSO"),
        *("days inventory outstanding", "inventory turnover", "asset turnover ratio", "return on assets"),
        *("ROE", "dividend payout ratio", "revenue growth", "net income growth rate", "average revenue"),
        *("3 year average operating margin", "operating income per share", "ratio of net income to revenue"),
    ],
)
def test_a_ratio_that_is_only_named_is_not_computed(what: str) -> None:
    """Nor is an entry that its name contains given for it."""
    question = f"What is the FY2018 {what} for Acme Widgets?"
    assert ask(question) is None
    printed = f"Selected Financial Data\nDecember 31, | 2018 | 2017\n{what.capitalize()} | 0.41 | 0.39\n"
    quoted = worked(question, INCOME, BALANCE, CASH, printed)
    assert quoted == "" or ": 0.41" in quoted


def test_a_ratio_that_a_table_states_is_quoted() -> None:
    """As any other entry."""
    printed = "Selected Financial Data\nDecember 31, | 2018 | 2017\nGross margin | 39.2% | 40.0%\n"
    question = "What is the FY2018 gross margin for Acme Widgets?"
    assert "Gross margin" in worked(question, INCOME, BALANCE, CASH, printed)
    assert ": 39.2%" in worked(question, INCOME, BALANCE, CASH, printed)


@pytest.mark.parametrize(
    "question",
    [
        "What is Acme Widgets' year-over-year change in revenue from FY2017 to FY2018 (in units of percents)?",
        "What is the percentage growth of net sales from 2017 to 2018 for Acme Widgets?",
    ],
)
def test_growth_from_a_year_to_the_next_is_one_growth(question: str) -> None:
    """The change spans both years; over two years it is not one year's growth."""
    assert "growth of revenue 2018 = (12,000 - 10,000) / 10,000 = 20.0 %" in worked(question)
    assert ask(question.replace("2017", "2016")) is None


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        (
            "What is FY2018 days payable outstanding (DPO) for Acme Widgets? DPO is defined as: 365 * (average accounts"
            " payable between FY2017 and FY2018) / (FY2018 COGS + change in inventory between FY2017 and FY2018).",
            "365 * ((730 + 570) / 2) / (7,300 + (700 - 500)) = 31.63 days",
        ),
        (
            "What is the FY2018 fixed asset turnover ratio for Acme Widgets? Fixed asset turnover ratio is defined as: "
            "FY2018 revenue / (average PP&E between FY2017 and FY2018). Round your answer to one decimal place.",
            "12,000 / ((5,000 + 3,000) / 2) = 3.0",
        ),
    ],
)
def test_a_formula_may_name_years(question: str, shown: str) -> None:
    """As a mean of two years, as the change between them, and of one year."""
    assert shown in worked(question)
    assert ask(question.replace("between FY2017", "between FY2015")) is None


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        (
            "What is the FY2018 gross margin of Acme Widgets? Gross margin is defined as (revenue - COGS) / revenue.",
            "(12,000 - 7,300) / 12,000 = 39.2 %",
        ),
        (
            "What is Acme Widgets' FY2018 asset ratio, defined as net receivables divided by total assets?",
            "1,100 / 10,000 = 0.11",
        ),
        (
            "What is the free cash flow of Acme Widgets in FY2018, calculated as operating cash flow minus capex?",
            "3,100,000 - 600,000 = 2,500,000",
        ),
        (
            "What is the FY2018 payable days of Acme Widgets, defined as 365 * trade payables / cost of sales?",
            "365 * 730 / 7,300 = 36.50 days",
        ),
    ],
)
def test_a_formula_that_the_question_states_is_worked_out(question: str, shown: str) -> None:
    """From the cells that it names."""
    assert shown in worked(question, INCOME + "Gross margin | 4,700 | 4,000 | 3,000\n", BALANCE, CASH)


@pytest.mark.parametrize(
    "question",
    [
        "What is the FY2018 gross margin of Acme Widgets? It is defined as (revenue - cost of nails) / revenue.",
        "What is the FY2018 gross margin of Acme Widgets? It is defined as revenue less COGS over.",
        "What is the FY2018 nail margin of Acme Widgets, defined as (revenue - COGS) / revenue?",
        "What is the FY2018 gross profit of Acme Widgets, defined as revenue less returns?",
        "What is the FY2018 debt ratio of Acme Widgets, defined as total liabilities / total assets?",
        "What is the FY2018 payable days of Acme Widgets, defined as 365 * accounts payable / purchases?",
        "What is the FY2018 sales ratio of Acme Widgets, defined as revenue (total assets)?",
        "What is the FY2018 sales ratio of Acme Widgets, defined as - revenue / total assets?",
        "What is the FY2018 operating margin for Acme Widgets? Define it as EBITDA / revenue.",
    ],
)
def test_a_formula_is_read_whole_or_the_question_refused(question: str) -> None:
    """Also where a row bears the name that it defines, a word names a part of the company, or a cell is missing."""
    assert ask(question, INCOME + "Gross margin | 4,700 | 4,000 | 3,000\n", BALANCE, CASH) is None


_MARGIN = "gross margin is defined as (revenue - COGS) / revenue"


@pytest.mark.parametrize(
    "question",
    [
        "EBITDA is defined as operating income plus D&A. What was the FY2018 net income of Acme Widgets?",
        f"{_MARGIN.capitalize()}. What is the FY2018 operating margin of Acme Widgets?",
        f"What is the FY2018 net profit of Acme Widgets, where {_MARGIN}?",
        f"What is the FY2018 net profit of Acme Widgets whose {_MARGIN}?",
        f"What is the FY2018 net profit of Acme Widgets, with {_MARGIN.replace(' is', '')}?",
        f"What is the FY2018 operating margin of Acme Widgets? {_MARGIN.capitalize()}.",
        "EBITDA: defined as operating income plus D&A. What was the FY2018 net income of Acme Widgets?",
        "What is the FY2018 ratio of net income to gross margin of Acme Widgets, defined as 1 - COGS / revenue?",
        "What is the FY2018 revenue at the gross margin of Acme Widgets, defined as 1 - COGS / revenue?",
        "What is the FY2018 COGS at the gross margin of Acme Widgets, defined as 1 - COGS / revenue?",
        f"Operating margin is defined as EBIT / revenue. {_MARGIN}. What is the FY2018 net margin of Acme Widgets?",
        f"Net sales is defined as gross profit. {_MARGIN}. What is the FY2018 gross margin of Acme Widgets?",
    ],
)
def test_a_formula_answers_only_for_the_term_that_it_defines(question: str) -> None:
    """Not for another entry or ratio next to it, nor with an entry that is itself defined differently."""
    assert ask(question) is None


@pytest.mark.parametrize(
    ("what", "formula"),
    [
        ("net margin", "1000 * net income / revenue"),
        ("days inventory", "inventory / COGS"),
        ("sales days", "revenue / 365"),
        ("sales share", "revenue / total assets + net income"),
        ("net ratio", "revenue * net income"),
        ("net sales ratio", "revenue / COGS + 100 * net income / revenue"),
        ("sales ratio", "2 * 3"),
    ],
)
def test_a_formula_whose_unit_is_not_that_of_its_name_is_refused(what: str, formula: str) -> None:
    """Also one that adds unlike quantities, or that names no entry."""
    assert ask(f"What is the FY2018 {what} of Acme Widgets, defined as {formula}?") is None


@pytest.mark.parametrize(
    ("what", "formula", "end", "value"),
    [
        ("net margin", "net income / revenue * 100", "16.7 %", "1/6"),
        ("net margin", "100 * net income / revenue", "16.7 %", "1/6"),
        ("net margin", "net income / revenue * 100%", "16.7 %", "1/6"),
        ("gross margin", "100 - 100 * COGS / revenue", "39.2 %", "47/120"),
        ("gross profit margin", "(revenue - COGS) / revenue", "39.2 %", "47/120"),
        ("inventory days", "inventory / (COGS / 365)", "35.00 days", "35/1"),
        ("inventory to sales ratio", "inventory / revenue", "0.06", "7/120"),
        ("net sales", "revenue / 2 * 3", "18,000", "18000000000/1"),
    ],
)
def test_a_stated_formula_has_the_unit_that_its_factors_give(
    what: str, formula: str, end: str, value: str
) -> None:
    """A factor of 100 makes a percentage, the days of a year make days, and an amount stays one."""
    figure = ask(f"What is the FY2018 {what} of Acme Widgets, defined as {formula}?")
    assert figure is not None
    assert f" = {end} (" in figure.text
    over, under = value.split("/")
    assert rounded(Decimal(over) / Decimal(under), 9) == rounded(figure.value, 9)


@pytest.mark.parametrize(
    "question",
    [
        f"{_MARGIN.capitalize()}. What is the FY2018 gross margin of Acme Widgets?",
        "What is the FY2018 gross margin of Acme Widgets? It is defined as (revenue - COGS) / revenue.",
        f"What is the FY2018 gross margin of Acme Widgets, where {_MARGIN}?",
        f"Operating margin is defined as EBIT / revenue. {_MARGIN}. What is the FY2018 gross margin of Acme Widgets?",
    ],
)
def test_a_definition_of_the_term_asked_for_is_used_wherever_it_stands(question: str) -> None:
    """Before, after or within the question, and among other definitions."""
    assert "(12,000 - 7,300) / 12,000 = 39.2 %" in worked(question)


def test_a_stated_formula_takes_its_cells_from_one_filing() -> None:
    """A balance in one report and a cost in another may belong to two versions of a year."""
    question = "What is Acme Widgets' FY2018 sales ratio, defined as revenue / total assets?"
    one, other = passage(INCOME), passage(BALANCE, at=1)
    assert look_up_alone(question, [one, other]) is not None
    assert look_up_alone(question, [one, replace(other, accession_number="2")]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Operating income | 3,000", "Operating income of nails | 3,000"),  # another entry
        ("Operating income | 3,000", "Operating income | —"),  # no figure
        ("Net sales | $12,000", "Net sales | $0"),  # no divisor
        ("2018 | 2017 | 2016", "2017 | 2016 | 2015"),  # another time
        ("2018 | 2017 | 2016", "2018 | 2018 | 2018"),  # three of one time
        ("2018 | 2017 | 2016", "Nails | Screws | Total"),
        ("Consolidated Statements of Income", "Segment information"),
        ("Consolidated Statements of Income", "Pro forma statements"),
        ("Year Ended December 31,", "Nine Months Ended September 30,"),
        ("Net sales | $12,000", "Net sales | €12,000"),  # another currency
        ("Net sales | $12,000", "Net sales | 12.0 %"),
    ],
)
def test_a_missing_or_foreign_operand_gives_no_answer(old: str, new: str) -> None:
    """No other entry, time, part of the company or unit takes its place."""
    question = MARGIN
    text = INCOME.replace("Operating income | 3,000 | 2,000", "Operating income | $3,000 | 2,000")
    assert ask(question, text) is not None
    changed = text.replace(old.replace("| 3,000", "| $3,000"), new)
    assert text != changed
    assert ask(question, changed) is None


def test_operands_of_two_companies_make_no_ratio() -> None:
    """A figure of another company does not stand in."""
    sales, income = INCOME.replace("Operating income", "Other"), INCOME.replace("Net sales", "Other")
    passages = [passage(sales), passage(income, "Bolt Makers Inc", at=1)]
    assert look_up_alone(MARGIN, passages) is None


def test_operands_that_disagree_make_no_ratio() -> None:
    """Two filings with two figures for one entry and year."""
    changed = INCOME.replace("3,000", "3,100")
    assert ask(MARGIN, INCOME, changed) is None


def test_unknown_scales_cancel_within_one_table_only() -> None:
    """Each of two tables may be in thousands or in millions."""
    bare = INCOME.replace("(In millions, except per share data)\n", "")
    assert ask(MARGIN, bare) is not None
    sales = "\n".join(line for line in bare.splitlines() if "Operating" not in line)
    income = "\n".join(line for line in bare.splitlines() if "sales" not in line)
    assert ask(MARGIN, sales, income) is None
    scaled = (text.replace("Income\n", "Income\n(In millions)\n") for text in (sales, income))
    assert ask(MARGIN, *scaled) is not None


def test_growth_from_a_loss_has_no_meaning() -> None:
    """A rate would mislead."""
    question = "What is the growth of net income from 2017 to 2018 for Acme Widgets?"
    assert ask(question) is not None
    assert ask(question, INCOME.replace("$1,200", "$(1,200)")) is None


def test_costs_in_parentheses_are_costs() -> None:
    """As some statements print them."""
    printed = INCOME.replace("| 7,300", "| (7,300)")
    question = "What is the FY2018 cost share of Acme Widgets, defined as COGS / revenue?"
    assert "7,300 / 12,000 = 60.8 %" in worked(question, printed)


def test_a_part_of_the_company_has_no_ratio_of_the_whole() -> None:
    """Every word of the question must be the formula's."""
    for what in (
        "international operating margin",
        "operating margin of nails",
        "adjusted operating margin",
        "level 2 operating margin",
        "U.S. gross margin",
    ):
        assert ask(MARGIN.replace("operating margin", what)) is None


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("revenue - (COGS - inventories)", "12,000 - (7,300 - 700)"),
        ("revenue - COGS - inventories", "12,000 - 7,300 - 700"),
        ("revenue / (2 * 3)", "12,000 / (2 * 3)"),
        ("((revenue minus COGS)) times 2", "(12,000 - 7,300) * 2"),
        ("revenue over 2 plus COGS", "12,000 / 2 + 7,300"),
    ],
)
def test_the_steps_shown_are_those_worked_out(formula: str, shown: str) -> None:
    """Parentheses stand where leaving them out would change the value, and nowhere else."""
    figure = ask(f"What is the FY2018 net cash of Acme Widgets, defined as {formula}?")
    assert figure is not None
    assert f" = {shown} = " in figure.text
    assert figure.value == 10**6 * Decimal(eval(shown.replace(",", "")))  # noqa: S307 - our own text


@pytest.mark.parametrize(
    ("value", "places", "to"),
    [("26.05", 1, "26.1"), ("-26.05", 1, "-26.1"), ("0.5", 0, "1"), ("2", 2, "2.00")],
)
def test_halves_are_rounded_away_from_zero(value: str, places: int, to: str) -> None:
    """As people do when they check a figure."""
    assert to == str(rounded(Decimal(value), places))
