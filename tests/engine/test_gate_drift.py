"""A calibrated gate notices that other questions are asked, and falls back closed, on record, until calibrated."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Access, ModelChange, Verdict, verify_receipt
from carag.cli import Exit
from carag.cli.app import run
from carag.engine import calibration
from carag.errors import AuditUnavailable
from carag.retrieval import ConfidenceGate
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EMPLOYEE = Session(role="employee", purpose="work")
REVIEW = Session(role="compliance", purpose="review")
USUAL = [0.41 + number / 100 for number in range(40)]
"""Similarities of the questions that people ask: their middle is 0.605, below the baseline."""
ODD = [0.2 - number / 1000 for number in range(60)]


def says(question: str, passages: Any, withheld: Any) -> str:
    return "So [1]."


def opened(home: Path, **settings: Any) -> Engine:
    return Engine.open(
        home / "store", **({"profile": "generic", "embedder": Angles(), "generator": says} | settings)
    )


def calibrate(engine: Engine, home: Path) -> Any:
    rows = [{"question": f"q {one}", "documents": ["open"]} for one in USUAL]
    (home / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return engine.calibrate_gate(home / "questions.jsonl", EMPLOYEE)


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("calibrated")
    with opened(home) as engine:
        engine.add(
            [
                Document(id="open", text="open", facts={"classification": "public"}, metadata={"kind": "A"}),
                Document(id="secret", text="secret", facts={"classification": "secret"}),
            ]
        )
        calibrate(engine, home)
    return home


@pytest.fixture
def home(founded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(founded, tmp_path, dirs_exist_ok=True)


def changes(engine: Engine) -> list[str]:
    events = (engine._log.record(number).event for number in range(engine._log.size))
    return [event.why for event in events if isinstance(event, ModelChange)]


def odd(engine: Engine, session: Session = EMPLOYEE, **settings: Any) -> Iterator[Any]:
    for one in ODD:
        yield engine.ask(f"odd {one}", session, **settings)


@pytest.fixture(scope="module")
def once_drifted(founded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = shutil.copytree(founded, tmp_path_factory.mktemp("drifted"), dirs_exist_ok=True)
    with opened(home) as engine:
        list(odd(engine))
    return home


@pytest.fixture
def drifted(once_drifted: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once_drifted, tmp_path, dirs_exist_ok=True)


def test_drift_shuts_the_gate_to_what_is_closer_and_puts_it_on_record(home: Path) -> None:
    with opened(home) as engine:
        threshold = engine.gate.threshold
        assert (0.44, True) == (pytest.approx(threshold, abs=2e-6), engine.gate.calibrated)
        assert Outcome.ANSWER is engine.ask("q 0.5", EMPLOYEE).outcome
        answers = list(odd(engine))
        assert {"BELOW_GATE"} == {answer.why for answer in answers}
        assert (0.65, False) == (engine.gate.threshold, engine.gate.calibrated)
        assert ["GATE_CALIBRATED", "GATE_DRIFTED"] == changes(engine)[-2:]
        declined, answered = (engine.ask(f"again {one}", EMPLOYEE) for one in (0.5, 0.7))
        assert ("DRIFTED", False, False) == (declined.why, declined.model_called, declined.gate_calibrated)
        assert "unlike those that the gate was calibrated on" in declined.text
        assert "best similarity 0.500; needed 0.650, before 0.440" in declined.text
        assert ("ANSWERED", False) == (answered.why, answered.gate_calibrated)
        assert "have drifted" in answered.gate
        assert "BELOW_GATE" == engine.ask("again 0.3", EMPLOYEE).why
        assert verify_receipt(declined.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert 1 == changes(engine).count("GATE_DRIFTED")


def test_the_usual_questions_in_any_number_do_not(home: Path) -> None:
    with opened(home) as engine:
        for number in range(3):
            for one in USUAL:
                engine.ask(f"{number} {one + 0.001 * number}", EMPLOYEE)
        assert engine.gate.calibrated
        assert "GATE_DRIFTED" not in changes(engine)


def test_it_stays_shut_at_every_opening_until_it_is_calibrated(drifted: Path) -> None:
    for _ in range(2):
        with opened(drifted) as engine:
            assert "DRIFTED" == engine.ask("q 0.5", EMPLOYEE).why
            assert "GATE_DRIFTED" == changes(engine)[-1]
    with opened(drifted) as engine:
        calibrate(engine, drifted)
        assert ("ANSWERED", True) == ((said := engine.ask("q 0.5", EMPLOYEE)).why, said.gate_calibrated)
    with opened(drifted) as engine:
        assert engine.gate.calibrated
        assert "GATE_CALIBRATED" == changes(engine)[-1]


def test_one_question_an_opening_adds_up(home: Path) -> None:
    """As on the command line, which opens the store for each."""
    asked = 0
    is_open = True
    while is_open:
        with opened(home) as engine:
            engine.ask(f"odd {ODD[asked]}", EMPLOYEE)
            is_open = engine.gate.calibrated
        asked += 1
    assert 3 < asked < 40
    with opened(home) as engine:
        assert "GATE_DRIFTED" == changes(engine)[-1]


def test_a_gate_given_sets_it_aside_and_does_not_make_it_forgotten(drifted: Path) -> None:
    for gate in (ConfidenceGate(0.5), ConfidenceGate(0.2)):
        with opened(drifted, gate=gate) as engine:
            assert gate == engine.gate
            assert "DRIFTED_GATE_SET_ASIDE" == changes(engine)[-1]
    with opened(drifted) as engine:
        assert (0.65, False) == (engine.gate.threshold, engine.gate.calibrated)
        assert "GATE_DRIFTED" == changes(engine)[-1]


def test_nobody_is_watched_where_the_gate_is_not_the_calibrated_one(home: Path) -> None:
    """A gate given for one opening, and one that was never calibrated."""
    with opened(home, gate=ConfidenceGate(0.3)) as engine:
        list(odd(engine))
        assert ConfidenceGate(0.3) == engine.gate
    with Engine.open(home / "other", profile="generic", embedder=Angles(), generator=says) as engine:
        engine.add([Document(id="open", text="open", facts={"classification": "public"})])
        list(odd(engine))
        assert ConfidenceGate(0.65, calibrated=False) == engine.gate


@pytest.mark.parametrize(
    ("session", "settings"),
    [
        (REVIEW, {}),
        (Session(role="stranger", purpose="work"), {}),
        (EMPLOYEE, {"where": {"kind": "A"}}),
        (Session(role="employee", purpose="work", allow_entities=frozenset({7})), {}),
    ],
    ids=["another role", "refused", "narrowed", "of listed entities"],
)
def test_what_the_promise_is_not_about_does_not_count(
    home: Path, session: Session, settings: dict[str, Any]
) -> None:
    with opened(home) as engine:
        list(odd(engine, session, **settings))
        assert engine.gate.calibrated


def test_a_stretch_begins_anew_and_an_opening_reads_no_more_of_the_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drift that is spread over many stretches, a little in each, is not noticed; the price of the bound."""
    monkeypatch.setattr(calibration, "_STRETCH", 4)
    with opened(home) as engine:
        list(odd(engine))
        assert engine.gate.calibrated
        assert engine.calibration.report is not None
        read: list[int] = []
        record = engine._log.record
        monkeypatch.setattr(engine._log, "record", lambda number: read.append(number) or record(number))
        calibration.Watch(engine.calibration.report, engine._log).has_drifted()
        assert len(read) < 4


def test_a_run_that_was_killed_before_it_was_on_record_is_noticed_by_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shut at once all the same; the log has what it takes to shut it again."""
    with opened(home) as engine:

        def killed(*_: object, **__: object) -> None:
            raise AuditUnavailable("killed")

        monkeypatch.setattr(engine._configuration, "models", killed)
        with pytest.raises(AuditUnavailable, match="killed"):
            list(odd(engine))
        assert not engine.gate.calibrated
    with opened(home) as engine:
        assert (0.65, "GATE_DRIFTED") == (engine.gate.threshold, changes(engine)[-1])


def test_calibrating_is_not_drift(home: Path) -> None:
    """The questions that set the threshold are its measure, asked as often as one likes."""
    with opened(home) as engine:
        for _ in range(3):
            calibrate(engine, home)
        assert engine.gate.calibrated
        assert engine.calibration.report is not None
        events = [
            engine._log.record(one).event
            for one in range(engine.calibration.report.record + 1, engine._log.size)
        ]
        assert not any(isinstance(event, Access) for event in events)


def test_of_a_gate_that_was_high_more_than_the_baseline_is_wanted(tmp_path: Path) -> None:
    """An embedder whose cosines are all high would not be shut by 0.65: the middle of its questions is."""
    rows = [{"question": f"q {0.8 + one / 1000}", "documents": ["open"]} for one in range(41)]
    (tmp_path / "high").write_text("\n".join(map(json.dumps, rows)))
    with opened(tmp_path) as engine:
        engine.add([Document(id="open", text="open", facts={"classification": "public"})])
        engine.calibrate_gate(tmp_path / "high", EMPLOYEE)
        list(odd(engine))
        assert 0.82 == pytest.approx(engine.gate.threshold, abs=2e-6)


def test_show_says_that_it_drifted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And that there is no watch for drift if the gate was not calibrated here."""
    store = tmp_path / "store"
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add([Document(id="open", text="The gym opens at nine.", facts={"classification": "public"})])
    show = ["gate", "show", "--store", str(store)]
    assert Exit.OK == run(show)
    assert "drift is not monitored" in capsys.readouterr().out
    rows = [{"question": f"When does the gym open on day {day}?", "documents": ["open"]} for day in range(40)]
    (tmp_path / "q").write_text("\n".join(map(json.dumps, rows)))
    with Engine.open(store) as engine:
        engine.calibrate_gate(tmp_path / "q", EMPLOYEE)
        for number in range(40):
            engine.ask(f"Who composed fugue number {number} in G minor?", EMPLOYEE)
        assert not engine.gate.calibrated
    assert Exit.OK == run(show)
    said = " ".join(capsys.readouterr().out.split())
    assert "have drifted from those that the gate was calibrated on" in said
    assert "carag gate calibrate" in said
