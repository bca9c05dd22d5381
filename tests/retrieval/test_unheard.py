"""A proper name that nothing speaks of is found by its capitals, and nothing else is taken for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag.evaluation.cases.pairs import split_of
from carag.evaluation.cases.questions import json_lines, real_questions
from carag.policy import Profile
from carag.retrieval.reading import Declared, Names, read_question, unheard

if TYPE_CHECKING:
    from pathlib import Path

NAMES = Names([("Amcor plc", ["AMCR"], 1)])
KINDS = Declared.of(Profile.open("edgar")).kinds


def found(question: str, *known: str) -> tuple[str, ...]:
    return unheard(question, read_question(question, names=NAMES, kinds=KINDS), known.__contains__)


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What did Tricolor Holdings pay?", ("Tricolor Holdings",)),
        ("What is Tricolor's revenue in FY2020?", ("Tricolor",)),
        ("Tricolor's revenue?", ("Tricolor",)),
        ("Did Amcor buy Tricolor or Zentiva Group, Brisling?", ("Tricolor", "Zentiva Group", "Brisling")),
        ("did the Bank Zentiva, or ZENTIVA, fail?", ("Bank Zentiva", "ZENTIVA")),
        # what is known, heard of, or cannot be told
        ("What did Amcor and AMCR pay?", ()),
        ("What did tricolor pay?", ()),
        ("Tricolor paid what?", ()),
        ("What was EBITDA under US GAAP in USD, per the 10-Qs of May and June 2023?", ()),
        ("Does Item 7A of Form 10-K name the CFO, the CEOs or R&D at the SEC?", ()),
        ("What Were The Tricolor Revenues And Operating Expenses Last Year?", ()),
        ("WHAT WERE TRICOLOR REVENUES AND OPERATING EXPENSES LAST YEAR?", ()),
        ("テスラの売上は?", ()),
    ],
)
def test_a_name_is_told_by_its_capitals(question: str, wanted: tuple[str, ...]) -> None:
    """In the middle of a sentence, or in the genitive."""
    assert found(question) == wanted


def test_what_a_passage_speaks_of_is_no_stranger() -> None:
    """Every word of a name that tells must occur."""
    asked = "What did Brisling Tricolor Holdings pay?"
    assert found(asked, "Brisling", "Tricolor") == ()
    assert found(asked, "Brisling") == ("Brisling Tricolor Holdings",)


def test_of_the_development_questions_one_names_what_no_table_has(shared_data: Path) -> None:
    """Azure: so the rule fires on one of 70 at most, whatever a session may use; and on 61 if no name is known."""
    names = Names(
        (row["name"], row.get("tickers") or [], row["cik"])
        for row in json_lines(shared_data / "edgar" / "companies.jsonl.gz")
    )
    asked = [one.text for one in real_questions(shared_data) if split_of(one.id) == "dev"]
    read = [(one, read_question(one, names=names, kinds=KINDS)) for one in asked]
    fired = [name for one, reading in read for name in unheard(one, reading, lambda _: False)]
    unknown = [unheard(one, read_question(one, kinds=KINDS), lambda _: False) for one in asked]
    assert (len(asked), sum(map(bool, unknown))) == (70, 61)
    assert fired == ["Azure"]
