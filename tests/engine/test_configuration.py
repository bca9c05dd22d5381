"""Policy table, models and labels are on record: each once, and again when it changes."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import Evaluation, IndexChange, Record, Verdict, verify_receipt
from carag.errors import CorruptFile, InvalidArgument
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def records(engine: Engine, start: int = 0) -> list[Record]:
    return [engine._log.record(seq) for seq in range(start, engine._log.size)]


def open_store(home: Path, **settings: object) -> Engine:
    return Engine.open(home / "store", embedder="wordllama", **settings)  # type: ignore[arg-type]


@pytest.fixture
def amended(tmp_path: Path, small_corpus: Path) -> Path:
    """The filings of one company, an annual report and its amendment among them."""
    filings = tmp_path / "amended"
    filings.mkdir()
    for file in small_corpus.glob("9990000102-*.txt"):
        shutil.copy(file, filings)
    return filings


def test_a_new_store_begins_with_what_is_in_force(tmp_path: Path) -> None:
    """Table and models first; opened again, nothing is said twice."""
    for _ in range(2):
        with open_store(tmp_path) as engine:
            policy, models = (record.event for record in records(engine))
    assert (policy.why, models.why) == ("FIRST_TABLE", "FIRST_MODELS")  # type: ignore[union-attr]
    assert policy.table.hex() == engine.profile.table.sha256  # type: ignore[union-attr]
    assert (models.gate, models.models.embed) == (390_000, "wordllama")  # type: ignore[union-attr]


def test_other_models_and_another_gate_are_on_record(tmp_path: Path) -> None:
    """Whatever decides between answer and decline."""
    open_store(tmp_path).close()
    with open_store(tmp_path, gate=ConfidenceGate(0.25)) as engine:
        (change,) = records(engine, 2)
    event = change.event
    assert (event.gate, event.before_gate, event.why) == (250_000, 390_000, "MODELS_CHANGED")  # type: ignore[union-attr]


LOOSENED = "UPDATE labels SET word = word & ~0x80000"
OTHER_LABELS: dict[str, str] = {
    "a word loosened": LOOSENED,
    "a label opened earlier": "UPDATE labels SET valid_from = valid_from - 1",
    "a label gone": "DELETE FROM labels WHERE label = (SELECT max(label) FROM labels WHERE known_to IS NULL)",
    "the key of the seals": "UPDATE meta SET value = hex(zeroblob(32)) WHERE name = 'state_key'",
    "and the note of the state": "; ".join((LOOSENED, "DELETE FROM meta WHERE name = 'recorded_snapshot'")),
    "and the note of its instant": "; ".join(
        (LOOSENED, "UPDATE meta SET value = '7' WHERE name = 'recorded_known'")
    ),
}


def altered(home: Path, script: str) -> None:
    """Change the store outside, and take away what is derived from it."""
    with closing(sqlite3.connect(home / "store" / "corpus.db")) as sql:
        sql.executescript(script)
    for derived in ("index.carag", "index.state"):
        (home / "store" / derived).unlink()


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        *((script, False) for script in OTHER_LABELS.values()),
        (OTHER_LABELS["and the note of its instant"], True),
        *(
            pytest.param(script, True, marks=pytest.mark.release)
            for name, script in OTHER_LABELS.items()
            if name != "and the note of its instant"
        ),
    ],
)
def test_a_store_whose_labels_are_not_those_on_record_does_not_open(
    tmp_path: Path, amended: Path, script: str, asked: bool
) -> None:
    """Unless they are accepted: then the change is on record, once, and the store opens again without a word."""
    with open_store(tmp_path) as engine:
        engine.ingest(amended)
        if asked:
            engine.retrieve("What was reported?", Session(role="buy_side", purpose="invest"))
        size, before = engine._log.size, engine._collection.state.root
    altered(tmp_path, script)
    for _ in range(2):
        with pytest.raises(CorruptFile, match="accept --labels"):
            open_store(tmp_path)
    with open_store(tmp_path, accept={"labels"}) as engine:
        (change,) = records(engine, size)
        event = IndexChange(
            at=change.event.at,  # type: ignore[union-attr]
            snapshot=engine._collection.state.root,
            before=before,
            rows=len(engine._collection.index),
            why="LABELS_ACCEPTED",
        )
        assert event == change.event
    with open_store(tmp_path) as engine:
        assert size + 1 == engine._log.size


def test_an_earlier_copy_of_the_labels_does_not_open(
    tmp_path: Path, amended: Path, small_corpus: Path
) -> None:
    """What a newer filing has closed is not opened again by putting the file of before back."""
    with open_store(tmp_path) as engine:
        engine.ingest(next(iter(sorted(small_corpus.glob("*.txt")))))
    before = (tmp_path / "store" / "corpus.db").read_bytes()
    with open_store(tmp_path) as engine:
        engine.ingest(amended)
    (tmp_path / "store" / "corpus.db").write_bytes(before)
    with pytest.raises(CorruptFile, match="put back to an earlier copy"):
        open_store(tmp_path)


def test_a_run_killed_after_its_record_opens_again(tmp_path: Path, amended: Path) -> None:
    """Its record names the state, and only the note of its instant is missing."""
    with open_store(tmp_path) as engine:
        engine.ingest(amended)
        engine._collection.store.meta_update({"recorded_snapshot": "", "recorded_known": "7"})
    with open_store(tmp_path) as engine:
        assert "INGEST_RESUMED" == engine._log.record(engine._log.size - 1).event.why  # type: ignore[union-attr]


def test_an_evaluation_is_on_record(tmp_path: Path) -> None:
    """Suite, state, thresholds and result, proved like everything else."""
    digests = [hashlib.sha256(text).digest() for text in (b"suite", b"result")]
    with open_store(tmp_path, clock=lambda: NOW) as engine:
        receipt = engine.evaluations.record(
            "edgar", *digests, started=NOW, passed=True, thresholds={"cvr_millionths": 0, "recall": 990_000}
        )
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        event = Record.parse(receipt.record).event
        assert isinstance(event, Evaluation)
        assert (event.snapshot, event.thresholds["recall"]) == (engine._collection.state.root, 990_000)
        with pytest.raises(InvalidArgument, match="threshold"):
            engine.evaluations.record(
                "edgar", *digests, started=NOW, passed=True, thresholds={"recall": 0.99}
            )  # type: ignore[dict-item]
