"""Claims about how the table reader is measured: what is asked, and what counts as right."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from bench.figures.filings import WAYS, filings
from bench.figures.tables import gated, near, ungated
from carag.evaluation.cases.pairs import split_of

if TYPE_CHECKING:
    from pathlib import Path

TABLE = (
    "(In millions)\n | 2018 | 2017\nNet sales | $12,345 | $11,900\nOrder intake | (40) | 30\nBacklog | 7 | 8"
)
FILING = f"Consolidated Statements of Income\n{TABLE}\n"


def one(number: str, question: str, answer: object, **more: Any) -> dict[str, Any]:
    return {"id": number, "question": question, "answer": answer, **more}


def tat(
    number: str, question: str, answer: object, kind: str = "span", split: str = "dev", **more: Any
) -> dict[str, Any]:
    source = f"NExTplusplus/TAT-QA {split}"
    return one(number, question, answer, type=kind, reasoning="table", context_id="t", source=source, **more)


def bank(number: str, question: str, answer: str) -> dict[str, Any]:
    evidence = [{"doc_id": "f", "text": FILING}]
    return one(
        number, question, answer, doc_id="f", evidence=evidence, source="patronus-ai/financebench (150)"
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ids = [f"q{at}" for at in range(60) if split_of(f"q{at}") == "dev"]
    other = next(f"q{at}" for at in range(60) if split_of(f"q{at}") == "reported")
    rows = [
        tat("a", "What were net sales in 2018?", ["12,345"], scale="million"),
        tat("b", "What was the order intake in 2018?", ["40"], scale="million"),
        tat("c", "What was the backlog in 2018?", ["9"], scale="million"),  # wrong, and in no cell
        tat("d", "Which year is the later?", ["2018"]),  # a bare year
        tat("e", "What is the change?", 445, kind="arithmetic"),
        tat("f", "What were net sales in 2017?", ["11,900"], split="test"),
        bank(ids[0], "What were Nail Makers' FY2018 net sales (in USD thousands)?", "$12345000.00"),
        bank(ids[1], "What is Nail Makers' FY2018 growth of net sales?", "3.7%"),
        bank(ids[2], "What were Nail Makers' FY2017 net sales in USD millions?", "$12.00"),
        bank(ids[3], "Why did Nail Makers grow in FY2018?", "They sold more."),
        bank(other, "What were Nail Makers' FY2018 net sales (in USD millions)?", "$12345.00"),
    ]
    filing = {"id": "f", "text": FILING, "company": "Nail Makers Inc", "form": "10-K", "filed": None}
    written = {
        "qa.jsonl.gz": rows,
        "qa_contexts.jsonl.gz": [{"context_id": "t", "text": TABLE}],
        "filings-00.jsonl.gz": [filing],
    }
    (tmp_path / "edgar").mkdir()
    for name, lines in written.items():
        with gzip.open(tmp_path / "edgar" / name, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return tmp_path


def test_of_tables_those_are_asked_whose_answer_is_a_cell(data: Path) -> None:
    """Signs aside; years and computed answers are not."""
    found = ungated(data, "dev")
    assert (2, 2, 2, 0) == (found.asked, found.right_cell, found.right_row, found.none)
    assert 1 == ungated(data, "reported").asked


def test_all_questions_pass_before_the_gate(data: Path) -> None:
    """A figure is right in its size, and wrong if the answer is another."""
    found = gated(data, "dev")
    assert (5, 3, 2) == (found.asked, found.answered, found.right)
    assert ["What was the backlog in 2018?"] == [question for question, _, _ in found.wrong]


def test_of_filings_one_split_is_asked(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thousands are compared with millions in ones, and what is shown is of that split alone."""
    asked, numeric, counts, _ = filings(data, "dev", show=True)
    assert (4, 3) == (asked, numeric)
    assert dict.fromkeys(WAYS, (3, 2)) == {way: (one.answered, one.right) for way, one in counts.items()}
    assert "in USD millions)" not in capsys.readouterr().out
    assert 1 == filings(data, "reported", show=False)[0]


@pytest.mark.parametrize(
    ("value", "is_near"), [("100.5", True), ("99.5", True), ("100.51", False), ("-100", False)]
)
def test_near_is_within_half_a_per_cent(value: str, *, is_near: bool) -> None:
    """Of what is wanted."""
    assert is_near == near(Decimal(value), Decimal(100))
