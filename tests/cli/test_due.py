"""Erase what is due, hold documents and report on a person: what the commands print, and their exit codes."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE = ["--by", "D. Po", "--approver", "C. Co"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One document that is due, one that will be, and one that is held."""
    with Engine.open(tmp_path / "store", profile="generic", embedder="wordllama") as engine:
        engine.add(
            Document(id=name, text=f"Ana Ruiz asked for {name}.", bits=(), erase_after=date(year, 1, 1))
            for name, year in (("due", 2020), ("later", 2900), ("held", 2020))
        )
    return tmp_path / "store"


def done(capsys: pytest.CaptureFixture[str], store: Path, *words: str, code: int = Exit.OK) -> str:
    capsys.readouterr()
    assert run([*words, "--store", str(store)]) == code
    said = capsys.readouterr()
    return said.out + said.err


def ids(store: Path) -> set[str]:
    with Engine.open(store) as engine:
        return {*engine._collection.store.documents.content_hashes(["due", "later", "held"])}


def test_a_dry_run_comes_first_and_changes_nothing(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = done(capsys, store, "audit", "hold", "--matter", "M-1", "--actor", "C. Co", "--document", "held")
    placed = held.split("carag audit release ")[1].strip()
    shown = done(capsys, store, "erase-due", "--dry-run")
    assert shown.splitlines() == [
        "1 documents are due and would be erased",
        "  due",
        "1 documents are due and stay:",
        f"  held: held by record {placed}",
    ]
    assert ids(store) == {"due", "later", "held"}
    said = json.loads(done(capsys, store, "erase-due", "--json", *PEOPLE))
    assert (said["erased"], len(said["records"])) == (["due"], 1)
    assert [(one["document"], one["held"], one["why"]) for one in said["stayed"]] == [
        ("held", [int(placed)], "LEGAL_HOLD")
    ]
    assert ids(store) == {"later", "held"}
    done(capsys, store, "audit", "release", placed, "--actor", "D. Po", "--approver", "C. Co")
    assert "1 documents were due and are erased, record" in done(capsys, store, "erase-due", *PEOPLE)
    assert ids(store) == {"later"}


def test_a_sync_erases_what_is_due_when_told(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = store.parent / "files"
    folder.mkdir()
    (folder / "a.md").write_text("---\nclassification: public\nerase_after: 2020-01-01\n---\nText.\n")
    assert "due" not in done(capsys, store, "sync", str(folder))
    assert ids(store) == {"due", "later", "held"}
    assert "3 documents were due and are erased" in done(
        capsys, store, "sync", str(folder), "--erase-due", *PEOPLE
    )
    assert ids(store) == {"later"}
    (folder / "a.md").unlink()
    said = json.loads(done(capsys, store, "sync", str(folder), "--erase-due", "--json", *PEOPLE))
    assert said["due"] == {"erased": [], "records": [], "answers": [], "stayed": []}


BAD = {
    "one person": (["erase-due", "--by", "C. Co", "--approver", "c. co"], "cannot approve their own request"),
    "one person at night": (
        ["sync", ".", "--nightly", "--erase-due", "--by", "C. Co"],
        "name the person who acts and the person who approves",
    ),
    "persons without a reason": (["sync", ".", "--by", "C. Co"], "add it, or leave them out"),
    "a hold on both": (
        ["audit", "hold", "--matter", "M", "--actor", "C", "--document", "due", "--subject", "ana"],
        "covers documents or values of the log, not both",
    ),
    "a hold on an unknown document": (
        ["audit", "hold", "--matter", "M", "--actor", "C", "--document", "dew"],
        "'dew' is not in the store",
    ),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_input_changes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in " ".join(done(capsys, store, *words, code=Exit.BAD_INPUT).split())
    assert ids(store) == {"due", "later", "held"}


def test_a_report_goes_to_files_and_other_roles_are_refused(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, found = store.parent / "page.md", store.parent / "ids.txt"
    asked = ["subject", "report", "ana ruiz", "--actor", "E. Ve", "--why", "REQUEST-3"]
    files = ["--page", str(page), "--ids", str(found)]
    refused = done(capsys, store, *asked, "--role", "employee", *files, code=Exit.REFUSED)
    assert "refused (ROLE_MAY_NOT_OPEN)" in refused
    assert not page.exists()
    assert not found.exists()
    said = json.loads(done(capsys, store, *asked, "--role", "privacy_officer", *files, "--json"))
    assert [one["id"] for one in said["documents"]] == ["due", "held", "later"]
    assert found.read_text() == "due\nheld\nlater\n"
    assert page.read_text().startswith("# Where `ana ruiz` stands\n")
    assert "## Documents: 3" in done(capsys, store, *asked, "--role", "auditor")
