"""A reader of one's own stands in for CARAG's: what it returns goes in, or is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import InvalidArgument
from tests.engine.documents import Counting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORK = Session(role="employee", purpose="work")
MODULE = """
from carag import Document
def read(path):
    yield Document(id="one", text=path.name, facts={"classification": "internal"})
    yield "two\\x1b[2J: not a letter"
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", profile="generic", embedder=Counting()) as opened:
        yield opened


def test_documents_go_in_and_all_else_is_named(engine: Engine, tmp_path: Path) -> None:
    """Labelled by the profile, as any document is; what names no document is shown without control characters."""
    asked: list[Path] = []

    def read(path: Path) -> Iterator[Document | str]:
        asked.append(path)
        yield Document(id="open", text="Seen.", facts={"classification": "internal"})
        yield Document(id="closed", text="Hidden.", facts={"classification": "secret"})
        yield Document(id="unstated", text="Unstated.", facts={})
        yield Document(id="lost", text="Lost.", bits=(), supersedes="unknown")
        yield "letter 5\x1b[2J: torn\nin two"

    report = engine.ingest(tmp_path, reader=read)
    assert asked == [tmp_path]
    assert (report.added, report.newly_quarantined) == (3, 1)
    assert report.problems[0] == "letter 5[2J: torn in two"
    assert [one.chunk_id for one in engine.retrieve("Seen?", WORK).passages] == ["open:00000"]


@pytest.mark.parametrize("odd", [{"id": "one"}, None, b"text", 7])
def test_what_is_neither_is_refused_and_nothing_goes_in(engine: Engine, tmp_path: Path, odd: Any) -> None:
    """Left out in silence it would be lost."""
    with pytest.raises(InvalidArgument, match="the reader returned a"):
        engine.ingest(tmp_path, reader=lambda _: [Document(id="one", text="One.", bits=()), odd])
    assert engine.retrieve("One?", WORK).passages == ()


def test_the_command_line_names_it_and_no_store_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that lies in the store is not imported, and one that has no such function is told."""
    (tmp_path / "own_letters.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    store = tmp_path / "store"
    words = [
        "ingest",
        str(tmp_path),
        "--store",
        str(store),
        "--profile",
        "generic",
        "--embedder",
        "wordllama",
    ]
    assert run([*words, "--reader", "own_letters:read"]) == Exit.OK
    shown = capsys.readouterr()
    assert "1 documents added" in shown.out
    assert "two[2J: not a letter" in shown.err
    for wrong, why in (("own_letters:none", "no callable none"), ("own_letters", "want MODULE:FUNCTION")):
        assert run([*words, "--reader", wrong]) == Exit.BAD_INPUT
        assert why in capsys.readouterr().err.replace("\n", " ")
    (store / "planted_letters.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(store))
    assert run([*words, "--reader", "planted_letters:read"]) == Exit.BAD_INPUT
    assert "is inside the store" in capsys.readouterr().err.replace("\n", " ")
