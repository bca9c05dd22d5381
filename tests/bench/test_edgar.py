"""Committed reports of the EDGAR benchmark are what their rows say, to the last byte."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from bench.edgar.page import COMMAND, NAME, PAGE, committed, full_size, section, section_sha256
from bench.harness import replaced
from carag.errors import CorruptFile
from carag.evaluation.cases.manifest import manifest_sha256, read_manifest
from carag.evaluation.report.files import check_files
from carag.evaluation.run_metadata import RunMetadata
from carag.evaluation.statistics.binomial import clopper_pearson

HOME = Path(__file__).parents[2] / "bench" / "edgar"
RUNS = sorted({path.parent for name in ("rows.jsonl", "rows.jsonl.gz") for path in HOME.rglob(name)})


def rows_of(run: Path) -> Path:
    (rows,) = (path for name in ("rows.jsonl", "rows.jsonl.gz") if (path := run / name).exists())
    return rows


@pytest.mark.full
@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(HOME)))
def test_a_committed_report_is_made_again_from_its_rows(run: Path, tmp_path: Path) -> None:
    """Markdown, pictures and the hash of the JSON; one more digit in the JSON would be another hash."""
    check_files(rows_of(run), run)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "report.json.sha256").write_text(f"{'0' * 64}  report.json\n")
    with pytest.raises(CorruptFile, match="sha256"):
        check_files(rows_of(copy), copy)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(HOME)))
def test_a_committed_run_says_what_it_is_of(run: Path) -> None:
    """And holds nothing but rows, what they are of, words and the report: no text of a filing."""
    about = RunMetadata.from_json((run / "run.json").read_bytes())
    assert about.rows_sha256
    known = {"rows.jsonl", "rows.jsonl.gz", "run.json", "words.json", "words.json.gz", "settings.json"}
    known |= {"manifest.jsonl", "manifest.jsonl.gz"}
    others = {path.name for path in run.iterdir() if path.is_file()} - known
    assert all(name.startswith("report.") or name.endswith(".svg") for name in others)


def test_the_manifest_of_the_paper_run_names_its_chunks() -> None:
    """As many of each filing as ``words.json.gz`` has, but for those that attacks plant, and the rows cite."""
    held = read_manifest(HOME / "paper" / "manifest.jsonl.gz")
    about = RunMetadata.from_json((HOME / "paper" / "run.json").read_bytes())
    assert manifest_sha256(held) == about.manifest_sha256
    ids = {
        f"{name}:{number:05d}"
        for name, one in held.items()
        for number in range(sum(map(len, one.places.values())))
    }
    words = json.loads(gzip.decompress((HOME / "paper" / "words.json.gz").read_bytes()))
    assert ids == {one for one in words if not one.startswith("planted-")}
    assert len(ids) == about.chunks
    assert sum(bool(one.places) for one in held.values()) == about.filings


def test_the_result_by_company_has_the_bound_of_its_counts() -> None:
    """Written by ``python -m bench.edgar.companies``."""
    result = json.loads((HOME / "companies" / "companies.json").read_text("utf-8"))
    held = read_manifest(HOME / "companies" / "manifest.jsonl.gz")
    assert manifest_sha256(held) == result["manifest_sha256"]
    assert result["companies"] == sum(result["roles"].values()) >= 300
    for found in result["systems"].values():
        assert tuple(found["interval"]) == clopper_pearson(found["leaked"], result["companies"])


def test_the_page_has_the_section_that_was_written_last() -> None:
    """By ``python -m bench.edgar.page``, which keeps its hash."""
    page = PAGE.read_text("utf-8")
    assert section_sha256(page) == (HOME / "page.sha256").read_text("utf-8").strip()
    assert section_sha256(page) != section_sha256(page.replace("| oracle |", "| oracle  |", 1))


@pytest.mark.full
def test_the_page_says_what_the_rows_say() -> None:
    """Written by ``python -m bench.edgar.page``."""
    page = PAGE.read_text("utf-8")
    made = section(committed("paper"), full_size(page), "../bench/edgar")
    assert replaced(page, made, COMMAND, NAME) == page
