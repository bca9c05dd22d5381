"""A gate that was calibrated on a store is kept, in force and on record; no other takes its place unnoticed."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Access, Evaluation, ModelChange, Record, Verdict, verify_receipt
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, Refused
from carag.retrieval import ConfidenceGate, gate_for, own_embedder
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

EMPLOYEE = Session(role="employee", purpose="work")
REVIEW = Session(role="compliance", purpose="review")
TENTH = Fraction(1, 10)
DOCUMENTS = [
    Document(id="open", text="open", facts={"classification": "public"}),
    Document(id="secret", text="secret", facts={"classification": "secret"}),
    Document(id="lost", text="lost", facts={"classification": "none of these"}),
]
"""One that all may use, one that employees may not, and one in quarantine."""


def opened(tmp_path: Path, **settings: Any) -> Engine:
    return Engine.open(tmp_path / "store", **({"profile": "generic", "embedder": Angles()} | settings))


def events(engine: Engine, start: int = 0) -> list[Any]:
    return [engine._log.record(number).event for number in range(start, engine._log.size)]


def changes(engine: Engine) -> list[str]:
    return [event.why for event in events(engine) if isinstance(event, ModelChange)]


def questions(
    tmp_path: Path, answerable: Iterable[float], unanswerable: Iterable[float] = (), document: str = "open"
) -> Path:
    file = tmp_path / "questions.jsonl"
    rows = [{"question": f"q {one}", "documents": [document]} for one in answerable]
    rows += [{"question": f"u {one}", "documents": []} for one in unanswerable]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


TENTHS = [number / 10 for number in range(1, 10)]
"""Nine similarities: enough for an error of 1/10, whose threshold is then the smallest."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with opened(tmp_path) as engine:
        engine.add(DOCUMENTS)
    return tmp_path


@pytest.fixture(scope="module")
def once_calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("calibrated")
    with opened(store) as engine:
        engine.add(DOCUMENTS)
        engine.calibrate_gate(questions(store, TENTHS), EMPLOYEE)
    (store / "earlier.db").write_bytes((store / "store" / "corpus.db").read_bytes())
    with opened(store) as engine:
        engine.calibrate_gate(questions(store, [one + 0.05 for one in TENTHS]), EMPLOYEE)
    return store


@pytest.fixture
def calibrated(once_calibrated: Path, tmp_path: Path) -> Path:
    """Calibrated twice, the second time with a higher threshold, so that an earlier one can be put back."""
    return shutil.copytree(once_calibrated, tmp_path, dirs_exist_ok=True)


# --- what is refused, with nothing asked and nothing changed ---

REFUSED: dict[str, tuple[Session, str, Any, str]] = {
    "no such file": (EMPLOYEE, "", TENTH, "has no questions"),
    "a malformed line": (EMPLOYEE, "{}", TENTH, "line 1: the key question is missing"),
    "too few": (
        EMPLOYEE,
        '{"question": "q 0.5", "documents": ["open"]}\n{"question": "q 0.6", "documents": []}',
        TENTH,
        "1 of these questions can be answered for employee/work; want 9 or more for an error of 1/10",
    ),
    "an error of 0": (EMPLOYEE, "", Fraction(0), "the error is"),
    "a float": (EMPLOYEE, "", 0.1, "the error is 0.1; want a fractions.Fraction"),
    "no document of the store": (
        REVIEW,
        '{"question": "q 0.5", "documents": ["open", "opne"]}',
        TENTH,
        "line 1: the document 'opne' is not in the store",
    ),
    "hidden": (
        EMPLOYEE,
        '\n{"question": "q 0.5", "documents": ["secret"]}',
        TENTH,
        "line 2: employee/work may use none",
    ),
    "removed": (REVIEW, '{"question": "q 0.5", "documents": ["gone"]}', TENTH, "0 of these questions"),
}


@pytest.mark.parametrize(("session", "text", "error", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_calibrated_on_is_refused_and_changes_nothing(
    store: Path, session: Session, text: str, error: Any, why: str
) -> None:
    file = store / "questions.jsonl"
    file.write_text(text)
    with opened(store) as engine:
        engine.add([Document(id="gone", text="gone", facts={"classification": "public"})])
        engine.remove(["gone"])
        size = engine._log.size
        with pytest.raises(InvalidArgument) as refused:
            engine.calibrate_gate(file, session, error=error)
        assert why in str(refused.value)
        assert (size, None, 0.65) == (engine._log.size, engine.calibration.report, engine.gate.threshold)


def test_hidden_and_absent_are_one_to_a_session_that_may_not_know(store: Path) -> None:
    """In the same words, of any number of lines."""
    said = []
    with opened(store) as engine:
        for document in ("secret", "nothing", "lost"):
            with pytest.raises(InvalidArgument, match="line 1, 2, 3, 4, 5 and 4 more: ") as refused:
                engine.calibrate_gate(questions(store, TENTHS, document=document), EMPLOYEE)
            said.append(str(refused.value))
    assert 1 == len(set(said))


def test_what_is_no_session_is_refused(store: Path) -> None:
    with opened(store) as engine, pytest.raises(InvalidArgument, match=r"want a carag\.Session"):
        engine.calibrate_gate(questions(store, TENTHS), None)  # type: ignore[arg-type]


def test_a_session_that_may_ask_nothing_is_refused_on_record(store: Path) -> None:
    with opened(store) as engine:
        size = engine._log.size
        with pytest.raises(Refused, match=r"line 1: .*stranger"):
            engine.calibrate_gate(questions(store, TENTHS), Session(role="stranger", purpose="work"))
        (event,) = events(engine, size)
        assert (Outcome.REFUSE, "UNKNOWN_ROLE") == (event.outcome, event.why)


# --- what is calibrated ---


def test_the_threshold_is_that_of_the_admissible_evidence(store: Path) -> None:
    """The secret passage is nearer to most of these questions, and counts for who may use it alone."""
    with opened(store) as engine:
        file = questions(store, TENTHS, [0.05, 0.15])
        said = engine.calibrate_gate(file, EMPLOYEE)
        assert 0 <= 100_000 - said.threshold <= 1
        assert (9, 0, 2, 1, 0) == (
            said.answerable,
            said.answerable_declined,
            said.unanswerable,
            said.unanswerable_declined,
            said.hidden,
        )
        nearest = min(max(one, math.sqrt(1 - one * one)) for one in TENTHS)
        assert 0 <= nearest * 1e6 - engine.calibrate_gate(file, REVIEW).threshold <= 2


def test_no_passage_at_all_is_declined_whatever_the_threshold(store: Path) -> None:
    """An unanswerable question that nothing admissible meets, and an answerable one whose document just expired."""
    with opened(store) as engine:
        retrieve = engine.requests.retrieve

        def emptied(question: str, session: Session) -> Any:
            found = retrieve(question, session)
            return replace(found, passages=()) if question in {"u 0.9", "q 0.9"} else found

        engine.requests.retrieve = emptied  # type: ignore[method-assign, assignment]
        said = engine.calibrate_gate(questions(store, TENTHS, [0.9]), EMPLOYEE, error=TENTH)
    assert (-1_000_000, 1, 1) == (said.threshold, said.answerable_declined, said.unanswerable_declined)


def test_what_is_at_the_threshold_is_not_counted_as_declined(store: Path) -> None:
    """As the gate itself has it."""
    rows = [{"question": f"{which} 1.0", "documents": ["open"]} for which in range(9)]
    (store / "same").write_text("\n".join(map(json.dumps, rows)))
    with opened(store) as engine:
        said = engine.calibrate_gate(store / "same", EMPLOYEE)
        assert (1_000_000, 0) == (said.threshold, said.answerable_declined)
        assert "BELOW_GATE" != engine.ask("9 1.0", EMPLOYEE).why


def test_a_session_that_may_know_is_told_what_was_left_out(store: Path) -> None:
    """A question counts if one of its documents may be used, and is left out if none may."""
    file = questions(store, TENTHS)
    rows = [
        {"question": "q 0.01", "documents": ["lost"]},
        {"question": "q 0.95", "documents": ["lost", "open"]},
    ]
    file.write_text("\n".join([file.read_text(), *map(json.dumps, rows)]))
    with opened(store) as engine:
        said = engine.calibrate_gate(file, REVIEW)
    assert (1, 10) == (said.hidden, said.answerable)


def test_it_is_in_force_at_once_and_kept_and_on_record(store: Path) -> None:
    """Each question as any other, then the evaluation that commits to what is kept, then the change of the gate."""
    with opened(store) as engine:
        size = engine._log.size
        assert engine.ask("q 0.05", EMPLOYEE).gate_calibrated is False
        file = questions(store, TENTHS, [0.2])
        said = engine.calibrate_gate(file, EMPLOYEE)
        answers = [engine.ask(question, EMPLOYEE) for question in ("q 0.05", "q 0.15")]
        *asked, evaluation, change = events(engine, size + 1)[:-2]
        assert ["BELOW_GATE", "MODEL_DECLINED"] == [answer.why for answer in answers]  # the model was called
        assert all(answer.gate_calibrated for answer in answers)
        assert 10 == len(asked)
        assert all(isinstance(one, Access) and one.role == "employee" for one in asked)
        assert isinstance(evaluation, Evaluation)
        kept = engine._collection.store.meta_get("gate")
        assert kept is not None
        assert hashlib.sha256(kept.encode()).digest() == evaluation.result
        assert hashlib.sha256(file.read_bytes()).digest() == evaluation.suite_hash
        assert ("gate", {"similarity_millionths": said.threshold}) == (
            evaluation.suite,
            evaluation.thresholds,
        )
        assert (said.threshold, 650_000, "GATE_CALIBRATED") == (
            change.gate,
            change.before_gate,
            change.why,
        )
        told = json.loads(kept)
        assert told.pop("scores") == list(said.scores)
        assert told | {"record": said.record} == said.to_json()
        assert verify_receipt(answers[0].receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert Record.parse(answers[0].receipt.record).seq > said.record
        size = engine._log.size
    for _ in range(2):
        with opened(store) as engine:
            assert (said, said.threshold / 1e6, size) == (
                engine.calibration.report,
                engine.gate.threshold,
                engine._log.size,
            )
            assert engine.gate.calibrated


def test_before_documents_that_its_gate_was_not_measured_on_a_store_stands_at_the_baseline(
    tmp_path: Path,
) -> None:
    for profile in ("generic", "edgar"):
        with Engine.open(tmp_path / profile, profile=profile, embedder="wordllama") as engine:
            assert gate_for(engine.profile, "wordllama") == engine.gate
            assert engine.gate.calibrated == (profile == "edgar")


def test_a_gate_given_sets_the_kept_one_aside_for_one_opening(calibrated: Path) -> None:
    """On record, and so is the return."""
    with opened(calibrated, gate=ConfidenceGate(0.5)) as engine:
        assert 0.5 == engine.gate.threshold
        assert engine.calibration.report is not None
    with opened(calibrated, generator=lambda *_: "x") as engine:
        assert 150_000 >= engine.gate.threshold * 1e6 >= 149_998
        assert ["GATE_CALIBRATED", "GATE_CALIBRATED", "GATE_SET_ASIDE", "GATE_KEPT"] == changes(engine)[1:]


def test_it_is_kept_for_its_embedder(calibrated: Path) -> None:
    """A store has one embedder, so another fingerprint is an alteration; a gate does not hold for another embedder."""
    other = Angles()
    other.fingerprint = "2"
    note = "UPDATE meta SET value = ? WHERE name = 'embedder_fingerprint'"
    altered(calibrated, lambda now, _: now.execute(note, (own_embedder(other).fingerprint,)))
    with opened(calibrated, embedder=other) as engine:
        assert (0.65, False) == (engine.gate.threshold, engine.gate.calibrated)
        assert "GATE_SET_ASIDE" == changes(engine)[-1]


def test_a_run_that_was_killed_before_its_last_record_is_finished_by_the_next_opening(
    calibrated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(calibrated) as engine:
        before = engine.gate

        def killed(*_: object, **__: object) -> None:
            raise AuditUnavailable("killed")

        monkeypatch.setattr(engine._configuration, "models", killed)
        with pytest.raises(AuditUnavailable, match="killed"):
            engine.calibrate_gate(questions(calibrated, [one + 0.07 for one in TENTHS]), EMPLOYEE)
        assert before == engine.gate
    with opened(calibrated) as engine:
        assert before.threshold < engine.gate.threshold
        assert ["GATE_CALIBRATED"] * 3 == changes(engine)[1:]


def test_the_same_gate_measured_again_is_on_record_again(calibrated: Path) -> None:
    with opened(calibrated) as engine:
        engine.calibrate_gate(calibrated / "questions.jsonl", EMPLOYEE)
        assert ["GATE_CALIBRATED"] * 3 == changes(engine)[1:]


# --- what was changed behind the log ---


def script(text: str) -> Callable[[sqlite3.Connection, sqlite3.Connection], object]:
    return lambda now, _: now.executescript(text)


def earlier_gate(now: sqlite3.Connection, before: sqlite3.Connection) -> None:
    notes = before.execute("SELECT value, name FROM meta WHERE name IN ('gate', 'gate_record')").fetchall()
    now.executemany("UPDATE meta SET value = ? WHERE name = ?", notes)


NUMBERED = "UPDATE meta SET value = ? WHERE name = 'gate_record'"
DELETED = "DELETE FROM meta WHERE name IN ('gate', 'gate_record')"
ALTERED: dict[str, Callable[[sqlite3.Connection, sqlite3.Connection], object]] = {
    "another threshold": script(
        "UPDATE meta SET value = replace(value, '\"threshold\":1', '\"threshold\":') WHERE name = 'gate'"
    ),
    "its text deleted": script("DELETE FROM meta WHERE name = 'gate'"),
    "its number deleted": script("DELETE FROM meta WHERE name = 'gate_record'"),
    "both deleted": script(DELETED),
    "both emptied": script("UPDATE meta SET value = '' WHERE name IN ('gate', 'gate_record')"),
    "and the note of the models": script(
        "; ".join((DELETED, "DELETE FROM meta WHERE name = 'recorded_model'"))
    ),
    "another number": script("UPDATE meta SET value = '0' WHERE name = 'gate_record'"),
    "a number past the end": script("UPDATE meta SET value = '99999' WHERE name = 'gate_record'"),
    "no number": script("UPDATE meta SET value = '-1' WHERE name = 'gate_record'"),
    "the earlier one put back": earlier_gate,
}


def altered(home: Path, how: Callable[[sqlite3.Connection, sqlite3.Connection], object]) -> None:
    with (
        closing(sqlite3.connect(home / "store" / "corpus.db")) as now,
        closing(sqlite3.connect(home / "earlier.db")) as before,
    ):
        how(now, before)
        now.commit()


@pytest.mark.parametrize("how", ALTERED.values(), ids=ALTERED)
def test_a_gate_that_is_not_the_one_on_record_does_not_open(calibrated: Path, how: Any) -> None:
    """Until it is dropped, on record, once; and the store can be calibrated again."""
    altered(calibrated, how)
    for settings in ({}, {}, {"gate": ConfidenceGate(0.5)}, {"accept": {"labels"}}):
        with pytest.raises(CorruptFile, match="accept --gate"):
            opened(calibrated, **settings)
    for _ in range(2):
        with opened(calibrated, accept={"gate"}) as engine:
            assert (None, 0.65) == (engine.calibration.report, engine.gate.threshold)
            assert (1, "GATE_DROPPED") == (changes(engine).count("GATE_DROPPED"), changes(engine)[-1])
    with opened(calibrated) as engine:
        assert "GATE_DROPPED" == changes(engine)[-1]
        engine.calibrate_gate(calibrated / "questions.jsonl", EMPLOYEE)
    with opened(calibrated) as engine:
        assert engine.calibration.report is not None


@pytest.mark.parametrize("settings", [{"gate": ConfidenceGate(0.5)}, {"generator": lambda *_: "x"}])
def test_it_is_missed_also_after_models_changed(calibrated: Path, settings: dict[str, Any]) -> None:
    """Their record says that the store keeps a gate."""
    opened(calibrated, **settings).close()
    altered(calibrated, script(DELETED))
    with pytest.raises(CorruptFile, match="accept --gate"):
        opened(calibrated)


def test_the_record_of_another_suite_is_none_of_a_gate(calibrated: Path) -> None:
    """Though it commits to the very text."""
    with opened(calibrated) as engine:
        text = str(engine._collection.store.meta_get("gate")).encode()
        digest = hashlib.sha256(text).digest()
        seq = engine.evaluations.record(
            "other", digest, digest, started=engine.requests.recorder.clock(), passed=True
        ).seq
    altered(calibrated, lambda now, _: now.execute(NUMBERED, (str(seq),)))
    with pytest.raises(CorruptFile, match="accept --gate"):
        opened(calibrated)


def test_a_gate_that_was_dropped_is_not_put_back(calibrated: Path) -> None:
    altered(calibrated, script(DELETED))
    opened(calibrated, accept={"gate"}).close()
    altered(calibrated, earlier_gate)
    altered(
        calibrated,
        lambda now, _: now.execute("INSERT OR IGNORE INTO meta VALUES ('gate', ''), ('gate_record', '')"),
    )
    altered(calibrated, earlier_gate)
    with pytest.raises(CorruptFile, match="accept --gate"):
        opened(calibrated)


def test_a_good_gate_is_not_dropped_by_accepting(calibrated: Path) -> None:
    with opened(calibrated, accept={"gate"}) as engine:
        assert engine.calibration.report is not None
        assert "GATE_CALIBRATED" == changes(engine)[-1]


def test_an_earlier_copy_of_all_notes_opens_and_the_log_tells_of_the_later_gate(calibrated: Path) -> None:
    """What stays open, as :mod:`carag.engine.configuration` says: the log is not read whole at every opening."""

    def all_notes(now: sqlite3.Connection, before: sqlite3.Connection) -> None:
        earlier_gate(now, before)
        noted = before.execute("SELECT value FROM meta WHERE name = 'recorded_model'").fetchone()
        now.execute("UPDATE meta SET value = ? WHERE name = 'recorded_model'", noted)

    altered(calibrated, all_notes)
    with opened(calibrated) as engine:
        last = [event for event in events(engine) if isinstance(event, ModelChange)][-1]
        assert last.gate != round(engine.gate.threshold * 1e6)
