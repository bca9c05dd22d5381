"""Traps: sentences about one passage, which leave or stay; each wrong one differs from a right one in one thing."""

# ruff: noqa: E501 - a table
from __future__ import annotations

import pytest

from carag.generation.generator import Draft
from carag.generation.held import held
from carag.generation.held.judge import Unheld
from tests.generation.conftest import build_passage

ROYALTY = (
    "The licensee paid a milestone payment of $4,000,000 on signing and pays a royalty of 5% of net sales. "
    "The agreement took effect on March 1, 2022 and ends after 12 years."
)
MILLIONS = "(in millions, except per share data) | 2023 | 2022\nRevenue | $ 1,204 | $ 1,187\nNet income (loss) | (1,204) | 96\nNet cash used in investing activities | (310) | (280)\nDiluted earnings per share | $ 2.15 | $ 1.98\nEffective tax rate | 21.4 % | 19.8 %"
THOUSANDS = MILLIONS.replace("millions", "thousands")
QUARTERS = "(in millions) | Three Months Ended June 30, | Six Months Ended June 30,\n| 2023 | 2022 | 2023 | 2022\nRevenue | 310 | 290 | 640 | 585"
CIRCULAR = "The loan limit for farmers is ₹3 lakh. The loan limit for self-help groups is ₹10 lakh, and the margin is 25 basis points. Interest is charged at 4 per cent per annum. Banks report within 15 days."
GREW = "The rate was raised from 4 per cent to 5 per cent. Revenue was $1.0 billion, $0.9 billion and $1.1 billion for 2016, 2015 and 2014, respectively."
LABELLED = "(in millions) | 2023 | 2022\nReceivables, net of allowance of $495 and $633 | $ 37,420 | $ 44,261\nCash receipts from customers | $ 313 | $ 284"
TURNS = "The repo rate was cut by 25 basis points to 6.25 per cent. Margin declined to -2.5%. Banks hold 3 to 5 days of stock. Fees of EUR 200 to EUR 300 are due. The limit is ₹50,000."
OUT, UNIT, WHEN, LABEL = Unheld.NOT_IN_PASSAGE, Unheld.OTHER_UNIT, Unheld.OTHER_PERIOD, Unheld.OTHER_LABEL

NAME = Unheld.NAME_NOT_STATED
EMBASSY = "The embassy of Poland is open on weekdays. Visitors bring a passport."

CASES: list[tuple[str, str, Unheld | None]] = [
    (EMBASSY, "The embassy of Poland is open from Monday to Friday", NAME),
    (EMBASSY, "The capital of Poland is Warsaw", NAME),
    (EMBASSY, "The symbol of sodium is Na", NAME),
    (EMBASSY, "Its embassy is that of POLAND", None),
    (EMBASSY, "Weekdays are when visitors from Poland come", None),
    (ROYALTY, "The licensee, Acme Labs, pays a royalty of 5% of net sales", NAME),
    (ROYALTY, "The licensee paid a milestone payment of $4,000,000", None),
    (ROYALTY, "The licensee pays $4,000,000 in royalty", LABEL),
    (ROYALTY, "The milestone payment was 5%", LABEL),
    (ROYALTY, "The royalty is 5% of net sales", None),
    (ROYALTY, "The royalty is $5 of net sales", UNIT),
    (ROYALTY, "The royalty is 500 basis points of net sales", None),
    (ROYALTY, "The royalty is 5 basis points of net sales", OUT),
    (ROYALTY, "The milestone payment of $4 million and the royalty of 6% are due", OUT),
    (ROYALTY, "The agreement took effect on March 1, 2022", None),
    (ROYALTY, "The agreement took effect on March 2, 2022", OUT),
    (ROYALTY, "The agreement took effect in 2022", None),
    (ROYALTY, "The agreement took effect in 2021", OUT),
    (ROYALTY, "The agreement ends after 12 years", None),
    (ROYALTY, "The agreement ends after twelve years", None),
    (ROYALTY, "The agreement ends after 12 months", OUT),
    (ROYALTY, "The licensee pays a royalty", None),
    (ROYALTY, "The licensee pays in all $9,000,000", OUT),
    (MILLIONS, "Revenue was $1.2 billion in 2023", None),
    (MILLIONS, "Revenue was $1.20 billion in 2023", None),
    (MILLIONS, "Revenue was $1.21 billion in 2023", OUT),
    (MILLIONS, "Revenue was $1,204 million in 2022", WHEN),
    (MILLIONS, "Revenue was $1,204 thousand in 2023", OUT),
    (THOUSANDS, "Revenue was $1,204 thousand in 2023", None),
    (THOUSANDS, "Revenue was $1,204 million in 2023", OUT),
    (THOUSANDS, "Revenue was $1.204 million in 2023", None),
    (MILLIONS, "Revenue was €1,204 million in 2023", UNIT),
    (MILLIONS, "Revenue rose by $17 million in 2023", OUT),
    (MILLIONS, "Net income was $(1,204) million in 2023", None),
    (MILLIONS, "The net loss was $1,204 million in 2023", None),
    (MILLIONS, "Net income was $1,204 million in 2023", LABEL),  # which is the revenue
    (MILLIONS, "The net loss was $96 million in 2022", UNIT),
    (MILLIONS, "Net cash used in investing activities was $310 million in 2023", None),
    (MILLIONS, "Diluted earnings per share were $2.15 in 2023", None),
    (MILLIONS, "Diluted earnings per share were $2.15 million in 2023", OUT),
    (MILLIONS, "The effective tax rate was 21.4 per cent in 2023", None),
    (MILLIONS, "The effective tax rate was 21.4 basis points in 2023", OUT),
    (MILLIONS, "The effective tax rate was $21.4 in 2023", UNIT),
    (LABELLED, "Receivables, net of allowance of $495 and $633, 2023: $ 37,420 (in millions)", None),
    (LABELLED, "Receivables, net of allowance of $495 and $633, 2022: $ 37,420 (in millions)", WHEN),
    (LABELLED, "Receivables, net of allowance of $495, 2023: $ 37,420 (in millions)", OUT),
    (LABELLED, "Cash receipts from customers were $313 million in 2023", None),
    (QUARTERS, "Revenue was 310 million for the three months ended June 30, 2023", None),
    (QUARTERS, "Revenue was 310 million for the six months ended June 30, 2023", WHEN),
    (CIRCULAR, "The loan limit for self-help groups is ₹10 lakh", None),
    (CIRCULAR, "The loan limit for self-help groups is ₹1 million", None),
    (CIRCULAR, "The loan limit for self-help groups is ₹10 crore", OUT),
    (CIRCULAR, "The loan limit for self-help groups is $10 lakh", UNIT),
    (CIRCULAR, "The loan limit for farmers is ₹10 lakh", LABEL),
    (CIRCULAR, "Interest is charged at 4 per cent a year", None),
    (CIRCULAR, "Interest is charged at 4 per cent a month", UNIT),
    (CIRCULAR, "Banks report within 15 days", None),
    (CIRCULAR, "Banks report within 15 working days", UNIT),
    (ROYALTY, "The agreement took effect on 2022-03-01", None),
    (ROYALTY, "The agreement took effect on 2022-03-02", OUT),
    (ROYALTY, "The agreement took effect on 03/02/2022", OUT),  # in February or in March
    (ROYALTY, "The agreement took effect in the first quarter of 2022", None),
    (ROYALTY, "The agreement took effect in the third quarter of 2022", OUT),
    (ROYALTY, "The milestone payment was USD 4,000,000", None),
    (ROYALTY, "The royalty is half of net sales", OUT),
    (ROYALTY, "The royalty is one-twentieth of net sales", OUT),
    (ROYALTY, "The royalty is 5 percentage points of net sales", OUT),
    (ROYALTY, "The royalty is not 5% of net sales", LABEL),
    (ROYALTY, "The royalty is over 5% of net sales", LABEL),
    (ROYALTY, "The agreement ends after a dozen years", OUT),
    (MILLIONS, "Revenue was minus $1,204 million in 2023", LABEL),
    (MILLIONS, "Net income was minus $1,204 million in 2023", None),
    (MILLIONS, "Revenue was ¥1,204 million in 2023", UNIT),
    (MILLIONS, "Revenue was $1,204 million in FY2023", None),
    (MILLIONS, "Revenue was $1,204 million in FY2022", WHEN),
    (MILLIONS, "Revenue was $1,204 million in Q1 2023", WHEN),
    (MILLIONS, "Revenue rose from $1,187 million in 2022 to $1,204 million in 2023", None),
    (MILLIONS, "Revenue fell from $1,187 million in 2022 to $1,204 million in 2023", LABEL),
    (TURNS, "The repo rate was cut by 0.25 per cent", None),
    (TURNS, "The repo rate was raised by 25 basis points", LABEL),
    (TURNS, "Margin declined to -2.5%", None),
    (TURNS, "Margin declined to 2.5%", UNIT),
    (TURNS, "Banks hold 3-5 days of stock", None),
    (TURNS, "Banks hold at least 3 days of stock", None),
    (TURNS, "Banks hold 3 days of stock", LABEL),
    (TURNS, "Fees of EUR 200 to EUR 300 are due", None),
    (TURNS, "Fees of 200 euros are due", LABEL),
    (TURNS, "The limit is Rs 50,000", None),
    (TURNS, "The limit is reviewed monthly", OUT),
    (GREW, "The rate was raised to 5 per cent", None),
    (GREW, "The rate was raised to 4 per cent", LABEL),
    (GREW, "Revenue was $0.9 billion in 2015", None),
    (GREW, "Revenue was $0.9 billion in 2014", WHEN),
]  # fmt: skip


@pytest.mark.parametrize(("passage", "sentence", "why"), CASES, ids=[one[1] for one in CASES])
def test_a_sentence_leaves_or_stays(passage: str, sentence: str, why: Unheld | None) -> None:
    found = held("", Draft(f"{sentence} [1].", (0,)), [build_passage(passage)])
    assert (f"{sentence} [1]." if why is None else "", () if why is None else (why,)) == found


def test_a_figure_of_the_question_alone_is_not_stated() -> None:
    """A model that repeats the question states what nobody told it."""
    found = held("Is the royalty 7%?", Draft("The royalty is 7% [1].", (0,)), [build_passage(ROYALTY)])
    assert (Unheld.NOT_IN_PASSAGE,) == found.left_out


def test_a_sentence_without_a_year_is_about_the_year_of_the_question() -> None:
    """What is right for 2022 is no answer about 2023."""
    drafts = {value: Draft(f"Revenue was ${value} million [1].", (0,)) for value in ("1,204", "1,187")}
    for question, right in (("Revenue in 2023?", "1,204"), ("Revenue in 2022?", "1,187")):
        left = {
            value: held(question, one, [build_passage(MILLIONS)]).left_out for value, one in drafts.items()
        }
        assert {value: () if value == right else (Unheld.OTHER_PERIOD,) for value in drafts} == left


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The royalty is 5% [2].", ""),  # stated, but not by what it cites
        ("The royalty is 5% [1, 2].", "The royalty is 5% [1, 2]."),
        ("The royalty is 5%.", ""),  # a mark elsewhere, none for this sentence
        ("The royalty is 5%. Sales rose. [1]", "The royalty is 5%. Sales rose. [1]"),
        ("The royalty is 6%. Sales rose. [1]", "Sales rose. [1]"),
        ("Sales rose. The royalty is 6%. [1]", "Sales rose. [1]"),
        ("The royalty is 6% [1] and sales rose [2].", ""),
        ("- The royalty is 5% [1]\n- The royalty is 6% [1]\n- It rose [2]", "- The royalty is 5% [1]\n- It rose [2]"),
    ],
)  # fmt: skip
def test_a_sentence_is_held_to_its_marks_or_the_next(text: str, kept: str) -> None:
    draft = Draft(f"{text} It rose [2]." if text.endswith("5%.") else text, (0, 1))
    passages = [build_passage(ROYALTY), build_passage("Sales rose.", ordinal=1)]
    assert kept == held("", draft, passages).text.removesuffix("It rose [2].").strip()


def test_a_text_without_marks_is_held_to_all_that_its_draft_cites() -> None:
    """A generator may cite beside its text."""
    passages = [build_passage("Sales rose."), build_passage(ROYALTY, ordinal=1)]
    for cited, left_out in (((0, 1), ()), ((0,), (Unheld.NOT_IN_PASSAGE,))):
        assert left_out == held("", Draft("The royalty is 5% of net sales.", cited), passages).left_out
