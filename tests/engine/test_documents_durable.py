"""Adding documents is on record before they can be found, and a killed call is finished by the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine
from carag.audit import Ingest, Record
from carag.engine.state import StoreState
from carag.errors import AuditUnavailable
from tests.engine.documents import COMPLIANCE, QUESTION, Clock, Counting, at, document, ids
from tests.warm import Child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def last_record(engine: Engine) -> Record:
    return engine._log.record(engine._log.size - 1)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", embedder=Counting(), clock=Clock()) as opened:
        yield opened


def test_each_call_is_one_record(engine: Engine) -> None:
    size = engine._log.size
    report = engine.add([document(n) for n in range(5)])
    assert size + 1 == engine._log.size
    event = last_record(engine).event
    assert isinstance(event, Ingest)
    assert ("DOCUMENTS_ADDED", 5, report.chunks) == (event.why, event.documents, event.chunks)
    assert engine._collection.state.root == event.snapshot


def test_a_change_that_cannot_be_recorded_is_recorded_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise AuditUnavailable("the disk is full")

    with Engine.open(tmp_path / "store", embedder=Counting()) as engine, monkeypatch.context() as broken:
        broken.setattr(engine._log._backend, "append", full)
        with pytest.raises(AuditUnavailable):
            engine.add([document()])
        with pytest.raises(AuditUnavailable):
            engine.retrieve(QUESTION, COMPLIANCE)
    with Engine.open(tmp_path / "store", embedder=Counting()) as engine:
        event = last_record(engine).event
        assert ("INGEST_RESUMED", engine._collection.state.root) == (event.why, event.snapshot)  # type: ignore[union-attr]
        assert {"d/0"} == ids(engine)


CHILD = """
import sys, carag, carag.engine.writer
from tests.engine.documents import Counting
from tests.engine.test_documents_durable import many
carag.engine.writer._EMBED_BATCH = 4  # store often, so that a kill has something to tear
class Telling(Counting):
    def embed_documents(self, texts):
        print("embedded", flush=True)
        return super().embed_documents(texts)
with carag.Engine.open(sys.argv[1], embedder=Telling()) as engine:
    for documents in many():
        engine.add(documents)
        print("added", flush=True)
"""


def many() -> list[list[Document]]:
    """A first call, and a second that changes, supersedes and adds."""
    first = [document(n, public_at=at(n)) for n in range(40)]
    second = [document(n, text=f"Another text {n}.", public_at=at(n)) for n in range(0, 40, 3)]
    third = [document(40 + n, public_at=at(40), supersedes=f"d/{n}") for n in range(20)]
    return [first, second + third]


@pytest.mark.parametrize("after", [4, 14, *(pytest.param(n, marks=pytest.mark.release) for n in (1, 11, 19))])
def test_a_killed_call_is_finished_by_the_next(tmp_path: Path, after: int) -> None:
    """kill -9 at any batch; made again, the calls leave what undisturbed ones leave, and nothing twice."""
    with Child(CHILD, tmp_path / "store") as child:
        steps = [child.stdout.readline().strip() for _ in range(after)]
        child.kill()
    assert steps[-1] in {"embedded", "added"}
    left = []
    for name in ("store", "undisturbed"):
        with Engine.open(tmp_path / name, embedder=Counting()) as engine:
            if engine._collection.store.epoch:
                assert (
                    engine._collection.index.keys().tolist()
                    == engine._collection.store.labels.open().tolist()
                )
            # Once the second call began, the first is not made again: it would undo what the second changed.
            calls = many()[1:] if "added" in steps else many()
            for documents in calls if name == "store" else many():
                engine.add(documents)
            store = engine._collection.store
            assert engine._collection.index.keys().tolist() == store.labels.open().tolist()
            again = StoreState(store, tmp_path / f"{name}.state")
            again.refresh()
            assert again.root == engine._collection.state.root
            again.close()
            assert engine._configuration.is_recorded(engine._collection.state)
            left.append((store.documents.counts(), list(store.labels.snapshot())))
    assert left[0] == left[1]
