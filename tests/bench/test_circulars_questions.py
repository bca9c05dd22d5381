"""Claims about the questions on circulars that were written by reading."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import bench.circulars

HOME = Path(bench.circulars.__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HOME / name).read_text("utf-8").splitlines()]


QUESTIONS = read("questions.jsonl")
FRESH = read("fresh_questions.jsonl")


def test_there_are_questions_of_each_kind_each_once() -> None:
    assert {"on": 285, "near": 75, "off": 30} == Counter(one["kind"] for one in QUESTIONS)
    assert (
        len(QUESTIONS) == len({one["id"] for one in QUESTIONS}) == len({one["question"] for one in QUESTIONS})
    )


def test_what_nothing_answers_says_why_and_names_no_clause() -> None:
    for one in QUESTIONS:
        is_answered = one["kind"] == "on"
        assert is_answered == (one["circular"] is not None) == bool(one["spans"]) == bool(one["facts"])
        assert is_answered == (one["why"] is None) == bool(one["answer"])


def test_the_fresh_questions_are_spread_over_circulars_and_over_what_is_asked() -> None:
    assert dict.fromkeys(("amount", "share", "period", "condition", "who"), 20) == Counter(
        one["asks"] for one in FRESH
    )
    assert len({one["circular"] for one in FRESH}) >= 70
    assert sum(bool(one["superseded"]) for one in FRESH) == 10
    both = [*QUESTIONS, *FRESH]
    assert len(both) == len({one["id"] for one in both}) == len({one["question"] for one in both})


@pytest.mark.release
def test_every_span_is_of_its_text_and_holds_the_facts(shared_data: Path) -> None:
    with gzip.open(shared_data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = {row["id"]: row["text"] for row in map(json.loads, file)}
    for one in [*QUESTIONS, *FRESH]:
        spans = [(one["circular"], *span) for span in one["spans"]]
        for id_, start, end in [*spans, *one["also"]]:
            text = texts[id_][start:end]
            assert 0 <= start < end <= len(texts[id_]), one["id"]
            assert text == text.strip() != "", one["id"]
        for fact in one["facts"]:
            assert any(fact in texts[id_][start:end] for id_, start, end in spans), (one["id"], fact)
            assert len(fact) <= 40, one["id"]
        for words in one.get("superseded", ()):
            assert words in texts[one["circular"]], (one["id"], words)
            assert len(words) <= 40, one["id"]
