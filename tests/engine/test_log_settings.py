"""The settings of the log at opening: retention class, oldest checkpoint accepted, scrubbing."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from carag import Engine, Session
from carag.audit import RETENTION, AuditLog, RecordKind
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
BUY_SIDE = Session(role="buy_side", purpose="invest", subject="ana@bank.example")
ASKED = ["--role", "buy_side", "--purpose", "invest"]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Path:
    path = tmp_path_factory.mktemp("settings") / "store"
    with Engine.open(path, embedder="wordllama", retain="fin5y") as engine:
        engine.ingest(small_corpus)
    return path


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path / "store"))


def classes(home: Path) -> list[tuple[RecordKind, str]]:
    with AuditLog.open(home) as log:
        return [(log.record(seq).kind, log.record(seq).retain) for seq in range(log.size)]


@pytest.mark.parametrize("code", RETENTION)
def test_every_record_of_an_engine_has_the_class_it_was_opened_with(home: Path, code: str) -> None:
    """Answers, refusals and what the engine notes of itself; those of before keep theirs."""
    before = classes(home)
    assert {retain for _, retain in before} == {"fin5y"}
    with Engine.open(home, retain=code) as engine:
        engine.ask(QUESTION, BUY_SIDE)
        engine.retrieve(QUESTION, BUY_SIDE)
        engine.ask(QUESTION, Session(role="stranger", purpose="invest"))
        engine.explain("0000000000-00-000000:00000", BUY_SIDE)
    after = classes(home)
    assert after[: len(before)] == before
    assert len(after) >= len(before) + 4
    assert {retain for _, retain in after[len(before) :]} == {code}


@pytest.mark.parametrize("code", ["", "fin9y", "FIN7Y", None, 7])
def test_an_unknown_class_opens_nothing_and_the_known_ones_are_named(tmp_path: Path, code: object) -> None:
    """Not even a directory is made."""
    with pytest.raises(InvalidArgument, match="want one of ai6m, fin5y, fin6y, fin7y"):
        Engine.open(tmp_path / "new", embedder="wordllama", retain=code)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_a_store_put_back_is_not_opened_against_what_was_kept(home: Path, tmp_path: Path) -> None:
    """A receipt as it was handed out, or a checkpoint; nothing else will do."""
    older = shutil.copytree(home, tmp_path / "older")
    with Engine.open(home) as engine:
        receipt = engine.ask(QUESTION, BUY_SIDE).receipt.to_bytes().decode()
        kept = engine._log.checkpoint()
    for one in (receipt, kept):
        Engine.open(home, not_before=one).close()
        with pytest.raises(CorruptFile, match="rollback"):
            Engine.open(older, not_before=one)
    with pytest.raises(InvalidArgument, match="want a checkpoint"):
        Engine.open(home, not_before="yesterday")


def test_damage_found_meanwhile_lets_no_more_answers_out(home: Path) -> None:
    """The scrub reads the whole log while the engine runs."""
    with Engine.open(home, scrub_every=0.01) as engine:
        engine.ask(QUESTION, BUY_SIDE)
        engine._log._backend.link.execute("UPDATE rec SET body = x'7b7d' WHERE seq = 0")  # type: ignore[attr-defined]
        until = time.monotonic() + 30
        while engine._log.damage() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        with pytest.raises(AuditUnavailable, match="damaged"):
            engine.ask(QUESTION, BUY_SIDE)


@pytest.mark.parametrize("every", [0, -1.0, float("nan")])
def test_a_scrub_without_pause_is_refused(home: Path, every: float) -> None:
    """And the store is let go of."""
    with pytest.raises(InvalidArgument, match="above 0"):
        Engine.open(home, scrub_every=every)
    Engine.open(home).close()


def test_the_command_line_says_both(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Class and checkpoint; an unknown class and a store put back are bad input."""
    older = shutil.copytree(home, tmp_path / "older")
    receipt = str(tmp_path / "r.json")
    ask = ["ask", QUESTION, *ASKED, "--store"]
    assert run([*ask, str(home), "--retain", "ai6m", "--receipt", receipt]) == Exit.OK
    assert classes(home)[-1] == (RecordKind.QUERY, "ai6m")
    assert run([*ask, str(home), "--not-before", receipt]) == Exit.OK
    capsys.readouterr()
    assert run([*ask, str(older), "--not-before", receipt]) == Exit.BAD_INPUT
    assert "rollback" in capsys.readouterr().err
    assert run([*ask, str(home), "--retain", "fin9y"]) == Exit.BAD_INPUT
    assert "ai6m, fin5y, fin6y, fin7y" in capsys.readouterr().err.replace("\n", " ")
    assert run([*ask, str(home), "--not-before", str(tmp_path / "none")]) == Exit.BAD_INPUT
    for command in ("ask", "explain", "ingest"):
        assert run([command, "--help"]) == Exit.OK
        told = capsys.readouterr().out
        assert all(code in told for code in RETENTION)
    count = len(classes(home))
    chunk = ["explain", "0000000000-00-000000:00000", "--store", str(home), *ASKED]
    assert run([*chunk, "--retain", "fin6y"]) == Exit.DECLINED
    assert run(["ingest", str(home / "vkey"), "--store", str(home), "--retain", "x"]) == Exit.BAD_INPUT
    assert classes(home)[count:] == [(RecordKind.EXPLAIN, "fin6y")]
