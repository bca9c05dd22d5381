"""``carag bench store``: figures and a record, or a refusal that leaves neither."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from carag.audit import AuditLog
from carag.cli import Exit
from carag.cli.app import run
from tests.evaluation.own_store import CANARIES, CANARY, QUESTIONS, a_store, written

if TYPE_CHECKING:
    from pathlib import Path

LEAKY = """
def everything(corpus):
    said = " ".join(one.text for one in corpus.passages)
    ids = [one.id for one in corpus.passages]
    return lambda question, session: {"ids": ids, "text": said, "outcome": "answer"}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a store, its files and a module."""
    a_store(tmp_path / "store")
    written(tmp_path / "q.jsonl", QUESTIONS)
    written(tmp_path / "c.jsonl", CANARIES)
    (tmp_path / "leaky_rag.py").write_text(LEAKY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "leaky_rag", raising=False)
    return tmp_path


def records(home: Path) -> int:
    with AuditLog.open(home / "store") as log:
        return log.size


COMMAND = ["bench", "store", "q.jsonl", "--store", "store", "--canaries", "c.jsonl", "--out", "out"]


def test_it_prints_the_figures_of_each_system(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = records(home)
    assert run([*COMMAND, "--system", "leaky_rag:everything"]) == Exit.OK
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "carag-certified 0 of 5 0 of 4 0 of 5 100 % 2 / 2 / 1 / 0" in lines
    assert any(line.startswith("vanilla 4 of 5 (80 %)") for line in lines)
    assert any(line.startswith("own:leaky_rag:everything 4 of 5 (80 %) 4 of 4 (100 %)") for line in lines)
    assert f"the store passed: record {records(home) - 1} in the audit log; out/report.md" in lines
    assert records(home) == before + len(QUESTIONS) + 1


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("q.jsonl", {**QUESTIONS[0], "role": "stranger"}, "q.jsonl, line 1: role is 'stranger'"),
        ("c.jsonl", {"document": "rent", "text": CANARY}, "c.jsonl, line 1: no passage of 'rent'"),
    ],
)
def test_a_bad_file_leaves_no_directory_and_no_record(
    file: str, line: object, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = records(home)
    written(home / file, [line])
    assert run(COMMAND) == Exit.BAD_INPUT
    told = " ".join(capsys.readouterr().err.split())
    assert said in told
    assert CANARY not in told
    assert not (home / "out").exists()
    assert records(home) == before


def test_an_unknown_backend_leaves_no_directory_and_no_record(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = records(home)
    assert run([*COMMAND, "--backend", "oracle://host/rows"]) == Exit.BAD_INPUT
    assert "there is no backend of vectors 'oracle'" in " ".join(capsys.readouterr().err.split())
    assert not (home / "out").exists()
    assert records(home) == before


def test_no_module_of_a_store_is_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store may come from a stranger, even if the command runs in its directory."""
    (home / "store" / "evil_rag.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(home / "store")
    words = ["bench", "store", "../q.jsonl", "--store", ".", "--out", "../out", "--system", "evil_rag:make"]
    assert run(words) == Exit.BAD_INPUT
    assert "evil_rag is inside the store" in " ".join(capsys.readouterr().err.split())
    assert "evil_rag" not in sys.modules


def test_a_store_that_is_none_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "store", "q.jsonl", "--store", "nowhere", "--out", "out"]) == Exit.BAD_INPUT
    assert "nowhere" in capsys.readouterr().err
    assert not (home / "out").exists()
