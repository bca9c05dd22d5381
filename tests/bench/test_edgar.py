"""Committed reports of the EDGAR benchmark are what their rows say, to the last byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.edgar.page import BEGIN, END, section
from carag.evaluation.report import report_from

HOME = Path(__file__).parents[2] / "bench" / "edgar"
RUNS = sorted({path.parent for name in ("rows.jsonl", "rows.jsonl.gz") for path in HOME.rglob(name)})


def rows_of(run: Path) -> Path:
    (rows,) = (path for name in ("rows.jsonl", "rows.jsonl.gz") if (path := run / name).exists())
    return rows


@pytest.mark.full
@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(HOME)))
def test_a_committed_report_is_made_again_from_its_rows(run: Path) -> None:
    made = report_from(rows_of(run)).files()
    assert {"report.json", "report.md", "report.html"} <= set(made)
    for name, data in made.items():
        assert (run / name).read_bytes() == data, name


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(HOME)))
def test_a_committed_run_says_what_it_is_of(run: Path) -> None:
    """And holds nothing but rows, what they are of, words and the report: no text of a filing."""
    from carag.evaluation.about import About

    about = About.from_json((run / "run.json").read_bytes())
    assert about.rows_sha256
    known = {"rows.jsonl", "rows.jsonl.gz", "run.json", "words.json", "words.json.gz", "settings.json"}
    others = {path.name for path in run.iterdir() if path.is_file()} - known
    assert all(name.startswith("report.") or name.endswith(".svg") for name in others)


def test_the_page_says_what_the_report_says() -> None:
    """Written by ``python -m bench.edgar.page``."""
    page = (HOME.parents[1] / "docs" / "benchmarks.md").read_text("utf-8")
    reports = [json.loads((HOME / run / "report.json").read_text("utf-8")) for run in ("paper", "full")]
    assert f"{BEGIN}\n\n{section(*reports, '../bench/edgar')}\n\n{END}" in page
