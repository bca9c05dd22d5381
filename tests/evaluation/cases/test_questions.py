"""Questions of the public sets are known by their ids: the report tells the sets apart by nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from carag.evaluation.cases.questions import json_lines, real_questions
from carag.evaluation.row import DATA_SETS, data_set_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("question_id", "name"),
    [
        ("financebench_id_06272", "FinanceBench"),
        ("docugami-106", "docugami"),
        ("mbly-C2Q05", "Mobileye"),
        ("live-ko-10k-dilutedeps", "others"),
        ("built-00000", "others"),
        ("a financebench_", "others"),
        ("", "others"),
    ],
)
def test_an_id_begins_with_its_data_set(question_id: str, name: str) -> None:
    assert data_set_of(question_id) == name
    assert name in DATA_SETS


def test_the_ids_of_every_set_begin_as_no_other_sets_do(shared_data: Path) -> None:
    """Held against the source that each line states."""
    sources = {row["id"]: row["source"] for row in json_lines(shared_data / "edgar" / "qa.jsonl.gz")}
    stated = {
        "patronus-ai/financebench": "FinanceBench",
        "docugami/KG-RAG": "docugami",
        "VeselinL/edgar-rag": "Mobileye",
        "skandula9273/sec-rag-eval": "others",
    }
    found = Counter(
        (
            data_set_of(one.id),
            next(name for begin, name in stated.items() if sources[one.id].startswith(begin)),
        )
        for one in real_questions(shared_data)
    )
    assert {by_id for by_id, _ in found} == set(DATA_SETS)
    assert all(by_id == by_source for by_id, by_source in found)
