"""A follow-up takes over words of its own session's earlier questions, on record, and nothing else."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Outcome, Session
from carag.audit import Basis, Verdict, erase, verify_receipt
from carag.errors import InvalidArgument, ModelUnavailable
from carag.limits import MAX_QUESTION
from carag.policy import Profile
from carag.retrieval import ConfidenceGate
from carag.retrieval.reading.follow_up import carried
from tests.engine.documents import Clock, Counting
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

CELLS = [(cell.role, cell.purpose) for cell in Profile.open("generic").table.cells]
ANA = Session(role="compliance", purpose="review", subject="ana", conversation="c")
ASKED = "How much did Acme Corp pay in dividends in 2020?"
FOLLOW = "And the year before?"
READ = "How much did Acme Corp pay in dividends in 2019?"
QUESTIONS = [
    ASKED,
    "What does the Halden supply agreement say on notice in 2021?",
    "What is the limit for rural banks?",
    FOLLOW,
    "What about Zenith Ltd?",
    "and for urban banks?",
    "Who signed it?",
    "Since when?",
    "Did it grow?",
    "Thanks, that helps.",
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path / "store") as one:
        one.add([memo("acme", text="Acme Corp paid dividends in 2020 and in 2019.")])
        yield one


def opened(store: Path, clock: Clock | None = None) -> Engine:
    return Engine.open(
        store, profile="generic", embedder=Counting(), clock=clock or Clock(), gate=ConfidenceGate(-1)
    )


def memo(name: str, **changes: Any) -> Document:
    return Document(**{"id": name, "text": f"Branches report, says {name}.", "bits": (), **changes})


def read_as(engine: Engine, question: str, session: Session = ANA) -> str:
    """What a question was read as: the question itself if nothing was taken over."""
    return engine.ask(question, session).understood.partition("read as: ")[2] or question


# --- laws ---

OTHERS: list[dict[str, Any]] = [
    {"subject": "bo"},
    {"subject": None},
    {"role": CELLS[0][0], "purpose": CELLS[0][1]},
    {"conversation": "C"},
    {"conversation": None},
]
DIALOGUES = st.lists(st.tuples(st.sampled_from([{}, *OTHERS]), st.sampled_from(QUESTIONS)), max_size=8)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine, Iterator[int]]]:
    """Two stores, of which the first has a hidden document, and the numbers of dialogues."""
    with ExitStack() as stack:
        home = tmp_path_factory.mktemp("twins")
        mixed, alone = (stack.enter_context(opened(home / name)) for name in ("mixed", "alone"))
        for one in (mixed, alone):
            one.add([memo("acme", text="Acme Corp paid dividends in 2020.")])
        mixed.add([memo("secret", text="Zenith Ltd and Acme Corp, in 2019.", allow=["user:bo"])])
        yield mixed, alone, count()


@settings(max_examples=examples(500), deadline=None)
@given(turns=DIALOGUES, asked=st.sampled_from(QUESTIONS))
def test_only_the_turns_of_the_own_session_are_read(
    twins: tuple[Engine, Engine, Iterator[int]], turns: list[tuple[dict[str, Any], str]], asked: str
) -> None:
    """The oracle is the plain list of what the session asked; other turns and hidden documents change nothing."""
    mixed, alone, numbers = twins
    session = replace(ANA, subject=f"ana-{next(numbers)}")
    own: list[str] = []
    for changes, question in turns:
        mixed.retrieve(question, replace(session, **changes))
        if not changes:
            alone.retrieve(question, session)
            own.append(question)
    found, twin = (one.ask(asked, session) for one in (mixed, alone))
    expected = carried(asked, own)
    assert found.understood.endswith(expected.described())
    assert bool(expected.taken) == ("taken over: " in found.understood)
    assert (found.outcome, found.text, found.understood) == (twin.outcome, twin.text, twin.understood)
    assert [one.chunk_id for one in found.passages] == [one.chunk_id for one in twin.passages]


def told(engine: Engine, question: str, session: Session, where: dict[str, Any] | None) -> dict[str, Any]:
    """What a record says about cell, masks, instant and narrowing, without times and numbers."""
    record = json.loads(engine.ask(question, session, where=where).receipt.record)
    return {name: record.get(name) for name in ("role", "purpose", "policy", "as_of", "where", "day")}


@settings(max_examples=examples(50), deadline=None)
@given(
    before=st.sampled_from([None, {"department": "risk"}]),
    now=st.sampled_from([None, {"department": "legal"}]),
    entity=st.sampled_from([None, frozenset({7})]),
)
def test_policy_where_and_instant_are_those_of_the_own_request(
    before: dict[str, str] | None, now: dict[str, str] | None, entity: frozenset[int] | None
) -> None:
    """They are as if the question stood alone, whatever the earlier turn was narrowed to."""
    with TemporaryDirectory() as home, opened(Path(home)) as engine:
        engine.add([memo("acme", metadata={"department": "risk"})])
        engine.ask(ASKED, replace(ANA, allow_entities=entity, watched=frozenset({9})), where=before)
        follow = told(engine, FOLLOW, ANA, now)
        stands_alone = told(engine, READ, replace(ANA, conversation=None), now)
    assert {**follow, "as_of": 0} == {**stands_alone, "as_of": 0}
    assert stands_alone["as_of"] - follow["as_of"] in (0, 1)  # the clock has moved by seconds


# --- on record ---


def test_the_receipt_proves_both_what_was_asked_and_what_it_was_read_as(engine: Engine) -> None:
    engine.ask(ASKED, ANA)
    answer = engine.ask(FOLLOW, ANA)
    assert answer.understood.endswith(
        f"taken over: Acme Corp; pay in dividends; 2019 (the year before 2020); read as: {READ}"
    )
    checked = verify_receipt(answer.receipt.to_bytes(), engine.vkey)
    assert checked.verdict is Verdict.VERIFIED
    opened_ = answer.receipt.openings
    assert (opened_["query"].value, opened_["reading"].value) == (FOLLOW, answer.understood)
    assert "conversation" not in opened_


def test_it_survives_a_restart_and_a_retrieval_counts_as_a_turn(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as engine:
        engine.add([memo("acme")])
        engine.retrieve(ASKED, ANA)
    with opened(tmp_path, clock) as engine:
        assert engine.retrieve(FOLLOW, ANA).understood.endswith(READ)


def test_an_answer_recorded_for_a_retrieval_is_not_a_second_turn(engine: Engine) -> None:
    engine.retrieve(ASKED, ANA)
    found = engine.retrieve(FOLLOW, ANA)
    engine.record_answer(found, "Five million [1].", model="mine")
    assert read_as(engine, FOLLOW) == READ.replace("2019", "2018")


# --- where a conversation ends ---


def test_it_ends_after_two_silent_hours_and_after_eight_turns(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as engine:
        engine.add([memo("acme")])
        engine.ask(ASKED, ANA)
        clock.pass_(minutes=119)
        assert read_as(engine, FOLLOW) == READ
        clock.pass_(minutes=119)
        assert read_as(engine, FOLLOW) == READ.replace("2019", "2018")
        clock.pass_(minutes=121)
        assert read_as(engine, FOLLOW) == FOLLOW
        engine.ask(ASKED, ANA)
        for _ in range(7):
            engine.ask("Thanks, that helps.", ANA)
        assert read_as(engine, FOLLOW) == READ
        assert read_as(engine, "Since when?") == "Since when?"


@pytest.mark.parametrize("other", OTHERS)
def test_a_guessed_id_gives_nothing(engine: Engine, other: dict[str, Any]) -> None:
    engine.ask(ASKED, ANA)
    session = replace(ANA, **other)
    assert read_as(engine, FOLLOW, session) == FOLLOW
    assert engine.requests.turns(session)[:-1] == ()
    assert read_as(engine, FOLLOW) == READ


@pytest.mark.parametrize("which", ["record", "subject"])
def test_an_erased_turn_is_gone(engine: Engine, which: str) -> None:
    asked = engine.ask(ASKED, ANA)
    wanted: dict[str, Any] = {"records": [asked.receipt.seq]} if which == "record" else {"subject": "ana"}
    erase(engine.log, actor="dpo", approver="cco", basis=Basis.UNLAWFUL, **wanted)
    assert read_as(engine, FOLLOW) == FOLLOW


def test_a_refused_or_failed_turn_does_not_count(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So asking a follow-up again, after an error, is not a second step."""
    stranger = replace(ANA, role="stranger")
    assert engine.ask(ASKED, stranger).outcome is Outcome.REFUSE
    assert engine.requests.turns(stranger) == ()
    engine.ask(ASKED, ANA)
    monkeypatch.setattr(engine.requests, "_search", _fails)
    with pytest.raises(ModelUnavailable):
        engine.ask(FOLLOW, ANA)
    monkeypatch.undo()
    assert read_as(engine, FOLLOW) == READ


def _fails(*_: object) -> None:
    raise ModelUnavailable("the model does not answer; ask again later")


# --- traps ---


@pytest.mark.parametrize("id_", ["'; DROP TABLE value; --", "чат 7", "%", "_", "a\u200bb", "x" * 200])
def test_an_id_with_odd_characters_is_itself_or_is_refused(engine: Engine, id_: str) -> None:
    try:
        odd = replace(ANA, conversation=id_)
    except InvalidArgument:
        assert not id_.isprintable()
        return
    engine.ask(ASKED, ANA)
    assert read_as(engine, FOLLOW, odd) == FOLLOW
    engine.ask(ASKED, odd)
    assert read_as(engine, FOLLOW, odd) == READ


def test_a_long_turn_is_refused_or_leaned_on_by_nothing(engine: Engine) -> None:
    with pytest.raises(InvalidArgument):
        engine.ask("Acme " * 2_000, ANA)
    engine.ask(f"{ASKED} {'dividends ' * 800}"[:MAX_QUESTION], ANA)
    assert read_as(engine, FOLLOW) == FOLLOW


def test_two_threads_ask_in_two_conversations(engine: Engine) -> None:
    """Each follow-up is read after its own conversation's question."""
    found: dict[str, str] = {}

    def talk(name: str, year: int) -> None:
        session = replace(ANA, conversation=name)
        engine.ask(ASKED.replace("2020", str(year)), session)
        found[name] = read_as(engine, FOLLOW, session)

    threads = [threading.Thread(target=talk, args=(f"c{year}", year)) for year in (2011, 2016)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {f"c{year}": READ.replace("2019", str(year - 1)) for year in (2011, 2016)}


def test_words_that_tighten_still_do_when_they_are_taken_over(tmp_path: Path) -> None:
    """A follow-up is under every intent that its words would have, asked at once."""
    session = replace(ANA, purpose="surveil")
    with Engine.open(tmp_path, embedder=Counting(), clock=Clock(), gate=ConfidenceGate(-1)) as engine:
        first = engine.ask("What was the audited revenue of Acme Corp in 2020?", session)
        follow = engine.ask("And the year before?", session)
    intents = [json.loads(one.receipt.record).get("intents", []) for one in (first, follow)]
    assert "2019" in follow.understood
    assert intents == [["AUDITED"], ["AUDITED"]]
