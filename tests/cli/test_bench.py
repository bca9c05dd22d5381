"""``carag bench store`` and ``edgar --system``: figures and a record, or a refusal that leaves neither."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from carag.audit import AuditLog
from carag.cli import Exit, main
from carag.cli.app import run
from tests.evaluation.own_store import CANARIES, CANARY, QUESTIONS, a_store, written

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.run import Settings


LEAKY = """
def everything(corpus):
    said = " ".join(one.text for one in corpus.passages)
    ids = [one.id for one in corpus.passages]
    return lambda question, session: {"ids": ids, "text": said, "outcome": "answer"}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a user's modules."""
    (tmp_path / "leaky_rag.py").write_text(LEAKY)
    (tmp_path / "cli_rag.py").write_text(
        "def make(corpus):\n    return lambda question, session: None\nnothing = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module in ("leaky_rag", "cli_rag"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.fixture
def home(here: Path) -> Path:
    """The same with a store and its files."""
    a_store(here / "store")
    written(here / "q.jsonl", QUESTIONS)
    written(here / "c.jsonl", CANARIES)
    return here


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


def bench(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "edgar", *words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("cli_rag", "want MODULE:FACTORY"),
        ("cli_rag:missing", "is missing; want a callable"),
        ("cli_rag:nothing", "is 3; want a callable"),
        ("no_such_cli_rag:make", "ModuleNotFoundError"),
    ],
)
def test_a_bad_system_is_refused_before_a_run_leaves_anything(
    named: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = bench("--quick", "--size", "small", "--out", str(here / "out"), "--system", named)
    assert Exit.BAD_INPUT == code
    told = " ".join(capsys.readouterr().err.split())
    assert named in told
    assert said in told
    assert not (here / "out").exists()


def test_systems_named_twice_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--system", "cli_rag:make", "--system", "cli_rag:make"]
    assert Exit.BAD_INPUT == bench("--quick", "--size", "small", "--out", str(here / "out"), *twice)
    assert "two systems are named own:cli_rag:make" in " ".join(capsys.readouterr().err.split())


def test_rows_that_are_there_are_asked_of_nobody(here: Path) -> None:
    code = bench("--from", str(here / "rows.jsonl"), "--out", str(here / "out"), "--system", "cli_rag:make")
    assert Exit.BAD_INPUT == code
    assert "cli_rag" not in sys.modules
    assert not (here / "out").exists()


def test_the_systems_named_are_those_that_are_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Settings] = []
    monkeypatch.setattr("carag.evaluation.run.run", lambda settings, *_, **__: told.append(settings))
    bench("--quick", "--size", "small", "--out", str(here / "out"), "--system", "cli_rag:make")
    bench("--quick", "--size", "small", "--out", str(here / "out"))
    assert [[one.name for one in settings.own] for settings in told] == [["own:cli_rag:make"], []]
    assert told[0].identity() == told[1].identity()
