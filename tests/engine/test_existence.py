"""Neither explanations nor receipts tell a session of a passage that it may not know exists."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import carag
from carag import Engine, Outcome, Session
from carag.policy import PolicyTable
from tests.auc import area_under_curve
from tests.audit.state.test_existence import bare_place
from tests.audit.state.trie_attack import Known, TrieAttack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

TABLE = PolicyTable.shipped()
BLIND = [cell for cell in TABLE.cells if not cell.may_know_existence]
CODE = str(Path(carag.__file__).parent)
LOG = str(Path(carag.__file__).parent / "audit")
HIDDEN = "0009999999-24-000777"
PUBLIC = Session(role="public", purpose="public_qa")
OPEN_FILINGS, OPEN_PARAGRAPHS, HIDDEN_PARAGRAPHS = 12, 30, 60


def annual_report(accession: str, *, cik: int, year: int, paragraphs: int, contradiction: str = "") -> str:
    """Write a full submission; every paragraph is long enough for a passage of its own."""
    text = "\n\n".join(
        f"Item {n}. Plant {n} of filer {cik} made widgets in {year}. "
        + f"Line {n} ran well and was kept. " * 45
        for n in range(1, paragraphs + 1)
    )
    return (
        f"<SEC-HEADER>\nACCESSION NUMBER: {accession}\nCONFORMED SUBMISSION TYPE: 10-K\n"
        f"CONFORMED PERIOD OF REPORT: {year}1231\nFILED AS OF DATE: {year + 1}0301\n{contradiction}"
        f"<ACCEPTANCE-DATETIME>{year + 1}0301090000\n"
        f"FILER:\nCOMPANY DATA:\nCOMPANY CONFORMED NAME: EXAMPLE {cik} INC\nCENTRAL INDEX KEY: {cik:010d}\n"
        "BUSINESS ADDRESS:\nSTATE: NY\n</SEC-HEADER>\n"
        f"<DOCUMENT>\n<TYPE>10-K\n<SEQUENCE>1\n<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Iterator[Engine]:
    """The small corpus, open reports, and one report in quarantine that follows an open one of the same filer."""
    home = tmp_path_factory.mktemp("existence")
    filings = home / "filings"
    filings.mkdir()
    for n in range(OPEN_FILINGS):
        accession = f"0009999{n:03d}-23-{n:06d}"
        report = annual_report(accession, cik=9_999_000 + n, year=2022, paragraphs=OPEN_PARAGRAPHS)
        (filings / f"{n}.txt").write_text(report)
    contradiction = "FILED AS OF DATE: 20240302\n"
    (filings / "hidden.txt").write_text(
        annual_report(
            HIDDEN, cik=9_999_000, year=2023, paragraphs=HIDDEN_PARAGRAPHS, contradiction=contradiction
        )
    )
    with pytest.MonkeyPatch.context() as seeded, Engine.open(home / "store", embedder="wordllama") as opened:
        seeded.setattr("carag.engine.state.secrets.token_hex", lambda _: "07" * 32)
        opened.ingest(small_corpus)
        opened.ingest(filings)
        yield opened


def shown_to(engine: Engine, session: Session) -> list[str]:
    questions = ("What did the plants make?", "What royalty rate is paid?", "Who signed the amendment?")
    found = {p.chunk_id for q in questions for p in engine.retrieve(q, session, 400).passages}
    return sorted(found)


@pytest.mark.parametrize("cell", BLIND, ids=lambda cell: f"{cell.role}/{cell.purpose}")
def test_an_explanation_names_no_filing_that_the_session_may_not_see(engine: Engine, cell: object) -> None:
    """Of every passage it is shown: a cause is a filing it is shown passages of, or "a later filing"."""
    session = Session(role=cell.role, purpose=cell.purpose)  # type: ignore[attr-defined]
    shown = shown_to(engine, session)
    filings = {chunk.split(":")[0].split(".v")[0] for chunk in shown}
    causes = {
        cause.split("set by ")[1]
        for chunk in shown[:: max(1, len(shown) // 20)]
        for cause in engine.explain(chunk, session).causes
        if "set by" in cause
    }
    assert causes <= filings | {"a later filing"}


def test_the_filing_behind_a_bit_is_named_to_whoever_may_know_of_it(engine: Engine) -> None:
    """Compliance is told that a quarantined report set the bit; the public that a later one did."""
    superseded = "0009999000-23-000000:00000"
    told = engine.explain(superseded, Session(role="compliance", purpose="surveil")).causes
    assert f"NOT_LATEST: set by {HIDDEN}" in told
    blind = engine.explain(superseded, PUBLIC)
    assert (Outcome.ANSWER, True) == (blind.outcome, "NOT_LATEST: set by a later filing" in blind.causes)
    assert HIDDEN not in json.dumps(blind.to_json())


def lines_of(call: Callable[[], object]) -> list[tuple[str, int]]:
    """Run a call, and list every line of CARAG it went through, but for the log's, whose threads take turns."""
    seen: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        if not frame.f_code.co_filename.startswith(CODE) or frame.f_code.co_filename.startswith(LOG):
            return None
        if event == "line":
            seen.append((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return seen


@pytest.mark.parametrize("cell", BLIND, ids=lambda cell: f"{cell.role}/{cell.purpose}")
def test_hidden_and_absent_run_the_same_lines_to_the_end(
    engine: Engine, cell: object, caplog: pytest.LogCaptureFixture
) -> None:
    """An id guessed right and one guessed wrong: the same answer and record by the same steps."""
    caplog.set_level(logging.WARNING, "carag")  # a line of the log tells milliseconds, in one digit or in two
    session = Session(role=cell.role, purpose=cell.purpose)  # type: ignore[attr-defined]
    engine.explain(f"{HIDDEN}:00000", session)  # what is made once has been made
    asked = [f"{HIDDEN}:00003", f"{HIDDEN}:0003a"]
    first, second = (lines_of(lambda chunk=chunk: engine.explain(chunk, session)) for chunk in asked)
    assert first == second
    hidden, absent = (engine._log.record(engine._log.size - back).event for back in (2, 1))
    assert replace(hidden, started=0, ended=0) == replace(absent, started=0, ended=0)


def test_the_receipts_of_a_real_store_tell_nothing_of_a_hidden_filing(engine: Engine) -> None:
    """An attacker has the proofs of 360 open passages, and guesses the hidden report's accession number and minute."""
    known: dict[str, Known] = {}
    for n in range(OPEN_FILINGS):
        found = engine.retrieve(f"What did plant 1 of filer {9_999_000 + n} make?", PUBLIC, 400)
        for passage, proof in zip(found.passages, found.receipt.proofs, strict=True):
            known[passage.chunk_id] = Known(passage.chunk_id, proof)
    assert len(known) >= OPEN_FILINGS * OPEN_PARAGRAPHS
    rows = list(engine._collection.store.labels.snapshot())
    hidden = [(chunk, since) for chunk, _, _, since, *_ in rows if chunk.startswith(HIDDEN)]
    assert len(hidden) >= HIDDEN_PARAGRAPHS
    attack = TrieAttack(known.values(), bare_place)
    absent = [(f"0009999998-24-{n:06d}:{chunk[-5:]}", since) for n in range(40) for chunk, since in hidden]
    area = area_under_curve(*([attack.score(*guess) for guess in guesses] for guesses in (hidden, absent)))
    # One store with a fixed key: more than five standard errors. Bare places reach 0.82.
    assert area.at_most < 0.75
