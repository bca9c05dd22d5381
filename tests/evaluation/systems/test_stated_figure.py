"""Figures are read as a reader of filings reads them: scale, sign and share, and never a date for an amount."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carag.evaluation.systems.stated_figure import TOLERANCE, Figure, figures, single_figure, states

amounts = st.decimals("0.01", "999999", places=2).map(float)
scales = st.sampled_from([("", 1.0), (" thousand", 1e3), (" million", 1e6), (" billion", 1e9)])


@given(amounts, scales, st.booleans(), st.booleans())
def test_an_amount_is_read_as_it_is_written(
    value: float, scale: tuple[str, float], loss: bool, money: bool
) -> None:
    sign = "$" if money else ""
    written = f"{sign}({value:,.2f}){scale[0]}" if loss else f"{sign}{value:,.2f}{scale[0]}"
    (one,) = figures(f"Sales, as restated, were {written}, it says.")
    assert one.value == pytest.approx((-value if loss else value) * scale[1])
    assert (one.money, one.scaled, one.percent) == (money, scale[0] != "", False)


@given(amounts, scales, scales)
def test_the_same_amount_in_another_scale_is_right(
    value: float, gold: tuple[str, float], said: tuple[str, float]
) -> None:
    assume(value * gold[1] / said[1] >= 1)
    wanted = single_figure(f"${value:,.2f}{gold[0]}")
    assert wanted is not None
    assert states(f"It was ${value * gold[1] / said[1]:,.6f}{said[0]} in all.", wanted)


@given(amounts, st.floats(-0.2, 0.2), scales)
def test_half_a_per_cent_is_the_line(value: float, off: float, scale: tuple[str, float]) -> None:
    assume(value >= 1 and abs(abs(off) - TOLERANCE) > 1e-4)
    wanted = single_figure(f"{value:,.2f}{scale[0]}")
    assert wanted is not None
    assert states(f"{value * (1 + off):.6f}{scale[0]}", wanted) == (abs(off) < TOLERANCE)


@given(st.text(max_size=80))
def test_no_text_makes_it_fail(text: str) -> None:
    found = figures(text)
    assert len(figures(text, years=True)) >= len(found)
    assert isinstance(single_figure(text), Figure | None)
    assert all(states(text, one) for one in found)


@given(st.integers(1900, 2099))
def test_a_year_is_a_figure_only_where_it_is_asked_for(year: int) -> None:
    assert figures(f"In {year} it grew, as in FY{year}; see fiscal {year}.") == ()
    wanted = single_figure(str(year))
    assert wanted is not None
    assert states(f"It was founded in {year}.", wanted)
    assert not states(f"It was founded in {year + 1}.", wanted)
    (amount,) = figures(f"It spent ${year} million.")
    assert amount.value == year * 1e6


@pytest.mark.parametrize(
    "text",
    [
        "FY2018, FY22, FY '22, Q3 2023, 3Q23 and '23",
        "on December 31, 2018, 31 December 2018, 2018-12-31, 12/31/2018, Dec. 31 at 10:30",
        "Form 10-K, 8-K, Item 7.01, Note 12, Section 13(a), 404(b), ASC 606, Rule 144, Exhibit 10.7, page 40",
        "COVID-19, 3M, a 12-month period, a 5-for-1 split, the 1st of 2/3",
        "5-7 %, 5 to 7 percent, between 4 and 8 percent, $210 million to $220 million, 5,150 – 5,350",
        "(1) one thing, (2) another [3]",
        "17 CFR 240.12d2-2(a)(3)",
        "",
    ],
)
def test_what_only_looks_like_a_figure_is_not_one(text: str) -> None:
    assert figures(text) == ()
    assert single_figure(text) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("| Net sales | 1,577 | (1,600) | (82) | — |", [1577, -1600, -82]),
        ("from $4.5 billion to $5.2 billion", [4.5e9, 5.2e9]),  # a change is not a range
        ("rose 3.1% to $1.6 billion", [3.1, 1.6e9]),
        ("from operating activities ($1.8 bn)", [1.8e9]),  # an aside, not a loss
        ("(5.2)%, (5.2%) and −5.2 %", [-5.2, -5.2, -5.2]),
        ("-$1561M, $ 1.6Bn, $3M, US$ 5k", [-1.561e9, 1.6e9, 3e6, 5e3]),
        ("75 basis points, 4 percentage points", [0.75, 4]),
        ("GBP 518.6 million; £1", [518.6e6, 1]),
        ("a margin of .54, or 0.54.", [0.54, 0.54]),
    ],
)
def test_signs_scales_and_tables(text: str, values: list[float]) -> None:
    assert [one.value for one in figures(text)] == pytest.approx(values)


@pytest.mark.parametrize(
    ("answer", "gold", "question", "right"),
    [
        ("8,738 | 8,866", "$8.70", "What is net PPNE? Answer in USD billions.", True),
        ("8,738 | 8,866", "$8.70", "What is net PPNE?", False),  # eight dollars seventy
        ("$8,738 thousand", "$8.70", "Answer in USD billions.", False),  # a scale word is believed
        ("4,318", "$4,318,000", "", True),  # as a table in thousands prints it
        ("3,040", "$3.04", "", False),  # per share
        ("14.5", "14,500 shares", "", False),
        ("0.019", "1.9%", "", False),
        ("1.9", "1.9%", "", False),
        ("1.9 percent and 400 other things", "1.9%", "", True),
        ("a loss of $(5.2) million", "$5.2 million", "", False),
        ("between $180 million and $190 million", "$180 million", "", False),
        ("nothing", "$180 million", "", False),
    ],
)
def test_an_answer_states_the_gold_figure_or_not(answer: str, gold: str, question: str, right: bool) -> None:
    wanted = single_figure(gold, question)
    assert wanted is not None
    assert states(answer, wanted) is right


@pytest.mark.parametrize(
    "gold",
    [
        "Yes, it paid $0.55 a share.",
        "No; 84 units",
        "$72.7 million, or $10.98 per public share",
        "Investment Bank. Its net income was $3725 million.",
        "7.1 percent; a sale of the plant",
        "4 to 8 percent",
        "June 12, 2028",
        "words " * 30 + "5 %",
    ],
)
def test_what_says_more_than_a_figure_is_not_one(gold: str) -> None:
    assert single_figure(gold) is None
