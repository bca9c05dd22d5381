"""``carag audit list`` and ``show``: every record shown is proved, and nothing is opened without a record of it."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import carag
from carag.audit import AuditLog, Evaluation, Recovery, disclose, erase, place_hold
from carag.cli import Exit
from carag.cli.app import run

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
ANA = "ana@bank.example"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
CELLS = [("buy_side", "invest"), ("public", "public_qa"), ("public", "invest"), ("compliance", "surveil")]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Path:
    """A store of which one question a day was asked, in four cells by turns."""
    home = tmp_path_factory.mktemp("read") / "store"
    now = [START]
    with carag.Engine.open(home, embedder="wordllama", clock=lambda: now[0]) as engine:
        engine.ingest(small_corpus)
        for day in range(8):
            now[0] = START + timedelta(days=1 + day)
            role, purpose = CELLS[day % len(CELLS)]
            engine.ask(QUESTION, carag.Session(role=role, purpose=purpose, subject=ANA))
    return home


@pytest.fixture
def store(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "store"))


def audit(*words: object) -> int:
    return run(["audit", *map(str, words)])


def listed(capsys: pytest.CaptureFixture[str], store: Path, *words: object) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert audit("list", "--store", store, "--json", *words) == Exit.OK
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def shown(capsys: pytest.CaptureFixture[str], store: Path, *words: object) -> dict[str, Any]:
    capsys.readouterr()
    assert audit("show", *words, "--store", store, "--json") == Exit.OK
    return dict(json.loads(capsys.readouterr().out))


# -- list


def test_everything_is_listed_newest_first(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a record and line, or one line of text each and how many there are."""
    with AuditLog.open(store) as log:
        size = log.size
    records = listed(capsys, store)
    assert list(reversed(range(size))) == [one["record"] for one in records]
    assert audit("list", "--store", store) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert size + 1 == len(lines)
    assert f"{size} of {size} records" == lines[-1]
    assert "2026-03-09T12:00:00" in lines[0]
    assert "compliance/surveil" in lines[0]


@pytest.mark.parametrize(
    ("filter_", "holds"),
    [
        (["--role", "public"], lambda one: one.get("role") == "public"),
        (["--purpose", "invest"], lambda one: one.get("purpose") == "invest"),
        (["--outcome", "refuse"], lambda one: one.get("outcome") == "refuse"),
        (["--code", "ANSWERED"], lambda one: one["code"] == "ANSWERED"),
        (["--since", "2026-03-04"], lambda one: one["logged"] >= "2026-03-04"),
        (["--until", "2026-03-04"], lambda one: one["logged"] < "2026-03-05"),
        (["--since", "2026-03-04T12:00:00Z"], lambda one: one["logged"] >= "2026-03-04T12"),
        (["--until", "2026-03-04T12:00:00Z"], lambda one: one["logged"] < "2026-03-04T12"),
        (["--since", "2026-03-04T07:00:00-05:00"], lambda one: one["logged"] >= "2026-03-04T12"),
        (["--role", "stranger"], lambda _: False),
        (["--since", "2030-01-01"], lambda _: False),
    ],
)
def test_a_filter_keeps_what_holds_and_nothing_else(
    asked: Path, filter_: list[str], holds: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """By time, role, purpose, outcome and code; also cut off by a limit."""
    wanted = [one for one in listed(capsys, asked) if holds(one)]
    assert wanted == listed(capsys, asked, *filter_)
    assert wanted[:2] == listed(capsys, asked, *filter_, "--limit", 2)


def test_filters_hold_together(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is listed satisfies each."""
    both = listed(capsys, store, "--purpose", "invest", "--outcome", "refuse", "--since", "2026-03-05")
    assert [("public", "2026-03-08")] == [(one["role"], one["logged"][:10]) for one in both]


def test_a_filter_that_is_none_says_what_is_wanted(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown outcomes, times without zone, invalid times."""
    for words in (["--outcome", "maybe"], ["--since", "2026-03-04T12:00:00"], ["--until", "soon"]):
        assert audit("list", "--store", store, *words) == Exit.CANNOT_TELL
        assert "want" in capsys.readouterr().err or words[1] == "soon"


# -- show


def test_a_record_tells_who_what_for_when_how_and_by_which_bits(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Role and purpose, outcome and code, policy by the names of its bits, state, passages, models, commitments."""
    last = listed(capsys, store, "--role", "buy_side")[0]["record"]
    said = shown(capsys, store, last)
    assert ("buy_side", "invest", "asserted") == (said["role"], said["purpose"], said["session"])
    assert ("answer", "ANSWERED") == (said["outcome"], said["code"])
    assert "2026-03-06T12:00:00+00:00" == said["logged"]
    assert "PD_SPECIAL" in said["policy"]["admits"][0]["hides"]
    assert {"state", "known_at", "admissible_rows", "plan"} == set(said["index"])
    assert 8 == len(said["passages"])
    assert {"wordllama", "extractive"} <= set(said["models"].values())
    assert dict.fromkeys(("answer", "query", "reading", "subject"), "can be opened") == said["commits_to"]
    capsys.readouterr()
    assert audit("show", last, "--store", store) == Exit.OK
    text = capsys.readouterr().out
    for expected in ("buy_side", "ANSWERED", "PD_SPECIAL", "passages          8", "can be opened"):
        assert expected in text
    assert QUESTION not in text
    assert ANA not in text


def test_every_kind_of_record_can_be_shown(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not only questions: also what changed, who erased, held and disclosed, what was measured; by its own number."""
    with AuditLog.open(store) as log:
        place_hold(log, "MATTER-1", actor="counsel", subject="bob@bank.example")
        erase(log, actor="Dora", approver="Carl", basis="GDPR_17_1_D", records=[4], fields=["subject"])
        disclose(log, 3, role="auditor", actor="E. Ve", why="COMPLAINT-3", fields=["query"])
        log.append(Recovery("DRILL"))
        log.append(
            Evaluation(
                started=1, ended=2, suite="s", suite_hash=bytes(32), snapshot=bytes(32), table=bytes(32),
                result=bytes(32), passed=True, thresholds={},
            )
        )  # fmt: skip
        size = log.size
    kinds = {}
    for seq in range(size):
        said = shown(capsys, store, seq)
        assert (seq, f"as the log signed it, among {size} records") == (said["record"], said["proved"])
        kinds[said["kind"]] = seq
    for seq in kinds.values():
        assert audit("show", seq, "--store", store) == Exit.OK


def test_whether_a_value_can_be_opened_is_told_without_a_key(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An erased one names its record; in an auditor's copy, without the key, what is kept stays closed."""
    with AuditLog.open(store) as log:
        erased = erase(
            log, actor="Dora", approver="Carl", basis="GDPR_17_1_D", records=[4], fields=["query"]
        ).seq
    (store / "private.key").unlink()
    (store / "audit.key").unlink()
    assert f"erased by record {erased}" == shown(capsys, store, 4)["commits_to"]["query"]
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("audit.db", "vkey"):
        shutil.copy(store / name, copy)
    assert shown(capsys, store, 4)["commits_to"] == shown(capsys, copy, 4)["commits_to"]
    assert {"kept, but not its key", f"erased by record {erased}"} == set(
        shown(capsys, copy, 4)["commits_to"].values()
    )
    with contextlib.closing(sqlite3.connect(copy / "audit.db", isolation_level=None)) as db:
        db.execute("DROP TABLE value")
    assert {"not kept in this directory"} == set(shown(capsys, copy, 4)["commits_to"].values())
    (copy / "private.db").write_bytes(b"no database")
    assert {"cannot be told: the values cannot be read"} == set(shown(capsys, copy, 4)["commits_to"].values())


def test_a_log_is_read_beside_a_running_engine(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither takes its lock; what it has just written is there."""
    with carag.Engine.open(store, create=False) as engine:
        receipt = engine.ask(QUESTION, carag.Session(role="public", purpose="public_qa", subject=ANA)).receipt
        assert receipt.seq == listed(capsys, store)[0]["record"]
        assert "can be opened" == shown(capsys, store, receipt.seq)["commits_to"]["subject"]
        assert (
            audit("show", 3, "--store", store, "--open", "query", "--purpose", "P", "--actor", "a") != Exit.OK
        )
        assert "close it first" in capsys.readouterr().err


def test_reading_changes_nothing(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a byte changes, and no file is added."""

    def bytes_of() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}

    before = bytes_of()
    listed(capsys, store)
    shown(capsys, store, 4)
    assert before == bytes_of()


def test_what_is_shown_is_proved_first(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An altered record ends in 1 and is not shown; another log's key in 2."""
    with sqlite3.connect(store / "audit.db") as connection:
        connection.execute("UPDATE rec SET body = replace(body, 'buy_side', 'sel_side') WHERE seq = 3")
    connection.close()
    capsys.readouterr()
    for words in (["show", 3], ["list"], ["list", "--role", "sel_side"]):
        assert audit(*words, "--store", store) == Exit.TAMPERED
        assert "sel_side" not in capsys.readouterr().out
    with AuditLog.open(store.parent / "other") as log:
        assert audit("list", "--store", store, "--key", log.vkey) == Exit.CANNOT_TELL
    assert audit("show", 10**6, "--store", store) == Exit.CANNOT_TELL


# -- opening


def test_nothing_is_opened_without_somebody_and_a_purpose(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused with 4, and nothing printed or recorded."""
    before = len(listed(capsys, store))
    for given in ([], ["--purpose", "P-1"], ["--actor", "E. Ve"]):
        assert audit("show", 3, "--store", store, "--open", "query", *given) == Exit.REFUSED
        captured = capsys.readouterr()
        assert "refused (NO_PURPOSE)" in captured.err
        assert "" == captured.out
    assert before == len(listed(capsys, store))


def test_what_is_opened_is_on_record_before_it_is_seen(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disclosure names record, fields, role and purpose; if it cannot be written, nothing is printed."""
    opening = ["--open", "query", "--open", "subject", "--purpose", "COMPLAINT-3", "--actor", "E. Ve"]
    assert {"query": QUESTION, "subject": ANA} == shown(capsys, store, 3, *opening)["opened"]
    newest = listed(capsys, store)[0]
    assert ("disclosure", "auditor", "COMPLAINT-3") == (newest["kind"], newest["role"], newest["code"])
    said = shown(capsys, store, newest["record"])
    assert ["query", "subject"] == said["fields"]
    assert "can be opened" == said["commits_to"]["actor"]
    monkeypatch.setattr(
        AuditLog, "append", lambda *_, **__: (_ for _ in ()).throw(carag.errors.AuditUnavailable("no"))
    )
    assert audit("show", 3, "--store", store, *opening) == Exit.CANNOT_TELL
    assert "" == capsys.readouterr().out


def test_other_roles_are_refused_on_record(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by ``carag audit disclose``."""
    opening = ["--open", "query", "--purpose", "CURIOUS", "--actor", "T. Om", "--role", "trader"]
    assert audit("show", 3, "--store", store, *opening) == Exit.REFUSED
    assert QUESTION not in capsys.readouterr().out
    newest = listed(capsys, store)[0]
    assert ("disclosure", "refuse", "CURIOUS") == (newest["kind"], newest["outcome"], newest["code"])


def test_an_erased_value_is_not_opened(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the record of the erasure."""
    with AuditLog.open(store) as log:
        erased = erase(
            log, actor="Dora", approver="Carl", basis="GDPR_17_1_D", records=[3], fields=["query"]
        ).seq
    opening = ["--open", "query", "--purpose", "LATE", "--actor", "E. Ve"]
    assert audit("show", 3, "--store", store, *opening) == Exit.CANNOT_TELL
    assert f"erased by record {erased}" in capsys.readouterr().err
