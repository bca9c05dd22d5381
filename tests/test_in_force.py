"""What is in force is on record: tables, models and states, each once and again when it changes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.audit import Evaluation, Record, Verdict, verify_receipt
from carag.errors import InvalidArgument
from carag.policy import PolicyTable
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def records(engine: Engine, start: int = 0) -> list[Record]:
    return [engine._log.record(seq) for seq in range(start, engine._log.size)]


def open_store(home: Path, **settings: object) -> Engine:
    return Engine.open(home, embedder="wordllama", **settings)  # type: ignore[arg-type]


def test_a_new_store_begins_with_what_is_in_force(tmp_path: Path) -> None:
    """Table and models first; opened again, nothing is said twice."""
    for _ in range(2):
        with open_store(tmp_path) as engine:
            policy, models = (record.event for record in records(engine))
    assert (policy.why, models.why) == ("FIRST_TABLE", "FIRST_MODELS")  # type: ignore[union-attr]
    assert policy.table.hex() == engine._table.sha256  # type: ignore[union-attr]
    assert (models.gate, models.models.embed) == (390_000, "wordllama")  # type: ignore[union-attr]


def test_another_table_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is answered under it, with the one before; and back again, once more."""
    open_store(tmp_path).close()
    read = PolicyTable.from_toml
    with monkeypatch.context() as changed:
        changed.setattr(PolicyTable, "from_toml", lambda text: read(f"{text}\n# stricter\n"))
        with open_store(tmp_path) as engine:
            (first,) = records(engine, 2)
    with open_store(tmp_path) as engine:
        (second,) = records(engine, 3)
    assert [one.event.why for one in (first, second)] == ["TABLE_CHANGED"] * 2  # type: ignore[union-attr]
    assert first.event.table == second.event.before != second.event.table == first.event.before  # type: ignore[union-attr]


def test_other_models_and_another_gate_are_on_record(tmp_path: Path) -> None:
    """Whatever decides between answer and decline."""
    open_store(tmp_path).close()
    with open_store(tmp_path, gate=ConfidenceGate(0.25)) as engine:
        (change,) = records(engine, 2)
    event = change.event
    assert (event.gate, event.before_gate, event.why) == (250_000, 390_000, "MODELS_CHANGED")  # type: ignore[union-attr]


def test_a_state_no_document_explains_is_on_record(tmp_path: Path, small_corpus: Path) -> None:
    """Another key makes another root over the same labels: an index change, not an ingest, and once."""
    with open_store(tmp_path) as engine:
        engine.ingest(next(iter(sorted(small_corpus.glob("*.txt")))))
        before = engine._ingestor.snapshot
        engine._store.meta_set("state_key", "00" * 32)
    for _ in range(2):
        with open_store(tmp_path) as engine:
            (change,) = records(engine, 3)
            assert change.kind.value == "index"
            assert (change.event.before, change.event.snapshot) == (before, engine._ingestor.snapshot)  # type: ignore[union-attr]
            assert before != engine._ingestor.snapshot


def test_a_store_of_an_earlier_version_says_that_its_state_is_another(
    tmp_path: Path, small_corpus: Path
) -> None:
    """Its root was made another way; that no document came in shows from what it noted."""
    with open_store(tmp_path) as engine:
        engine.ingest(next(iter(sorted(small_corpus.glob("*.txt")))))
        notes = {
            "recorded_snapshot": "ab" * 32,
            "recorded_known": "",
            "snapshot_known": str(engine._store.known()),
        }
        engine._store.meta_update(notes)
    with open_store(tmp_path) as engine:
        (change,) = records(engine, 3)
        assert (change.kind.value, change.event.before) == ("index", b"\xab" * 32)  # type: ignore[union-attr]


@pytest.mark.parametrize("note", ["99", "-1", "two", "1"])
def test_a_note_that_leads_nowhere_costs_a_record_and_no_more(tmp_path: Path, note: str) -> None:
    """A number past the end, no number, or that of another kind."""
    with open_store(tmp_path) as engine:
        engine._store.meta_set("recorded_policy", note)
    with open_store(tmp_path) as engine:
        assert [one.event.why for one in records(engine, 2)] == ["FIRST_TABLE"]  # type: ignore[union-attr]


def test_an_evaluation_is_on_record(tmp_path: Path) -> None:
    """Suite, state, thresholds and result, proved like everything else."""
    digests = [hashlib.sha256(text).digest() for text in (b"suite", b"result")]
    with open_store(tmp_path, clock=lambda: NOW) as engine:
        receipt = engine.evaluated(
            "edgar", *digests, started=NOW, passed=True, thresholds={"cvr_millionths": 0, "recall": 990_000}
        )
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        event = Record.parse(receipt.record).event
        assert isinstance(event, Evaluation)
        assert (event.snapshot, event.thresholds["recall"]) == (engine._ingestor.snapshot, 990_000)
        with pytest.raises(InvalidArgument, match="threshold"):
            engine.evaluated("edgar", *digests, started=NOW, passed=True, thresholds={"recall": 0.99})  # type: ignore[dict-item]
