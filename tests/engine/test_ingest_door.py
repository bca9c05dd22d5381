"""A bad filing is rejected alone: its neighbours are stored and later questions answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.profiles.edgar import documents
from tests.profiles.edgar.reading.headers import NUMBER, header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPLIANCE = Session(role="compliance", purpose="surveil")
QUESTION = "What were net sales in the quarter?"
TEXT = "Net sales in the quarter rose to $7 million."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", embedder="wordllama") as opened:
        yield opened


def row(accession: object, **more: object) -> str:
    return json.dumps(
        {"accession": accession, "form": "10-Q", "filed": "2024-05-02", "cik": 7, "text": TEXT, **more}
    )


@pytest.mark.parametrize(
    "bad",
    [row("a" * 194), row("a\x1b[31m"), row("a\u202e"), row("a\ud800"), row("a.v2"), row("b", text="\ud800"), "["],
    ids=["long", "control", "bidi", "surrogate", "version", "text", "no JSON"],
)  # fmt: skip
def test_a_bad_row_costs_itself_and_no_later_question(engine: Engine, tmp_path: Path, bad: str) -> None:
    """It is a problem with its place, its neighbours are stored, and later questions are answered, on record."""
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([row("0009999999-24-000001"), bad, row("0009999999-24-000002")]))
    report = engine.ingest(file)
    assert (2, 0) == (report.added, report.failures)
    assert ["rows.jsonl:2"] == [problem.split(": ")[0] for problem in report.problems]
    found = engine.retrieve(QUESTION, COMPLIANCE, 400)
    assert {"0009999999-24-000001:00000", "0009999999-24-000002:00000"} == {
        passage.chunk_id for passage in found.passages
    }


@pytest.mark.parametrize("step", ["label", "facts_of_text", "chunk", "chunk_word", "content_hash"])
def test_a_fault_in_labelling_one_filing_is_counted_and_ends_nothing(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It is told by its type and where it arose, and not by its message, which may hold text."""
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([row("bad", text=f"{TEXT} "), row("0009999999-24-000002")]))
    sound = getattr(documents, step)
    calls = iter(range(2))

    def fails_once(*given: object, **named: object) -> object:
        if next(calls, 1) == 0:
            raise KeyError("secret text")
        return sound(*given, **named)

    monkeypatch.setattr(documents, step, fails_once)
    report = engine.ingest(file)
    assert (1, 1) == (report.added, report.failures)
    assert [True] == [one.startswith("rows.jsonl:1: failed: KeyError at ") for one in report.problems]
    assert "secret" not in report.problems[0]


def test_what_nothing_names_never_replaces_another(engine: Engine, tmp_path: Path) -> None:
    """Two companies' filings of one file name are two, both set aside; and a second run changes nothing."""
    for folder, company in (("a", "EXAMPLE"), ("b", "ANOTHER")):
        (tmp_path / folder).mkdir()
        text = header("10-K", "20240331").replace(NUMBER, "").replace("EXAMPLE", company)
        (tmp_path / folder / "10k.txt").write_text(
            f"{text}<DOCUMENT>\n<TYPE>10-K\n<TEXT>\n{TEXT}\n</TEXT>\n</DOCUMENT>\n"
        )
    reports = [engine.ingest(tmp_path / folder) for folder in "abab"]
    assert [(1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 0, 1)] == [
        (report.added, report.changed, report.unchanged) for report in reports
    ]
    assert {"NO_ACCESSION_NUMBER": 2} == reports[-1].quarantined
    assert () == engine.retrieve(QUESTION, COMPLIANCE, 400).passages
