"""The hand-made lines on what circulars do to each other stand in the texts they point at."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).parents[2] / "bench" / "circulars" / "supersedes.tsv"
COLUMNS = [
    "circular", "start", "end", "act", "other_number", "other_title", "other_date", "effective", "row",
]  # fmt: skip
ACTS = {"replaces", "amends", "withdraws"}
LONGEST_TITLE = 40
"""Characters of a title that a line may hold: a fact to find it by, not a passage."""
LONGEST_STATEMENT = 2000
"""Characters of the longest statement, from the words that name the other to those that act on it."""
MOST_OF_AN_ANNEX = 15
"""Lines that the list at the end of one circular may give."""


def lines() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as table:
        reader = csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        assert reader.fieldnames == COLUMNS
        return list(reader)


def spaced(text: str) -> str:
    """The text with every run of white space, so every broken line, as one space."""
    return " ".join(text.split())


def dense(text: str) -> str:
    """The text without white space and case, as two circulars write one number differently."""
    return re.sub(r"\s", "", text).casefold()


def spellings(day: datetime.date) -> set[str]:
    """The ways in which circulars write a date, without their spaces and capitals."""
    month = day.strftime("%B").casefold()
    words = {f"{month}{n},{day.year}" for n in (f"{day.day}", f"{day.day:02}")}
    return words | {day.strftime(form) for form in ("%d.%m.%Y", "%d-%m-%Y", "%d.%m.%y")}


@pytest.fixture(scope="module")
def circulars(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    path = request.getfixturevalue("shared_data") / "rbi" / "circulars.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} does not exist: the circulars are no part of this data")
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        return {row["id"]: row for row in map(json.loads, rows)}


def test_the_table_has_what_was_promised() -> None:
    acts = Counter(line["act"] for line in lines())
    positive = {line["circular"] for line in lines() if line["act"] != "none"}
    assert set(acts) == ACTS | {"none"}
    assert sum(acts[act] for act in ACTS) >= 80
    assert len(positive) >= 35
    assert acts["none"] >= 40


def test_lines_are_sorted_and_none_stands_twice() -> None:
    keys = [
        (line["circular"], int(line["start"]), int(line["end"]), *(line[name] for name in COLUMNS[3:]))
        for line in lines()
    ]
    assert keys == sorted(set(keys))


def test_lines_hold_facts_and_no_passages() -> None:
    assert all(line[name] for line in lines() for name in COLUMNS)
    assert max(len(line["other_title"]) for line in lines()) <= LONGEST_TITLE
    assert max(len(line["other_number"]) for line in lines()) <= LONGEST_TITLE + 5


def test_dates_are_days_of_the_calendar() -> None:
    for line in lines():
        for name in ("other_date", "effective"):
            if line[name] != "-":
                day = datetime.date.fromisoformat(line[name])
                assert day.isoformat() == line[name]
                assert 1934 < day.year < 2030


def test_a_negative_has_no_day_of_effect() -> None:
    assert {line["effective"] for line in lines() if line["act"] == "none"} == {"-"}


def test_a_line_that_names_a_row_names_what_that_row_is_known_by() -> None:
    rowed = [line for line in lines() if line["row"] != "-"]
    assert rowed
    assert all({line["other_number"], line["other_title"]} != {"-"} for line in rowed)
    assert all(line["row"] != line["circular"] for line in rowed)


def test_statements_stand_where_the_table_says(circulars: dict[str, dict[str, Any]]) -> None:
    for line in lines():
        text, start, end = circulars[line["circular"]]["text"], int(line["start"]), int(line["end"])
        assert 0 <= start < end <= len(text), line
        assert end - start <= LONGEST_STATEMENT, line
        assert text[start:end] == text[start:end].strip(), line


def test_the_other_is_named_in_the_statement(circulars: dict[str, dict[str, Any]]) -> None:
    for line in lines():
        statement = spaced(circulars[line["circular"]]["text"][int(line["start"]) : int(line["end"])])
        for name in ("other_number", "other_title"):
            assert line[name] == "-" or line[name] in statement, line
        if line["other_date"] != "-":
            day = datetime.date.fromisoformat(line["other_date"])
            assert any(form in dense(statement) for form in spellings(day)), line


def test_rows_bear_the_number_and_the_date_of_the_other(circulars: dict[str, dict[str, Any]]) -> None:
    for line in lines():
        if line["row"] == "-":
            continue
        assert line["row"] in circulars, line
        row = circulars[line["row"]]
        assert line["other_date"] in {"-", row["date"]}, line
        if line["other_number"] != "-":
            known = f"{row['circular_number']} {row['department_number']} {row['text'][:400]}"
            assert dense(line["other_number"]) in dense(known), line


def test_no_annex_gives_more_than_its_share(circulars: dict[str, dict[str, Any]]) -> None:
    """Lists stand in the second half of a text, and their lines have numbers."""
    shares = Counter(
        line["circular"]
        for line in lines()
        if line["act"] != "none"
        and line["other_number"] != "-"
        and 2 * int(line["start"]) > len(circulars[line["circular"]]["text"])
    )
    assert max(shares.values()) <= MOST_OF_AN_ANNEX
