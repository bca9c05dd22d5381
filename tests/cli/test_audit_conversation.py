"""``carag audit list --session``: the requests of a conversation, found by an id that no record or receipt shows."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import carag
from carag.audit import AuditLog, Basis, erase
from carag.audit.private.openable import PrivateReader
from carag.cli import Exit
from carag.cli.app import run
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from pathlib import Path

ANA = "ana@bank.example"
ID = "chat-2026-11-23/7"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that was asked in two conversations, and outside of any."""
    home = tmp_path / "store"
    with carag.Engine.open(home, embedder="wordllama") as engine:
        for conversation in (ID, None, "another", ID):
            session = carag.Session(
                role="compliance", purpose="surveil", subject=ANA, conversation=conversation
            )
            engine.ask("Who pays?", session)
        refused = carag.Session(role="stranger", purpose="invest", conversation=ID)
        assert engine.ask("Who pays?", refused).outcome is carag.Outcome.REFUSE
    return home


def listed(capsys: pytest.CaptureFixture[str], store: Path, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["audit", "list", "--store", str(store), "--json", *words]) == Exit.OK
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_conversation_is_found_by_its_id_with_refusals(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Newest first, also under other filters; an unused id finds nothing."""
    asked = [one["record"] for one in listed(capsys, store, "--outcome", "decline")]
    refused = [one["record"] for one in listed(capsys, store, "--outcome", "refuse")]
    found = [one["record"] for one in listed(capsys, store, "--session", ID)]
    assert found == [*refused, asked[0], asked[3]]
    assert [one["record"] for one in listed(capsys, store, "--session", ID, "--outcome", "refuse")] == refused
    assert [one["record"] for one in listed(capsys, store, "--session", ID, "--limit", "1")] == refused
    assert listed(capsys, store, "--session", "unused") == []


def test_it_is_found_while_the_store_is_open(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the lock nor the signing key is asked for."""
    with carag.Engine.open(store, create=False) as engine:
        engine.ask("Who pays?", carag.Session(role="compliance", purpose="surveil", conversation=ID))
        assert len(listed(capsys, store, "--session", ID)) == 4


def test_no_record_and_no_receipt_shows_the_id(store: Path) -> None:
    """It is a commitment, whose value no receipt opens; a request without one has no such commitment."""
    with carag.Engine.open(store, create=False) as engine:
        session = carag.Session(role="compliance", purpose="surveil", conversation=ID)
        receipt = engine.ask("Who pays?", session).receipt
        without = engine.ask("Who pays?", carag.Session(role="compliance", purpose="surveil")).receipt
    assert ID.encode() not in receipt.to_bytes()
    assert b'"conversation"' in receipt.record
    assert b'"conversation"' not in without.record
    assert "conversation" not in receipt.openings


def test_an_erased_conversation_is_found_no_more(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All requests of a person are; the others of the conversation stay."""
    with AuditLog.open(store) as log:
        erase(log, basis=Basis.UNLAWFUL, actor="D. Po", approver="C. Co", subject=ANA)
    assert [one.get("outcome") for one in listed(capsys, store, "--session", ID)] == ["refuse"]


def test_without_the_values_the_message_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy for auditors cannot open any, and an empty list would be a false answer."""
    (store / "private.key").unlink()
    with pytest.raises(CorruptFile, match=r"private\.key is missing"):
        PrivateReader(store)
    with sqlite3.connect(store / "audit.db") as db:
        db.execute("DROP TABLE value")
    db.close()
    assert run(["audit", "list", "--store", str(store), "--session", ID]) == Exit.CANNOT_TELL
    assert "has no values for its records" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 201, 7])
def test_an_id_that_a_record_cannot_hold_is_refused(value: Any) -> None:
    """When the session is made."""
    with pytest.raises(carag.errors.InvalidArgument, match="session conversation"):
        carag.Session(role="r", purpose="p", conversation=value)


def test_a_request_may_name_its_conversation_and_gains_nothing() -> None:
    """As what a token grants is narrowed."""
    granted = carag.Session(role="dpo", purpose="dsar")
    assert granted.narrow(conversation=ID) == carag.Session(role="dpo", purpose="dsar", conversation=ID)
    assert granted.narrow(conversation=ID).narrow().conversation == ID


def test_the_command_line_names_one(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``carag ask --session``."""
    words = ["ask", "Who pays?", "--store", str(store), "--role", "compliance", "--purpose", "surveil"]
    assert run([*words, "--session", "by-hand"]) == Exit.DECLINED
    assert len(listed(capsys, store, "--session", "by-hand")) == 1
