"""A log's keys: rotation is never between keys, whenever it stops; old receipts stay good; revocation is said."""

from __future__ import annotations

import dataclasses
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import AuditLog, Recovery, Verdict, verify_receipt
from carag.audit.auditor.examine import examine_log
from carag.audit.log.keyring import KeyRing
from carag.audit.operations.rotation import add_mldsa, revoke, rotate, successor
from carag.audit.receipts.check_proof import check_checkpoint
from carag.audit.records.record import Record
from carag.audit.records.upkeep import Anchored, KeyAction, KeyChange
from carag.audit.tlog.keys import MlDsaSigningKey, SigningKey
from carag.audit.tlog.log_verifier import LogVerifier, parse_vkeys
from carag.audit.tlog.note import Note
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra

DAY = 86_400
ORIGIN = "audit.example/keys"
OTHER_LOG = str(SigningKey("audit.example/other", b"o" * 32).verifier)


class Clock:
    def __init__(self):
        self.now = 1_763_755_557_000_000

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += seconds * 1_000_000


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(tmp_path, clock):
    with AuditLog.open(tmp_path / "log", origin=ORIGIN, clock=clock) as log:
        yield log


def verdict(receipt, vkey):
    return verify_receipt(receipt.to_bytes(), vkey).verdict


def file_of(log):
    return (log._home.path / "vkey").read_text()


def test_either_key_verifies_during_the_overlap_and_the_new_one_after(log, clock):
    """Old receipts under the old key, overlapping ones under both, later ones under the new; the file has all."""
    old, before = log.vkey, log.append(Recovery("BEFORE"))
    change = rotate(log, overlap=7 * DAY)
    new, during = log.vkey, log.append(Recovery("DURING"))
    clock.pass_(7 * DAY)
    after = log.append(Recovery("AFTER"))
    assert new != old
    expected = {old: [True, True, True, False], new: [False, True, True, True], file_of(log): [True] * 4}
    for vkeys, good in expected.items():
        verdicts = [verdict(receipt, vkeys) for receipt in (before, change, during, after)]
        assert verdicts == [Verdict.VERIFIED if ok else Verdict.UNDECIDED for ok in good]
    assert [str(key) for key in parse_vkeys(file_of(log))] == [new, old]
    assert log.verify().size == 4


def test_the_record_leads_from_the_old_key_to_the_new(log):
    """Signed under the old key, the rotation names the new one; a chain of them leads on."""
    first = log.vkey
    receipts = [rotate(log), rotate(log)]
    trusted = first
    for receipt in receipts:
        trusted = successor(receipt.to_bytes(), trusted)
    assert trusted == log.vkey
    with pytest.raises(InvalidArgument, match="want a rotation"):
        successor(log.append(Recovery("DRILL")).to_bytes(), log.vkey)


def test_a_key_nobody_announced_is_not_a_successor(log):
    """A receipt under another key leads nowhere, whatever it says."""
    receipt = rotate(log)
    stranger = str(SigningKey(ORIGIN, b"s" * 32).verifier)
    with pytest.raises(InvalidArgument, match="does not verify"):
        successor(receipt.to_bytes(), stranger)


@given(st.lists(st.sampled_from(["append", "rotate", "stage", "reopen", "day"]), max_size=12))
@settings(max_examples=12, deadline=None)
def test_law_the_current_key_signs_everything(tmp_path_factory, steps):
    """Whatever happens in whatever order, every receipt verifies under the key current then and under the file."""
    home, clock = tmp_path_factory.mktemp("ring") / "log", Clock()
    log = AuditLog.open(home, origin=ORIGIN, clock=clock)
    receipts = []
    try:
        for step in steps:
            if step == "rotate":
                receipts.append((log.vkey, rotate(log, overlap=2 * DAY)))
            elif step == "stage":
                log.keys.stage()
            elif step == "reopen":
                log.close()
                log = AuditLog.open(home, clock=clock)
            elif step == "day":
                clock.pass_(DAY)
            receipts.append((log.vkey, log.append(Recovery("STEP"))))
        listed = file_of(log)
        for vkey, receipt in receipts:
            assert verdict(receipt, vkey) == verdict(receipt, listed) == Verdict.VERIFIED
        log.verify()
    finally:
        log.close()


@pytest.mark.parametrize("dies_at", range(1, 7))
def test_a_rotation_that_dies_is_finished_by_asking_again(log, clock, tmp_path, monkeypatch, dies_at):
    """At every write the process may die: the log opens, signs with its current key, and rotates."""
    from carag.audit.log import keyring

    class Died(BaseException):
        pass

    count, write = 0, keyring.write_atomically

    def dying(*arguments, **options):
        nonlocal count
        count += 1
        if count == dies_at:
            raise Died
        write(*arguments, **options)

    real_append = log.append

    def dying_append(event):
        nonlocal count
        count += 1
        if count == dies_at:
            raise Died
        return real_append(event)

    old = log.vkey
    with monkeypatch.context() as patched:
        patched.setattr(keyring, "write_atomically", dying)
        patched.setattr(log, "append", dying_append)
        try:
            rotate(log)
        except Died:
            pass
        else:
            assert dies_at > 5
    log.close()
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with AuditLog.open(tmp_path / "copy", clock=clock) as again:
        receipt = again.append(Recovery("AFTER"))
        assert verdict(receipt, again.vkey) == verdict(receipt, file_of(again)) == Verdict.VERIFIED
        assert verdict(receipt, old) is Verdict.VERIFIED
        rotate(again)
        assert again.vkey != old
        assert verdict(again.append(Recovery("LATER")), again.vkey) is Verdict.VERIFIED


def test_a_log_that_cannot_record_the_rotation_keeps_its_key(log, monkeypatch):
    """No record, no new key."""

    def unavailable(event):
        raise AuditUnavailable("no")

    old = log.vkey
    with monkeypatch.context() as patched:
        patched.setattr(log, "append", unavailable)
        with pytest.raises(AuditUnavailable):
            rotate(log)
    assert log.vkey == old
    with pytest.raises(InvalidArgument, match="seconds"):
        rotate(log, overlap=-1)


def test_a_private_key_whose_time_is_over_is_gone(log, clock, tmp_path):
    """After the overlap only its public half is kept."""
    old = log._key._keys.current.to_skey()
    rotate(log, overlap=DAY)
    assert old in (tmp_path / "log" / "audit.key").read_text()
    clock.pass_(DAY)
    rotate(log, overlap=DAY)
    assert old not in (tmp_path / "log" / "audit.key").read_text()
    assert (tmp_path / "log" / "audit.key").stat().st_mode & 0o077 == 0
    assert len(file_of(log).splitlines()) == 3


def test_an_altered_signature_of_a_known_key_fails(log):
    """Of two given keys both must hold; a stranger's line is ignored."""
    rotate(log)
    receipt = log.append(Recovery("DRILL"))
    first, second = Note.parse(receipt.proof.split("\n\n", 1)[1]).signatures
    broken = dataclasses.replace(first, signature=first.signature[:-1] + bytes([first.signature[-1] ^ 1]))
    bad = dataclasses.replace(receipt, proof=receipt.proof.replace(first.to_line(), broken.to_line()))
    keys = {str(key.key_id): str(key) for key in log.keys.listed}
    assert verdict(bad, "\n".join(keys.values())) is Verdict.FAILED
    assert verdict(bad, keys[str(first.key_id)]) is Verdict.FAILED
    assert verdict(bad, keys[str(second.key_id)]) is Verdict.VERIFIED


def damage(path, change):
    path.write_text(change(path.read_text()))


OTHER = SigningKey(ORIGIN, b"o" * 32)
FOREIGN = SigningKey("audit.example/other", b"o" * 32)
DAMAGED = {
    "vkey of another key": ("vkey", lambda _: f"{OTHER.verifier}\n"),
    "vkey of another log": ("vkey", lambda _: f"{FOREIGN.verifier}\n"),
    "vkey with another log's": ("vkey", lambda text: f"{text}{FOREIGN.verifier}\n"),
    "vkey emptied": ("vkey", lambda _: ""),
    "vkey with rubbish": ("vkey", lambda text: f"{text}rubbish\n"),
    "a key of another log": ("audit.key", lambda text: f"{text}next {FOREIGN.to_skey()}\n"),
    "an unknown line": ("audit.key", lambda text: f"{text}perhaps {OTHER.to_skey()}\n"),
    "two next keys": ("audit.key", lambda text: f"{text}next {OTHER.to_skey()}\nnext {OTHER.to_skey()}\n"),
    "until never": ("audit.key", lambda text: f"{text}until never {OTHER.to_skey()}\n"),
    "the current key replaced": ("audit.key", lambda _: f"{OTHER.to_skey()}\n"),
    "an Ed25519 key for ML-DSA": ("audit.key", lambda text: f"{text}also {OTHER.to_skey()}\n"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_key_files_do_not_open(log, tmp_path, clock, name):
    """Keys that do not belong together are never guessed right; no message shows a private key."""
    log.close()
    file, change = DAMAGED[name]
    damage(tmp_path / "log" / file, change)
    with pytest.raises(CorruptFile) as caught:
        AuditLog.open(tmp_path / "log", clock=clock)
    assert "PRIVATE" not in str(caught.value)


def test_revocation_names_what_is_still_believed(log):
    """The record says how many records count; only a key of this log can be revoked."""
    log.append(Recovery("DRILL"))
    old = log.vkey
    rotate(log)
    record = Record.parse(revoke(log, old, good=1).record)
    assert (record.event.action, record.event.good) == (KeyAction.REVOKE, 1)
    for vkey, good in ((str(OTHER.verifier), 1), (old, 4), (old, -1), ("x", 1)):
        with pytest.raises(InvalidArgument):
            revoke(log, vkey, good=good)


def test_an_mldsa_key_signs_what_is_anchored(log, tmp_path, clock):
    """Not each receipt: 3 kB a record would be too much. It survives reopening, and old readers ignore it."""
    try:
        receipt = add_mldsa(log)
    except MissingExtra:
        pytest.skip("the installed cryptography has no ML-DSA")
    key = log.keys.listed[-1]
    event = Record.parse(receipt.record).event
    assert (event.action, event.algorithm, event.public) == (KeyAction.ADD, 6, key.public)
    with pytest.raises(InvalidArgument, match="already"):
        add_mldsa(log)
    rotate(log)
    listed = file_of(log)
    log.close()
    with AuditLog.open(tmp_path / "log", clock=clock) as again:
        assert file_of(again) == listed
        note = again.keys.cosign(Note.parse(again.checkpoint()))
        assert key.verifies(note)
        assert not key.verifies(Note.parse(again.checkpoint()))
        assert verdict(receipt, listed) is Verdict.VERIFIED
    with pytest.raises(InvalidArgument, match="log's name"):
        log.keys.add(MlDsaSigningKey("audit.example/other", b"m" * 32))


EVENTS = {
    "anchored": Anchored(anchor="s3", size=5, evidence=b"e" * 32, seen=7),
    "rotated": KeyChange(action="rotate", algorithm=1, public=b"p" * 32, until=9, why="SCHEDULED"),
    "added": KeyChange(action="add", algorithm=6, public=b"p" * 1312, why="POST_QUANTUM"),
    "revoked": KeyChange(action="revoke", algorithm=1, public=b"p" * 32, good=0, why="STOLEN"),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_events_come_back(event):
    """Written and read, an event is the same."""
    record = Record("log.example/1", 3, b"i" * 16, 11, event, {}, ())
    assert Record.parse(record.to_bytes()).event == event


WRONG = [
    {"action": "burn"},
    {"algorithm": 4},
    {"algorithm": "1"},
    {"public": b"p" * 31},
    {"until": None},
    {"until": -1},
    {"good": 3},
    {"action": "revoke"},
    {"why": "a sentence with spaces"},
]


@pytest.mark.parametrize("changes", WRONG)
def test_an_event_that_makes_no_sense_is_refused(changes):
    """A rotation states its overlap, a revocation what is believed, and neither the other's."""
    with pytest.raises(InvalidArgument):
        dataclasses.replace(EVENTS["rotated"], **changes)


@pytest.mark.parametrize("changes", [{"anchor": "a b"}, {"size": -1}, {"evidence": b"e"}, {"seen": 1.5}])
def test_an_anchoring_that_makes_no_sense_is_refused(changes):
    """A code, a size, a digest, a time."""
    with pytest.raises(InvalidArgument):
        dataclasses.replace(EVENTS["anchored"], **changes)


def test_promoting_nothing_is_refused(tmp_path):
    """A key takes over only after it was staged and said."""
    ring = KeyRing(tmp_path / "audit.key", tmp_path / "vkey", SigningKey.generate(ORIGIN))
    with pytest.raises(InvalidArgument, match="stage one first"):
        ring.promote(until=0)


def test_staged_twice_is_one_key(log, tmp_path, clock):
    """The key that waits for its turn is kept, also over a restart: a record may have named it already."""
    fresh = log.keys.stage()
    assert log.keys.stage() == fresh
    log.close()
    with AuditLog.open(tmp_path / "log", clock=clock) as again:
        assert again.keys.stage() == fresh
        rotate(again)
        assert again.vkey == str(fresh)


def test_several_keys_are_one(log):
    """Wherever one key is taken, the keys of a rotated log can be: any may sign, none may be false."""
    before = Note.parse(log.checkpoint())
    old = log.keys.verifier
    rotate(log, overlap=0)
    log.append(Recovery("DRILL"))
    keys, after = LogVerifier.parse(file_of(log)), Note.parse(log.checkpoint())
    assert keys == log.keys.trusted
    assert (keys.name, keys.key_id) == (log.origin, log.keys.verifier.key_id)
    assert str(keys) == file_of(log).rstrip("\n")
    assert keys.verifies(before)
    assert keys.verifies(after)
    assert keys.signature_on(before) == old.signature_on(before)
    false = dataclasses.replace(old.signature_on(before), signature=bytes(64))
    assert not keys.verifies(after.signed_also([false]))
    assert not keys.verifies(OTHER.sign(after.text))
    assert keys.signature_on(OTHER.sign(after.text)) is None


def test_who_holds_only_the_old_key_cannot_tell_and_is_told_what_to_do(log, clock, tmp_path):
    """Not tampered, and never verified: a later key of the log, until a vkey or a receipt from outside says so."""
    old, before = log.vkey, log.append(Recovery("BEFORE"))
    change = rotate(log, overlap=0)
    clock.pass_(1)
    after = log.append(Recovery("AFTER"))
    new, both, home = log.vkey, file_of(log), log._home.path
    stranger = str(SigningKey(ORIGIN, b"s" * 32).verifier)
    kept = log.checkpoint()
    log.close()
    for vkey in (old, stranger):
        told = verify_receipt(after.to_bytes(), vkey)
        assert told.verdict is Verdict.UNDECIDED
        assert re.search(
            "later .*key of the log if it was rotated.*give all vkeys.*receipt of the rotation", told.reason
        )
        found = examine_log(home, vkey=vkey)
        assert found.verdict is Verdict.UNDECIDED
        assert re.search(
            "give all vkeys.* Record 1 says that this key took over.*could have written", found.reason
        )
        assert check_checkpoint(kept, LogVerifier.parse(vkey)).verdict is Verdict.UNDECIDED
    assert "give the key of that log" in verify_receipt(after.to_bytes(), OTHER_LOG).reason
    for vkey in (new, both, f"{old}\n{successor(change.to_bytes(), old)}"):
        assert verify_receipt(after.to_bytes(), vkey).verdict is Verdict.VERIFIED
        assert examine_log(home, vkey=vkey).verdict is Verdict.VERIFIED
    assert verify_receipt(before.to_bytes(), old).verdict is Verdict.VERIFIED


def test_another_key_that_no_record_announces_is_tampering(log, tmp_path, build):
    """A checkpoint signed by a stranger under the log's name; also where the log was rotated, to another key."""
    old = log.vkey
    rotate(log, overlap=0)
    log.append(Recovery("AFTER"))
    text = Note.parse(log.checkpoint()).text
    home = log._home.path
    log.close()
    forged = SigningKey(ORIGIN, b"s" * 32).sign(text).to_text()
    build.edit(home / "audit.db", ("UPDATE cp SET note = ?", (forged,)))
    for vkey in (old, file_of(log)):
        found = examine_log(home, vkey=vkey)
        assert found.verdict is Verdict.FAILED
        assert "not signed by" in found.reason


def test_a_tampered_log_under_a_later_key_is_still_not_verified(log, build):
    """The old key's holder is told nothing good of it; the new one's is told what is wrong."""
    old = log.vkey
    rotate(log, overlap=0)
    log.append(Recovery("AFTER"))
    home, new = log._home.path, log.vkey
    log.close()
    build.edit(home / "audit.db", "UPDATE rec SET body = x'7b7d' WHERE seq = 0")
    assert examine_log(home, vkey=old).verdict is not Verdict.VERIFIED
    assert examine_log(home, vkey=new).verdict is Verdict.FAILED
