"""``carag audit erase``, ``hold``, ``release`` and ``disclose``, as an operator types them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
import typer

from carag.audit import AuditLog, Ingest, Verdict, place_hold, verify_receipt
from carag.cli import audit_erase
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

ANA = "ana@bank.example"
TWO = ["--actor", "Dora", "--approver", "Carl"]
COUNTS = dict.fromkeys(("started", "ended", "documents", "chunks", "quarantined", "rows"), 0)

app = typer.Typer()
for command in (
    audit_erase.erase,
    audit_erase.hold,
    audit_erase.release,
    audit_erase.disclose,
):
    app.command()(command)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A log in which one person loaded something twice."""
    home = tmp_path / "store"
    with AuditLog.open(home) as log:
        for _ in range(2):
            event = Ingest(**COUNTS, snapshot=bytes(32), table=bytes(32), embed=None, why="INGESTED")
            log.append(event, secrets={"subject": ANA})
    return home


def run(*arguments: object) -> int:
    return int(app([str(each) for each in arguments], standalone_mode=False) or 0)


def bytes_of(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_a_person_is_erased_under_a_name_no_shell_keeps(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receipt of the erasure verifies; the name is nowhere."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{ANA}\n"))
    kept = tmp_path / "erasure.json"
    asked = ["erase", "--store", store, "--subject", "-", "--basis", "GDPR_17_1_D", *TWO, "--receipt", kept]
    assert run(*asked) == 0
    assert capsys.readouterr().out.startswith("record 2: erased")
    assert ANA.encode() not in bytes_of(store)
    assert verify_receipt(kept.read_bytes(), (store / "vkey").read_text()).verdict is Verdict.VERIFIED
    with AuditLog.open(store) as log:
        assert log.private.erased_by(1) == {"subject": 2}


def test_a_duty_and_a_hold_refuse_with_four(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And name their record; after two people released it, it is done."""
    one = ["erase", "--store", store, "--record", 0, *TWO]
    assert run(*one, "--basis", "GDPR_17_1") == 4
    assert "refused (RETENTION)" in capsys.readouterr().err
    assert run("hold", "--store", store, "--matter", "M-1", "--actor", "Lea", "--first", 0, "--last", 9) == 0
    assert run(*one, "--basis", "GDPR_17_1_E") == 4
    assert "placed by record 2" in capsys.readouterr().err
    with pytest.raises(InvalidArgument, match="second person"):
        run("release", 2, "--store", store, "--actor", "Lea", "--approver", "lea")
    assert run("release", 2, "--store", store, *TWO) == 0
    assert run(*one, "--basis", "GDPR_17_1_E", "--field", "subject") == 0


def test_what_has_ended_is_erased_in_one_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a hold covers stays; asked again there is nothing to do, and nothing is recorded."""
    store, kept = tmp_path / "old", tmp_path / "erasure.json"
    with AuditLog.open(store, clock=lambda: 1) as log:  # 1970
        for code in ("ai6m", "fin7y"):
            event = Ingest(**COUNTS, snapshot=bytes(32), table=bytes(32), embed=None, why="INGESTED")
            log.append(event, secrets={"subject": ANA}, retain=code)
        place_hold(log, "M-1", actor="Lea", records=(1, 1))
    asked = ["erase", "--store", store, "--expired", *TWO, "--receipt", kept]
    assert run(*asked) == 0
    assert capsys.readouterr().out.startswith("record 3: erased")
    assert verify_receipt(kept.read_bytes(), (store / "vkey").read_text()).verdict is Verdict.VERIFIED
    assert run(*asked) == 0
    assert capsys.readouterr().out.startswith("nothing was erased")
    with AuditLog.open(store) as log:
        assert (log.size, log.private.erased_by(0)) == (4, {"subject": 3})
        assert set(log.private.openings(1)) == {"subject"}


def test_values_are_shown_to_a_role(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And to no other; both are on record."""
    asked = ["disclose", 0, "--store", store, "--actor", "Eve", "--why", "REVIEW"]
    assert run(*asked, "--role", "auditor") == 0
    assert json.loads(capsys.readouterr().out) == {"subject": ANA}
    assert run(*asked, "--role", "asker") == 4
    assert capsys.readouterr().out == ""
    with AuditLog.open(store) as log:
        assert [log.record(n).event.outcome.value for n in (2, 3)] == ["answer", "refuse"]


@pytest.mark.parametrize(
    "asked",
    [
        ["erase", "--record", 0, "--basis", "WHY", *TWO],
        ["erase", "--basis", "GDPR_17_1_D", *TWO],
        ["erase", "--record", 0, *TWO],
        ["erase", "--expired", "--record", 0, *TWO],
        ["erase", "--expired", "--subject", ANA, *TWO],
        ["erase", "--expired", "--field", "subject", *TWO],
        ["erase", "--expired", "--basis", "GDPR_17_1_D", *TWO],
        ["erase", "--expired", "--actor", "Dora", "--approver", "dora"],
        ["hold", "--matter", "M-1", "--actor", "Lea", "--first", 0],
        ["hold", "--matter", "a name", "--actor", "Lea"],
        ["disclose", 9, "--actor", "Eve", "--why", "X", "--role", "auditor"],
    ],
    ids=str,
)
def test_bad_input_changes_nothing(store: Path, asked: list[object]) -> None:
    """It is refused before a record is written."""
    with pytest.raises(InvalidArgument):
        run(*asked, "--store", store)
    with AuditLog.open(store) as log:
        assert log.size == 2


def test_no_log_is_founded_by_mistake(tmp_path: Path) -> None:
    """A mistyped directory stays as it is."""
    with pytest.raises(InvalidArgument, match="no audit log"):
        run("hold", "--store", tmp_path / "stroe", "--matter", "M-1", "--actor", "Lea")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_name_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving the person out does not mean everyone."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(InvalidArgument, match="found no name"):
        run("erase", "--store", store, "--subject", "-", "--basis", "GDPR_17_1_D", *TWO)
