"""``carag audit anchor``, ``rotate`` and ``publish``: what an operator does to a log, with a real witness."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from carag import Engine
from carag.audit import AuditLog, PolicyChange, Recovery, Verdict, verify_receipt
from carag.audit.operations.rotation import successor
from carag.audit.tlog.encoding import b64url
from carag.audit.tlog.keys import MlDsaKey
from carag.cli import Exit, audit_admin, audit_anchor
from carag.cli.app import run
from carag.errors import InvalidArgument, MissingExtra
from tests.audit.anchors.witness import Witness, serve
from tests.audit.receipts.page import Page

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def store(tmp_path):
    with AuditLog.open(tmp_path / "store") as log:
        log.append(Recovery("DRILL"))
    return tmp_path / "store"


@pytest.fixture
def witness(store, tmp_path):
    """A witness of the store's log, and the policy file that names it."""
    vkey = (store / "vkey").read_text().strip()
    one = Witness("witness.example/w1", [vkey], lambda: int(time.time()))
    server = serve(one)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    policy = tmp_path / "policy"
    policy.write_text(f"log {vkey}\nwitness w1 {one.vkey} {url}\nquorum w1\n")
    yield {"to": [f"witness:{url}"], "policy": policy}
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_confirmation_is_printed_and_kept(store, witness, capsys):
    """Exit code 0, evidence next to the log, an anchor record in it; and again."""
    assert audit_anchor.anchor(store, **witness) == 0
    assert "confirmed  1 records  witness" in capsys.readouterr().out
    assert audit_anchor.anchor(store, **witness, as_json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["size"] for one in report["confirmed"]] == [2]
    assert report["failures"] == {}
    assert len(list((store / "anchors").iterdir())) == 2


def test_a_log_is_anchored_and_verified_from_the_command_line(store, witness, capsys, tmp_path):
    """0 with the anchor named, 2 without it, 1 for a log that was rolled back; what is not evidence decides nothing."""
    shutil.copytree(store, tmp_path / "earlier")
    asked = [witness["to"][0], "--policy", str(witness["policy"])]
    for _ in range(2):
        assert run(["audit", "anchor", "--store", str(store), "--to", *asked]) == Exit.OK
    assert run(["audit", "anchor", "--store", str(tmp_path / "none"), "--to", *asked]) == Exit.CANNOT_TELL

    def verify(*words, place=store):
        return run(["audit", "verify", "--store", str(place), *map(str, words)])

    evidence = ["--anchors", store / "anchors"]
    capsys.readouterr()
    assert verify(*evidence, "--anchor", *asked) == Exit.OK
    said = capsys.readouterr().out
    assert "confirmed outside" in said
    assert "cannot be detected" not in said
    assert verify(*evidence) == Exit.CANNOT_TELL
    assert "not among the anchors given" in capsys.readouterr().out
    assert verify(*evidence, "--anchor", *asked, place=tmp_path / "earlier") == Exit.TAMPERED
    assert "rolled back" in capsys.readouterr().out
    assert verify(place=tmp_path / "earlier") == Exit.OK
    for directory in (tmp_path / "none", tmp_path / "earlier"):
        assert verify("--anchors", directory) == Exit.CANNOT_TELL
        assert not (tmp_path / "none").exists()
    next((store / "anchors").iterdir()).write_text("{}")
    assert verify(*evidence, "--anchor", *asked) == Exit.CANNOT_TELL


def test_an_anchor_that_cannot_be_asked(store, witness, capsys, tmp_path):
    """Exit code 2 and the reason."""
    text = witness["policy"].read_text()
    url = witness["to"][0].removeprefix("witness:")
    (tmp_path / "down").write_text(text.replace(url, "http://127.0.0.1:9"))
    assert audit_anchor.anchor(store, ["witness:http://127.0.0.1:9"], policy=tmp_path / "down") == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_a_log_that_was_put_back(store, witness, capsys, tmp_path):
    """Exit code 1 if the evidence next to an earlier copy contradicts it."""
    shutil.copytree(store, tmp_path / "early")
    with AuditLog.open(store) as log:
        log.append(Recovery("DRILL"))
    assert audit_anchor.anchor(store, **witness) == 0
    shutil.copytree(store / "anchors", tmp_path / "early" / "anchors")
    assert audit_anchor.anchor(tmp_path / "early", **witness) == 1
    assert "TAMPERED" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        (["ftp://x"], "names no anchor"),
        (["tsa:http://tsa.example"], "certificates"),
        (["witness:http://w.example"], "policy file"),
        (["witness:w.example"], "not the address"),
        (["s3://x"], "s3://bucket/prefix"),
        (["s3://bucket/x", "s3://bucket/x"], "twice"),
    ],
)
def test_what_names_no_anchor_is_said(store, to, reason):
    """Before anything is opened."""
    with pytest.raises(InvalidArgument, match=reason):
        audit_anchor.anchor(store, to)


def test_the_policy_must_name_the_witness(store, witness, tmp_path):
    """An address alone is not an anchor; a policy that cannot be read trusts no witness."""
    with pytest.raises(InvalidArgument, match="names no witness"):
        audit_anchor.anchor(store, ["witness:http://other.example"], policy=witness["policy"])
    with pytest.raises(InvalidArgument, match="cannot be read"):
        audit_anchor.anchor(store, witness["to"], policy=tmp_path / "none")


def test_a_directory_without_a_log_stays_so(witness, tmp_path):
    """Neither anchoring nor rotating founds a log."""
    for act in (partial(audit_anchor.anchor, **witness), audit_admin.rotate):
        with pytest.raises(InvalidArgument, match="no audit log"):
            act(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


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


def test_a_log_without_a_policy_and_a_file_that_is_not_there_are_refused(store: Path, tmp_path: Path) -> None:
    """Nothing is recorded."""
    for name, home in (("verify.html", store), ("absent", store), ("verify.html", tmp_path / "nothing")):
        assert run(["audit", "publish", str(SCRIPTS / name), "--store", str(home)]) == Exit.BAD_INPUT
    with AuditLog.open(store) as log:
        assert log.size == 1
