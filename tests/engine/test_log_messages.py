"""Log messages, tracebacks and ``repr`` tell how a request went, and nothing of its content."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import carag
from carag.audit import Opening
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import InvalidArgument, Refused
from carag.policy import LegalBasis
from carag.profiles.edgar.reading.readers import read_filings
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
ANA = "ana@bank.example"
LISTED = 9990077


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path_factory.mktemp("passing") / "store"))


@pytest.fixture
def engine(store: Path) -> Iterator[carag.Engine]:
    with carag.Engine.open(store, create=False) as engine:
        yield engine


class Refusing:
    """A verifier that believes no token."""

    issuer, audience = "https://issuer.example", "carag"

    def verify(self, token: str) -> dict[str, object]:
        raise Refused("TOKEN_SIGNATURE", f"no: {token}")


def questions() -> list[str]:
    rows = (Path(__file__).parents[2] / "data" / "questions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(row)["question"] for row in rows][: examples(20, least=6)]


def everything(home: Path, corpus: Path) -> Iterator[str]:
    """Do all that an engine does; yield what must not be told of it."""
    with carag.Engine.open(home, embedder="wordllama") as engine:
        engine.ingest(corpus)
        engine.ingest(corpus)
        sessions = [
            carag.Session(role="buy_side", purpose="invest", subject=ANA, restricted={LISTED}),
            carag.Session(role="compliance", purpose="surveil", legal_basis=LegalBasis("legal_obligation")),
            carag.Session(role="dpo", purpose="dsar", allow_entities={LISTED}),
            carag.Session(role="wizard of the east", purpose="invest"),
        ]
        for question in questions():
            yield question
            for session in sessions:
                yield engine.ask(question, session).text
                for passage in engine.retrieve(question, session).passages:
                    yield passage.text
                    yield passage.company
                    engine.explain(passage.chunk_id, session)
        with pytest.raises(InvalidArgument):
            engine.ask(" " * 9, sessions[0])
        with pytest.raises(Refused):
            engine.session("a token of a stranger", Refusing())
    yield from (ANA, str(LISTED), "wizard of the east", "a token of a stranger")
    for outcome in read_filings(corpus):
        if outcome.filing is not None:
            yield outcome.filing.company
            yield from (document.text for document in outcome.filing.documents)


def test_no_log_message_holds_content(
    tmp_path: Path, small_corpus: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With everything logged: no question, passage, answer, person, list, company or token of a whole session."""
    with caplog.at_level(logging.DEBUG, logger="carag"):
        private = {text.strip() for text in everything(tmp_path / "store", small_corpus)} - {""}
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert [] == [text for text in private if text in said]
    assert [] == [text for text in private for line in text.splitlines() if len(line) > 20 and line in said]
    assert {record.name.split(".")[0] for record in caplog.records} == {"carag"}
    assert {record.levelno for record in caplog.records} <= {logging.INFO, logging.DEBUG}


def test_log_messages_tell_how_it_went(
    store: Path, small_corpus: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Opened, ingested with counts, each request by outcome, code, record and milliseconds, closed."""
    with caplog.at_level(logging.INFO, logger="carag"), carag.Engine.open(store, create=False) as engine:
        engine.ingest(small_corpus)
        session = carag.Session(role="buy_side", purpose="invest")
        numbers = [
            engine.ask(QUESTION, session).receipt.seq,
            engine.retrieve(QUESTION, session).receipt.seq,
            engine.explain("no such chunk", session).receipt.seq,
        ]
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("opened Engine(")
    assert "ingest ends: 0 added, 0 changed, 51 unchanged" in " ".join(said)
    for words, number in zip(
        ("query: answer (ANSWERED)", "retrieve: answer (RETRIEVED)", "explain: decline (NOTHING_TO_EXPLAIN)"),
        numbers,
        strict=True,
    ):
        assert any(f"{words}, record {number}, " in line and line.endswith(" ms") for line in said)
    assert said[-1].startswith("closed Engine(")


def test_importing_and_using_adds_no_handler(engine: carag.Engine) -> None:
    """Who logs where is the program's own to say."""
    engine.ask(QUESTION, carag.Session(role="buy_side", purpose="invest"))
    mine = [
        logger for name, logger in logging.Logger.manager.loggerDict.items() if name.split(".")[0] == "carag"
    ]
    assert [] == [logger for logger in mine if isinstance(logger, logging.Logger) and logger.handlers]


def test_verbose_tells_it_on_standard_error(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And on standard output nothing changes; the next command is quiet again."""
    ask = ["ask", QUESTION, "--store", str(store), "--role", "wizard", "--purpose", "invest", "--json"]
    for option in ("-v", "--verbose"):
        assert run([option, *ask]) == Exit.REFUSED
        captured = capsys.readouterr()
        assert "query: refuse (UNKNOWN_ROLE)" in captured.err
        assert "UNKNOWN_ROLE" == json.loads(captured.out)["why"]
        assert QUESTION not in captured.err
        assert run(ask) == Exit.REFUSED
        assert "" == capsys.readouterr().err


def test_no_repr_of_what_is_returned_holds_a_text(engine: carag.Engine) -> None:
    """One line: outcome, code, counts, record; also of what is nested in it."""
    session = carag.Session(role="buy_side", purpose="invest", subject=ANA)
    answer = engine.ask(QUESTION, session)
    found = engine.retrieve(QUESTION, session)
    why = engine.explain(found.passages[0].chunk_id, session)
    assert answer.text == str(answer) != ""
    seq = answer.receipt.seq
    cited = len(answer.citations)
    assert f"Answer(answer, ANSWERED, passages=8, citations={cited}, record={seq})" == repr(answer)
    assert f"Retrieval(answer, RETRIEVED, passages=8, record={seq + 1})" == repr(found)
    assert f"Explanation(answer, ADMISSIBLE, reasons=0, record={seq + 2})" == repr(why)
    assert f"Receipt(record={seq}, opens query, answer, subject, reading, passages=8)" == repr(answer.receipt)
    texts = [answer.text, QUESTION, ANA, *(passage.text for passage in found.passages)]
    for value in (
        answer,
        found,
        why,
        answer.receipt,
        found.passages,
        answer.receipt.openings,
        Opening(b"", ANA),
    ):
        assert [] == [text for text in texts if text in repr(value)]
        assert "\n" not in repr(value)


def test_a_closed_engine_says_what_to_open(store: Path) -> None:
    """Whatever it is asked, by one message, and as often as it is asked."""
    with carag.Engine.open(store, create=False) as engine:
        pass
    engine.close()
    session = carag.Session(role="buy_side", purpose="invest")
    for use in (
        lambda: engine.ask(QUESTION, session),
        lambda: engine.retrieve(QUESTION, session),
        lambda: engine.explain("x", session),
        lambda: engine.ingest(store),
        lambda: engine.session("token", Refusing()),
        lambda: engine.add([carag.Document(id="d", text="x", bits=())]),
        lambda: engine.remove(["d"]),
        lambda: engine.calibrate_gate("x", session),
        lambda: engine.calibration.report,
        lambda: engine.__enter__(),
    ):
        with pytest.raises(
            InvalidArgument, match=r"this engine is closed; open the store again with carag\.Engine\.open"
        ):
            use()


def test_progress_counts_what_it_says(tmp_path: Path, small_corpus: Path) -> None:
    """``filings`` in bytes of the files, ``words`` and ``index`` in rows, in the thread that ingests; never a name."""
    import threading

    told: list[tuple[str, int, int, str]] = []
    threads = set()

    def progress(stage: str, done: int, total: int, note: str, /) -> None:
        told.append((stage, done, total, note))
        threads.add(threading.get_ident())

    with carag.Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        engine.ingest(small_corpus, progress=progress)
        rows = len(engine._collection.index)
    size = sum(path.stat().st_size for path in small_corpus.iterdir())
    whole = {"filings": size, "words": rows, "index": rows}
    assert whole == {stage: total for stage, _, total, _ in told}
    assert whole == {stage: done for stage, done, _, _ in told}
    assert {threading.get_ident()} == threads
    assert [] == [note for *_, note in told if "LUMENFIELD" in note]
