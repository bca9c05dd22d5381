"""``carag audit rotate``: the receipt it writes leads from the old key to the printed one."""

from __future__ import annotations

import pytest

from carag.audit import AuditLog, Recovery
from carag.audit.operations.rotation import successor
from carag.audit.tlog.keys import MlDsaKey
from carag.cli import Exit, audit_admin
from carag.cli.app import run
from carag.errors import InvalidArgument, MissingExtra


@pytest.fixture
def store(tmp_path):
    with AuditLog.open(tmp_path / "store") as log:
        log.append(Recovery("DRILL"))
    return tmp_path / "store"


def test_the_receipt_leads_to_the_printed_key(store, tmp_path, capsys):
    """And the vkey file lists both, the new one first."""
    old = (store / "vkey").read_text().strip()
    assert audit_admin.rotate(store, receipt=tmp_path / "rotation.json") == 0
    new = capsys.readouterr().out.strip()
    assert successor((tmp_path / "rotation.json").read_bytes(), old) == new
    assert (store / "vkey").read_text().split() == [new, old]


def test_a_key_is_rotated_from_the_command_line(store, tmp_path, capsys):
    """0, and both keys are listed; 2 and no key where there is no log."""
    assert run(["audit", "rotate", "--store", str(store), "--overlap-days", "0"]) == Exit.OK
    assert capsys.readouterr().out.strip() == (store / "vkey").read_text().split()[0]
    assert run(["audit", "verify", "--store", str(store)]) == Exit.OK
    assert run(["audit", "rotate", "--store", str(tmp_path)]) == Exit.CANNOT_TELL
    assert run(["audit", "rotate", "--store", str(store), "--overlap-days", "999"]) == Exit.CANNOT_TELL


def test_an_mldsa_key_is_printed(store, capsys):
    """The log's Ed25519 key stays."""
    old = (store / "vkey").read_text().strip()
    try:
        audit_admin.rotate(store, mldsa=True)
    except MissingExtra:
        pytest.skip("the installed cryptography has no ML-DSA")
    key = MlDsaKey.parse(capsys.readouterr().out)
    assert (store / "vkey").read_text().split() == [old, str(key)]


@pytest.mark.parametrize("days", [-1, 366])
def test_an_overlap_is_at_most_a_year(store, days):
    """Nothing is written for a number that makes no sense."""
    with pytest.raises(InvalidArgument, match="days"):
        audit_admin.rotate(store, overlap_days=days)


def test_a_directory_without_a_log_stays_so(tmp_path):
    """Rotating founds no log."""
    with pytest.raises(InvalidArgument, match="no audit log"):
        audit_admin.rotate(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
