"""``carag verify`` and ``carag receipt``: an auditor reads what was proved, and no receipt writes to the terminal."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from carag.audit import (
    Access,
    AuditLog,
    IndexState,
    Models,
    Outcome,
    Passage,
    PolicyApplied,
    Recovery,
    SessionSource,
    redact,
)
from carag.audit.auditor import describe
from carag.cli.verify import run
from carag.generation.guarded import DeclineCode
from carag.policy import PolicyTable, bits_of, inference, policy_word

EVIL = "\x1b[31mred\x1b]0;title\x07\u202eturned\u2066\nverified: all of it\r\nFAILED: none"
SECRETS = {"query": "Who sold?", "answer": "No one sold.\nNot one.", "subject": "ana@bank.example"}
TABLE = PolicyApplied(
    bytes.fromhex(PolicyTable.shipped().sha256),
    masks=((bits_of(["J_US"]), bits_of(["PD_SPECIAL"])), (0, bits_of(["OFFERING"]))),
)


def access(**changes) -> Access:
    values = {
        "kind": "query",
        "started": 1_763_755_555_123_456,
        "ended": 1_763_755_556_345_678,
        "role": "buy_side",
        "purpose": "invest",
        "source": SessionSource.ASSERTED,
        "as_of": 29_395_925,
        "policy": TABLE,
        "index": IndexState(b"S" * 32, 4, "exact", 1_763_755_555_000_000),
        "models": Models("minilm"),
        "outcome": Outcome.ANSWER,
        "why": "ANSWERED",
    }
    return Access(**{**values, **changes})


def passage(text="No one sold anything.", chunk="0000000001-25-000001:00003", **changes) -> Passage:
    return Passage(chunk, text, **{"similarity": 0.5, "word": policy_word(bits_of(["J_US"])), **changes})


@pytest.fixture
def issue(tmp_path: Path):
    """Issue a receipt from a log of its own; return its file and the log's key."""

    def issued(event=None, secrets=SECRETS, passages=None) -> tuple[str, str]:
        event = event or access()
        passages = [passage(cited=True)] if passages is None else passages
        with AuditLog.open(tmp_path / "log", origin="audit.example/test") as log:
            log.append(event, secrets=secrets, passages=passages).write(tmp_path / "r.json")
            return str(tmp_path / "r.json"), log.vkey

    return issued


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = run(words)
    return code, capsys.readouterr().out


def test_a_verified_receipt_says_who_why_when_what_and_by_which_rules(issue, capsys) -> None:
    """What was proved is said in words, followed by what a receipt cannot show."""
    receipt, key = issue()
    code, text = said(["verify", receipt, "--key", key], capsys)
    assert code == 0
    for fact in (
        "verified: record 0 of audit.example/test is as the log signed it",
        "ana@bank.example",
        "buy_side, for invest",
        "asserted",
        "asked:        2025-11-21 20:05:55+00:00, of what was public by 2025-11-21 20:05:00+00:00",
        "question:     Who sold?",
        "answer (ANSWERED: answered from the passages below)",
        "answer:       No one sold.\n              Not one.",
        "0000000001-25-000001:00003, similarity 0.500, cited; J_US",
        "requires J_US; hides documents with PD_SPECIAL",
        "or:           hides documents with OFFERING",
        "PD_SPECIAL: special-category data of individuals",
        "without a proof that they stood in the index state: 0000000001-25-000001:00003",
        "A receipt does not show that the log still holds this record",
    ):
        assert fact in text


def test_every_reason_not_to_answer_has_words() -> None:
    """Each code with which a session is refused or a question declined."""
    tree = ast.parse(Path(inference.__file__).read_text())
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Refused"
    ]
    codes = {ast.literal_eval(call.args[0]) for call in calls} | set(DeclineCode)
    assert {"UNKNOWN_ROLE", "BELOW_GATE"} < codes
    assert set() == codes - describe.CODES.keys()


def test_json_holds_the_same_facts(issue, capsys) -> None:
    """One object, with the keys it always had and those of the facts."""
    receipt, key = issue()
    code, text = said(["verify", receipt, "--key", key, "--json"], capsys)
    found = json.loads(text)
    assert code == 0
    assert {"verdict", "reason", "undisclosed", "unproved", "withheld", "not_shown"} <= found.keys()
    assert found["who"] == {"value": "ana@bank.example", "because": None}
    assert (found["role"], found["purpose"], found["session"]) == ("buy_side", "invest", "asserted")
    assert (found["outcome"], found["code"]) == ("answer", "ANSWERED")
    assert (found["question"]["value"], found["answer"]["value"]) == (SECRETS["query"], SECRETS["answer"])
    assert found["passages"][0]["text"] == "No one sold anything."
    assert found["policy"]["admits"][0] == {"requires": ["J_US"], "hides": ["PD_SPECIAL"]}


@pytest.mark.parametrize("options", [[], ["--json"], ["--passages"]])
def test_no_receipt_writes_to_the_terminal(issue, capsys, options: list[str]) -> None:
    """No control, format or bidi character comes through, and no text of a receipt makes a line of a verdict."""
    wicked = {"query": EVIL, "answer": EVIL, "subject": EVIL}
    receipt, key = issue(secrets=wicked, passages=[passage(text=EVIL, cited=True)])
    code, text = said(["verify", receipt, "--key", key, *options], capsys)
    hidden = {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"}} - {"\n"}
    assert (code, hidden) == (0, set())
    verdicts = [line for line in text.split("\n")[1:] if line.startswith(("verified", "FAILED", "failed"))]
    assert verdicts == []


def test_a_long_passage_is_shortened_unless_asked_for(issue, capsys) -> None:
    """The first 120 characters, and with --passages all."""
    receipt, key = issue(passages=[passage(text="word " * 100 + "end")])
    assert (
        "end" not in said(["verify", receipt, "--key", key], capsys)[1].split("passage 1")[1].split("rule")[0]
    )
    assert "word end\n" in said(["verify", receipt, "--key", key, "--passages"], capsys)[1]


def test_what_is_left_out_is_said_to_be(issue, capsys, tmp_path: Path) -> None:
    """`carag receipt redact` writes a receipt that verifies, and shows a commitment where a value was."""
    receipt, key = issue(passages=[passage(cited=True), passage(chunk="0000000001-25-000002:00001")])
    less = str(tmp_path / "less.json")
    words = ["receipt", "redact", receipt, "--out", less, "--drop", "subject", "--drop", "answer"]
    assert said([*words, "--passages", "2", "--proofs", "all", "--until"], capsys)[0] == 0
    expected = redact(Path(receipt).read_bytes(), drop={"subject", "answer"}, passages={2})
    assert Path(less).read_bytes() == expected
    code, text = said(["verify", less, "--key", key], capsys)
    assert code == 0
    assert "withheld from this receipt: answer, subject, passage 2" in text
    assert "who:          (commitment only: withheld from this receipt)" in text
    assert "passage 2:    (withheld from this receipt)" in text
    assert "ana@bank.example" not in text
    script = Path(__file__).parents[2] / "scripts" / "verify_receipt.py"
    other = subprocess.run([sys.executable, script, less, "--key", key], capture_output=True, text=True)
    assert other.stdout.splitlines() == text.split("\n\n")[0].splitlines()


def test_a_record_of_a_change_is_told_too(issue, capsys) -> None:
    """For a record that is not a request: kind, time and members."""
    receipt, key = issue(Recovery("DRILL"), secrets={}, passages=[])
    code, text = said(["verify", receipt, "--key", key], capsys)
    assert (code, "as recovery" in text, "DRILL" in text) == (0, True, True)
    assert json.loads(said(["verify", receipt, "--key", key, "--json"], capsys)[1])["code"] == "DRILL"


def test_a_receipt_that_does_not_verify_shows_nothing(issue, capsys) -> None:
    """Verdict and reason alone, as text and as JSON."""
    receipt, key = issue()
    data = Path(receipt).read_bytes()
    Path(receipt).write_bytes(data.replace(b"No one sold anything", b"Somebody sold it all"))
    code, text = said(["verify", receipt, "--key", key], capsys)
    assert (code, len(text.splitlines()), "sold" in text) == (1, 1, False)
    found = json.loads(said(["verify", receipt, "--key", key, "--json"], capsys)[1])
    assert found.keys() == {"verdict", "reason", "undisclosed", "unproved", "withheld"}


def test_exit_codes_are_those_of_the_table(issue, capsys, tmp_path: Path, monkeypatch) -> None:
    """2 cannot tell, 64 usage, 65 bad input, 70 anything unforeseen: 1 only for a failed check."""
    receipt, key = issue()
    (tmp_path / "none.txt").write_text("[" * 900 + "]" * 900)
    words = ["verify", receipt, "--key", key]
    for arguments, code in (
        (["verify", str(tmp_path / "none.txt"), "--key", key], 2),
        (["verify"], 64),
        (["verify", receipt], 64),
        ([*words, "--filter", "all"], 64),
        (["receipt"], 64),
        (["receipt", "redact", receipt], 64),
        (["verify", str(tmp_path / "missing"), "--key", key], 65),
        (["verify", receipt, "--key", "nonsense"], 65),
        ([*words, "--second-opinion", "aunt"], 65),
        (["receipt", "redact", receipt, "--out", str(tmp_path / "x"), "--passages", "7"], 65),
        (["receipt", "redact", receipt, "--out", str(tmp_path / "x"), "--passages", "1-"], 65),
        (["receipt", "redact", receipt, "--out", str(tmp_path / "x"), "--drop", "colour"], 65),
        (["receipt", "redact", receipt, "--out", str(tmp_path / "no" / "x")], 65),
        (["receipt", "redact", str(tmp_path / "none.txt"), "--out", str(tmp_path / "x")], 65),
    ):
        assert run(arguments) == code, arguments
    assert not (tmp_path / "x").exists()
    for error in (RecursionError, MemoryError, KeyError, AssertionError):

        def fail(*_: object, error: type[Exception] = error) -> None:
            raise error("secret")

        monkeypatch.setattr("carag.cli.verify.verify_receipt", fail)
        capsys.readouterr()
        assert run(words) == 70
        assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_no_terminal_makes_a_verified_receipt_anything_else(issue, encoding: str) -> None:
    """Letters that it lacks are spelt out; a reader who goes away is not a failed check."""
    receipt, key = issue(secrets={**SECRETS, "answer": "Ærø — 3 %"})
    command = f"{sys.executable} -m carag verify {receipt} --key '{key}'"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment)
    assert (done.returncode, done.stderr, b"3 %" in done.stdout) == (0, b"", True)
    for gone in (">&-", ">/dev/full"):
        left = subprocess.run(["sh", "-c", f"{command} {gone}"], capture_output=True, env=environment)
        assert left.returncode not in {0, 1}


def test_an_auditor_needs_neither_typer_nor_the_models(issue) -> None:
    """Where these packages are absent, it verifies all the same."""
    receipt, key = issue()
    absent = (
        "typer",
        "rich",
        "onnxruntime",
        "tokenizers",
        "safetensors",
        "carag.cli.app",
        "carag.engine",
        "carag.index",
    )
    code = f"import sys; sys.modules.update(dict.fromkeys({absent!r}))\n"
    code += "from carag.cli.verify import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", receipt, "--key", key], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "ana@bank.example" in done.stdout
