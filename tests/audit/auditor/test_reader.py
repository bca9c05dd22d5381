"""An auditor reads a log without its writer's lock and key, changes nothing, and keeps apart what is wrong from what
cannot be read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

from carag.audit import ConsistencyProof, InclusionProof, SigningKey, Verdict, VerifierKey
from carag.audit.auditor.examine import Kept, examine, examine_log, extends, kept_checkpoint, kept_receipt
from carag.audit.auditor.export import export_log, write_proof
from carag.audit.auditor.reader import LogReader
from carag.audit.auditor.second_opinion import disagreements, second_opinion_on
from carag.audit.receipts.check_proof import check_checkpoint, check_consistency, check_inclusion
from carag.audit.tlog import encoding, merkle
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra


@pytest.fixture(scope="module")
def grown(tmp_path_factory, build):
    """Grow a log of thirty records, close it, and keep its receipts."""
    directory = tmp_path_factory.mktemp("grown")
    with build.open_log(directory) as log:
        receipts = build.grow(log, 30)
        return directory, log.vkey, receipts


@pytest.fixture
def copy(grown, tmp_path):
    """Copy that log: an auditor's copy, or an attacker's."""
    return shutil.copytree(grown[0], tmp_path / "log")


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# -- reading


def test_reading_needs_neither_lock_nor_key_nor_private_values(copy, grown):
    """audit.db and a vkey are enough, and nothing is written, not even beside it."""
    for path in copy.iterdir():
        if path.name != "audit.db":
            path.unlink()
    before = contents(copy)
    found = examine_log(copy, vkey=grown[1])
    assert (found.verdict, found.size) == (Verdict.VERIFIED, 30)
    assert contents(copy) == before


def test_a_running_log_can_be_examined_and_goes_on(tmp_path, build):
    """Beside its writer, as of one commit: what is appended meanwhile is not seen, and disturbs nothing."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
        with LogReader(tmp_path, vkey=log.vkey) as reader:
            build.grow(log, 5)
            assert examine(reader).size == 5
        assert examine_log(tmp_path, vkey=log.vkey).size == 10
        build.ask(log)
        assert log.verify().size == 11


def test_another_process_can_examine_a_running_log(tmp_path, build):
    """The writer's lock does not stop a reader."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        code = "import sys; from carag.audit.auditor.examine import examine_log as e; print(e(sys.argv[1]).verdict)"
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
        )
        assert done.stdout == "verified\n"


def test_a_log_written_to_while_it_is_read_cannot_be_told(copy, build, grown):
    """A file without a writer is read without locks, so a late write is noticed."""
    with LogReader(copy, vkey=grown[1]) as reader:
        with build.open_log(copy) as log:
            build.grow(log, 2)
        found = examine(reader)
    assert found.verdict is Verdict.UNDECIDED
    assert "written to while it was being read" in found.reason


def test_a_log_left_by_a_crash_is_read_whole(tmp_path, build):
    """What is only in the write-ahead log counts."""
    with build.open_log(tmp_path / "log") as log:
        build.grow(log, 4)
        shutil.copytree(tmp_path / "log", tmp_path / "crashed")
        vkey = log.vkey
    assert (tmp_path / "crashed" / "audit.db-wal").stat().st_size > 0
    assert examine_log(tmp_path / "crashed", vkey=vkey).size == 4


def test_what_it_proves_is_what_the_log_proves(tmp_path, build):
    """Proofs are those of the writer, byte for byte, and hold."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 9)
        key = VerifierKey.parse(log.vkey)
        with LogReader(tmp_path) as reader:
            assert reader.checkpoint.to_text() == log.checkpoint()
            assert check_checkpoint(log.checkpoint(), key).verdict is Verdict.VERIFIED
            for seq in range(9):
                assert reader.prove(seq) == log.prove(seq)
                assert check_inclusion(reader.body(seq), reader.prove(seq), key).verdict is Verdict.VERIFIED
                assert reader.consistency(seq + 1) == log.consistency(seq + 1)
    for seq in (-1, 9):
        with LogReader(tmp_path) as reader, pytest.raises(InvalidArgument, match="no record"):
            reader.prove(seq)


def unreadable(directory, how):
    path = directory / "audit.db"
    if how == "garbage":
        path.write_bytes(b"garbage" * 1000)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "missing":
        path.unlink()
    elif how == "another database":
        path.unlink()
        sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    elif how == "a view for a table":
        with sqlite3.connect(path) as connection:
            connection.executescript(
                "ALTER TABLE rec RENAME TO r; CREATE VIEW rec AS SELECT seq, body FROM r"
            )
        connection.close()
    elif how == "cut off":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "no vkey":
        (directory / "vkey").unlink()
    else:
        (directory / "vkey").write_text("no key")


@pytest.mark.parametrize(
    "how",
    [
        "garbage",
        "empty",
        "missing",
        "another database",
        "a view for a table",
        "cut off",
        "no vkey",
        "a bad vkey",
    ],
)
def test_what_cannot_be_read_is_undecided(copy, how):
    """A damaged disk is not called an attack; and it is not called a log."""
    unreadable(copy, how)
    found = examine_log(copy)
    assert found.verdict is Verdict.UNDECIDED, found.reason


def test_no_such_directory_is_made(tmp_path):
    """Reading makes nothing."""
    with pytest.raises(AuditUnavailable):
        LogReader(tmp_path / "none", vkey=str(SigningKey("a", b"k" * 32).verifier))
    assert list(tmp_path.iterdir()) == []


ALTERED = {
    "no checkpoint": ("DELETE FROM cp", "no checkpoint"),
    "a malformed checkpoint": ("UPDATE cp SET note = 'x'", "cannot be read"),
    "a blob for a checkpoint": ("UPDATE cp SET note = x'00'", "no checkpoint"),
    "a checkpoint under another size": ("UPDATE cp SET size = 29", "covers 30"),
    "a missing last record": ("DELETE FROM rec WHERE seq = 29", "record 29 is missing"),
    "a missing first record": ("DELETE FROM rec WHERE seq = 0", "record 0 is missing"),
    "a record before the first": ("INSERT INTO rec VALUES (-1, x'7b7d')", "record -1 is beyond"),
    "a text for a body": ("UPDATE rec SET body = CAST(body AS TEXT) WHERE seq = 3", "not a byte string"),
    "an altered inner node": (
        "UPDATE node SET hash = zeroblob(32) WHERE i = 2",
        r"node \(1, 0\) was altered",
    ),
    "a missing node": ("DELETE FROM node WHERE i = 5", "missing from the tree"),
    "a node too many": ("INSERT INTO node VALUES (99, zeroblob(32))", "no record accounts for"),
    "an older checkpoint beside it": (
        "INSERT INTO cp SELECT 7, replace(note, char(10) || '30' || char(10), char(10) || '7' || char(10)) FROM cp",
        "checkpoint of 7 records is not signed",
    ),
}


@pytest.mark.parametrize(("statement", "reason"), ALTERED.values(), ids=ALTERED)
def test_what_contradicts_the_signature_fails(copy, grown, build, statement, reason):
    """And the reason names it."""
    build.edit(copy / "audit.db", statement)
    found = examine_log(copy, vkey=grown[1])
    assert found.verdict is Verdict.FAILED, found.reason
    assert re.search(reason, found.reason), found.reason


def test_no_proof_is_made_from_an_altered_log(copy, grown, build, tmp_path):
    """It would not verify; so it is refused, and nothing is written."""
    build.edit(copy / "audit.db", "UPDATE node SET hash = zeroblob(32) WHERE i = 0")
    with LogReader(copy, vkey=grown[1]) as reader:
        for make in (lambda: reader.prove(1), lambda: write_proof(reader, 1, tmp_path / "p")):
            with pytest.raises(CorruptFile, match="was altered"):
                make()
        with pytest.raises(CorruptFile, match="the tree was altered"):
            reader.consistency(1)
    assert not (tmp_path / "p").exists()


# -- what was kept elsewhere


def test_every_receipt_kept_is_extended(grown):
    """Any receipt or checkpoint the log ever gave out."""
    directory, vkey, receipts = grown
    kept = [kept_receipt(receipt.to_bytes(), vkey, f"r{receipt.seq}") for receipt in receipts]
    found = examine_log(directory, vkey=vkey, kept=kept)
    assert found.extends == tuple(f"r{n}" for n in range(30))
    with LogReader(directory, vkey=vkey) as reader:
        for one in kept:
            extends(reader, one)


def test_what_was_kept_must_prove_itself(grown):
    """An altered receipt or another log's checkpoint says nothing about this one."""
    _, vkey, receipts = grown
    with pytest.raises(CorruptFile, match="does not verify"):
        kept_receipt(receipts[3].to_bytes().replace(b"fell", b"rose", 1), vkey)
    other = SigningKey("audit.example/test", b"o" * 32)
    note = other.sign(f"audit.example/test\n0\n{'A' * 43}=\n").to_text()
    with pytest.raises(CorruptFile, match="not signed by"):
        kept_checkpoint(note, VerifierKey.parse(vkey))


def test_a_tree_that_differs_is_noticed_by_the_stored_nodes_alone(grown):
    """Without hashing a record."""
    directory, vkey, _ = grown
    with LogReader(directory, vkey=vkey) as reader:
        tree = reader.tree
        for kept in (
            Kept("x", type(tree)(tree.origin, 7, bytes(32))),
            Kept("x", type(tree)(tree.origin, 31, bytes(32))),
        ):
            with pytest.raises(CorruptFile):
                extends(reader, kept)


def test_a_consistency_proof_starts_where_the_checkpoint_kept_ends(grown):
    """A proof from another size is refused, and one between different trees does not hold."""
    directory, vkey, receipts = grown
    key = VerifierKey.parse(vkey)
    old = [InclusionProof.parse(receipt.proof).checkpoint for receipt in receipts]
    with LogReader(directory, vkey=vkey) as reader:
        proof = reader.consistency(8)
    assert check_consistency(old[7].to_text(), proof, key).verdict is Verdict.VERIFIED
    assert check_consistency(old[8].to_text(), proof, key).verdict is Verdict.FAILED
    parsed = ConsistencyProof.parse(proof)
    altered = ConsistencyProof(8, parsed.hashes[::-1], parsed.checkpoint).to_text()
    assert check_consistency(old[7].to_text(), altered, key).verdict is Verdict.FAILED
    assert check_consistency("x", proof, key).verdict is Verdict.UNDECIDED


def test_a_signed_record_that_says_it_stands_elsewhere_fails(build):
    """The path holds and the signature too; the record belongs to another place or log, or is malformed."""
    for changes, verdict in (
        ({}, Verdict.VERIFIED),
        ({"seq": 0}, Verdict.FAILED),
        ({"log": "audit.example/other"}, Verdict.FAILED),
    ):
        receipt, vkey = build.forge(build.record(**changes))
        found = check_inclusion(receipt.record, receipt.proof, VerifierKey.parse(vkey))
        assert (found.verdict, "says it is entry" in found.reason) == (verdict, bool(changes))
    receipt, vkey = build.forge(body=b"[]", openings={})
    assert check_inclusion(b"[]", receipt.proof, VerifierKey.parse(vkey)).verdict is Verdict.UNDECIDED


# -- export


def test_an_export_holds_all_and_nothing_personal(grown, tmp_path, build):
    """Records verbatim, tree and checkpoint; no value, no salt, no passage and no signing key."""
    directory, vkey, receipts = grown
    with LogReader(directory, vkey=vkey) as reader:
        assert export_log(reader, tmp_path / "out").verdict is Verdict.VERIFIED
        bodies = [reader.body(seq) for seq in range(30)]
        nodes = b"".join(value for _, value in reader.nodes())
    out = contents(tmp_path / "out")
    assert set(out) == {"records.jsonl", "checkpoint", "hashes", "vkey"}
    assert out["records.jsonl"].splitlines() == bodies
    assert out["hashes"] == nodes
    assert len(nodes) == 32 * merkle.stored_hash_count(30)
    everything = b"".join(out.values())
    openings = [opening for receipt in receipts for opening in receipt.openings.values()]
    secrets = {piece for opening in openings for piece in (opening.salt, opening.value)}
    assert len(secrets) > 30
    secrets |= {text for receipt in receipts for _, text in receipt.passages}
    secrets.add((directory / "audit.key").read_text().strip().split("+", 4)[4])
    with contextlib.closing(sqlite3.connect(directory / "audit.db")) as db:  # nor anything sealed
        sealed = "SELECT box FROM value UNION SELECT wrapped FROM holder UNION SELECT wrapped FROM shelf"
        boxes = {box for (box,) in db.execute(sealed)}
        assert len(boxes) > 30
        secrets |= boxes | {pseudonym for (pseudonym,) in db.execute("SELECT pseudonym FROM holder")}
    for secret in secrets:
        raw = secret if isinstance(secret, bytes) else secret.encode()
        assert raw not in everything
        assert json.dumps(raw.decode("latin-1"))[1:-1].encode() not in everything


def test_an_altered_log_is_not_exported(copy, grown, build, tmp_path):
    """No checkpoint stands beside records that are not its own; and nothing is overwritten."""
    build.edit(copy / "audit.db", "UPDATE rec SET body = x'7b7d' WHERE seq = 9")
    with LogReader(copy, vkey=grown[1]) as reader:
        assert export_log(reader, tmp_path / "out").verdict is Verdict.FAILED
        assert list((tmp_path / "out").iterdir()) == []
        (tmp_path / "out" / "mine").write_text("kept")
        with pytest.raises(InvalidArgument, match="not empty"):
            export_log(reader, tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "kept"


# -- a second opinion


def test_pymerkle_agrees_on_receipts_and_objects_to_altered_ones(grown):
    """It sees the path and the root, and is asked about nothing else."""
    *_, receipts = grown
    for receipt in receipts:
        assert second_opinion_on(receipt.to_bytes()) is None
    fields = json.loads(receipts[9].to_bytes())
    fields["record"] = fields["record"].replace("buy_side", "sell_side")
    assert second_opinion_on(encoding.encode(fields) + b"\n") is not None


def test_pymerkle_is_shown_every_node(copy, grown, build):
    """An altered node on a path is a disagreement, or no path at all."""
    with LogReader(copy, vkey=grown[1]) as reader:
        assert disagreements(reader, range(30)) == []
    build.edit(copy / "audit.db", "UPDATE node SET hash = zeroblob(32) WHERE i = 30")
    with LogReader(copy, vkey=grown[1]) as reader:
        assert disagreements(reader, ()) == ["the root of 30 records"]


@pytest.mark.parametrize("version", ["6.1.0", "8.0.0", None])
def test_no_other_version_is_asked(monkeypatch, grown, version):
    """Before 7 a proof can be forged; later versions are unknown."""
    from carag.audit.auditor import second_opinion

    def found(name):
        if version is None:
            raise second_opinion.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(second_opinion.metadata, "version", found)
    with pytest.raises(MissingExtra, match=version or "second-opinion"):
        second_opinion_on(grown[2][0].to_bytes())
