"""Questions during an ingest never fail, and never show what was closed before they began."""

from __future__ import annotations

import itertools
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Outcome, Session
from carag.audit import Verdict, verify_receipt
from tests.engine.filings import ingest_filings
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

FILINGS, ASKERS = 12, 4
SESSIONS = (
    Session(role="buy_side", purpose="invest"),
    Session(role="public", purpose="public_qa"),
    Session(role="compliance", purpose="surveil"),
)


def write_filings(path: Path, numbers: range, edition: int) -> None:
    """Write annual reports; each edition replaces the passages of the one before."""
    rows = (
        {
            "accession": f"000999{n:04d}-24-{n:06d}",
            "cik": 9_990_000 + n,
            "company": f"Example {n} plc",
            "form": "10-K",
            "filed": "2024-03-01",
            "accepted": "2024-03-01T09:00:00-05:00",
            "business_state": "NY",
            "text": f"Item 1. Business.\n\nPlant {n} made {edition + 3} thousand widgets in edition {edition}.",
        }
        for n in numbers
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


class Closings:
    """When the store had committed what closed a label: what asks that begin later must not show."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._put = engine, engine._collection.store.put
        self.committed: list[tuple[float, int]] = []
        engine._collection.store.put = self._noted  # type: ignore[method-assign]

    def _noted(self, *args: object, **kwargs: object) -> object:
        change = self._put(*args, **kwargs)  # type: ignore[arg-type]
        self.committed.append((time.perf_counter(), change.known_at))
        return change

    def closed_before(self, began: float) -> set[str]:
        """Name the passages all of whose labels were closed when a question began."""
        known = max((at for when, at in self.committed if when < began), default=-1)
        rows = self._engine._collection.store._connection.execute(  # type: ignore[union-attr]
            "SELECT chunk_id FROM chunks JOIN labels USING (key) GROUP BY chunk_id "
            "HAVING max(coalesce(known_to, 9e18)) <= ?",
            (known,),
        )
        return {chunk for (chunk,) in rows}


def ask_beside_ingests(home: Path, *, asks: int, ingests: int) -> None:
    shown: list[tuple[float, list[str], bytes]] = []
    raised: list[BaseException] = []
    ticket, done, answered = itertools.count(), threading.Event(), threading.Semaphore(0)
    with Engine.open(home / "store", embedder="wordllama") as engine:
        closings = Closings(engine)
        write_filings(home / "0.jsonl", range(FILINGS), 0)
        engine.ingest(home / "0.jsonl")

        def ask() -> None:
            try:
                while (n := next(ticket)) < asks or not done.is_set():
                    began = time.perf_counter()
                    call = engine.ask if n % 2 else engine.retrieve
                    found = call(f"How many widgets did plant {n % FILINGS} make?", SESSIONS[n % 3])
                    assert found.outcome is not Outcome.REFUSE
                    shown.append((began, [one.chunk_id for one in found.passages], found.receipt.to_bytes()))
                    answered.release()
            except BaseException as error:  # noqa: BLE001 - the main thread looks at it
                raised.append(error)

        askers = [threading.Thread(target=ask) for _ in range(ASKERS)]
        for asker in askers:
            asker.start()
        for edition in range(1, ingests + 1):
            file = home / f"{edition}.jsonl"
            # A few filings each time, so that some are replaced and some are the same as before.
            write_filings(file, range(edition % FILINGS, min(edition % FILINGS + 3, FILINGS)), edition)
            assert engine.ingest(file).changed
            for _ in range(asks // ingests):
                assert answered.acquire(timeout=60), raised
        done.set()
        for asker in askers:
            asker.join()
        vkey = engine.vkey
        assert [] == raised
        assert len(shown) >= asks
        for began, chunks, receipt in shown:
            assert not closings.closed_before(began) & set(chunks)
            assert verify_receipt(receipt, vkey).verdict is Verdict.VERIFIED


def test_asking_beside_an_ingest_never_fails_and_shows_nothing_closed_before(tmp_path: Path) -> None:
    """Each answer comes from one state of the store, which its receipt proves; what a commit closes goes with it."""
    ask_beside_ingests(tmp_path, asks=examples(240), ingests=examples(24))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.role)
def test_what_the_store_has_closed_is_not_shown_though_the_index_still_holds_it(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a filing's commit and the index's turn the old passage is gone, and the rest is asked for instead."""
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        write_filings(tmp_path / "0.jsonl", range(FILINGS), 0)
        engine.ingest(tmp_path / "0.jsonl")
        write_filings(tmp_path / "1.jsonl", range(3), 1)
        with monkeypatch.context() as killed:
            killed.setattr(engine._collection, "refresh", lambda _: None)
            ingest_filings(engine._collection, tmp_path / "1.jsonl")
        found = engine.retrieve("How many widgets did plant 1 make?", session, FILINGS - 3)
        assert {f"000999{n:04d}-24-{n:06d}:00000" for n in range(3, FILINGS)} == {
            one.chunk_id for one in found.passages
        }
        assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED


@pytest.mark.full
def test_two_thousand_asks_beside_two_hundred_ingests(tmp_path: Path) -> None:
    """The same at length."""
    ask_beside_ingests(tmp_path, asks=2000, ingests=200)
