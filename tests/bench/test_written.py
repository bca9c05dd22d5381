"""The pairs of sentences that measure the guard, and the facts that measure what a model remembers."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from bench.parametric.__main__ import states
from bench.parametric.facts import facts
from bench.written import drafts
from bench.written.__main__ import report
from tests.generation.conftest import build_passage

PROSE = Path(drafts.__file__).parent / "prose.jsonl"
TABLE = "(in millions)\n | 2023 | 2022\nNet sales | $ 1,204 | $ 1,187\nCost of sales | 700 | 690\nGoodwill | 310 | 55"


@pytest.mark.parametrize("number", range(len(drafts.CHANGES)))
def test_a_pair_from_a_table_differs_in_what_it_says(number: int) -> None:
    """The right sentence is a cell, and the wrong one is none of the table's in one way."""
    made = [drafts._of_table(build_passage(TABLE), random.Random(seed), number) for seed in range(20)]  # noqa: S311
    pairs = [one for one in made if one is not None]
    assert pairs
    for one in pairs:
        assert drafts.CHANGES[number] == one.change
        right, wrong = (set(re.findall(r"[\w,.$()%]+", text)) for text in (one.right, one.wrong))
        assert right ^ wrong
        years = [re.findall(r"\b20\d\d\b", text) for text in (one.right, one.wrong)]
        assert (years[0] != years[1]) == (one.change == "period")


def test_the_sentences_by_hand_are_pairs_with_one_change() -> None:
    """At least sixty of them."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in PROSE.read_text("utf-8").splitlines()]
    assert len(rows) >= 60
    assert {one["change"] for one in rows} == {*drafts.CHANGES}
    assert all(one["right"] != one["wrong"] for one in rows)


def test_a_report_counts_what_it_should_not_find() -> None:
    """Right sentences that are refused, and wrong ones that pass."""
    row = {"source": "table", "half": "held out", "change": "unit"}
    rows = [row | {"kind": kind, "passed": passed} for kind, passed in (("right", False), ("wrong", True))]
    last = report(rows, {"date": "2026-01-01"}).strip().splitlines()[-1]
    assert "| both | both | 1 of 1 | 1 of 1 | 0 of 0 | 0 of 0 | 1 of 1 | 0 of 0 |" == last


def test_a_fact_is_stated_by_its_document_and_not_beside_it() -> None:
    """Otherwise an answer could come from a passage that the session may use."""
    for one in facts():
        assert states(one.statement, one)
        assert not states(one.beside, one)
        assert not states(one.question, one)
