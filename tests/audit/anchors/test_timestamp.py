"""RFC 3161 timestamps from a real authority on this machine: what is stamped, and what is refused.

The authority is the ``openssl`` command. Where it or the extra ``anchors`` is missing, these tests are skipped; where
``CARAG_REQUIRE_TSA`` is set, as in ``.ci/run``, that is a failure.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib.util
import os
import shutil
import subprocess
import sys
import time

import pytest

from carag.audit.anchors.evidence import Evidence
from carag.audit.anchors.timestamp import TimestampAnchor
from carag.audit.tlog.encoding import b64
from carag.audit.tlog.keys import SigningKey
from carag.audit.tlog.note import Note
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument, MissingExtra

needs_tools = pytest.mark.usefixtures("tools")


@pytest.fixture(scope="session")
def tools():
    """Skip what needs both tools, or fail where they must be there."""
    if importlib.util.find_spec("rfc3161_client") is None or shutil.which("openssl") is None:
        missing = "the extra 'anchors' or the openssl command is not installed"
        if os.environ.get("CARAG_REQUIRE_TSA"):
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.fixture(scope="module")
def authority_at(outside):
    return outside.double("authority").Authority


@pytest.fixture(scope="module")
def authority(authority_at, tmp_path_factory):
    return authority_at(tmp_path_factory.mktemp("tsa") / "home")


@pytest.fixture
def log(build, outside, tmp_path):
    with build.open_log(tmp_path / "log") as log:
        yield outside.grow(log, 5)


def now(outside, log, shift=0):
    return outside.submission(log, int(time.time()) + shift)


@needs_tools
def test_a_checkpoint_is_stamped(log, outside, authority):
    """The reply verifies, offline too, by this program and by openssl."""
    with outside.running(authority.serve()) as url:
        submission = now(outside, log)
        anchor = TimestampAnchor(url, [authority.root])
        evidence = anchor.submit(submission)
    assert abs(evidence.seen - submission.now) < 60_000_000
    again = Evidence.parse(evidence.to_bytes())
    assert anchor.confirm(again, submission.keys).size == 5
    (authority.home / "stamped").write_bytes(evidence.checkpoint.to_text().encode())
    (authority.home / "kept").write_bytes(base64.b64decode(again.proof["reply"]))
    command = ["openssl", "ts", "-verify", "-data", "stamped", "-in", "kept", "-CAfile", "ca.pem"]
    assert subprocess.run(command, cwd=authority.home, check=False, capture_output=True).returncode == 0


def other_message(query, answer):
    """Answer for another digest: the same request with one byte of the imprint changed."""
    at = query.index(b"\x04\x20") + 2
    return answer(query[:at] + bytes([query[at] ^ 1]) + query[at + 1 :])


def other_nonce(query, answer):
    """Answer with another nonce, as a reply recorded earlier has."""
    at = query.index(b"\x04\x20") + 34
    kind, size = query[at], query[at + 1]
    assert kind == 2
    return answer(query[: at + 1 + size] + bytes([query[at + 1 + size] ^ 1]) + query[at + 2 + size :])


def flipped(query, answer):
    reply = answer(query)
    return reply[:-1] + bytes([reply[-1] ^ 1])


WRONG = {
    "a token for another digest": (other_message, "Mismatch"),
    "a replayed token": (other_nonce, "Nonce"),
    "an altered token": (flipped, "verify"),
    "a refusal": (lambda query, answer: answer(query, digests="sha512"), "refused: status 2"),
    "half a reply": (lambda query, answer: answer(query)[:200], "verify"),
    "nothing": (lambda query, answer: b"", "verify"),
    "a page": (lambda query, answer: (200, "text/html", b"<html>"), "text/html"),
    "an error": (lambda query, answer: (503, "application/timestamp-reply", answer(query)), "503"),
    "a reply more": (lambda query, answer: answer(query) * 2, "verify"),
}


@needs_tools
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_reply_is_no_confirmation(log, outside, authority, name):
    """Each is named; none counts."""
    change, reason = WRONG[name]
    with outside.running(authority.serve(change)) as url:
        anchor = TimestampAnchor(url, [authority.root])
        with pytest.raises(AnchorUnavailable, match=reason):
            anchor.submit(now(outside, log))


@needs_tools
@pytest.mark.parametrize("shift", [-400, 400])
def test_clocks_that_disagree_are_said(log, outside, authority, shift):
    """Records bear our time; if an authority's differs by minutes, one of the two is wrong."""
    with (
        outside.running(authority.serve()) as url,
        pytest.raises(AnchorUnavailable, match="clocks is wrong"),
    ):
        TimestampAnchor(url, [authority.root]).submit(now(outside, log, shift))


@needs_tools
def test_only_a_trusted_authority_counts(log, outside, authority, authority_at, tmp_path):
    """An authority under another root vouches for nothing."""
    other = authority_at(tmp_path / "other")
    with outside.running(authority.serve()) as url, pytest.raises(AnchorUnavailable, match="verify"):
        TimestampAnchor(url, [other.root]).submit(now(outside, log))


@needs_tools
def test_altered_evidence_is_refused(log, outside, authority):
    """Another checkpoint, another time, no reply, or a checkpoint by another key."""
    with outside.running(authority.serve()) as url:
        submission = now(outside, log)
        anchor = TimestampAnchor(url, [authority.root])
        evidence = anchor.submit(submission)
        later = anchor.submit(now(outside, outside.grow(log, 1)))
    stranger = SigningKey(log.origin, b"s" * 32).sign(evidence.checkpoint.text)
    added = Note(evidence.checkpoint.text, (*evidence.checkpoint.signatures, *stranger.signatures))
    for wrong in (
        dataclasses.replace(evidence, checkpoint=later.checkpoint),
        dataclasses.replace(evidence, seen=evidence.seen - 1_000_000),
        dataclasses.replace(evidence, proof={}),
        dataclasses.replace(evidence, proof={"reply": b64(b"x")}),
        dataclasses.replace(evidence, checkpoint=stranger),
        dataclasses.replace(evidence, checkpoint=added),
    ):
        with pytest.raises(CorruptFile):
            anchor.confirm(wrong, submission.keys)


@needs_tools
@pytest.mark.parametrize("roots", [[], [b""], [b"no certificate"], "/nonexistent/roots.pem"])
def test_roots_must_be_certificates(roots):
    """Without something to trust a reply by, there is no anchor."""
    with pytest.raises(InvalidArgument, match="certificates"):
        TimestampAnchor("http://tsa.example", roots)


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    """The package is optional; its absence is said with what to install."""
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[anchors\]"):
        TimestampAnchor("http://tsa.example", [b""])
