"""A folder goes in whole: labelled by what its files state, or named among the problems."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import openpyxl
import pytest

from carag import Engine, Session
from carag.engine.freshness import placed_documents
from carag.errors import InvalidArgument
from carag.labelling.document import Document
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from pathlib import Path

WORK = Session(role="employee", purpose="work")
REVIEW = Session(role="compliance", purpose="review")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files with a classification, one without, one that cannot be read, and one that is not a document."""
    folder = tmp_path / "docs"
    (folder / "hr").mkdir(parents=True)
    (folder / "lunch.md").write_text(
        "---\nclassification: internal\ntitle: Canteen\n---\nThe canteen opens at noon.\n"
    )
    (folder / "hr" / "pay.txt").write_text("The cook earns three thousand.\n")
    (folder / "recipe.txt").write_text("The canteen uses more salt.\n")
    (folder / "none.txt").write_text("The canteen states no classification.\n")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    (folder / "late.md").write_text(
        "---\nclassification: public\npublic_at: soon\n---\nThe canteen closes.\n"
    )
    (folder / "metadata.csv").write_text(
        "file,classification,personal_data\nhr/pay.txt,internal,yes\nrecipe.txt,secret,no\n"
    )
    return folder


def opened(home: Path) -> Engine:
    return Engine.open(home, profile="generic", embedder="wordllama")


def test_what_files_state_decides_who_finds_them(tmp_path: Path, folder: Path) -> None:
    """And no one finds a file without a classification."""
    with opened(tmp_path / "store") as engine:
        report = engine.ingest(folder)
        assert (report.added, report.newly_quarantined, len(report.problems)) == (4, 1, 3)
        assert "none.txt" in report.problems[-1]
        assert "classification is not stated" in report.problems[-1]
        assert {"MISSING_FACT": 1} == report.quarantined
        at_work = {one.chunk_id for one in engine.retrieve("The canteen?", WORK, 9).passages}
        at_review = {one.chunk_id for one in engine.retrieve("The canteen?", REVIEW, 9).passages}
        assert at_work == {"lunch.md:00000"}
        assert at_review == {"lunch.md:00000", "hr/pay.txt:00000", "recipe.txt:00000"}
        told = engine.explain("hr/pay.txt:00000", REVIEW)
        assert "PERSONAL: personal_data: GDPR Art. 4(1)" in told.causes
        assert engine.ingest(folder).unchanged == 4


def test_a_file_that_is_no_document_is_named_with_its_place(folder: Path) -> None:
    """None ends the run."""
    found = [one for _, one in placed_documents(folder)]
    problems = sorted(one for one in found if isinstance(one, str))
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["late.md", "broken"],
        ["photo.jpg", "skipped"],
    ]
    assert len([one for one in found if isinstance(one, Document)]) == 4


def test_times_entities_and_languages_are_no_facts(tmp_path: Path) -> None:
    """What every document may state has its own place; all else is for the rules, and kept as metadata."""
    (tmp_path / "a.md").write_text(
        "---\nclassification: public\npublic_at: 2030-01-01\nexpires_at: 2031-01-01T00:00:00+01:00\n"
        "retain_until: 2032-01-01\nerase_after: 2033-01-01\n"
        'entities: ["7", "8"]\nlanguage: de\ndepartment: treasury\n---\nText.\n'
    )
    ((_, one),) = placed_documents(tmp_path / "a.md")
    assert isinstance(one, Document)
    assert (one.entities, one.language) == ((7, 8), "de")
    assert dict(one.facts or {}) == {"classification": "public", "department": "treasury"}
    assert dict(one.metadata) == {"classification": "public", "department": "treasury"}
    assert isinstance(one.expires_at, datetime)
    assert one.expires_at.astimezone(UTC).hour == 23
    assert (one.retain_until, one.erase_after) == (date(2032, 1, 1), date(2033, 1, 1))


def test_what_is_not_yet_public_is_found_by_nobody(tmp_path: Path) -> None:
    """Until its day in the profile's time zone."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(
        "---\nclassification: public\npublic_at: 2030-01-01\n---\nThe canteen moves.\n"
    )
    for now, found in ((datetime(2029, 6, 1, tzinfo=UTC), 0), (datetime(2030, 1, 2, tzinfo=UTC), 1)):
        home = tmp_path / f"store-{found}"
        with Engine.open(home, profile="generic", embedder="wordllama", clock=lambda at=now: at) as engine:
            engine.ingest(folder)
            assert found == len(engine.retrieve("The canteen?", REVIEW).passages)


def test_a_selection_is_of_filings_alone(tmp_path: Path, folder: Path) -> None:
    """Under another profile nothing of it could be meant."""
    with opened(tmp_path / "store") as engine, pytest.raises(InvalidArgument, match="`only` is for filings"):
        engine.ingest(folder, only={})


def test_a_citation_names_the_page(tmp_path: Path) -> None:
    """Of a document with pages: the one that the passage begins on, and the last that it reaches; blank ones count."""
    pages = ["", "The canteen opens at noon. " * 60, "It closes at two. " * 70, "", "Sundays it is closed."]
    starts = [sum(map(len, pages[:n])) for n in range(len(pages))]
    with opened(tmp_path / "store") as engine:
        engine.add([Document(id="canteen.pdf", text="".join(pages), bits=(), pages=starts)])
        for one in engine.retrieve("The canteen?", WORK, 50).passages:
            first = max(n for n, start in enumerate(starts, 1) if start <= one.start)
            last = max(n for n, start in enumerate(starts, 1) if start < one.end)
            assert one.document == (f"page {first}" if first == last else f"pages {first}-{last}")
        cited = engine.ask("When does the canteen open?", WORK).citations
        assert all(citation.document.startswith("page") for citation in cited)


def test_a_file_that_supersedes_what_is_not_there_keeps_no_other_out(tmp_path: Path, folder: Path) -> None:
    """It is named, with those that supersede it in turn; two that supersede each other are left out, too."""
    head = "---\nclassification: internal\nsupersedes: {}\n---\nThe canteen opens at {}.\n"
    for name, old in (
        ("new", "unknown"),
        ("newer", "new.md"),
        ("a", "b.md"),
        ("b", "a.md"),
        ("good", "lunch.md"),
    ):
        (folder / f"{name}.md").write_text(head.format(old, name))
    with opened(tmp_path / "store") as engine:
        report = engine.ingest(folder)
        found = {one.chunk_id for one in engine.retrieve("When does the canteen open?", REVIEW, 50).passages}
    assert found == {"good.md:00000", "hr/pay.txt:00000", "recipe.txt:00000"}
    left_out = [one for one in report.problems if "supersedes" in one]
    assert len(left_out) == 4
    assert any(
        "'newer.md' supersedes 'new.md', which is neither among those given" in one for one in left_out
    )


def test_a_cell_of_a_workbook_answers_by_the_names_of_its_row_and_column(tmp_path: Path) -> None:
    """As a cell of a page's table does."""
    folder = tmp_path / "docs"
    folder.mkdir()
    book = openpyxl.Workbook()
    for row in (
        ["Fee, in euros", "2024", "2023"],
        ["Parking", 51, 47],
        ["Lockers", 12, 11],
        ["Badges", 8, 7],
    ):
        book.active.append(row)  # type: ignore[union-attr]
    book.save(folder / "fees.xlsx")
    (folder / "fees.csv").write_text("Salary in euros,2024,2023\nCook,3100,2900\nGuard,2800,2700\n")
    (folder / "metadata.csv").write_text("file,classification\nfees.xlsx,internal\nfees.csv,internal\n")
    with Engine.open(
        tmp_path / "store", profile="generic", embedder="wordllama", gate=ConfidenceGate(-1)
    ) as engine:
        engine.ingest(folder)
        fee = engine.ask("What was the fee for parking in 2023?", WORK).text.split("\n")
        assert ["Fee, in euros | 2024 | 2023 [1]", "Parking | 51 | 47 [1]"] == fee[:2]
        salary = engine.ask("What was the salary of the guard in 2024?", WORK).text
        assert "Salary in euros | 2024 | 2023 [1]\nGuard | 2800 | 2700 [1]" == salary
