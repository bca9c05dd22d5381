"""``carag audit publish``: the hash of a verifier is on record, and all three verifiers accept the record."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from carag import Engine
from carag.audit import AuditLog, PolicyChange, Recovery, Verdict, verify_receipt
from carag.audit.tlog.encoding import b64url
from carag.cli import Exit
from carag.cli.app import run
from tests.audit.receipts.page import Page

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.parametrize("name", ["verify.html", "verify_receipt.py"])
def test_what_verifies_is_published_and_verifies_its_own_publication(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Someone with the receipt and the file compares the two hashes; the policy in force stays as it was."""
    store, receipt = tmp_path / "store", tmp_path / "receipt.json"
    Engine.open(store, embedder="wordllama").close()
    given = ["audit", "publish", str(SCRIPTS / name), "--store", str(store), "--receipt", str(receipt)]
    assert run(given) == Exit.OK
    digest = hashlib.sha256((SCRIPTS / name).read_bytes()).digest()
    assert capsys.readouterr().out.startswith(digest.hex())
    vkey = (store / "vkey").read_text().strip()
    checked = verify_receipt(receipt.read_bytes(), vkey)
    assert checked.verdict is Verdict.VERIFIED
    assert checked.record is not None
    event = checked.record.event
    assert isinstance(event, PolicyChange)
    assert (event.why, event.before) == (f"PUBLISHED:{b64url(digest)}", event.table)
    command = [sys.executable, str(SCRIPTS / "verify_receipt.py"), str(receipt), "--key", str(store / "vkey")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    page = Page()
    try:
        assert page.says(receipt.read_bytes(), vkey)[0] == 0
    finally:
        page.node.communicate()
    Engine.open(store, create=False).close()  # which takes it for no change of the policy


def test_a_log_without_a_policy_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """Nothing is recorded."""
    with AuditLog.open(tmp_path / "log") as log:
        log.append(Recovery("DRILL"))
    for name, home in (("verify.html", "log"), ("absent", "log"), ("verify.html", "nothing")):
        given = ["audit", "publish", str(SCRIPTS / name), "--store", str(tmp_path / home)]
        assert run(given) == Exit.BAD_INPUT
    with AuditLog.open(tmp_path / "log") as log:
        assert log.size == 1
