"""Erasures and writers take turns, and what one of them left half done, the next one or the next opening finishes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Session
from carag.audit import DocumentErasure
from carag.backends import NativeBackend
from carag.engine.erasing import documents
from carag.engine.migration import copy_backend
from carag.errors import CaragError, InvalidArgument
from tests.engine.documents import Clock, Counting, document
from tests.engine.erasing.canaries import canary, found, kinds, marks
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import Receipt

TWO = {"basis": "GDPR_17_1_D", "by": "officer", "approver": "chief"}
SESSION = Session(role="employee", purpose="work", principals=["group:clerks"])


def opened(home: Path) -> Engine:
    return Engine.open(home, profile="generic", embedder=Counting())


def fail(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def on_record(engine: Engine) -> int:
    return sum(isinstance(engine.log.record(seq).event, DocumentErasure) for seq in range(engine.log.size))


def test_the_next_erasure_finishes_one_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are on record, so both are carried out."""
    with opened(tmp_path) as engine:
        engine.add([canary(1), canary(2), document("open")])
        with monkeypatch.context() as patch:
            patch.setattr("carag.store.erasures._erase", fail)
            with pytest.raises(CaragError):
                engine.erase([canary(1).id], **TWO)
        assert found(tmp_path, {1: marks(1)})
        engine.erase([canary(2).id], **TWO)
        assert on_record(engine) == 2
        assert not found(tmp_path, {number: marks(number) for number in (1, 2)})


def test_a_document_that_came_again_is_erased_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was added again after an erasure of it was on record and failed."""
    with opened(tmp_path) as engine:
        engine.add([canary(1), document("open")])
        with monkeypatch.context() as patch:
            patch.setattr("carag.store.erasures._erase", fail)
            with pytest.raises(CaragError):
                engine.erase([canary(1).id], **TWO)
        engine.add([canary(1, text="The applicant wexqu0001rd came again.")])
        assert "text" in kinds(found(tmp_path, {1: marks(1)}))
    with opened(tmp_path) as engine:
        assert not found(tmp_path, {1: marks(1)})
        assert {one.document_id for one in engine.retrieve("A loan?", SESSION).passages} == {"d/open"}


def test_of_two_who_erase_a_document_at_once_one_is_told_that_it_is_gone(tmp_path: Path) -> None:
    """There is one record for each document."""
    count = examples(40, least=8)
    with opened(tmp_path) as engine:
        engine.add(map(canary, range(count)))
        told: list[str] = []

        def erase(start: threading.Barrier, number: int) -> None:
            start.wait()
            try:
                engine.erase([canary(number).id], **TWO)
            except InvalidArgument as error:
                told.append(str(error))

        for number in range(count):
            start = threading.Barrier(2)
            both = [threading.Thread(target=erase, args=(start, number)) for _ in range(2)]
            for one in both:
                one.start()
            for one in both:
                one.join()
        assert (len(told), on_record(engine)) == (count, count)
        assert all("was erased before" in one for one in told)


def test_nothing_is_added_while_documents_are_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread gives meanwhile comes after the erasure, as a new document."""
    order: list[str] = []
    with opened(tmp_path) as engine:
        engine.add([canary(1)])
        append = engine.log.append

        def add() -> None:
            engine.add([canary(1, text="Again.")])
            order.append("added")

        adding = threading.Thread(target=add)

        def appended(event: object, **given: object) -> Receipt:
            receipt = append(event, **given)  # type: ignore[arg-type]
            if isinstance(event, DocumentErasure):
                adding.start()
                adding.join(0.2)
            return receipt

        monkeypatch.setattr(engine.log, "append", appended)
        engine.erase([canary(1).id], **TWO)
        order.append("erased")
        adding.join()
        assert order == ["erased", "added"]
        assert [one.text for one in engine.retrieve("A loan?", SESSION).passages] == ["Again."]


def test_answers_of_an_erasure_that_was_killed_after_the_tables_go_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an answer that was being put on record while the documents were withdrawn."""
    with opened(tmp_path) as engine:
        engine.add([canary(1), canary(2)])
        citing = documents.citing
        answer = engine.ask("Who asked for a loan of 7001 euros, question 1?", SESSION)
        assert answer.citations

        calls: list[object] = []

        def late(*given: Any) -> object:
            calls.append(given)
            if len(calls) == 3:  # once to be told, once before the tables, once after them
                raise KeyboardInterrupt
            return citing(*given[:3], range(0))

        with monkeypatch.context() as patch:
            patch.setattr(documents, "citing", late)
            with pytest.raises(KeyboardInterrupt):
                engine.erase([canary(1).id], **TWO)
        assert "answer" in engine.log.private.openings(answer.receipt.seq)
    with opened(tmp_path) as engine:
        assert "answer" not in engine.log.private.openings(answer.receipt.seq)


@pytest.mark.parametrize("ids", [None, 5, [["a"]]])
def test_ids_that_are_not_a_list_of_ids_are_refused(tmp_path: Path, ids: object) -> None:
    with opened(tmp_path) as engine, pytest.raises(InvalidArgument, match="want"):
        engine.erase(ids, **TWO)  # type: ignore[arg-type]


def test_no_file_of_rows_that_are_not_searched_holds_a_vector(tmp_path: Path) -> None:
    """The index of before a move to a backend, and a copy to move to; a copy in a backend is named as out of reach."""
    backend, wanted = NativeBackend(8), {number: marks(number) for number in (1, 2)}
    with opened(tmp_path) as engine:
        engine.add([canary(1), canary(2)])
    with Engine.open(tmp_path, embedder=Counting(), backend=backend) as engine:
        assert engine.erase([canary(1).id], **TWO).beyond == ("backups",)
        assert not found(tmp_path, {1: wanted[1]})
    copy_backend(tmp_path, backend, "native")
    assert (tmp_path / "index.copy").exists()
    with Engine.open(tmp_path, embedder=Counting(), backend=backend) as engine:
        engine.erase([canary(2).id], **TWO)
        assert not found(tmp_path, wanted)
        engine.add([canary(3)])
    with Engine.open(tmp_path, embedder=Counting(), backend="native") as engine:
        assert "backend-copy" in engine.erase([canary(3).id], **TWO).beyond


def test_the_number_of_an_erased_passage_is_nothing_to_explain(tmp_path: Path) -> None:
    """To roles that may know of what is hidden, and for the past, where it was open."""
    clock = Clock()
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), clock=clock) as engine:
        engine.add([canary(1)])
        clock.pass_(days=1)
        past = clock()
        clock.pass_(days=1)
        engine.erase([canary(1).id], **TWO)
        chunk = f"erased:{engine._collection.store.erasures.keys()[0]}"
        for known in (None, past):
            session = Session(role="compliance", purpose="review", known_at=known)
            assert engine.explain(chunk, session).why == "NOTHING_TO_EXPLAIN"
        assert engine.contents.label_history(chunk) is None
