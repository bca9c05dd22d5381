"""An answer that was generated elsewhere goes on record under the retrieval it was made from, and under no other."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Retrieval, Session
from carag.audit import Access, Record, RecordKind, Verdict, verify_receipt
from carag.audit.tlog.merkle import leaf_hash
from carag.engine.recorder import shortened
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.errors import AuditUnavailable, InvalidArgument
from carag.policy import PolicyTable
from tests.engine.documents import Clock, Counting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSION = Session(role="buy_side", purpose="invest", subject="analyst 7", restricted=frozenset({3}))
QUESTION = "When do branches report?"
ANSWER = "Branches report by the fifth [2], monthly [1, 2]."
DOCUMENTS = [
    Document(id=f"d/{n}", text=f"Branches report on day {n}.", bits=(), entities=[n]) for n in range(1, 5)
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", embedder=Counting(), clock=Clock()) as opened:
        opened.add(DOCUMENTS)
        yield opened


@pytest.fixture
def retrieval(engine: Engine) -> Retrieval:
    return engine.retrieve(QUESTION, SESSION, 3)


def test_it_verifies_and_binds_the_answer_to_what_was_retrieved(engine: Engine, retrieval: Retrieval) -> None:
    """Question, person, policy, state and passages are the retrieval's; the answer is a salted commitment."""
    receipt = engine.record_answer(retrieval, ANSWER, model="gpt-elsewhere")
    checked = verify_receipt(receipt.to_bytes(), engine.vkey)
    assert checked.verdict is Verdict.VERIFIED
    assert {"query": QUESTION, "answer": ANSWER, "subject": "analyst 7"} == checked.values
    assert () == checked.unproved
    record, before = Record.parse(receipt.record), Record.parse(retrieval.receipt.record)
    event, asked = record.event, before.event
    assert isinstance(event, Access)
    assert isinstance(asked, Access)
    assert (RecordKind.QUERY, Outcome.ANSWER, "ANSWERED_ELSEWHERE") == (event.kind, event.outcome, event.why)
    for same in ("role", "purpose", "source", "as_of", "policy", "index", "intents", "started"):
        assert getattr(event, same) == getattr(asked, same)
    assert [hit.digest for hit in before.hits] == [hit.digest for hit in record.hits]
    assert [True, True, False] == [hit.cited for hit in record.hits]
    assert replay(record, PolicyTable.shipped()).verdict is ReplayVerdict.MATCHES
    assert b"fifth" not in receipt.record
    assert b"analyst" not in receipt.record


def test_it_names_the_retrievals_own_record(engine: Engine, retrieval: Retrieval) -> None:
    """By number and hash, so that an auditor finds it in the log."""
    receipt = engine.record_answer(retrieval, ANSWER, model="gpt-elsewhere")
    models = Record.parse(receipt.record).event.models  # type: ignore[union-attr]
    hashed = shortened(leaf_hash(retrieval.receipt.record).hex())
    assert ("counting", "gpt-elsewhere") == (models.embed, models.generate)
    assert f"record {retrieval.receipt.seq} {hashed}" == models.prompt


def test_several_answers_may_come_of_one_retrieval_also_after_the_store_changed(
    engine: Engine, retrieval: Retrieval
) -> None:
    """What was retrieved is what was answered from."""
    first = engine.record_answer(retrieval, ANSWER, model="m")
    engine.remove(["d/1", "d/2"])
    second = engine.record_answer(retrieval, "Nothing is cited, and [9] does not exist.", model="m")
    assert first.seq < second.seq
    for receipt in (first, second):
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    assert not any(hit.cited for hit in Record.parse(second.record).hits)


def test_a_question_about_the_past_keeps_its_time(engine: Engine) -> None:
    past = Session(role="buy_side", purpose="invest", as_of=datetime(2025, 3, 1, tzinfo=UTC))
    retrieval = engine.retrieve(QUESTION, past)
    receipt = engine.record_answer(retrieval, ANSWER, model="m")
    assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    asked, event = (Record.parse(one.record).event for one in (retrieval.receipt, receipt))
    assert (asked.as_of, asked.index) == (event.as_of, event.index)  # type: ignore[union-attr]


def test_the_log_opens_again_and_is_whole(tmp_path: Path) -> None:
    """The record of an answer from an earlier state does not mean that the labels were put back."""
    with Engine.open(tmp_path / "store", embedder=Counting()) as engine:
        engine.add(DOCUMENTS)
        retrieval = engine.retrieve(QUESTION, SESSION)
        engine.remove(["d/1"])
        engine.record_answer(retrieval, ANSWER, model="m")
        engine._log.verify()
    with Engine.open(tmp_path / "store", embedder=Counting()) as engine:
        assert 2 == len(engine.retrieve(QUESTION, SESSION).passages)


# --- what is refused, and leaves no record ---


def refused(engine: Engine, retrieval: Any, match: str, text: Any = ANSWER, model: Any = "m") -> None:
    size = engine._log.size
    with pytest.raises(InvalidArgument, match=match):
        engine.record_answer(retrieval, text, model=model)
    assert size == engine._log.size


def test_a_retrieval_of_another_store_is_refused(engine: Engine, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "other", embedder=Counting()) as other:
        other.add(DOCUMENTS)
        refused(engine, other.retrieve(QUESTION, SESSION, 3), "not made by this engine")


def test_a_copy_from_elsewhere_is_refused(engine: Engine, retrieval: Retrieval) -> None:
    """What went through a file or another process may have been altered there."""
    for copied in (copy.deepcopy(retrieval), pickle.loads(pickle.dumps(retrieval))):  # noqa: S301
        refused(engine, copied, "not made by this engine")


def test_an_altered_retrieval_is_refused(engine: Engine, retrieval: Retrieval) -> None:
    """Other passages, another text, another receipt, another record in the receipt."""
    other = engine.retrieve("Another question?", SESSION, 3)
    first, *rest = retrieval.passages
    receipt = retrieval.receipt
    for altered in (
        replace(retrieval, passages=tuple(rest)),
        replace(retrieval, passages=(replace(first, text="Invented."), *rest)),
        replace(retrieval, passages=tuple(reversed(retrieval.passages))),
        replace(retrieval, receipt=other.receipt),
        replace(retrieval, receipt=replace(receipt, record=receipt.record.replace(b"buy_side", b"dpo_side"))),
        replace(retrieval, outcome=Outcome.DECLINE),
    ):
        refused(engine, altered, "altered")
    refused(engine, replace(retrieval, asked=None), "not made by this engine")


def test_a_retrieval_that_the_log_does_not_hold_is_refused(engine: Engine, retrieval: Retrieval) -> None:
    """Even if what the engine keeps with it was altered as well."""
    receipt = retrieval.receipt
    for forged in (
        replace(receipt, record=receipt.record.replace(b"buy_side", b"dpo_side")),
        replace(receipt, seq=receipt.seq + 99),
        replace(receipt, seq=0),
        replace(receipt, proof=receipt.proof.replace("index ", "index 1")),
        replace(receipt, passages=(("d/9:00000", "Invented."), *receipt.passages[1:])),
    ):
        asked = replace(retrieval.asked, receipt=forged)  # type: ignore[type-var]
        refused(engine, replace(retrieval, receipt=forged, asked=asked), "receipt of this retrieval")


def test_what_found_nothing_has_no_answer(engine: Engine) -> None:
    nothing = engine.retrieve(
        QUESTION, Session(role="buy_side", purpose="invest", allow_entities=frozenset({9}))
    )
    assert nothing.outcome is Outcome.DECLINE
    refused(engine, nothing, "has no passages")
    refused(
        engine, engine.retrieve(QUESTION, Session(role="wizard", purpose="invest")), "not made by this engine"
    )


def test_an_answer_of_the_engine_itself_is_on_record_already(engine: Engine) -> None:
    refused(engine, engine.ask(QUESTION, SESSION), "on record already")
    refused(engine, None, "Engine.retrieve")


@pytest.mark.parametrize("text", ["", " \n", None, 7, "a\0", "\ud800"], ids=repr)
def test_an_answer_is_text(engine: Engine, retrieval: Retrieval, text: Any) -> None:
    refused(engine, retrieval, "answer", text=text)


@pytest.mark.parametrize("model", ["", None, "a\n", "m" * 201], ids=["empty", "None", "control", "long"])
def test_a_model_has_a_name(engine: Engine, retrieval: Retrieval, model: Any) -> None:
    refused(engine, retrieval, "model", model=model)


def test_without_a_writable_log_there_is_no_receipt(
    engine: Engine, retrieval: Retrieval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(engine._log._backend, "append", full)
    with pytest.raises(AuditUnavailable):
        engine.record_answer(retrieval, ANSWER, model="m")
