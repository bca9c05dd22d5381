"""Fifteen attacks on a log: which auditor notices each is written down in ``attacks.py``, and is so.

What a running log notices of its own files when it is opened stands in ``test_tampering.py``.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from carag.audit import (
    AuditLog,
    Begin,
    Models,
    Note,
    PolicyApplied,
    Recovery,
    SessionSource,
    SigningKey,
    Verdict,
    VerifierKey,
)
from carag.audit.auditor.examine import examine_log, kept_checkpoint, kept_receipt
from carag.audit.tlog import encoding
from tests.audit.auditor import attacks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "what-a-receipt-proves.md"
LATER = 1_900_000_000_000_000


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Grow a log of sixty records, none of them altered."""
    return attacks.stage(tmp_path_factory.mktemp("scene"))


def test_an_unharmed_log_satisfies_all_three_auditors(scene):
    """No auditor cries wolf."""
    assert attacks.pattern(scene) == "..."
    assert all(one.size == attacks.RECORDS for one in scene.examine())


@pytest.mark.parametrize("number", range(15))
def test_each_auditor_notices_what_is_written_down(scene, tmp_path, number):
    """Exactly the pattern in the list, and for the reason that attack is meant to be found by."""
    attack = attacks.ATTACKS[number]
    attacked = attacks.again(scene, tmp_path)
    attack.act(attacked)
    found = attacked.examine()
    assert attacks.pattern(attacked) == attack.noticed, [one.reason for one in found]
    assert re.search(attack.says, found[-1].reason), found[-1].reason
    assert {one.verdict for one in found} <= {Verdict.VERIFIED, Verdict.FAILED}


def test_with_an_anchor_outside_every_attack_is_noticed():
    """Fifteen of fifteen; eight without; seven with the key from the same directory."""
    assert len({attack.name for attack in attacks.ATTACKS}) == 15
    columns = zip(*(attack.noticed for attack in attacks.ATTACKS), strict=True)
    assert [column.count("D") for column in columns] == [7, 8, 15]


def test_the_page_has_the_table_of_the_list():
    """Row by row."""
    assert attacks.table() in PAGE.read_text("utf-8")


# -- the limits that the page states


def test_a_thief_is_not_noticed_after_the_last_anchor(scene, tmp_path):
    """Records that no outsider has seen can still be rewritten by a holder of the key."""
    attacked = attacks.again(scene, tmp_path)
    bodies = attacked.bodies()
    attacked.rewrite([*bodies, encoding.encode({**encoding.load(bodies[-1]), "seq": 60, "id": "A" * 22})])
    assert attacks.pattern(attacked) == "..."


@pytest.mark.parametrize("size", [1, 49, 50, 51, 59, 60])
def test_an_older_anchor_covers_less(scene, tmp_path, size):
    """A checkpoint kept at some size shows a rollback to any smaller one, and none to that size or more."""
    attacked = attacks.again(scene, tmp_path)
    attacks.roll_back(attacked)
    kept = kept_checkpoint(scene.notes[size], VerifierKey.parse(scene.vkey))
    verdict = examine_log(attacked.home, vkey=scene.vkey, kept=[kept]).verdict
    assert verdict is (Verdict.FAILED if size > attacks.EARLIER else Verdict.VERIFIED)


# -- more than the fifteen


def test_a_record_of_another_log_is_none_of_this_one(scene, tmp_path):
    """Even signed by this log's key, at the right place: it says whose it is."""
    attacked = attacks.again(scene, tmp_path)
    bodies = attacked.bodies()
    bodies[-1] = encoding.encode({**encoding.load(bodies[-1]), "log": "audit.example/other"})
    attacked.rewrite(bodies)
    found = examine_log(attacked.home, vkey=scene.vkey)
    assert found.verdict is Verdict.FAILED
    assert "says it is record 59 of audit.example/other" in found.reason


def test_a_line_under_a_checkpoint_is_no_attack_unless_it_says_it_is_the_logs(scene, tmp_path):
    """What unknown keys sign is not judged; a false second line by the log's own key fails."""
    note = Note.parse(scene.notes[attacks.RECORDS])
    (ours,) = note.signatures
    stranger = SigningKey("witness.example/w", b"w" * 32).sign(note.text).signatures[0]
    false = dataclasses.replace(ours, signature=bytes(64))
    for lines, noticed in (([ours, stranger], "..."), ([stranger, ours], "..."), ([ours, false], "DDD")):
        attacked = attacks.again(scene, tmp_path / str(len(list(tmp_path.iterdir()))))
        text = "".join([note.text, "\n", *(f"{line.to_line()}\n" for line in lines)])
        with attacked.database() as db:
            db.execute("UPDATE cp SET note = ? WHERE size = ?", (text, attacks.RECORDS))
        assert attacks.pattern(attacked) == noticed


def test_a_machine_put_back_and_used_again_contradicts_its_own_receipts(tmp_path):
    """A snapshot of a virtual machine, restored: both histories are signed, and either convicts the other."""
    with AuditLog.open(tmp_path / "log") as log:
        log.append(Recovery("DRILL"))
        vkey = log.vkey
    shutil.copytree(tmp_path / "log", tmp_path / "snapshot")
    with AuditLog.open(tmp_path / "log") as log:
        lost = log.append(Recovery("DRILL"))
    with AuditLog.open(tmp_path / "snapshot") as log:
        held = log.append(Recovery("DRILL"))
    for directory, receipt in (("log", held), ("snapshot", lost)):
        kept = kept_receipt(receipt.to_bytes(), vkey)
        found = examine_log(tmp_path / directory, vkey=vkey, kept=[kept])
        assert (found.verdict, "not those" in found.reason) == (Verdict.FAILED, True)


@pytest.mark.parametrize(
    ("how", "noticed", "says"),
    [
        ("its row alone", "DDD", "record 60 is missing"),
        ("with its nodes, under the checkpoint before it", "..D", "cut short"),
        ("under a stolen key", "..D", "cut short"),
        ("under a stolen key, for a harmless record", "..D", "not those"),
    ],
)
def test_a_call_that_was_begun_and_never_ended_cannot_be_dropped(scene, tmp_path, how, noticed, says):
    """A process died after a question had left the machine; the holder of the begin's receipt knows it."""
    attacked, size = attacks.again(scene, tmp_path), attacks.RECORDS
    begin = Begin(
        started=1_763_755_555_123_456,
        role="buy_side",
        purpose="invest",
        source=SessionSource.VERIFIED,
        as_of=29_395_925,
        policy=PolicyApplied(table=b"T" * 32, masks=((0x20, 0x10000),)),
        models=Models("minilm", "bedrock:amazon.nova-micro-v1:0", "bucket-prompt-1"),
    )
    with AuditLog.open(attacked.home) as log:
        receipt = log.append(begin, secrets={"query": "What did leave?"}).to_bytes()
    attacked = dataclasses.replace(attacked, kept=kept_receipt(receipt, attacked.vkey))
    assert attacks.pattern(attacked) == "..."
    bodies = attacked.bodies()
    with attacked.database() as db:
        db.execute("DELETE FROM begun")  # or the next opening would report it
        if how == "its row alone":
            db.execute("DELETE FROM rec WHERE seq = ?", (size,))
    if "nodes" in how:
        attacked.rewrite(bodies[:size], scene.notes[size])
    elif how.endswith("record"):
        harmless = encoding.encode({**encoding.load(bodies[0]), "seq": size, "id": "A" * 22, "tc": LATER})
        attacked.rewrite([*bodies[:size], harmless])
    elif "key" in how:
        attacked.rewrite(bodies[:size])
    assert attacks.pattern(attacked) == noticed
    assert re.search(says, attacked.examine()[-1].reason)


# Where each of the remaining attacks of the list is carried out.
ELSEWHERE = {
    "a proof for the index before and after": "test_each_named_alteration_is_noticed",
    "a wrong size, a path too long or too short, a hash of 31 or 33 bytes": "test_each_named_alteration_is_noticed",
    "a size of 2**63": "test_a_malformed_checkpoint_is_refused",
    "two signatures by one key, a BOM": "test_a_malformed_note_is_refused",
    "CRLF, a trailing space, a duplicate key": "test_each_named_alteration_is_noticed",
    "keys out of order, another spelling of a body": "test_another_spelling_is_refused",
    "salts swapped": "test_each_named_alteration_is_noticed",
    "a commitment opened to another value": "test_a_commitment_binds_field_value_and_salt",
    "a clock set back": "test_commit_times_never_run_backwards",
    "two writers": "test_a_second_writer_is_refused",
    "a full disk": "test_a_full_disk_is_refused_and_nothing_is_lost",
    "a sync that fails": "test_a_failed_commit_poisons_the_log",
    "the same mutations of a receipt, judged by the standalone verifier": "test_each_named_alteration_is_noticed",
}


def named_tests():
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)}


@pytest.mark.parametrize("test", ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_others_are_carried_out_elsewhere(test):
    """The test named is there."""
    assert test in named_tests()


def test_the_page_says_what_a_receipt_proves_and_names_the_test_of_each_claim():
    """One test a row, in the first column, and it exists."""
    table = PAGE.read_text("utf-8").split("| proves | does not prove |\n|---|---|\n")[1]
    rows = [line.split(" | ")[0] for line in table.split("\n\n")[0].splitlines()]
    assert len(rows) >= 5
    for claim in rows:
        (test,) = re.findall(r"`(test_\w+)`", claim)
        assert test in named_tests(), claim
