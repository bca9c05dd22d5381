"""A hospital's notes under the clinical profile: treatment relationships and what a note states decide who finds it."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest

from carag import Engine, Outcome, Session
from carag.audit import Verdict, verify_receipt
from carag.retrieval import ConfidenceGate
from tests.profiles.clinical_reading import (
    ALL,
    CELLS,
    LISTED,
    NOTES,
    NOW,
    PATIENTS,
    PROFILE,
    THERAPISTS,
    finds,
    session,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag import Passage
    from carag.retrieval import Withheld

# -- the forty notes, in a store


class Model:
    """A generator that keeps its input, and repeats all of it."""

    name = "parrot"

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, question: str, passages: tuple[Passage, ...], withheld: Withheld) -> str:
        self.given += [question, repr(withheld), *(f"{one!r}\n{one.text}" for one in passages)]
        return " ".join(f"{one.text} [{number}]" for number, one in enumerate(passages, 1))


MODEL = Model()


def opened(home: Path, notes: Path = NOTES, now: datetime = NOW) -> Engine:
    """A store whose gate lets every question pass to the model."""
    engine = Engine.open(
        home,
        profile="clinical",
        embedder="wordllama",
        generator=MODEL,
        gate=ConfidenceGate(-1),
        clock=lambda: now,
    )
    report = engine.ingest(notes)
    assert len(report.problems) == report.newly_quarantined
    return engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(tmp_path_factory.mktemp("clinical") / "store") as engine:
        yield engine


def found_by(engine: Engine, asking: Session) -> set[str]:
    found = engine.retrieve("What was noted?", asking, 400)
    assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    return {one.accession_number for one in found.passages}


def test_all_notes_are_labelled(tmp_path: Path) -> None:
    """All forty, without problems or quarantine, and together they have every bit."""
    with Engine.open(tmp_path / "store", profile="clinical", embedder="wordllama") as engine:
        report = engine.ingest(NOTES)
        assert (report.added, report.problems, report.newly_quarantined) == (40, [], 0)
        words = [engine._collection.store.chunk(f"{name}:00000").word for name in ALL]
    for bit in PROFILE.vocabulary.flags:
        assert any(word & bit.value for word in words), bit


LISTS = [
    *({one} for one in sorted(PATIENTS)),
    *({one, therapist} for one in (10025, 10026, 10027) for therapist in sorted(THERAPISTS)),
    {10023, 10024},
    set(THERAPISTS),
    {10021, 99999},
    {99999},
    PATIENTS,
    PATIENTS | THERAPISTS,
]


@pytest.mark.parametrize("cell", CELLS)
def test_a_session_finds_what_a_plain_reading_finds(engine: Engine, cell: str) -> None:
    """Every cell against every note, for each list of patients; where a list is not required, also without one."""
    several: list[frozenset[int] | None] = [frozenset(one) for one in LISTS]
    if cell not in LISTED:
        several.append(None)
    everything = set()
    for listed in several:
        found = found_by(engine, session(cell, listed))
        assert found == finds(cell, listed), listed
        everything |= found
    assert everything
    assert everything != set(ALL)


# -- what is hidden reaches neither model nor caller


class Hidden(NamedTuple):
    note: str
    question: str
    hidden_from: Session
    open_to: Session

    @property
    def text(self) -> str:
        return ALL[self.note].text


DREAM = "What did Mr Verran dream of the lathe?"
THERAPIST = session("therapist/treat", {10027, 90101})
RESEARCHER = session("researcher/research")
HIDDEN = {
    "a nurse outside the treatment relationship": Hidden(
        "note-034.md",
        "Did Mr Verran take part in the cooking group of the day clinic?",
        session("nurse/treat", {10021, 10022}),
        session("nurse/treat", {10027}),
    ),
    "a nurse with the mother but not the newborn": Hidden(
        "note-015.md",
        "How much did Tobias weigh when he was born?",
        session("nurse/treat", {10023}),
        session("nurse/treat", {10023, 10024}),
    ),
    "a psychotherapy note from the physician": Hidden(
        "note-031.md", DREAM, session("physician/treat", {10027, 90101}), THERAPIST
    ),
    "a psychotherapy note from another therapist": Hidden(
        "note-031.md", DREAM, session("therapist/treat", {10027, 90102}), THERAPIST
    ),
    "a psychotherapy note from its patient": Hidden(
        "note-029.md",
        "What did I say about the kitchen of my grandmother?",
        session("patient/access", {10026}),
        session("therapist/treat", {10026, 90101}),
    ),
    "a psychotherapy note from research that the patient authorized": Hidden(
        "note-031.md", "What did the patient dream of the lathe?", RESEARCHER, THERAPIST
    ),
    "research without consent": Hidden(
        "note-028.md",
        "Which dose of sertraline kept the mood steady?",
        RESEARCHER,
        session("physician/treat", {10026}),
    ),
    "research on a limited data set": Hidden(
        "note-040.md", "Haemoglobin A1c at six visits", RESEARCHER, session("quality/improve")
    ),
    "a program record without consent": Hidden(
        "note-020.md",
        "How is Mr Doyle's withdrawal from alcohol?",
        session("physician/treat", {10025}),
        session("patient/access", {10025}),
    ),
    "what a patient paid for, from billing": Hidden(
        "note-012.md",
        "When may Mr Achterberg row again?",
        session("billing/bill"),
        session("physician/treat", {10022}),
    ),
    "a confidential source from the patient": Hidden(
        "note-033.md",
        "Who telephoned about my tools and my dog?",
        session("patient/access", {10027}),
        session("therapist/treat", {10027}),
    ),
    "a reading that is not signed": Hidden(
        "note-007.md",
        "What is the ejection fraction of Ms Penfield?",
        session("physician/treat", {10021}),
        session("physician/treat", {10021}),
    ),
}


def sentences(text: str) -> list[str]:
    return [one for one in re.split(r"(?<=[.;?])\s+", text) if len(one) > 20]


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Engine]]:
    """Stores of all notes but one, each made once."""
    with ExitStack() as stack:

        @cache
        def engine_without(note: str) -> Engine:
            home = tmp_path_factory.mktemp("without")
            shutil.copytree(NOTES, home / "notes")
            (home / "notes" / note).unlink()
            return stack.enter_context(opened(home / "store", home / "notes"))

        yield engine_without


@pytest.mark.parametrize("case", HIDDEN.values(), ids=HIDDEN)
def test_what_is_hidden_reaches_neither_the_model_nor_the_caller(
    engine: Engine, without: Callable[[str], Engine], case: Hidden
) -> None:
    """No sentence and no name of the note; and without the note in the store, the same is said."""
    MODEL.given.clear()
    answer = engine.ask(case.question, case.hidden_from)
    assert bool(MODEL.given) != (answer.why == "NOTHING_ABOUT_IT"), (
        "the model was asked, or there is no such name"
    )
    shown = json.dumps(answer.to_json(), ensure_ascii=False) + repr(answer.withheld) + "\n".join(MODEL.given)
    shown += "\n".join(one.text for one in answer.passages) + answer.receipt.to_bytes().decode()
    assert case.note not in shown
    assert not [one for one in sentences(case.text) if one in shown]
    assert verify_receipt(answer.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    again = without(case.note).ask(case.question, case.hidden_from)
    ours, theirs = (one.to_json() | {"record": 0} for one in (answer, again))
    assert ours == theirs


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The notes at a time when all are signed."""
    with opened(tmp_path_factory.mktemp("later"), now=datetime(2100, 2, 1, tzinfo=UTC)) as engine:
        yield engine


@pytest.mark.parametrize("case", HIDDEN.values(), ids=HIDDEN)
def test_the_same_question_brings_the_note_to_sessions_that_may_read_it(later: Engine, case: Hidden) -> None:
    """So that the claim before could fail: asked by the right session, or later, the model is given it."""
    MODEL.given.clear()
    answer = later.ask(case.question, case.open_to)
    assert case.note in {one.accession_number for one in answer.passages}
    assert all(one in "\n".join(MODEL.given) for one in sentences(case.text))
    assert sentences(case.text)[0] in answer.text


@pytest.mark.parametrize("case", HIDDEN.values(), ids=HIDDEN)
def test_explain_says_nothing_to_those_who_may_not_know(engine: Engine, case: Hidden) -> None:
    """The answer is the same as for a note that was never written."""
    of_hidden = engine.explain(f"{case.note}:00000", case.hidden_from)
    of_none = engine.explain("note-999.md:00000", case.hidden_from)
    assert (of_hidden.outcome, of_hidden.why) == (Outcome.DECLINE, "NOTHING_TO_EXPLAIN")
    ours, theirs = (
        json.dumps(one.to_json() | {"record": 0}).replace(name, "NOTE")
        for one, name in ((of_hidden, case.note), (of_none, "note-999.md"))
    )
    assert ours == theirs
    assert verify_receipt(of_hidden.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


def test_the_privacy_officer_learns_why_and_never_what(engine: Engine) -> None:
    """The rule, its regulation, who could lift it, and the fact it rests on, but no word of the note."""
    told = engine.explain("note-031.md:00000", session("privacy_officer/audit"))
    (reason,) = told.reasons
    assert (told.why, reason.reason.code) == ("HIDDEN", "FORBIDDEN:PSYCHOTHERAPY")
    assert "164.508(a)(2)" in reason.regulation
    assert reason.lift == "the patient, by an authorization for these notes alone"
    assert "PSYCHOTHERAPY: note_type: 45 CFR 164.501 (psychotherapy notes)" in told.causes
    said = json.dumps(told.to_json(), ensure_ascii=False)
    assert not [one for one in sentences(ALL["note-031.md"].text) if one in said]


def test_the_privacy_officer_is_told_which_note_is_hidden_and_the_model_is_not(engine: Engine) -> None:
    """The officer gets its name, for a review; the model learns only kinds of notes."""
    MODEL.given.clear()
    answer = engine.ask("What did Mr Verran dream of the lathe?", session("privacy_officer/audit"))
    assert answer.withheld is not None
    assert "note-031.md:00000" in [hidden.chunk_id for hidden in answer.withheld.hidden]
    assert MODEL.given
    assert not [one for one in MODEL.given if "note-031" in one]


# -- what a session must bring


@pytest.mark.parametrize("listed", [None, frozenset()], ids=["no list", "an empty list"])
@pytest.mark.parametrize("cell", LISTED)
def test_a_session_without_its_patients_is_refused(
    engine: Engine, cell: str, listed: frozenset[int] | None
) -> None:
    """On record, before a search; patients that a request names for itself are not a treatment relationship."""
    MODEL.given.clear()
    for asking in (session(cell, listed), session(cell, listed).narrow(allow_entities={10021})):
        refused = engine.ask("How is Ms Penfield?", asking)
        assert (refused.outcome, refused.why) == (Outcome.REFUSE, "ALLOW_LIST_REQUIRED")
        assert not refused.passages
        assert verify_receipt(refused.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    assert not MODEL.given


@pytest.mark.parametrize("cell", ["nurse/audit", "researcher/treat", "billing/access", "patient/treat"])
def test_a_role_has_no_purpose_but_its_own(engine: Engine, cell: str) -> None:
    """A cell that is not in the table refuses, whatever the session states."""
    assert engine.ask("Anything?", session(cell, PATIENTS)).why == "NO_SUCH_CELL"


# -- what a note must state


UNSTATED = {
    "no kind": ("sensitivity: normal", "MISSING_FACT"),
    "no sensitivity": ("note_type: progress", "MISSING_FACT"),
    "an unknown kind": ("note_type: diary\nsensitivity: normal", "UNKNOWN_VALUE"),
    "an unknown sensitivity": ("note_type: progress\nsensitivity: low", "UNKNOWN_VALUE"),
    "two sensitivities": ("note_type: progress\nsensitivity: [normal, substance_use]", "UNKNOWN_VALUE"),
    "a fact misspelt": ("note_type: progress\nsensitivity: normal\npsychoterapy_note: true", "MISSPELT_FACT"),
    "neither yes nor no": ("note_type: progress\nsensitivity: normal\npart_two: perhaps", "UNKNOWN_VALUE"),
}


def test_a_note_that_does_not_state_what_it_is_or_whom_it_is_about_is_not_found(tmp_path: Path) -> None:
    """In quarantine it is found by no session, which the privacy officer is told; without a patient, by none of those
    that ask by patient."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, (front, _) in UNSTATED.items():
        about = 'entities: ["10021"]\nresearch: authorized'
        (folder / f"{name}.md").write_text(f"---\n{front}\n{about}\n---\nA note.\n")
    (folder / "about none.md").write_text("---\nnote_type: nursing\nsensitivity: normal\n---\nA note.\n")
    with opened(tmp_path / "store", folder) as engine:
        again = engine.ingest(folder)
        assert (again.quarantined, again.unchanged) == (Counter(code for _, code in UNSTATED.values()), 8)
        for cell in CELLS:
            listed = PATIENTS | THERAPISTS if cell in LISTED else {10021}
            assert found_by(engine, session(cell, listed)) == set()
        for name in UNSTATED:
            told = engine.explain(f"{name}.md:00000", session("privacy_officer/audit"))
            assert [one.reason.code for one in told.reasons] == ["QUARANTINE"], name
