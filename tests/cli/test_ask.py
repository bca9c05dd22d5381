"""``carag ask``, ``explain`` and ``verify``: outcomes become exit codes, help teaches, JSON is JSON."""

from __future__ import annotations

import json
import shutil
from inspect import signature
from pathlib import Path

import pytest

from carag import Engine
from carag.audit.auditor.describe import CODES
from carag.cli import Exit
from carag.cli.app import run
from carag.cli.ask import ask
from carag.generation.guarded import DeclineCode

ROLE = ["--role", "buy_side", "--purpose", "invest"]
NAMED = "What was revenue of Tidewater Instruments in 2024?"
QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


@pytest.fixture
def store(ingested: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(ingested, tmp_path / "store"))


def test_ask_answers_and_its_receipt_verifies(store: str, tmp_path: Path) -> None:
    """0 and 0; the key as a file or as text."""
    receipt = tmp_path / "r.json"
    assert run(["ask", QUESTION, "--store", store, *ROLE, "--receipt", str(receipt)]) == Exit.OK
    assert run(["verify", str(receipt), "--key", f"{store}/vkey"]) == Exit.OK
    vkey = Path(store, "vkey").read_text().strip()
    assert run(["verify", str(receipt), "--key", vkey]) == Exit.OK


def test_what_was_understood_is_said_in_one_line_and_on_record(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal, as JSON and in the receipt; of a question that names nothing, and by `dense`, no word."""
    receipt = str(tmp_path / "r.json")
    asked = ["ask", NAMED, "--store", store, *ROLE, "--receipt", receipt]
    run(asked)
    assert capsys.readouterr().out.splitlines().count("Read: Tidewater Instruments; 2024") == 1
    run([*asked, "--json"])
    assert json.loads(capsys.readouterr().out)["understood"] == "Tidewater Instruments; 2024"
    assert run(["verify", receipt, "--key", f"{store}/vkey"]) == Exit.OK
    said = capsys.readouterr().out
    assert "read as:      Tidewater Instruments; 2024\n" in said
    assert "ranked by:    fused-1 " in said
    assert run(["verify", receipt, "--key", f"{store}/vkey", "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["models"]["rank"].startswith("fused-1 ")
    for more in (["--ranker", "dense"], []):
        run(
            ["ask", NAMED if more else "What was paid?", "--store", store, *ROLE, "--receipt", receipt, *more]
        )
        assert "Read:" not in capsys.readouterr().out
        run(["verify", receipt, "--key", f"{store}/vkey"])
        said = capsys.readouterr().out
        assert "read as" not in said
        assert ("ranked by" in said) == (not more)


def test_the_ranker_comes_from_option_variable_or_file_and_must_be_one(
    store: str,
    own_settings: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this order; the default is the engine's, which takes what the store's profile says."""
    asked = ["ask", NAMED, "--store", store, *ROLE]
    default = signature(Engine.open).parameters["ranker"].default
    assert signature(ask).parameters["ranker"].default == default is None

    def reads(*more: str) -> bool:
        run([*asked, *more])
        return "Read:" in capsys.readouterr().out

    assert reads()
    (own_settings / "carag.toml").write_text('schema = 1\nranker = "dense"\n')
    assert not reads()
    monkeypatch.setenv("CARAG_RANKER", "fused-1")
    assert reads()
    assert not reads("--ranker", "dense")
    assert reads("--ranker", "fused-1+mmr-0.7-20")
    assert run([*asked, "--ranker", "fused-1+mmr"]) == Exit.BAD_INPUT
    assert "such as fused-1+mmr-0.7-20" in capsys.readouterr().err.replace("\n", " ")
    assert run([*asked, "--ranker", "densest"]) == Exit.BAD_INPUT
    assert "want one of fused-1, dense" in capsys.readouterr().err.replace("\n", " ")
    monkeypatch.delenv("CARAG_RANKER")
    (own_settings / "carag.toml").write_text('schema = 1\nranker = "densest"\n')
    assert run(asked) == Exit.BAD_INPUT
    assert "carag.toml, line 2" in (said := capsys.readouterr().err.replace("\n", " "))
    assert "want one of fused-1, dense" in said


def test_every_code_of_a_decline_has_words() -> None:
    """By which `carag verify` says what it means."""
    assert {code.value for code in DeclineCode} <= CODES.keys()


def test_passages_without_a_state_proof_are_named(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A receipt without proofs verifies, and says of which passages the index state is not proved."""
    receipt = tmp_path / "r.json"
    run(["ask", QUESTION, "--store", store, *ROLE, "--receipt", str(receipt)])
    command = ["verify", str(receipt), "--key", f"{store}/vkey"]
    capsys.readouterr()
    assert run([*command, "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["unproved"] == []
    fields = json.loads(receipt.read_bytes())
    for hit in fields["hits"]:
        hit["proof"] = None
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    receipt.write_text(text + "\n", encoding="utf-8")
    assert run([*command, "--json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert said["unproved"] == [hit["chunk"] for hit in fields["hits"]] != []
    assert run(command) == Exit.OK
    assert "without a proof that they stood in the index state" in capsys.readouterr().out.replace("\n", " ")


def test_a_tampered_receipt_exits_1_and_an_unreadable_one_2(store: str, tmp_path: Path) -> None:
    """Failed is not the same as cannot tell."""
    receipt = tmp_path / "r.json"
    run(["ask", QUESTION, "--store", store, *ROLE, "--receipt", str(receipt)])
    good = receipt.read_bytes()
    text = good.index(b'"text":"') + 8
    receipt.write_bytes(good[:text] + bytes([good[text] ^ 1]) + good[text + 1 :])
    assert run(["verify", str(receipt), "--key", f"{store}/vkey"]) == Exit.TAMPERED
    receipt.write_bytes(good[:-20])
    assert run(["verify", str(receipt), "--key", f"{store}/vkey"]) == Exit.CANNOT_TELL


def test_another_logs_key_cannot_tell(store: str, tmp_path: Path) -> None:
    """Neither verified nor tampered."""
    receipt = tmp_path / "r.json"
    run(["ask", QUESTION, "--store", store, *ROLE, "--receipt", str(receipt)])
    other = tmp_path / "other"
    run(["ask", QUESTION, "--store", str(other), *ROLE])  # no store, none made
    assert not other.exists()
    from carag.audit import AuditLog

    with AuditLog.open(other) as log:
        assert run(["verify", str(receipt), "--key", log.vkey]) == Exit.CANNOT_TELL


def test_declines_exit_3_and_refusals_4(store: str) -> None:
    """The session decides a refusal, the evidence a decline."""
    early = ["--as-of", "1990-01-01"]
    assert run(["ask", QUESTION, "--store", store, *ROLE, *early]) == Exit.DECLINED
    for cell in (["wizard", "invest"], ["public", "invest"], ["dpo", "dsar"]):
        arguments = ["ask", QUESTION, "--store", store, "--role", cell[0], "--purpose", cell[1]]
        assert run(arguments) == Exit.REFUSED


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["ask", QUESTION],
        ["ask", QUESTION, "--store", "x"],
        ["ask", QUESTION, "--store", "x", *ROLE, "--filter", "all"],
        ["fly"],
        ["verify", "r.json"],
    ],
)
def test_usage_errors_exit_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A missing session is one of them: there is no default."""
    assert run(arguments) == Exit.USAGE
    assert "usage" in capsys.readouterr().err


def test_bad_input_exits_65(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No store, no time zone, no file."""
    for arguments in (
        ["ask", QUESTION, "--store", str(tmp_path / "none"), *ROLE],
        ["ask", QUESTION, "--store", store, *ROLE, "--as-of", "yesterday"],
        ["ask", QUESTION, "--store", store, *ROLE, "--as-of", "2025-05-01T10:00:00"],
        ["ask", "", "--store", store, *ROLE],
        ["ask", QUESTION, "--store", store, *ROLE, "--generator", "oracle"],
        ["verify", str(tmp_path / "none.json"), "--key", f"{store}/vkey"],
        ["ingest", str(tmp_path / "none"), "--store", store],
    ):
        assert run(arguments) == Exit.BAD_INPUT, arguments
        assert capsys.readouterr().err


def test_an_unwritable_log_exits_70(store: str) -> None:
    """And prints no answer."""
    Path(store, "audit.key").chmod(0o644)
    assert run(["ask", QUESTION, "--store", store, *ROLE]) == Exit.INTERNAL


def test_json_is_one_object_on_standard_output(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For answers, refusals, explanations and ingestion alike."""
    run(["ask", QUESTION, "--store", store, *ROLE, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["outcome"] == "answer"
    chunk = answer["citations"][0]["chunk_id"]
    run(["explain", chunk, "--store", store, *ROLE, "--json"])
    assert json.loads(capsys.readouterr().out)["why"] == "ADMISSIBLE"
    run(["ask", QUESTION, "--store", store, "--role", "x", "--purpose", "y", "--json"])
    assert json.loads(capsys.readouterr().out)["why"] == "UNKNOWN_ROLE"


def test_an_access_request_needs_somebody(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With a list of persons the cell opens; number 0 is not a person."""
    ask = ["ask", QUESTION, "--store", store, "--role", "dpo", "--purpose", "dsar"]
    assert run(ask) == Exit.REFUSED
    assert run([*ask, "--entity", "1", "--entity", "320193"]) in {Exit.OK, Exit.DECLINED}
    assert run([*ask, "--entity", "320193"]) in {Exit.OK, Exit.DECLINED}
    assert run([*ask, "--entity", "0"]) == Exit.BAD_INPUT
    assert run([*ask, "--entity", "apple"]) == Exit.USAGE


def test_explain_says_who_could_lift_it(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule, regulation, cause and remedy: for a role that may know, and for no other."""
    compliance = ["--store", store, "--role", "compliance", "--purpose", "surveil"]
    capsys.readouterr()
    run(["ask", "board diversity matrix", *compliance, "--json"])
    hidden = json.loads(capsys.readouterr().out)["withheld"]["hidden"][0]["chunk_id"]
    assert run(["explain", hidden, *compliance]) == Exit.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "FORBIDDEN:PD_SPECIAL" in said
    assert "lifted by: nobody but the person: on an access request" in said
    assert "GDPR Art. 9" in said
    assert run(["explain", hidden, "--store", store, *ROLE]) == Exit.DECLINED
    assert "PD_SPECIAL" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["ingest", "ask", "explain", "verify"])
def test_help_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command shows a whole line to try, and the README names it."""
    assert run([command, "--help"]) == Exit.OK
    assert f"carag {command}" in capsys.readouterr().out
    assert f"carag {command}" in Path(__file__).parents[2].joinpath("README.md").read_text()
