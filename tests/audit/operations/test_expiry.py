"""Storage limitation: nothing before its date, nothing under a hold, and everything else."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carag.audit import (
    RETENTION,
    Basis,
    Checkpoint,
    ConsistencyProof,
    Erasure,
    Note,
    RecordKind,
    Recovery,
    Verdict,
    disclose,
    erase,
    erase_expired,
    expired,
    place_hold,
    release_hold,
    retain_until,
    verify_receipt,
)
from carag.audit.records.custody import read_targets
from carag.audit.tlog.merkle import leaf_hash, verify_consistency
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument
from tests.sizes import examples

PEOPLE = {"actor": "Dora Privacy", "approver": "Carl Compliance"}
PERSONS = ["ana@bank.example", "bo@bank.example", None]
START, DAY = 1_763_755_557_000_000, 86_400_000_000


def microseconds(moment):
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


def write(build, log, subject, code):
    if code is None:
        return log.append(Recovery("DRILL"))
    return log.append(
        build.refusal(), secrets={"query": f"What about {log.size}?", "subject": subject}, retain=code
    )


RECORDS = st.lists(
    st.tuples(
        st.sampled_from([None, *sorted(RETENTION)]),  # None commits to nothing
        st.sampled_from(PERSONS),
        st.integers(0, 900),  # days since the one before
    ),
    min_size=1,
    max_size=8,
)
HOLDS = st.lists(
    st.one_of(
        st.just({}),
        st.sampled_from([{"subject": name} for name in PERSONS if name]),
        st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda pair: {"records": tuple(sorted(pair))}),
    ).flatmap(lambda scope: st.tuples(st.just(scope), st.booleans())),
    max_size=3,
)


@settings(max_examples=examples(25))
@given(RECORDS, HOLDS, st.integers(0, 9 * 366))
@example([("ai6m", None, 0), ("fin7y", None, 0)], [], 200)
@example([("ai6m", PERSONS[0], 0), ("ai6m", PERSONS[1], 0)], [({"subject": PERSONS[0]}, False)], 200)
def test_law_what_has_ended_and_is_not_held_goes_and_nothing_else(build, records, holds, later):
    """By a model that knows the calendar and the holds; every receipt and checkpoint of before still verifies."""
    now = [START]
    with tempfile.TemporaryDirectory() as directory, build.open_log(directory, clock=lambda: now[0]) as log:
        receipts, subjects = [], {}
        for code, subject, days in records:
            now[0] += days * DAY
            receipts.append(write(build, log, subject, code))
            subjects[receipts[-1].seq] = subject
        in_force = []
        for scope, released in holds:
            receipts.append(place_hold(log, "MATTER-7", actor="counsel", **scope))
            if released:
                release_hold(log, receipts[-1].seq, **PEOPLE)
            else:
                in_force.append(scope)
        now[0] += later * DAY

        def held(seq):
            first_last = [scope["records"] for scope in in_force if "records" in scope]
            return (
                {} in in_force
                or {"subject": subjects.get(seq)} in in_force
                or any(first <= seq <= last for first, last in first_last)
            )

        before = {n: log.private.openings(n) for n in range(log.size)}
        wanted = {
            seq
            for seq in subjects
            if before[seq]
            and microseconds(retain_until(log.record(seq).committed, log.record(seq).retain)) <= now[0]
            and not held(seq)
        }
        assert {target.seq for target in expired(log)} == wanted
        old, size = log.checkpoint(), log.size
        if not wanted:
            with pytest.raises(InvalidArgument, match="nothing to erase"):
                erase_expired(log, **PEOPLE)
            assert log.size == size
        else:
            done = erase_expired(log, **PEOPLE)
            event = log.record(done.seq).event
            assert (event.basis, event.records) == (Basis.STORAGE_LIMIT, tuple(sorted(wanted)))
            receipts.append(done)
            extends(log, old, size)
        for seq, openings in before.items():
            assert log.private.openings(seq) == ({} if seq in wanted else openings)
            assert set(log.private.erased_by(seq)) == (set(openings) if seq in wanted else set())
        assert expired(log) == []
        for receipt in receipts:
            assert verify_receipt(receipt.to_bytes(), log.vkey).verdict is Verdict.VERIFIED
        log.verify()


def extends(log, old, size):
    proof = ConsistencyProof.parse(log.consistency(size))
    roots = [Checkpoint.parse(Note.parse(text).text).root for text in (old, log.checkpoint())]
    assert verify_consistency(size, log.size, proof.hashes, *roots)


@pytest.mark.parametrize("code", RETENTION)
def test_to_the_microsecond(tmp_path, build, code):
    """A class has ended at its last instant, and not before."""
    now = [START]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        write(build, log, PERSONS[0], code)
        until = microseconds(retain_until(log.record(0).committed, code))
        now[0] = until - 1
        assert expired(log) == []
        now[0] = until
        assert [target.field for target in expired(log)] == ["query", "subject"]


def test_who_erased_held_or_opened_stays_known(tmp_path, build):
    """GDPR Art. 5(2); also a century later."""
    now = [START]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        for _ in range(2):
            write(build, log, PERSONS[0], "ai6m")
        placed = place_hold(log, "MATTER-7", actor="counsel", records=(0, 0))
        disclose(log, 0, role="auditor", actor="eve", why="REVIEW")
        erase(log, records=[1], basis=Basis.UNLAWFUL, **PEOPLE)
        release_hold(log, placed.seq, **PEOPLE)
        now[0] += 36_525 * DAY
        assert {target.seq for target in expired(log)} == {0}
        erase_expired(log, **PEOPLE)
        kinds = [log.record(n).kind for n in range(2, log.size)]
        assert kinds == [
            RecordKind.HOLD,
            RecordKind.DISCLOSURE,
            RecordKind.ERASURE,
            RecordKind.HOLD,
            RecordKind.ERASURE,
        ]
        assert all("actor" in log.private.openings(n) for n in range(2, log.size))


def test_more_than_can_be_named_go_in_one_step(tmp_path, build, monkeypatch):
    """Then the record says how many, and the list is committed to."""
    monkeypatch.setattr("carag.audit.operations.erasure.MAX_NAMED_RECORDS", 3)
    now = [START]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        for _ in range(4):
            write(build, log, PERSONS[0], "ai6m")
        now[0] += 200 * DAY
        done = erase_expired(log, **PEOPLE)
        event = Erasure(basis=Basis.STORAGE_LIMIT, count=4, fields=("query", "subject"))
        assert log.record(done.seq).event == event
        listed = read_targets(log.private.openings(done.seq)["targets"].value)
        assert {target.seq for target in listed} == {0, 1, 2, 3}


def test_one_person_erases_nothing(tmp_path, build):
    """Two are needed, as for every erasure."""
    now = [START]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        write(build, log, PERSONS[0], "ai6m")
        now[0] += 200 * DAY
        with pytest.raises(InvalidArgument, match="second person"):
            erase_expired(log, actor="Dora", approver="dora")
        assert (log.size, len(log.private.openings(0))) == (1, 2)


class Crash(Exception):
    """Stands for the process dying here."""


@pytest.mark.parametrize("at", ["append", "erase"])
def test_cut_off_it_is_done_or_not_begun(tmp_path, build, monkeypatch, at):
    """No record, no deletion; with a record, the next opening finishes it."""
    now = [START]

    def die(*_, **__):
        raise AuditUnavailable("full") if at == "append" else Crash

    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        write(build, log, PERSONS[0], "ai6m")
        write(build, log, PERSONS[0], "fin7y")
        now[0] += 200 * DAY
        with monkeypatch.context() as patch:
            patch.setattr(log if at == "append" else log.private, at, die)
            with pytest.raises((AuditUnavailable, Crash)):
                erase_expired(log, **PEOPLE)
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        assert len(log.private.openings(0)) == (2 if at == "append" else 0)
        assert len(log.private.openings(1)) == 2
        assert log.private.erased_by(0) == ({} if at == "append" else {"query": 2, "subject": 2})


@pytest.mark.parametrize("also", ["", "its leaf hash"])
def test_what_an_altered_record_says_now_opens_no_way(tmp_path, build, also):
    """A shorter class written over a longer one, in a log that is open: nothing is erased."""
    now = [START]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        write(build, log, PERSONS[0], "fin5y")
        write(build, log, PERSONS[0], "ai6m")
        body = log.record(0).to_bytes().replace(b"fin5y", b"ai6m")
        edits = [("UPDATE rec SET body = ? WHERE seq = 0", (body,))]
        if also:
            edits.append(("UPDATE node SET hash = ? WHERE i = 0", (leaf_hash(body),)))
        build.edit(tmp_path / "audit.db", *edits)
        now[0] += 200 * DAY
        with pytest.raises(CorruptFile, match="was altered"):
            erase_expired(log, **PEOPLE)
        assert log.size == 2
        assert [len(log.private.openings(n)) for n in range(2)] == [2, 2]
