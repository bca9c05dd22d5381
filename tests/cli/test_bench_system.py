"""`carag bench edgar --system`: what cannot be measured is refused before anything is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, main

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.run import Settings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a user's module."""
    (tmp_path / "cli_rag.py").write_text(
        "def make(corpus):\n    return lambda question, session: None\nnothing = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "cli_rag", raising=False)
    return tmp_path


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
