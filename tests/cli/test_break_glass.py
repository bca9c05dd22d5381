"""``carag ask --break-glass``: one question under a broken glass, on record, also where a service holds the store."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.cli import Exit
from carag.cli.app import run
from carag.service.owner import OwnerSocket
from tests.engine.documents import QUESTION
from tests.engine.test_break_glass import with_glass

if TYPE_CHECKING:
    from pathlib import Path

NURSE = ["--role", "employee", "--purpose", "work", "--subject", "ana"]
BROKEN = ["--break-glass", "emergency", "--reason", "cardiac arrest in ward 3"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    profile = with_glass(tmp_path / "profile", "{ minutes = 30, two_persons = true }")
    notes = tmp_path / "notes"
    notes.mkdir()
    facts = "classification: internal\npersonal_data: true"
    (notes / "patient.md").write_text(f"---\n{facts}\n---\nBranches report on patients.")
    with Engine.open(tmp_path / "store", profile=profile, embedder="wordllama") as engine:
        engine.ingest(notes)
    return tmp_path / "store"


@pytest.mark.parametrize("is_held", [False, True], ids=["alone", "held by a service"])
def test_a_question_is_asked_under_it_and_says_so(
    store: Path, capsys: pytest.CaptureFixture[str], is_held: bool
) -> None:
    """With the second person whom the cell needs; what is refused says why, and is not an internal error."""
    asked = ["ask", QUESTION, "--store", str(store), *NURSE]
    engine = Engine.open(store) if is_held else None
    with engine or nullcontext(), OwnerSocket(engine, store, {}) if engine else nullcontext():
        assert run([*asked, *BROKEN]) == Exit.REFUSED
        assert "refused (APPROVER_REQUIRED): the second person" in " ".join(capsys.readouterr().err.split())
        run([*asked, *BROKEN, "--approver", "bo", "--json"])
        told = json.loads(capsys.readouterr().out)
        assert [one["chunk_id"] for one in told["passages"]] == ["patient.md:00000"]
        assert 0 < told["glass"] < told["record"]
        run([*asked, *BROKEN, "--approver", "bo"])
        assert "The glass was broken for this answer: record" in capsys.readouterr().out
        run([*asked, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert (told["passages"], told["glass"]) == ([], None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--break-glass", "emergency"], "belong together"),
        (["--reason", "fire"], "belong together"),
        (["--approver", "bo"], "belong together"),
        (["--break-glass", "emergency", "--reason", " "], "reason is empty"),
    ],
)
def test_half_a_request_is_an_error(
    store: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["ask", QUESTION, "--store", str(store), *NURSE, *words]) == Exit.BAD_INPUT
    assert said in " ".join(capsys.readouterr().err.split())
