"""Receipts as anchors: the holder of one notices a rollback and a rewrite, even by a thief of the key."""

from __future__ import annotations

import dataclasses
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import Verdict
from carag.audit.anchors.evidence import Evidence, Shelf
from carag.audit.anchors.pin import check_pin, leads_to
from carag.audit.anchors.review import review
from carag.audit.operations.rotation import rotate
from carag.audit.receipts.receipt import checkpoint_in
from carag.audit.tlog.keys import SigningKey
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof
from carag.errors import AnchorUnavailable, CorruptFile


@pytest.fixture
def log(build, tmp_path):
    with build.open_log(tmp_path / "log") as log:
        build.grow(log, 3)
        yield log


def kept(log, build):
    """Everything that holds a checkpoint of now."""
    receipt = build.ask(log)
    note = Note.parse(log.checkpoint())
    return {
        "receipt": receipt.to_bytes(),
        "inclusion proof": receipt.proof.encode(),
        "consistency proof": log.consistency(2).encode(),
        "checkpoint": log.checkpoint().encode(),
        "evidence": Evidence("s3", "s3://b/p", note, 1).to_bytes(),
    }


@pytest.mark.parametrize(
    "what", ["receipt", "inclusion proof", "consistency proof", "checkpoint", "evidence"]
)
def test_whatever_was_kept_is_still_covered(log, build, what):
    """At once, later, and after the key was rotated."""
    data = kept(log, build)[what]
    for _ in range(3):
        pinned = check_pin(log, data, log.keys.listed)
        assert (pinned.verdict, pinned.size) == (Verdict.VERIFIED, 4), pinned.reason
        build.grow(log, 2)
    rotate(log)
    assert check_pin(log, data, log.keys.listed).verdict is Verdict.VERIFIED


def test_a_rollback_and_a_rewrite_with_the_key_are_noticed(log, build, tmp_path):
    """The same key, another history: the old receipt convicts it, at every length."""
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    data = build.ask(log).to_bytes()
    keys = log.keys.listed
    with build.open_log(tmp_path / "copy") as other:
        assert "rolled back" in check_pin(other, data, keys).reason
        for _ in range(3):
            build.grow(other, 1)
            pinned = check_pin(other, data, keys)
            assert pinned.verdict is Verdict.FAILED
            assert "rewritten" in pinned.reason


def test_what_says_nothing_of_this_log_is_undecided(log, build, tmp_path):
    """Another log's receipt, an unsigned checkpoint, rubbish: no verdict on this log."""
    with build.open_log(tmp_path / "other", origin="audit.example/other") as other:
        foreign = build.ask(other).to_bytes()
    stranger = SigningKey(log.origin, b"s" * 32).sign(Note.parse(log.checkpoint()).text).to_text().encode()
    altered = log.checkpoint().replace("\n3\n", "\n2\n").encode()
    for data in (
        foreign,
        stranger,
        altered,
        b"",
        b"\xff",
        b"{}",
        b'{"checkpoint":1}',
        b"old 3\n",
        b"c2sp.org/tlog-proof@v1\n",
    ):
        assert check_pin(log, data, log.keys.listed).verdict is Verdict.UNDECIDED
        if data in (b"", b"\xff", b"{}"):
            with pytest.raises(CorruptFile):
                checkpoint_in(data)


def test_a_log_whose_own_checkpoint_is_foreign_fails(log, build):
    """What was kept is good; what the log shows today is signed by somebody else."""

    class Impostor:
        def checkpoint(self):
            return SigningKey(log.origin, b"s" * 32).sign(Note.parse(log.checkpoint()).text).to_text()

        consistency_hashes = staticmethod(log.consistency_hashes)

    data = build.ask(log).to_bytes()
    pinned = check_pin(Impostor(), data, log.keys.listed)
    assert (pinned.verdict, pinned.size) == (Verdict.FAILED, 4)


@pytest.fixture(scope="module")
def grown(tmp_path_factory, build):
    """A log's keys, its checkpoints from size 1 to 9, and the proof between any two."""
    checkpoints, proofs = {}, {}
    with build.open_log(tmp_path_factory.mktemp("law")) as log:
        for size in range(1, 10):
            build.grow(log, 1)
            checkpoints[size] = Note.parse(log.checkpoint())
            for old in range(1, size):
                proofs[old, size] = ConsistencyProof.parse(log.consistency(old))
        return parse_vkeys(log.vkey), checkpoints, proofs


@given(st.data())
def test_law_no_altered_proof_leads_anywhere(grown, data):
    """Offline: the right proof leads from any size to any later one; with one hash altered, it does not."""
    keys, checkpoints, proofs = grown
    old, size = data.draw(st.sampled_from(sorted(proofs)))
    before, proof = checkpoints[old], proofs[old, size]
    assert leads_to(before, proof, keys).verdict is Verdict.VERIFIED
    hashes = list(proof.hashes)
    at = data.draw(st.integers(0, len(hashes)))
    wrong = [*hashes[:at], bytes(32), *hashes[at:]]
    assert leads_to(before, dataclasses.replace(proof, hashes=tuple(wrong)), keys).verdict is Verdict.FAILED
    assert leads_to(before, dataclasses.replace(proof, old=old + 1), keys).verdict is Verdict.FAILED
    if hashes:
        cut = hashes[: at % len(hashes)] + hashes[at % len(hashes) + 1 :]
        assert leads_to(before, dataclasses.replace(proof, hashes=tuple(cut)), keys).verdict is Verdict.FAILED


class Keeper:
    """An anchor that confirms, denies or is silent."""

    kind, place, answer = "ledger", "memory", None

    def submit(self, submission):
        raise AssertionError

    def confirm(self, evidence, keys):
        if self.answer:
            raise self.answer
        return evidence.check_signed(keys)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (None, Verdict.VERIFIED),
        (CorruptFile("not what it was"), Verdict.FAILED),
        (AnchorUnavailable("no answer"), Verdict.UNDECIDED),
    ],
)
def test_evidence_is_judged_by_log_and_anchor(log, build, tmp_path, answer, verdict):
    """Both must agree; an anchor that is not asked, or not trusted, decides nothing; a rewrite fails anyway."""
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    build.ask(log)
    shelf = Shelf(tmp_path / "anchors")
    shelf.put(Evidence("ledger", "memory", Note.parse(log.checkpoint()), 1))
    keeper = Keeper()
    keeper.answer = answer
    [reviewed] = review(log, shelf, log.keys.listed, [keeper])
    assert reviewed.verdict is verdict
    [unasked] = review(log, shelf, log.keys.listed)
    assert unasked.verdict is Verdict.UNDECIDED
    stranger = parse_vkeys(str(SigningKey(log.origin, b"s" * 32).verifier))
    [foreign] = review(log, shelf, stranger, [keeper])
    assert foreign.verdict is Verdict.FAILED
    keys = log.keys.listed
    with build.open_log(tmp_path / "copy") as other:
        build.grow(other, 2)
        [rewritten] = review(other, shelf, keys, [keeper])
    assert rewritten.verdict is Verdict.FAILED
