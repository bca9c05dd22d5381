"""The engine returns nothing that the session may not use, and nothing without its record."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Outcome, Session
from carag.audit import Record, Verdict, verify_receipt
from carag.engine.calibration import Calibration
from carag.engine.contents import Contents
from carag.engine.evaluations import Evaluations
from carag.engine.listing import Listings
from carag.engine.requests import Requests
from carag.engine.state import StoreState
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, ModelUnavailable, StoreLocked
from carag.generation import Draft
from carag.policy import PolicyTable, as_of_minutes
from tests.warm import Child

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TABLE = PolicyTable.shipped()
OPEN_CELLS = [cell for cell in TABLE.cells if cell.allow_list == "none"]
BUY_SIDE = Session(role="buy_side", purpose="invest")
COMPLIANCE = Session(role="compliance", purpose="surveil")
QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path / "store"))


@pytest.fixture(scope="module")
def engine(ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store that tests only ask."""
    home = Path(shutil.copytree(ingested, tmp_path_factory.mktemp("asked") / "store"))
    with Engine.open(home) as opened:
        yield opened


def session_of(cell: object, **more: object) -> Session:
    return Session(role=cell.role, purpose=cell.purpose, **more)  # type: ignore[attr-defined, arg-type]


# --- what may come out ---


@pytest.mark.parametrize("cell", OPEN_CELLS, ids=lambda cell: f"{cell.role}/{cell.purpose}")
def test_every_passage_is_admissible_by_the_tables_own_masks(engine: Engine, cell: object) -> None:
    """Checked against roles.toml and the store, not against the index."""
    session = session_of(cell)
    found = engine.retrieve(QUESTION, session, 50)
    assert found.passages
    for passage in found.passages:
        assert cell.policy.admits(passage.word)  # type: ignore[attr-defined]
        stored = engine._collection.store.chunk(passage.chunk_id)
        assert stored.public_at <= as_of_minutes(datetime.now(UTC))
        assert (stored.word, stored.text) == (passage.word, passage.text)


def test_a_session_in_the_past_sees_nothing_of_its_future(engine: Engine) -> None:
    """public_at <= as_of, down to nothing at all."""
    early = engine.retrieve(
        QUESTION, Session(role="compliance", purpose="surveil", as_of=date(2024, 6, 30)), 50
    )
    assert early.passages
    assert all(passage.filed <= "2024-06-30" for passage in early.passages)
    none = engine.ask(QUESTION, Session(role="compliance", purpose="surveil", as_of=date(1990, 1, 1)))
    assert (Outcome.DECLINE, "NO_ADMISSIBLE_EVIDENCE", ()) == (none.outcome, none.why, none.passages)


def test_count_is_min_of_k_and_admissible(engine: Engine) -> None:
    """Fewer than k is an answer."""
    everything = engine.retrieve(QUESTION, COMPLIANCE, 400)
    assert len(everything.passages) == Record.parse(everything.receipt.record).event.index.admissible  # type: ignore[union-attr]


def test_hidden_neighbours_are_shown_only_where_the_role_may_know(engine: Engine) -> None:
    """And then with reasons, never with text."""
    question = "What does the board diversity matrix show about directors' demographic background?"
    knowing = engine.retrieve(question, COMPLIANCE, 8).withheld
    assert knowing is not None
    assert ["FORBIDDEN:PD_SPECIAL"] == sorted({r.code for h in knowing.hidden for r in h.reasons})
    assert not any(hasattr(hidden, "text") for hidden in knowing.hidden)
    blind = engine.retrieve(question, BUY_SIDE, 8).withheld
    assert blind is not None
    assert blind.hidden == ()


def test_what_is_withheld_depends_on_the_policy_alone(engine: Engine) -> None:
    """Two questions, one session: the same kinds."""
    first, second = (engine.retrieve(text, BUY_SIDE).withheld for text in (QUESTION, "Board diversity?"))
    assert first == second


class Telltale:
    """A generator that keeps what it is shown."""

    name, remote, fingerprint = "telltale", False, "1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def generate(self, question: str, passages: Sequence[object], withheld: object) -> Draft:
        self.seen += [passage.text for passage in passages]  # type: ignore[attr-defined]
        return Draft("It grew [1].", (0,))


def test_no_inadmissible_text_reaches_the_generator(home: Path) -> None:
    """Every text a model sees is admissible for the session that asks."""
    generator = Telltale()
    with Engine.open(home, generator=generator) as engine:
        answer = engine.ask(QUESTION, Session(role="public", purpose="public_qa"))
        seen = len(generator.seen)
        assert generator.seen == [passage.text for passage in answer.passages[:seen]]
        assert {"LUMENFIELD"} == {passage.company.split()[0] for passage in answer.passages[:seen]}
        policy = TABLE.get("public", "public_qa").policy  # type: ignore[union-attr]
        assert all(policy.admits(passage.word) for passage in answer.passages)


# --- refusals ---


@pytest.mark.parametrize(
    ("role", "purpose", "code"),
    [
        ("wizard", "invest", "UNKNOWN_ROLE"),
        ("buy_side", "gossip", "UNKNOWN_PURPOSE"),
        ("public", "invest", "NO_SUCH_CELL"),
        ("dpo", "dsar", "ALLOW_LIST_REQUIRED"),
        ("counsel", "dsar", "ALLOW_LIST_REQUIRED"),
    ],
)
def test_a_refusal_is_recorded_and_searches_nothing(
    engine: Engine, role: str, purpose: str, code: str
) -> None:
    """On every method, with a receipt that verifies and names no free text."""
    session = Session(role=role, purpose=purpose)
    for result in (
        engine.ask(QUESTION, session),
        engine.retrieve(QUESTION, session),
        engine.explain("0000000000-00-000000:00000", session),
    ):
        assert (Outcome.REFUSE, code) == (result.outcome, result.why)
        assert verify_receipt(result.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert b"wizard" not in result.receipt.record
        assert Record.parse(result.receipt.record).event.index is None  # type: ignore[union-attr]


# --- proof ---


def test_every_result_verifies_and_binds_what_was_asked_and_answered(engine: Engine) -> None:
    """Receipt, record and answer say the same."""
    answer = engine.ask(QUESTION, Session(role="buy_side", purpose="invest", subject="analyst 7"))
    assert answer.outcome is Outcome.ANSWER
    checked = verify_receipt(answer.receipt.to_bytes(), engine.vkey)
    assert checked.verdict is Verdict.VERIFIED
    receipt = json.loads(answer.receipt.to_bytes())
    opened = {name: opening["value"] for name, opening in receipt["openings"].items()}
    assert {
        "query": QUESTION,
        "answer": answer.text,
        "subject": "analyst 7",
        "reading": "Lumenfield",
    } == opened
    assert [(p.chunk_id, p.text) for p in answer.passages] == [
        (h["chunk"], h["text"]) for h in receipt["hits"]
    ]
    assert b"analyst 7" not in answer.receipt.record


# --- failing closed ---

TEXT_METHODS = {
    "ask": lambda engine: engine.ask(QUESTION, BUY_SIDE),
    "retrieve": lambda engine: engine.retrieve(QUESTION, BUY_SIDE),
    "explain": lambda engine: engine.explain("0000000000-00-000000:00000", COMPLIANCE),
    "readable": lambda engine: engine.evaluations.readable(BUY_SIDE),
    "answer": lambda engine: engine.requests.answer(QUESTION, BUY_SIDE),
    "aask": lambda engine: asyncio.run(engine.aask(QUESTION, BUY_SIDE)),
    "aretrieve": lambda engine: asyncio.run(engine.aretrieve(QUESTION, BUY_SIDE)),
    "documents": lambda engine: engine.documents(BUY_SIDE),
    "document": lambda engine: engine.document("0000000000-00-000000", BUY_SIDE),
    "passages": lambda engine: engine.passages("0000000000-00-000000", BUY_SIDE),
    "quarantine": lambda engine: engine.quarantine(COMPLIANCE),
}


def test_the_list_of_text_methods_is_complete() -> None:
    """Every public method of the engine and of its parts either returns no text or stands in TEXT_METHODS."""
    silent = {"open", "close", "ingest", "log", "session", "vkey"}
    silent |= {
        "aadd",
        "add",
        "erase",
        "erasures",
        "kind",
        "profile",
        "record_answer",
        "remove",
        "sync",
        "withdraw",
    }
    silent |= {"calibrate_gate", "gate", "keep_to_admissible_rows", "keep_up", "paces", "models"}
    silent |= {"counts", "import_groups", "label_history", "opened_to", "settle", "record"}
    silent |= {"calibrate", "report", "take", "watch_over", "watched"}
    silent |= {"preview", "read_by", "stream"}
    silent |= {"on_record", "check_groups"}  # by which all methods that return text put themselves on record
    parts = Engine, Requests, Contents, Evaluations, Calibration, Listings
    public = {name for part in parts for name, _ in inspect.getmembers(part) if not name.startswith("_")}
    own = {"turns"}  # the asker's own questions, and no text of a document or an answer
    assert public == silent | own | set(TEXT_METHODS)


@pytest.mark.parametrize("name", TEXT_METHODS)
def test_each_text_method_fails_closed_on_an_unwritable_log(
    engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record, no text, whether allowed or refused."""
    monkeypatch.setattr(engine._log._backend, "append", _disk_full)
    with pytest.raises(AuditUnavailable):
        TEXT_METHODS[name](engine)
    with pytest.raises(AuditUnavailable):
        engine.ask(QUESTION, Session(role="wizard", purpose="invest"))


def _disk_full(*_: object) -> None:
    raise AuditUnavailable("the disk is full")


def test_a_store_without_a_writable_log_does_not_open(home: Path) -> None:
    """A log that cannot be opened leaves nothing to ask."""
    (home / "audit.db").unlink()
    (home / "audit.db").mkdir()
    with pytest.raises((AuditUnavailable, CorruptFile)):
        Engine.open(home)


def test_a_store_whose_log_is_gone_does_not_start_another(home: Path) -> None:
    """A missing history is never replaced by an empty one."""
    for name in ("audit.db", "audit.key", "vkey"):
        (home / name).unlink()
    with pytest.raises(CorruptFile, match="history is gone"):
        Engine.open(home)


def test_a_state_is_on_record_before_it_answers(home: Path) -> None:
    """Rows that a killed run stored, and no record named, are recorded when the store is next opened."""
    with Engine.open(home) as engine:
        engine._collection.store.meta_set("recorded_snapshot", "")
    with Engine.open(home) as engine:
        event = engine._log.record(engine._log.size - 1).event
        assert ("INGEST_RESUMED", engine._collection.state.root) == (event.why, event.snapshot)  # type: ignore[union-attr]


def test_an_ingest_record_counts_what_that_run_did(home: Path, small_corpus: Path) -> None:
    """One of the corpus's filings is set aside; a second run sets none aside again."""
    with Engine.open(home) as engine:
        event = engine._log.record(2).event
        assert (51, 1) == (event.documents, event.quarantined)  # type: ignore[union-attr]
        report = engine.ingest(small_corpus)
        assert (0, 1) == (report.newly_quarantined, sum(report.quarantined.values()))


def test_a_failed_opening_lets_go_of_the_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails last, the next opening is not locked out."""
    with monkeypatch.context() as broken:
        broken.setattr(Contents, "settle", _disk_full)
        with pytest.raises(AuditUnavailable, match="full"):
            Engine.open(home)
    Engine.open(home).close()


class Broken(Telltale):
    """A generator whose host is down."""

    def generate(self, question: str, passages: Sequence[object], withheld: object) -> Draft:
        raise ModelUnavailable("no answer from the model's host")


def test_a_failure_is_recorded_and_then_raised(home: Path) -> None:
    """No second generator takes over."""
    with Engine.open(home, generator=Broken()) as engine:
        with pytest.raises(ModelUnavailable):
            engine.ask(QUESTION, BUY_SIDE)
        event = engine._log.record(engine._log.size - 1).event
        assert ("error", "MODEL_UNAVAILABLE") == (event.outcome.value, event.why)  # type: ignore[union-attr]


def test_a_typing_slip_is_an_error_not_an_open_search(engine: Engine) -> None:
    """No session, no session object, unknown keywords, k below one."""
    with pytest.raises(TypeError):
        engine.ask(QUESTION)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="Session"):
        engine.ask(QUESTION, {"role": "buy_side"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="filter"):
        engine.retrieve(QUESTION, BUY_SIDE, filter="all")  # type: ignore[call-arg]
    for k in (0, -1, 401, 2.5, None):
        with pytest.raises(InvalidArgument, match="1 to 400"):
            engine.retrieve(QUESTION, BUY_SIDE, k)  # type: ignore[arg-type]


# --- the store ---


def test_one_engine_at_a_time(engine: Engine) -> None:
    """A second one is told that the store is in use."""
    with pytest.raises(StoreLocked, match="holds"):
        Engine.open(engine._collection.store.path.parent)


def test_no_store_where_none_was_asked_for(tmp_path: Path) -> None:
    """Asking a directory without a store does not make one."""
    with pytest.raises(InvalidArgument, match="carag init"):
        Engine.open(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_the_index_file_can_be_thrown_away(home: Path) -> None:
    """It is rebuilt from the store, byte for byte."""
    before = (home / "index.carag").read_bytes()
    (home / "index.carag").unlink()
    Engine.open(home).close()
    assert before == (home / "index.carag").read_bytes()


CHILD = """
import sys, carag, carag.engine.writer
carag.engine.writer._EMBED_BATCH = 16  # store often, so that a kill has something to tear
with carag.Engine.open(sys.argv[1], embedder="wordllama") as engine:
    engine.ingest(sys.argv[2], progress=lambda stage, *_: print(stage, flush=True))
"""


@pytest.mark.parametrize(
    "after",
    [20, 52, *(pytest.param(after, marks=pytest.mark.release) for after in (3, 45))],
    ids=lambda after: f"after {after} steps",
)
def test_a_killed_ingest_is_finished_by_the_next(
    tmp_path: Path, small_corpus: Path, ingested: Path, after: int
) -> None:
    """kill -9 while filings are stored or rows indexed; the next run makes what an undisturbed one makes."""
    store = tmp_path / "store"
    with Child(CHILD, store, small_corpus) as child:
        steps = [child.stdout.readline().strip() for _ in range(after)]
        child.kill()
    assert steps[-1] == ("index" if after == 52 else "filings")
    with Engine.open(store, embedder="wordllama") as engine:
        engine.ingest(small_corpus)
        counts, labels = (
            engine._collection.store.documents.counts(),
            list(engine._collection.store.labels.snapshot()),
        )
        assert engine._collection.index.keys().tolist() == engine._collection.store.labels.open().tolist()
        again = StoreState(engine._collection.store, tmp_path / "again.state")
        again.refresh()
        assert again.root == engine._collection.state.root
        again.close()
    with Engine.open(shutil.copytree(ingested, tmp_path / "whole")) as undisturbed:
        whole = undisturbed._collection.store
        assert (whole.documents.counts(), list(whole.labels.snapshot())) == (counts, labels)
