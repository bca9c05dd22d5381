"""``carag documents`` and ``--dry-run``: what is listed, shown and removed is on record; a dry run writes nothing."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import Ingest
from carag.cli import Exit
from carag.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    documents = [
        Document(id=name, text="The canteen opens at noon.", bits=["INTERNAL"]) for name in ("a.md", "b.md")
    ]
    with Engine.open(tmp_path / "store", profile="generic", embedder="wordllama") as engine:
        engine.add(documents)
    return tmp_path / "store"


def found(store: Path) -> list[str]:
    with Engine.open(store) as engine:
        passages = engine.retrieve("When does it open?", Session(role="employee", purpose="work")).passages
    return sorted(one.accession_number for one in passages)


def test_a_removed_document_is_found_no_more(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are, and the log says that one was removed."""
    assert Exit.OK == run(["documents", "remove", "a.md", "--store", str(store), "--by", "anna"])
    assert ", on record: 1" in capsys.readouterr().out.replace("\n", " ")
    assert ["b.md"] == found(store)
    with Engine.open(store) as engine:
        events = [engine.log.record(number).event for number in range(engine.log.size)]
    assert ["DOCUMENTS_REMOVED"] == [
        one.why for one in events if isinstance(one, Ingest) and one.why == "DOCUMENTS_REMOVED"
    ]


@pytest.mark.parametrize("ids", [["c.md"], ["a.md", "c.md"]])
def test_one_unknown_id_removes_nothing(
    ids: list[str], store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, with how many were like it."""
    assert Exit.BAD_INPUT == run(["documents", "remove", *ids, "--store", str(store)])
    assert "c.md" in capsys.readouterr().err
    assert ["a.md", "b.md"] == found(store)


def test_of_a_store_that_is_not_there_none_is_made(tmp_path: Path) -> None:
    """Removing opens stores and makes none."""
    assert Exit.BAD_INPUT == run(["documents", "remove", "a.md", "--store", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


WORK = ("--role", "employee", "--purpose", "work")
REVIEW = ("--role", "compliance", "--purpose", "review")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = run([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_pages_list_every_document_once_and_one_can_be_shown(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is absent is not shown, and that is on record too."""
    at = ("--store", str(store), *WORK)
    code, page = said(capsys, "documents", "list", *at, "--limit", "1")
    assert (code, [one["id"] for one in page["documents"]], page["after"]) == (Exit.OK, ["a.md"], "a.md")
    code, page = said(capsys, "documents", "list", *at, "--after", page["after"], "--where", "id!=a.md")
    assert ([one["id"] for one in page["documents"]], page["after"]) == (["b.md"], None)
    code, page = said(capsys, "documents", "show", "a.md", *at)
    assert (code, page["passages"][0]["text"]) == (Exit.OK, "The canteen opens at noon.")
    code, page = said(capsys, "documents", "show", "c.md", *at)
    assert (code, page["documents"], page["why"]) == (Exit.DECLINED, [], "NONE_LISTED")
    assert Exit.OK == run(["documents", "list", *at])
    assert "a.md" in capsys.readouterr().out


def test_quarantine_is_listed_with_what_to_mend(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Engine.open(store) as engine:
        engine.add([Document(id="x.md", text="A plan.", facts={"classification": "sekret"})])
    assert Exit.OK == run(["quarantine", "list", "--store", str(store), *REVIEW])
    out = " ".join(capsys.readouterr().out.split())
    assert "x.md: UNKNOWN_VALUE" in out
    assert "to mend it, state a value that the profile knows, then ingest the document again" in out
    assert Exit.REFUSED == run(["quarantine", "list", "--store", str(store), *WORK])


def content(store: Path) -> dict[str, str]:
    return {
        str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(store.rglob("*"))
        if file.is_file()
    }


def test_a_dry_run_says_what_is_then_done_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file of the store keeps its bytes; the run that follows does what was said."""
    folder, store = tmp_path / "folder", tmp_path / "store"
    folder.mkdir()

    def write(name: str, text: str, more: str = "") -> None:
        (folder / name).write_text(f"---\nclassification: internal\n{more}---\n{text}")

    for name in ("kept.md", "changed.md", "gone.md", "old.md"):
        write(name, f"The canteen opens at noon, says {name}.")
    settings = ("--store", str(store), "--embedder", "wordllama")
    assert Exit.OK == run(["ingest", str(folder), *settings, "--profile", "generic"])
    assert Exit.OK == run(["sync", str(folder), *settings])
    write("changed.md", "It opens at one.")
    write("new.md", "It closes at three.", "supersedes: old.md\n")
    (folder / "wrong.md").write_text("---\nclassification: sekret\n---\nA plan.")
    (folder / "gone.md").unlink()
    capsys.readouterr()
    before = content(store)
    code, found = said(capsys, "sync", str(folder), *settings, "--remove-vanished", "--dry-run")
    assert code == Exit.OK
    assert content(store) == before
    assert (found["added"], found["changed"], found["unchanged"]) == (
        ["new.md", "wrong.md"],
        ["changed.md"],
        2,
    )
    assert (found["removed"], found["vanished"], [*found["quarantined"]]) == (
        ["gone.md"],
        ["gone.md"],
        ["wrong.md"],
    )
    assert found["closed"] == ["old.md"]
    code, plain = said(capsys, "ingest", str(folder), *settings, "--dry-run")
    assert (plain["added"], plain["vanished"], content(store)) == (found["added"], [], before)
    code, gone = said(capsys, "documents", "remove", "kept.md", "--store", str(store), "--dry-run")
    assert (gone["removed"], content(store)) == (["kept.md"], before)
    assert Exit.BAD_INPUT == run(["documents", "remove", "x", "--store", str(store), "--dry-run"])
    capsys.readouterr()
    code, done = said(capsys, "sync", str(folder), *settings, "--remove-vanished")
    assert (done["added"], done["changed"], done["unchanged"]) == (2, 1, 2)
    assert (done["removed"], done["newly_quarantined"]) == (1, 1)


def test_a_dry_run_leaves_no_new_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, store = tmp_path / "a.md", tmp_path / "store"
    file.write_text("---\nclassification: internal\n---\nText.")
    settings = ("--store", str(store), "--embedder", "wordllama", "--profile", "generic", "--dry-run")
    assert said(capsys, "ingest", str(file), *settings)[1]["added"] == ["a.md"]
    assert not store.exists()


def test_a_dry_run_reads_filings_too(
    tmp_path: Path, small_corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is new before an ingest is unchanged after it."""
    settings = ("--store", str(tmp_path / "store"), "--embedder", "wordllama")
    before = said(capsys, "ingest", str(small_corpus), *settings, "--dry-run")[1]
    assert Exit.OK == run(["ingest", str(small_corpus), *settings])
    capsys.readouterr()
    after = said(capsys, "ingest", str(small_corpus), *settings, "--dry-run")[1]
    assert before["added"]
    assert (after["added"], after["changed"]) == ([], [])
