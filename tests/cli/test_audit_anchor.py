"""``carag audit anchor``: one round from the command line, with a real witness on this machine."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest

from carag.audit import AuditLog, Recovery
from carag.cli import Exit, audit_anchor
from carag.cli.app import run
from carag.errors import InvalidArgument
from tests.audit.anchors.witness import Witness, serve


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
    """Anchoring founds no log."""
    with pytest.raises(InvalidArgument, match="no audit log"):
        audit_anchor.anchor(tmp_path / "nothing", **witness)
    assert not (tmp_path / "nothing").exists()
