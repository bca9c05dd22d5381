"""What stays of an erased document proves the past: receipts verify, roots are as before, replays name what is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import Access, DocumentErasure, Label, verify_receipt
from carag.audit.records.custody import salted_id
from carag.errors import StoreLocked
from tests.engine.documents import Clock, Counting, document
from tests.engine.erasing.canaries import canary, found, marks
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from carag.audit import Receipt
    from carag.retrieval import Passage

SESSION = Session(role="employee", purpose="work", principals=["group:clerks"])
QUESTIONS = examples(1000, least=40)
COUNT = examples(300, least=30)
ERASED = range(0, COUNT, 3)


def question(number: int) -> str:
    return f"Who asked for a loan of {7000 + number % COUNT} euros, question {number}?"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[Receipt]]]:
    """A store after erasures, and the receipts of the questions before them."""
    clock = Clock()
    with Engine.open(
        tmp_path_factory.mktemp("store"), profile="generic", embedder=Counting(), clock=clock
    ) as engine:
        engine.add(map(canary, range(COUNT)))
        receipts = [engine.retrieve(question(number), SESSION, 8).receipt for number in range(QUESTIONS)]
        clock.pass_(days=1)
        for number in ERASED:
            engine.erase([canary(number).id], basis="GDPR_17_1_D", by="officer", approver="chief")
        engine.add([document("later")])
        yield engine, receipts


def test_earlier_receipts_verify(asked: tuple[Engine, list[Receipt]]) -> None:
    engine, receipts = asked
    assert {verify_receipt(one.to_bytes(), engine.vkey).verdict.value for one in receipts} == {"verified"}


def test_every_hit_of_an_earlier_question_is_proved_or_named_erased(
    asked: tuple[Engine, list[Receipt]],
) -> None:
    """Those that are left, under the very root that the record names; the others with basis, time and record."""
    engine, receipts = asked
    collection, gone, proved = engine._collection, 0, 0
    for receipt in receipts:
        record = engine.log.record(receipt.seq)
        event = record.event
        assert isinstance(event, Access)
        assert event.index is not None
        assert event.index.known_at is not None
        chunks = collection.state.chunk_ids(record)
        erased = collection.store.erasures.of_digests(hit.digest for hit in record.hits)
        left: list[Label] = []
        for hit, chunk in zip(record.hits, chunks, strict=True):
            assert chunk is not None
            assert chunk.startswith("erased:") is (hit.digest in erased)
            if hit.digest not in erased:
                one = collection.store.chunk(chunk, known_at=event.index.known_at)
                shared = one.audience.text
                left.append(Label(chunk, one.text_sha256, one.word, one.public_at, one.expires_at, shared))
        for one in erased.values():
            by = engine.log.record(one.record).event
            assert isinstance(by, DocumentErasure)
            assert one.id_hash in by.ids
            assert (one.basis, one.erased_at > event.index.known_at) == ("GDPR_17_1_D", True)
        root, proofs = collection.state.prove(left, event.index.known_at)
        assert root == event.index.snapshot
        assert len(proofs) == len(left)
        gone, proved = gone + len(erased), proved + len(left)
    assert gone > QUESTIONS
    assert proved > QUESTIONS


def test_a_past_question_is_answered_without_what_was_erased(asked: tuple[Engine, list[Receipt]]) -> None:
    """It gives as many as were asked for, in the order of before, and its receipt verifies."""
    engine, receipts = asked
    known = datetime.fromtimestamp(engine.log.record(receipts[0].seq).committed / 1e6, UTC)
    past = Session(role="compliance", purpose="review", principals=["group:clerks"], known_at=known)
    here = {canary(number).id for number in range(COUNT) if number not in ERASED}
    found = engine.retrieve(question(3), past, COUNT)
    assert {one.document_id for one in found.passages} == here
    assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict.value == "verified"


def test_the_record_names_a_document_to_those_who_have_its_salt(asked: tuple[Engine, list[Receipt]]) -> None:
    engine, _ = asked
    numbers = [
        seq for seq in range(engine.log.size) if isinstance(engine.log.record(seq).event, DocumentErasure)
    ]
    assert len(numbers) == len(ERASED)
    for seq, number in zip(numbers, ERASED, strict=True):
        event = engine.log.record(seq).event
        assert isinstance(event, DocumentErasure)
        assert (event.passages, event.answers, event.places) == (1, 0, ("corpus.db", "index", "words"))
        targets = engine.log.private.openings(seq)["targets"].value
        assert f'["{canary(number).id}", "' in targets
        salt = bytes.fromhex(targets.split('"')[3])
        assert event.ids == (salted_id(canary(number).id, salt),)
        assert event.before != event.after


def test_answers_that_cite_it_go_and_those_under_hold_stay(tmp_path: Path) -> None:
    """On record, each; the question stays, since it is not the document's."""
    from carag.audit import place_hold

    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([canary(1), canary(2)])
        answers = [engine.ask(question(1), SESSION) for _ in range(3)]
        cited = {one.document_id for answer in answers for one in answer.citations}
        assert cited >= {canary(1).id}
        seqs = [answer.receipt.seq for answer in answers]
        place_hold(engine.log, "MATTER-1", actor="counsel", records=(seqs[0], seqs[0]))
        done = engine.erase([canary(1).id], basis="GDPR_17_1_D", by="officer", approver="chief")
        assert (done.answers, done.kept) == (tuple(seqs[1:]), (seqs[0],))
        assert "answer" in engine.log.private.openings(seqs[0])
        assert [set(engine.log.private.erased_by(seq)) for seq in seqs[1:]] == [{"answer"}, {"answer"}]
        assert all("query" in engine.log.private.openings(seq) for seq in seqs)
        later = engine.erase([canary(2).id], basis="GDPR_17_1_D", by="officer", approver="chief")
        assert set(later.answers) <= {seqs[0]}


class Slow:
    """A generator that quotes what it was given, and erases it before it has written a word."""

    name, remote, fingerprint = "slow", False, "1"

    def __init__(self) -> None:
        self.engine: Engine | None = None

    def __call__(self, question: str, passages: Sequence[Passage], withheld: object) -> str:
        if self.engine is not None:
            engine, self.engine = self.engine, None
            engine.erase([passages[0].document_id], basis="GDPR_17_1_D", by="officer", approver="chief")
        return f"{passages[0].text} [1]"


def test_nothing_that_was_erased_meanwhile_is_shown_or_put_on_record(tmp_path: Path) -> None:
    """An answer that was being written, and one that was generated elsewhere."""
    slow = Slow()
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), generator=slow) as engine:
        engine.add([canary(1), canary(2), canary(3)])
        assert engine.ask(question(1), SESSION).citations
        before = engine.retrieve(question(2), SESSION)
        slow.engine = engine
        with pytest.raises(StoreLocked, match="was erased meanwhile"):
            engine.ask(question(1), SESSION)
        engine.erase([before.passages[0].document_id], basis="GDPR_17_1_D", by="officer", approver="chief")
        with pytest.raises(StoreLocked, match="was erased meanwhile"):
            engine.record_answer(before, "As the file says [1].", model="elsewhere")
        last = engine.log.record(engine.log.size - 1)
        assert not last.hits
        assert engine.ask(question(3), SESSION).citations
    wanted = {number: marks(number) for number in (1, 2, 3)}
    assert {number for number, _ in found(tmp_path, wanted)} < {*wanted}


def test_a_past_question_that_was_asked_before_is_answered_without_it(tmp_path: Path) -> None:
    """At the same instant, by an engine that still has the rows of then."""
    clock = Clock()
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), clock=clock) as engine:
        engine.add([canary(1), canary(2)])
        clock.pass_(days=1)
        past = Session(role="compliance", purpose="review", principals=["group:clerks"], known_at=clock())
        clock.pass_(days=1)
        engine.add([canary(3)])
        assert len(engine.retrieve(question(1), past).passages) == 2
        engine.erase([canary(1).id], basis="GDPR_17_1_D", by="officer", approver="chief")
        assert [one.document_id for one in engine.retrieve(question(1), past).passages] == [canary(2).id]
