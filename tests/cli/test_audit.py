"""``carag audit``: verdicts become exit codes, 0 holds, 1 tampered, 2 cannot tell; and masks are derived again."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

import carag
from carag.audit import AuditLog
from carag.cli import Exit
from carag.cli.app import run
from carag.policy import DealWindow, LegalBasis, PolicyTable

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
TABLE = PolicyTable.shipped()


def sessions():
    """Every cell, and everything a session can bring."""
    plain = [
        carag.Session(role=cell.role, purpose=cell.purpose, allow_entities={1, 9990077})
        if cell.allow_list == "mandatory"
        else carag.Session(role=cell.role, purpose=cell.purpose, subject="ana@bank.example")
        for cell in TABLE.cells
    ]
    now = datetime(2026, 11, 1, tzinfo=UTC)
    window = DealWindow(9990001, now, now + timedelta(days=9))
    return [
        *plain,
        carag.Session(
            role="buy_side", purpose="invest", residency={"J_EU", "J_UK"}, cooling=timedelta(hours=1)
        ),
        carag.Session(role="buy_side", purpose="invest", eu_transfer_basis=False),
        carag.Session(role="sell_side", purpose="publish", deals=(window,)),
        carag.Session(role="sell_side", purpose="publish", deals=(), restricted={5, 6}),
        carag.Session(role="compliance", purpose="surveil", legal_basis=LegalBasis("legal_obligation")),
        carag.Session(role="wizard", purpose="invest"),
        carag.Session(role="public", purpose="invest"),
        carag.Session(role="dpo", purpose="dsar"),
    ]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, ingested: Path):
    """Ask as every session, plainly and with words that tighten; keep receipts."""
    home = tmp_path_factory.mktemp("asked")
    with carag.Engine.open(shutil.copytree(ingested, home / "store")) as engine:
        for session in sessions():
            for question in (QUESTION, "What do the latest audited figures of Dr. Cardew show?"):
                answer = engine.ask(question, session)
                answer.receipt.write(home / f"{answer.receipt.seq}.json")
        engine.explain("no such chunk", sessions()[0])
        engine.retrieve(QUESTION, sessions()[0])
    shutil.copy(home / "store" / "vkey", home / "vkey")
    return home


@pytest.fixture
def home(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "home"))


def audit(*words: object) -> int:
    return run(["audit", *map(str, words)])


def tamper(home: Path, statement: str) -> None:
    with sqlite3.connect(home / "store" / "audit.db") as connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


# -- verify


def test_a_whole_log_verifies(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0; what was kept elsewhere is named, or the limit is stated without it."""
    assert audit("verify", "--store", home / "store") == Exit.OK
    assert "truncation and rollback cannot be detected" in capsys.readouterr().out
    words = ["--vkey", home / "vkey", "--receipt", home / "3.json", "--receipt", home / "7.json"]
    assert audit("verify", "--store", home / "store", *words, "--json") == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["extends"]) == ("verified", [str(home / "3.json"), str(home / "7.json")])
    assert audit("verify", "--store", home / "store", "--second-opinion", "pymerkle") == Exit.OK
    assert audit("verify", "--store", home / "store", "--second-opinion", "aunt") == Exit.CANNOT_TELL


def test_a_log_in_use_verifies(home: Path) -> None:
    """The engine need not stop."""
    with carag.Engine.open(home / "store", create=False) as engine:
        engine.ask(QUESTION, sessions()[0])
        assert audit("verify", "--store", home / "store", "--vkey", engine.vkey) == Exit.OK


def test_tampering_exits_1(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it is found in the log or only against a receipt."""
    tamper(home, "UPDATE rec SET body = replace(body, 'invest', 'advise') WHERE seq = 1")
    assert audit("verify", "--store", home / "store") == Exit.TAMPERED
    assert audit("export", "--store", home / "store", "--out", home / "out") == Exit.TAMPERED
    assert audit("replay", "--store", home / "store") == Exit.TAMPERED
    assert audit("prove", 1, "--store", home / "store", "--out", home / "p") == Exit.TAMPERED
    assert "record 1" in capsys.readouterr().err
    assert not (home / "p").exists()


def test_a_rollback_exits_1_only_against_a_receipt(home: Path) -> None:
    """Which is why receipts are kept elsewhere."""
    shutil.copytree(home / "store", home / "earlier")
    with carag.Engine.open(home / "store", create=False) as engine:
        engine.ask(QUESTION, sessions()[0]).receipt.write(home / "newest.json")
        (home / "newest.checkpoint").write_text(engine._log.checkpoint())
    words = ["--store", home / "earlier", "--vkey", home / "vkey"]
    assert audit("verify", *words) == Exit.OK
    assert audit("verify", *words, "--receipt", home / "newest.json") == Exit.TAMPERED
    assert audit("verify", *words, "--checkpoint", home / "newest.checkpoint") == Exit.TAMPERED
    assert (
        audit("export", *words, "--checkpoint", home / "newest.checkpoint", "--out", home / "o")
        == Exit.TAMPERED
    )
    assert audit("consistency", home / "newest.checkpoint", *words) == Exit.TAMPERED


def test_what_cannot_be_told_exits_2(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No log, no key, not what it should be, or another log's."""
    with AuditLog.open(tmp_path / "other") as log:
        other = log.vkey
    (home / "broken.json").write_bytes((home / "3.json").read_bytes()[:-9])
    store = ["--store", home / "store"]
    for words in (
        ["verify", "--store", tmp_path / "none"],
        ["verify", *store, "--vkey", "nonsense"],
        ["verify", *store, "--vkey", other],
        ["verify", *store, "--receipt", home / "broken.json"],
        ["verify", *store, "--receipt", home / "none.json"],
        ["verify", *store, "--vkey", home / "vkey", "--checkpoint", home / "vkey"],
        ["prove", 10**6, *store, "--out", home / "p"],
        ["prove", 1, *store, "--out", home / "vkey" / "below"],
        ["consistency", 10**6, *store],
        ["consistency", 0, *store],
        ["consistency", 3],
        ["consistency", home / "3.json", "--proof", home / "vkey"],
        ["replay", *store, "--table", home / "vkey"],
        ["export", *store, "--out", home],
    ):
        assert audit(*words) == Exit.CANNOT_TELL, words
        assert "undecided" in capsys.readouterr().err


def test_the_key_of_before_a_rotation_cannot_tell(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 and what to do, for the log and for a receipt; 0 with both keys."""
    store, later = home / "store", tmp_path / "later.json"
    assert audit("rotate", "--store", store, "--overlap-days", 0) == Exit.OK
    ask = ["ask", QUESTION, "--store", str(store), "--role", "buy_side", "--purpose", "invest"]
    assert run([*ask, "--receipt", str(later)]) == Exit.OK
    capsys.readouterr()
    for command in (
        ["audit", "verify", "--store", str(store), "--vkey", str(home / "vkey")],
        ["audit", "verify", "--store", str(store), "--receipt", str(later), "--vkey", str(home / "vkey")],
        ["verify", str(later), "--key", str(home / "vkey")],
    ):
        assert run(command) == Exit.CANNOT_TELL
        told = capsys.readouterr()
        assert "give all vkeys" in " ".join((told.out + told.err).split())
        assert run([*command[:-1], str(store / "vkey")]) == Exit.OK
        capsys.readouterr()
    script = [sys.executable, "scripts/verify_receipt.py", str(later), "--key"]
    for key, code in ((home / "vkey", 2), (store / "vkey", 0)):
        root = Path(__file__).parents[2]
        done = subprocess.run([*script, str(key)], check=False, cwd=root, capture_output=True, text=True)
        assert done.returncode == code
        assert code == 0 or "give all keys if it was rotated" in done.stdout


def test_usage_errors_exit_64() -> None:
    """As everywhere."""
    assert audit("verify") == Exit.USAGE
    assert audit("prove", "x", "--store", "s", "--out", "o") == Exit.USAGE


# -- prove, consistency, export, a second opinion


def test_a_proof_is_three_files_and_judged_elsewhere(home: Path) -> None:
    """Record verbatim, tlog-proof, vkey."""
    assert audit("prove", 3, "--store", home / "store", "--out", home / "p") == Exit.OK
    fields = json.loads((home / "3.json").read_bytes())
    assert (home / "p" / "record.json").read_bytes() == fields["record"].encode()
    assert (home / "p" / "vkey").read_text() == (home / "vkey").read_text()
    assert (home / "p" / "proof.tlog-proof").read_text().startswith("c2sp.org/tlog-proof@v1\nindex 3\n")


def test_consistency_is_proved_and_checked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a number, a checkpoint or a receipt; the proof is checked against the checkpoint without the log."""
    proof = re.sub(r"(?s)^.*?\n\n", "", json.loads((home / "3.json").read_text())["proof"], count=1)
    (home / "old").write_text(proof)
    for old in (4, home / "old", home / "3.json"):
        assert audit("consistency", old, "--store", home / "store", "--out", home / "c") == Exit.OK
        assert (home / "c").read_text().startswith("old 4\n")
        assert audit("consistency", home / "old", "--proof", home / "c", "--vkey", home / "vkey") == Exit.OK
    (home / "c").write_text((home / "c").read_text().replace("old 4", "old 5"))
    assert audit("consistency", home / "old", "--proof", home / "c", "--vkey", home / "vkey") == Exit.TAMPERED
    (home / "c").write_text("x")
    assert (
        audit("consistency", home / "old", "--proof", home / "c", "--vkey", home / "vkey") == Exit.CANNOT_TELL
    )
    capsys.readouterr()
    assert audit("consistency", 4, "--store", home / "store") == Exit.OK
    assert capsys.readouterr().out.startswith("old 4\n")


def test_a_proof_is_checked_against_all_that_it_can_be_made_from(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A receipt is taken where a checkpoint is; what cannot be read is named by its file, and is never tampering."""
    receipt, proof, key = home / "3.json", home / "proof", ("--vkey", home / "vkey")
    assert audit("consistency", receipt, "--store", home / "store", "--out", proof) == Exit.OK
    assert audit("consistency", receipt, "--proof", proof, *key) == Exit.OK
    (home / "broken").write_bytes(receipt.read_bytes()[:-9])
    for old, given, at_fault in ((home / "broken", proof, "broken"), (receipt, home / "vkey", "vkey")):
        capsys.readouterr()
        assert audit("consistency", old, "--proof", given, *key) == Exit.CANNOT_TELL
        said = capsys.readouterr()
        assert f"undecided: {home / at_fault}: " in said.out + said.err


def test_an_export_has_every_record(home: Path) -> None:
    """One a line."""
    assert (
        audit("export", "--store", home / "store", "--out", home / "out", "--vkey", home / "vkey") == Exit.OK
    )
    with AuditLog.open(home / "store") as log:
        assert len((home / "out" / "records.jsonl").read_bytes().splitlines()) == log.size
        assert (home / "out" / "checkpoint").read_text() == log.checkpoint()


def test_all_that_is_handed_out_satisfies_the_standalone_verifier(home: Path, tmp_path: Path) -> None:
    """Receipts of every session, a proof and an export: Python alone, and no passage without its state proof."""
    script = Path(__file__).parents[2] / "scripts" / "verify_receipt.py"
    store = ["--store", home / "store"]
    assert audit("prove", 3, *store, "--out", tmp_path / "p") == Exit.OK
    assert audit("export", *store, "--out", tmp_path / "e") == Exit.OK
    receipts = sorted(home.glob("*.json"))
    assert len(receipts) == 2 * len(sessions())
    code = """
import runpy, sys
run = runpy.run_path(sys.argv[1])["main"]
for path in sys.argv[3:]:
    print(run([path, "--key", sys.argv[2]]))
"""
    given = [home / "vkey", *receipts, tmp_path / "p", tmp_path / "e"]
    command = [sys.executable, "-I", "-S", "-c", code, script, *given]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines, count = said.splitlines(), len(receipts) + 2
    assert [line for line in lines if line.isdecimal()] == ["0"] * count, said
    assert sum(line.startswith("verified: ") for line in lines) == count
    assert "stood in its index state" in said
    assert "without a proof" not in said


def test_a_receipt_gets_a_second_opinion(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which can cast doubt, and can never verify what we do not."""
    words = ["verify", str(home / "3.json"), "--key", str(home / "vkey"), "--second-opinion", "pymerkle"]
    assert run(words) == Exit.OK
    monkeypatch.setattr(
        "carag.audit.auditor.second_opinion.second_opinion_on", lambda receipt: "State does not match"
    )
    assert run(words) == Exit.CANNOT_TELL
    monkeypatch.setattr("carag.audit.auditor.second_opinion.second_opinion_on", lambda receipt: None)
    data = (home / "3.json").read_bytes()
    (home / "3.json").write_bytes(data.replace(b"invest", b"advise", 1))
    assert run(words) == Exit.TAMPERED
    assert run([*words[:-1], "aunt"]) == Exit.TAMPERED


# -- replay


def test_everything_asked_replays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every cell, list, intent, residency, transfer, cooling and refusal: nothing contradicts the table."""
    assert audit("replay", "--store", home / "store", "--json") == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert said["contradictions"] == []
    assert said["replayed"] == 2 * len(sessions()) + 2
    assert said["records"] == said["replayed"] + 3  # table, models and ingest


def test_records_under_another_table_cannot_be_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are counted, not judged by the wrong table."""
    text = files("carag").joinpath("profiles/edgar/roles.toml").read_text("utf-8")
    (home / "table.toml").write_text(text + "\n# another\n")
    assert (
        audit("replay", "--store", home / "store", "--table", home / "table.toml", "--json")
        == Exit.CANNOT_TELL
    )
    said = json.loads(capsys.readouterr().out)
    assert (said["replayed"], said["undecided"]) == (0, said["records"] - 3)


@pytest.mark.parametrize(
    "command", ["verify", "list", "show", "prove", "consistency", "replay", "export", "anchor", "rotate"]
)
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A whole line to try."""
    assert audit(command, "--help") == Exit.OK
    assert f"carag audit {command}" in capsys.readouterr().out
