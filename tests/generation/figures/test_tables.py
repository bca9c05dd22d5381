"""Claims about reading tables: which cells are figures, what names a column, which heads a torn table gets back."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.generation.figures.columns import time_of
from carag.generation.figures.entries import entries_of
from carag.generation.figures.units import Kind
from carag.labelling.chunking import chunk
from carag.retrieval.tables import torn_heads
from carag.retrieval.tables.number import read_number
from carag.retrieval.tables.table import tables_of

INCOME = """\
(In millions, except per share data) | 2018 | 2017
Net sales | $12,345 | $11,900
Cost of sales | 7,000 | 6,900
Earnings per share | $1.10 | $1.05
"""
LINES = st.sampled_from(
    [
        *INCOME.splitlines(),
        " | 2019 | 2018",
        "Total assets | 5 | 6",
        "Years Ended December 31,",
        "2019 2018",
        "Cash and cash equivalents $ 7,776 $ 5,197",
        "(1,577 | ) | (12",
        "Cash | $ | 2,853 | $ | 3,053",
        "| | |",
        "A sentence that ends, as prose does, in a full stop and is long.",
        "",
    ]
)
TEXTS = st.lists(LINES | st.text(max_size=12), max_size=14).map("\n".join)


def read(text: str, head: str = "") -> dict[tuple[str, ...], str]:
    """Return each figure by its label and heads."""
    return {
        (one.label.text, *(head.text for head in one.heads)): one.cell.text
        for one in entries_of(0, text, head)
    }


@given(text=TEXTS, head=TEXTS)
def test_every_quote_is_a_substring_at_its_span(text: str, head: str) -> None:
    """Cells, labels, heads, sections and units alike, in the passage or in the head that came with it."""
    for one in entries_of(3, text, head):
        for quote in (one.cell, one.label, one.section, one.unit_quote, *one.heads):
            if quote is not None:
                assert quote.text == (head if quote.in_head else text)[quote.start : quote.end]
                assert 3 == quote.position


@given(text=TEXTS)
def test_a_head_changes_no_figure_of_a_table_that_has_its_own(text: str) -> None:
    """Rows below a table's own heads belong to those."""
    own = f" | 1999 | 1998\nGoodwill | 1 | 2\n\n{text}"
    assert read(own).items() >= {("Goodwill", "1999"): "1", ("Goodwill", "1998"): "2"}.items()
    with_head = read(own, " | 2030 | 2029")
    assert "1" == with_head["Goodwill", "1999"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1,577)", "-1577"),
        ("(149,554 )", "-149554"),
        ("$ (0.76)", "-0.76"),
        ("$(0.76)", "-0.76"),
        ("−119", "-119"),
        ("(0.3)%", "-0.3"),
        ("-5%", "-5"),
        ("8,738 (1)", "8738"),
        ("12*", "12"),
        (".5", "0.5"),
        ("€ 3,4", None),
        ("2018", None),
        ("2018 (1)", None),
        ("2,018", "2018"),
        ("—", None),
        ("n/a", None),
        ("(12", None),
        ("12)", None),
        ("1,23,456", None),
        ("December 31, 2018", None),
        ("5 to 7", None),
    ],
)
def test_a_cell_is_a_number_or_none(text: str, value: str | None) -> None:
    """Parentheses are a minus, footnote marks nothing, and a bare year measures nothing."""
    found = read_number(text)
    assert (Decimal(value) if value else None) == (found.value if found else None)


def test_years_in_a_head_are_not_figures() -> None:
    """Nor are those in a row that names years."""
    assert not {"2018", "2017"} & set(read(INCOME).values())
    assert {} == read(" | 2018 | 2017\nExpires | 2030 | 2029")


def test_a_row_of_years_below_rows_leaves_the_rest_without_heads() -> None:
    """It may be a head or a row; where neither is certain, it is read as neither."""
    text = f"{INCOME}Maturity | 2030 | 2029\nNotes | 5 | 6"
    assert {("Notes",): "6"}.items() <= read(text).items()


def test_a_sign_in_a_cell_of_its_own_moves_no_column() -> None:
    """The cell closed by a parenthesis elsewhere is read whole."""
    text = "| | 2018 | | 2017\nCash | $ | 2,853 | $ | 3,053\nLoss | $ | (2,853 | ) | (12)"
    found = {label[0]: cell for label, cell in read(text).items() if label[-1:] == ("2018",)}
    assert {"Cash": "2,853", "Loss": "(2,853 | )"} == found


def test_percent_columns_and_rows_are_per_cent() -> None:
    """By the head, the label or the cell."""
    text = (
        "(in millions) | 2018 | 2017 | % change\nSales | 12 | 11 | 9\nMargin (%) | 5 | 4 | 1\n"
        "Tax rate | 21 % | 20 % | 1"
    )
    kinds = {(one.label.text, one.heads[-1].text): one.unit.kind for one in entries_of(0, text)}
    assert Kind.AMOUNT == kinds["Sales", "2018"]
    percents = (("Sales", "% change"), ("Margin (%)", "2018"), ("Tax rate", "2018"))
    assert {Kind.PERCENT} == {kinds[one] for one in percents}


@pytest.mark.parametrize(
    ("said", "scale"),
    [
        ("(in millions, except per share data)", 10**6),
        ("(Dollars in thousands)", 1000),
        ("US$ billion", 10**9),
        ("$’000", 1000),
        ("€m", 10**6),
        ("", None),
        ("(benefit from) the bank's book", None),
    ],
)
def test_thousands_are_not_millions(said: str, scale: int | None) -> None:
    """What is not stated is unknown."""
    [one, _] = entries_of(0, f"{said}\n | 2018 | 2017\nNet sales | 12 | 11")
    assert (Decimal(scale) if scale else None) == one.unit.scale


def test_per_share_figures_have_no_scale_of_the_table() -> None:
    """Nor have numbers of shares that the caption excepts."""
    shares = "(In millions, except shares)\n | 2018 | 2017\nShares outstanding | 576,575 | 594,884"
    units = {one.label.text: one.unit for text in (INCOME, shares) for one in entries_of(0, text)}
    per_share, count = units["Earnings per share"], units["Shares outstanding"]
    assert (Kind.PER_SHARE, Decimal(1)) == (per_share.kind, per_share.scale)
    assert (Kind.COUNT, None) == (count.kind, count.scale)


def test_two_tables_in_a_passage_keep_their_heads_apart() -> None:
    """The second has its own years and its own scale."""
    text = f"{INCOME}\n(In thousands) | 2016 | 2015\nGoodwill | 77 | 66\n"
    found = read(text)
    assert "77" == found["Goodwill", "2016"]
    assert "$12,345" == found["Net sales", "2018"]
    assert {Decimal(1000)} == {one.unit.scale for one in entries_of(0, text) if one.label.text == "Goodwill"}


def test_quarters_and_nine_months_are_told_apart() -> None:
    """Heads over several columns are those of the columns below."""
    text = (
        " | Three months ended September 30, | | Nine months ended September 30, | \n"
        " | 2018 | 2017 | 2018 | 2017\nNet sales | 1 | 2 | 3 | 4"
    )
    months = {one.cell.text: (one.time.months, one.time.year) for one in entries_of(0, text)}
    assert {"1": (3, 2018), "2": (3, 2017), "3": (9, 2018), "4": (9, 2017)} == months


def test_a_label_may_go_on_over_lines() -> None:
    """The lines above are part of it, not a section."""
    label = "Preferred stock, $0.001 par value; no shares\nissued and outstanding at the end of 2017"
    [one, _] = entries_of(0, f"As of December 31, | 2017 | 2016\nStockholders’ equity:\n{label} | 12 | 13\n")
    assert label == one.label.text
    assert "Stockholders’ equity:" == (one.section.text if one.section else None)


def test_lines_without_bars_are_rows_if_they_end_in_figures() -> None:
    """As some PDF readers leave them; prose that ends in one number is not a row."""
    text = "As of December 31,\n2022 2021\n(In millions)\nTotal cash $ 7,776 $ 5,197\nWe had 12."
    assert {("Total cash", "2022"): "$ 7,776", ("Total cash", "2021"): "$ 5,197"} == read(text)


@pytest.mark.parametrize(
    "row", ["Net sales | 12,345", "Net sales | 12,345 | 3 | 11,900", "Net sales | 1 | 2 | 3 | 4 | 5"]
)
def test_a_row_whose_cells_do_not_fit_its_heads_is_not_read(row: str) -> None:
    """A blank cell that a reader dropped would move every figure by a column."""
    assert {"Cost of sales"} == {label[0] for label in read(f"2018 | 2017\n{row}\nCost of sales | 7 | 6")}


def test_the_first_cell_of_a_head_over_labels_is_not_a_column() -> None:
    """Though it names a time."""
    text = "For the year ended December 31: | 2019 | 2018 | Change\nInterest | 1,344 | 723 | 86%"
    assert "1,344" == read(text)["Interest", "2019"]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Fiscal Years Ended January 31, | 2018", (2018, (1, 31), 12, False)),
        ("January 28, 2017", (2017, (1, 28), None, True)),
        ("30 June 2019", (2019, (6, 30), None, False)),
        ("13 weeks ended April 1, 2023", (2023, (4, 1), 3, False)),
        ("FY19", (2019, None, None, False)),
    ],
)
def test_a_head_says_its_time(head: str, expected: tuple[object, ...]) -> None:
    """Year, day, months, and whether the year may go by the number of the one before."""
    time = time_of(head)
    assert expected == (time.year, time.day, time.months, time.is_early)


def document(rows: int) -> str:
    body = "\n".join(
        f"Entry number {at} of the statement | {1000 + at:,} | {2000 + at:,}" for at in range(rows)
    )
    return (
        f"Consolidated Balance Sheets\n(in thousands)\nDecember 31, | 2018 | 2017\n{body}\n\nSee the notes.\n"
    )


def test_a_torn_table_gets_its_heads_back() -> None:
    """Every chunk but the first; its figures are then read as if the table had not been torn."""
    text = document(90)
    chunks = chunk(text)
    heads = torn_heads(text, [(one.start, one.end) for one in chunks])
    assert len(chunks) > 2
    assert heads[0] is None
    assert {"Consolidated Balance Sheets\n(in thousands)\nDecember 31, | 2018 | 2017"} == {
        text[slice(*one)] for one in heads[1:] if one
    }
    pieces = [
        read(one.text, text[slice(*head)] if head else "") for one, head in zip(chunks, heads, strict=True)
    ]
    assert read(text) == {label: cell for piece in pieces for label, cell in piece.items()}


def test_what_is_not_a_torn_table_gets_no_heads() -> None:
    """Prose below a table, a table with heads of its own, a text without tables."""
    text = f"{INCOME}\nSales rose because we sold more nails than in the year before, and at better prices.\n{INCOME}"
    prose = text.index("Sales rose")
    second = text.index("(In millions", prose)
    assert [None, None] == torn_heads(text, [(prose, second - 1), (second, len(text))])
    assert [None] == torn_heads("No table.", [(0, 9)])


@given(rows=st.integers(0, 60), cuts=st.lists(st.integers(0, 3000), max_size=6))
def test_a_head_lies_before_its_chunk_and_holds_its_years(rows: int, cuts: list[int]) -> None:
    """Wherever a document is cut; and a cut has the same head whatever the other cuts are."""
    text = document(rows)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = list(pairwise(edges))
    for (start, end), head in zip(chunks, torn_heads(text, chunks), strict=True):
        assert [head] == torn_heads(text, [(start, end)])
        if head is not None:
            assert head[1] <= start
            assert "2018 | 2017" in text[slice(*head)]


def test_long_input_takes_no_long_time() -> None:
    """Very long lines and very many lines, of bars, figures and words."""
    for text in ("| " * 20_000, "1 " * 20_000, "a | 1\n" * 5_000, "$(" * 20_000, "word\n" * 20_000):
        assert isinstance(tables_of(text), list)
