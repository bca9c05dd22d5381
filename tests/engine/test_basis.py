"""An answer about somebody or a time says of which documents it is, where its asker sees it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Outcome, Session
from carag.audit import Record
from carag.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator

BUY_SIDE = Session(role="buy_side", purpose="invest")
PARTLY = "What revenue did Lumenfield report in 2024 and in 2031?"
NAMING_NOBODY = "What royalty rate is paid on net sales?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path_factory.mktemp("basis") / "store"))


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(home) as opened:
        yield opened


def test_an_answer_from_a_part_is_an_answer_that_says_so(engine: Engine) -> None:
    answer = engine.ask(PARTLY, BUY_SIDE)
    assert (Outcome.ANSWER, True) == (answer.outcome, bool(answer.citations))
    (cited,) = {(one.company, one.form, one.filed) for one in answer.citations}
    assert answer.basis == (
        f"From one of the documents that this session may use: {' '.join(cited[:2])} filed {cited[2]}. "
        "Nothing that it may use is about Lumenfield in 2031."
    )
    assert answer.basis not in answer.text
    assert answer.to_json()["basis"] == answer.basis
    assert Record.parse(answer.receipt.record).event.why == "ANSWERED"  # type: ignore[union-attr]


def test_an_answer_about_nobody_has_no_basis(engine: Engine) -> None:
    answer = engine.ask(NAMING_NOBODY, BUY_SIDE)
    assert (Outcome.ANSWER, "") == (answer.outcome, answer.basis)


def test_what_is_no_answer_has_no_basis(engine: Engine) -> None:
    for question, session in (
        ("What did Boeing earn in 1950?", BUY_SIDE),
        (PARTLY, Session(role="stranger", purpose="invest")),
    ):
        answer = engine.ask(question, session)
        assert answer.outcome is not Outcome.ANSWER
        assert answer.basis == ""


def test_the_command_line_prints_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ask", PARTLY, "--store", str(home), "--role", "buy_side", "--purpose", "invest"]
    assert run(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Nothing that it may use is about Lumenfield in 2031." in printed
    assert run([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["basis"]
    assert said["basis"] in printed
