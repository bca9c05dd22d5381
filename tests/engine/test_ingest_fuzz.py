"""Random broken input is stored, quarantined or a problem, and nothing stored fails a question."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from carag import Engine, Session
from carag.limits import check_label, check_minutes
from carag.profiles.edgar.reading.readers import ReadKind, read_filings
from carag.retrieval import embedder_by_name
from tests.profiles.edgar.reading.broken import COLUMNS, Case, cases

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine import IngestReport

SESSIONS = [
    Session(role=role, purpose=purpose)  # type: ignore[arg-type]
    for role, purpose in (
        ("compliance", "surveil"),
        ("auditor", "assure"),
        ("buy_side", "invest"),
        ("public", "public_qa"),
    )
]
BATCH = 2_500
GOOD = b'{"accession": "0009999998-24-000001", "form": "10-Q", "text": "Item 2.", "cik": 8, "filed": "2024-05-02"}'


def drawn(count: int) -> list[Case]:
    """Draw cases, the same on every run."""
    found: list[Case] = []

    @seed(20_261_123)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(cases())
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


def written(folder: Path, batch: list[Case]) -> None:
    """Lay cases out as a directory of filings; the first row is good, or the file would be skipped."""
    folder.mkdir()
    lines = {
        kind: [case.content for case in batch if case.kind == kind] for kind in ("row", "table", "header")
    }
    (folder / "rows.jsonl").write_bytes(b"\n".join([GOOD, *lines["row"]]) + b"\n")
    (folder / "table.tsv").write_bytes(b"\n".join(["\t".join(COLUMNS).encode(), *lines["table"]]) + b"\n")
    (folder / "headers.jsonl").write_bytes(b"\n".join(lines["header"]) + b"\n")
    for number, case in enumerate(batch):
        if case.kind == "submission":
            (folder / f"{number}.txt").write_bytes(case.content)


def accounted(report: IngestReport) -> int:
    """Count what a report tells of; an event that is set aside is told as an event, and why."""
    told = [problem for problem in report.problems if ": quarantined: " not in problem]
    return report.filings + report.events + report.events_unchanged + len(told)


@pytest.mark.parametrize(
    "count",
    [200, pytest.param(2_500, marks=pytest.mark.release), pytest.param(100_000, marks=pytest.mark.full)],
)
def test_whatever_comes_in_is_accounted_for_and_nothing_stored_fails_a_question(
    tmp_path: Path, count: int
) -> None:
    """One outcome each, none a fault of the program, none ends the run, and every session is answered afterwards."""
    embedder = embedder_by_name("wordllama")
    became: Counter[str] = Counter()
    everything = drawn(count)
    for start in range(0, count, BATCH):
        batch = everything[start : start + BATCH]
        folder = tmp_path / f"{start}"
        written(folder, batch)
        outcomes = list(read_filings(folder))
        assert len(outcomes) == len({outcome.where for outcome in outcomes})
        headers = sum(case.kind == "header" for case in batch)
        assert len(outcomes) == len(batch) - headers + 2  # the good row, and the file of headers
        assert [] == [one.reason for one in outcomes if one.kind is ReadKind.FAILED]
        assert all(one.where.isprintable() and one.reason.isprintable() for one in outcomes)
        became.update(one.kind.name for one in outcomes)
        with Engine.open(tmp_path / f"store-{start}", embedder=embedder) as engine:
            report = engine.ingest(folder)
            assert 0 == report.failures, report.problems
            assert accounted(report) == len(outcomes)
            assert report.problems == [problem for problem in report.problems if problem.isprintable()]
            became["quarantined"] += report.newly_quarantined
            became["passages"] += report.total_chunks
            for chunk in engine._collection.store.chunks(engine._collection.store.labels.open()):
                check_label("chunk id", chunk.chunk_id)
                check_minutes("public_at", chunk.public_at)
            again = engine.ingest(folder)
            assert (0, 0, 0) == (again.added, again.changed, again.failures)
            now = int(datetime.now(UTC).timestamp() // 60)
            for session in SESSIONS:
                found = engine.retrieve("What were net sales in the quarter?", session, 400)
                assert 400 > len(found.passages)  # so it met all that it may use
                assert all(passage.public_at <= now for passage in found.passages)
                became[f"found by {session.role}"] += len(found.passages)
                assert engine.ask("What were net sales in the quarter?", session).receipt is not None
    logging.getLogger(__name__).info("%d cases: %s", count, dict(became))
    assert (
        min(became[kind] for kind in ("FILING", "METADATA", "BROKEN", "quarantined", "passages"))
        > count // 50
    )
