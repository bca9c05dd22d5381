"""A gate can be calibrated on how often what it lets pass is answered wrongly."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import Access, RecordKind
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import InvalidArgument
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from pathlib import Path

EMPLOYEE = Session(role="employee", purpose="work")
FIFTH = Fraction(1, 5)
NEAR = [0.6 + number / 100 for number in range(10)]
FAR = [0.1 + number / 100 for number in range(10)]


def cites(question: str, passages: Any, withheld: Any) -> str:
    return "" if "silent" in question else "So [1]."


def opened(home: Path, **settings: Any) -> Engine:
    return Engine.open(
        home / "store", **({"profile": "generic", "embedder": Angles(), "generator": cites} | settings)
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with opened(tmp_path) as engine:
        engine.add([Document(id="open", text="open", facts={"classification": "public"})])
        engine.add([Document(id="secret", text="secret", facts={"classification": "secret"})])
    return tmp_path


def written(home: Path, *rows: dict[str, Any]) -> Path:
    file = home / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def answerable(similarities: list[float], **more: Any) -> list[dict[str, Any]]:
    return [{"question": f"q {one}", "documents": ["open"], **more} for one in similarities]


def beside(similarities: list[float]) -> list[dict[str, Any]]:
    return [{"question": f"beside {one}", "documents": []} for one in similarities]


def test_what_is_answered_without_an_answer_in_the_store_is_kept_out(home: Path) -> None:
    """Of 10 near answers all are right, and of 10 far ones none: 2 of 12 may be wrong, counting the new one."""
    with opened(home) as engine:
        size = engine._log.size
        said = engine.calibrate_gate(written(home, *answerable(NEAR), *beside(FAR)), EMPLOYEE, wrong=FIFTH)
        assert ("wrong", "1/5") == (said.promise, said.error)
        assert pytest.approx(190_000, abs=2) == said.threshold
        assert (11, 1, 0, 9) == (
            said.answered,
            said.answered_wrong,
            said.answerable_declined,
            said.unanswerable_declined,
        )
        asked = [engine._log.record(one).event for one in range(size, size + 20)]
        assert all(isinstance(one, Access) and one.kind is RecordKind.QUERY for one in asked)
        assert ("BELOW_GATE", "ANSWERED") == tuple(
            engine.ask(f"x {one}", EMPLOYEE).why for one in (0.15, 0.9)
        )
        assert engine.gate.calibrated
    with opened(home) as engine:
        assert said == engine.calibration.report


def test_a_question_that_the_generator_declines_is_neither_right_nor_wrong(home: Path) -> None:
    silent = [{"question": f"silent {one}", "documents": []} for one in (0.95, 0.96, 0.97)]
    with opened(home) as engine:
        said = engine.calibrate_gate(written(home, *answerable(NEAR), *silent), EMPLOYEE, wrong=FIFTH)
    assert (10, 0, 600_000) == (said.answered, said.answered_wrong, pytest.approx(said.threshold, abs=1))


def test_named_passages_are_wanted_in_place_of_the_document(home: Path) -> None:
    with opened(home) as engine:
        (found,) = engine.retrieve("q 0.5", EMPLOYEE).passages
        right = answerable(NEAR, passages=[found.chunk_id])
        said = engine.calibrate_gate(written(home, *right), EMPLOYEE, wrong=FIFTH)
        assert 0 == said.answered_wrong
        elsewhere = answerable(NEAR, passages=["open:99999"])
        with pytest.raises(InvalidArgument, match="of 10 answers, 10 are wrong"):
            engine.calibrate_gate(written(home, *elsewhere), EMPLOYEE, wrong=FIFTH)
        assert said == engine.calibration.report


def test_where_no_threshold_keeps_the_share_the_gate_stays(home: Path) -> None:
    with opened(home) as engine:
        before = engine.gate
        with pytest.raises(InvalidArgument, match="no threshold keeps the share of wrong answers at 1/5"):
            engine.calibrate_gate(written(home, *answerable(FAR), *beside(NEAR)), EMPLOYEE, wrong=FIFTH)
        assert (before, None) == (engine.gate, engine.calibration.report)


@pytest.mark.parametrize(
    ("shares", "why"),
    [
        ({"wrong": FIFTH, "error": FIFTH}, "give one of them"),
        ({"wrong": Fraction(5)}, "between 0 and 1"),
        ({"wrong": Fraction(0)}, "between 0 and 1"),
        ({"error": Fraction(0)}, "between 0 and 1"),
        ({"wrong": 0.05}, "Fraction"),
        (
            {"wrong": Fraction(1, 100)},
            "10 of these questions can be asked for employee/work; want 99 or more",
        ),
    ],
)
def test_a_share_that_is_none_is_refused_and_nothing_asked(home: Path, shares: Any, why: str) -> None:
    with opened(home) as engine:
        size = engine._log.size
        with pytest.raises(InvalidArgument, match=why):
            engine.calibrate_gate(written(home, *answerable(NEAR)), EMPLOYEE, **shares)
        assert size == engine._log.size


def test_on_the_command_line_it_says_what_it_promises(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what a tired hand writes is refused, with nothing changed."""
    store = home / "lines"
    topics = ("canteen", "library", "gym", "laundry", "archive")
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add(
            Document(id=topic, text=f"The {topic} opens at nine.", facts={"classification": "public"})
            for topic in topics
        )
        size = engine._log.size
    rows = [{"question": f"When does the {topic} open?", "documents": [topic]} for topic in topics]
    file = written(home, *rows, {"question": "Who wrote the fugue in G minor?", "documents": []})
    command = [
        "gate",
        "calibrate",
        str(file),
        "--store",
        str(store),
        "--role",
        "employee",
        "--purpose",
        "work",
    ]
    for options, why in {
        (
            "--wrong",
            "5",
        ): "--wrong is '5'; want a share between 0 and 1, such as 0.1 or 1/10; 5 percent is 0.05",
        ("--wrong", "0.2", "--error", "0.2"): "give one of them",
        ("--wrong", "0.2", "--embedder", "minilm"): "cannot be compared",
    }.items():
        assert Exit.BAD_INPUT == run([*command, *options])
        assert why in " ".join(capsys.readouterr().err.split())
    with Engine.open(store) as engine:
        assert (size, None) == (engine._log.size, engine.calibration.report)
    assert Exit.OK == run([*command, "--wrong", "0.2"])
    said = capsys.readouterr().out
    assert "calibrated on 6 questions of employee/work: at most 1/5 of new answers are wrong" in said
    assert "wrong among the 5 answered: 0 (they set the threshold)" in said
    assert Exit.OK == run(["gate", "show", "--store", str(store)])
    assert said == capsys.readouterr().out
