"""``carag documents remove``: what is removed is found no more, on record, or nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
