"""Claims about heads of torn tables in answers: a figure is found by them, they are on record, and all comes again."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Answer, Engine, Outcome, Session
from carag.audit import Access, Record, Verdict, redact, verify_receipt
from carag.cli._describe import describe_receipt
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.evaluation.safety.noninterference import session_view
from carag.retrieval import ConfidenceGate
from tests.engine.test_existence import annual_report
from tests.retrieval.test_past_index import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER, CIK = "0009999001-23-000001", 9_999_001
SCRIPT = Path(__file__).parents[2] / "scripts" / "verify_receipt.py"
BUY_SIDE = Session(role="buy_side", purpose="invest")
HEAD = "(In millions) | 2022 | 2021"
ITEMS = (
    "Freight",
    "Rent",
    "Power",
    "Water",
    "Steam",
    "Wages",
    "Fuel",
    "Lease",
    "Paper",
    "Repair",
    "Travel",
    "Tools",
)
KINDS = ("mill", "yard", "plant", "store", "office")
ROWS = [f"{item} of the {kind} | {n}1 | {n}0" for kind in KINDS for n, item in enumerate(ITEMS, start=10)]
QUESTION = "What were Acme Widgets' net sales in 2022?"
FIGURE = "Net sales, 2022: 4,321 (In millions) [1]"
OTHER = "What did plant 1 make?"


def report(head: str = HEAD) -> str:
    """Write an annual report whose one table is longer than a passage."""
    table = "\n".join(["Statements of Income", head, *ROWS, "Net sales | 4,321 | 4,210"])
    filed = annual_report(NUMBER, cik=CIK, year=2022, paragraphs=1).replace(
        f"EXAMPLE {CIK} INC", "ACME WIDGETS INC"
    )
    return filed.replace("</TEXT>", f"\n{table}\n</TEXT>")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "report.txt").write_text(report())
    with Engine.open(
        tmp_path / "store", embedder="wordllama", gate=ConfidenceGate(-1), clock=Clock()
    ) as opened:
        opened.ingest(tmp_path / "report.txt")
        yield opened


def record_of(answer: Answer) -> Record:
    return Record.parse(answer.receipt.record)


def test_a_figure_is_found_by_heads_that_stand_in_the_passage_before(engine: Engine) -> None:
    """It says them as they are printed, and cites the passage of its row."""
    answer = engine.ask(QUESTION, BUY_SIDE)
    assert (answer.outcome, answer.text) == (Outcome.ANSWER, FIGURE)
    [cited] = answer.citations
    best = answer.passages[0]
    assert cited.chunk_id == best.chunk_id
    assert HEAD not in best.text
    assert best.head is not None
    assert HEAD in best.head.text
    told = answer.to_json()["passages"]
    assert {"chunk_id": f"{NUMBER}:00001", "start": best.head.start, "end": best.head.end} == told[0]["head"]
    assert [None, None] == [one.get("head") for one in told[1:]]


def test_the_record_names_the_passage_that_lent_the_heads_and_where_they_stand(
    engine: Engine, tmp_path: Path
) -> None:
    """Proved by the receipt like any passage, found in it word for word, and nothing else is recorded of them."""
    for result, hits in ((engine.ask(QUESTION, BUY_SIDE), 3), (engine.retrieve(QUESTION, BUY_SIDE, 1), 2)):
        head, receipt = result.passages[0].head, result.receipt
        assert head is not None
        record = Record.parse(receipt.record)
        assert isinstance(record.event, Access)
        [rows] = record.event.heads
        chunk, text = receipt.passages[rows.lender - 1]
        assert (rows.hit, chunk, text[rows.start : rows.end]) == (1, head.chunk_id, head.text)
        assert (hits, hits) == (len(record.hits), len(receipt.proofs))
        checked = verify_receipt(receipt.to_bytes(), engine.vkey)
        assert (checked.verdict, checked.unproved) == (Verdict.VERIFIED, ())
        told = describe_receipt(checked)
        assert [{"passage": 1, "of_passage": rows.lender, "start": 0, "end": rows.end}] == told["heads"]
        receipt.write(tmp_path / "r.json")
        command = [sys.executable, "-I", SCRIPT, tmp_path / "r.json", "--key", engine.vkey]
        assert subprocess.run(command, check=False, capture_output=True).returncode == 0
        assert replay(record, engine.profile.table).verdict is ReplayVerdict.MATCHES
        assert engine._collection.state.chunk_ids(record)[rows.lender - 1] == head.chunk_id


def test_a_passage_that_only_lends_heads_is_none_of_those_found(engine: Engine) -> None:
    """One is asked for and one returned; the other is on record after it, and no number of the answer cites it."""
    found = engine.retrieve(QUESTION, BUY_SIDE, 1)
    assert [f"{NUMBER}:00002"] == [one.chunk_id for one in found.passages]
    receipt = engine.record_answer(found, f"{FIGURE} and [2]", model="elsewhere")
    assert [f"{NUMBER}:00002", f"{NUMBER}:00001"] == [chunk for chunk, _ in receipt.passages]
    assert [True, False] == [hit.cited for hit in Record.parse(receipt.record).hits]
    without = redact(receipt.to_bytes(), passages={2})
    assert verify_receipt(without, engine.vkey).verdict is Verdict.VERIFIED


def test_what_is_read_without_heads_is_recorded_as_it_always_was(engine: Engine) -> None:
    """The record has no empty member for them."""
    found = engine.retrieve(OTHER, BUY_SIDE, 1)
    assert [f"{NUMBER}:00000"] == [one.chunk_id for one in found.passages]
    assert "heads" not in json.loads(found.receipt.record)


def test_the_same_heads_come_again_for_who_asks_about_then(engine: Engine, tmp_path: Path) -> None:
    """Also after the filing was replaced by one with other heads; and the record of then says when to ask about."""
    session = Session(role="auditor", purpose="assure")
    before = engine.ask(QUESTION, session)
    event = record_of(before).event
    assert isinstance(event, Access)
    assert event.index is not None
    (tmp_path / "report.txt").write_text(report("(In thousands) | 2022 | 2021"))
    engine.ingest(tmp_path / "report.txt")
    now = engine.ask(QUESTION, session)
    assert (before.text, now.text) == (FIGURE, FIGURE.replace("millions", "thousands"))
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=event.index.known_at or 0)
    again = engine.ask(QUESTION, replace(session, known_at=then))
    assert session_view(again) == session_view(before)
    assert (event.heads, [hit.digest for hit in record_of(before).hits]) == (
        record_of(again).event.heads,  # type: ignore[union-attr]
        [hit.digest for hit in record_of(again).hits],
    )


def test_a_head_from_a_passage_that_the_masks_do_not_admit_is_never_recorded(engine: Engine) -> None:
    """The log is the last line of defence: what lends heads is a hit, and is tested as one."""
    found = engine.retrieve(QUESTION, BUY_SIDE, 1)
    record = Record.parse(found.receipt.record)
    first, lender = record.hits
    hidden = replace(record, hits=(first, replace(lender, word=lender.word | 1 << 30)))
    assert any("which no mask of the record admits" in one for one in hidden.contradictions())
    assert replay(hidden, engine.profile.table).verdict is ReplayVerdict.DIFFERS
