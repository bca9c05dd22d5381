"""Erasure: values go, proofs stay; holds, duties to keep, and two people come first."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import threading
import time

import pytest

from carag.audit import (
    AuditLog,
    Basis,
    ConsistencyProof,
    Erasure,
    InclusionProof,
    Record,
    RecordKind,
    Recovery,
    Verdict,
    disclose,
    erase,
    place_hold,
    verify_receipt,
)
from carag.audit.records.custody import read_targets
from carag.audit.tlog.merkle import leaf_hash, verify_consistency, verify_inclusion
from carag.errors import AuditUnavailable, CaragError, CorruptFile, InvalidArgument, Refused
from tests.audit.log.earlier import laid_out_as_earlier
from tests.warm import Child

PEOPLE = {"actor": "Dora Privacy", "approver": "Carl Compliance"}
BY_LAW = {**PEOPLE, "basis": Basis.LEGAL_OBLIGATION}
ANA, BO = "ana@bank.example", "bo@bank.example"


def ask(log, build, subject, query="What about {n}?", **more):
    values = {**build.SECRETS, "subject": subject, "query": query.format(n=log.size)}
    return log.append(build.access(), secrets=values, passages=build.passages(), **more)


def bytes_of(directory):
    return {path.name: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def exports(directory):
    """Write out the database as SQL and as a copy, the ways somebody would export it."""
    with contextlib.closing(sqlite3.connect(directory / "audit.db")) as db:
        dump = "\n".join(db.iterdump()).encode()
        with contextlib.closing(sqlite3.connect(":memory:")) as copy:
            db.backup(copy)
            return {"dump": dump, "copy": copy.serialize()}


def traces(openings):
    """Every spelling in which a value or a salt could still lie about."""
    for opening in openings.values():
        text = opening.value.encode()
        yield from (text, text.hex().encode(), text.hex().upper().encode(), opening.value.encode("utf-16-le"))
        yield from (opening.salt, opening.salt.hex().encode(), opening.salt.hex().upper().encode())


# -- what goes and what stays


@pytest.mark.parametrize("whose", ["a record", "a subject"])
def test_nothing_is_left_and_everything_still_verifies(tmp_path, build, whose):
    """After an erasure: no byte of value or salt in any file or export; all older receipts and proofs hold."""
    with build.open_log(tmp_path) as log:
        receipts = [ask(log, build, ANA if n % 2 else BO) for n in range(20)]
        gone = {5} if whose == "a record" else set(range(1, 20, 2))
        openings = {n: log.private.openings(n) for n in range(20)}
        hidden = [trace for n in gone for trace in traces(openings[n])]
        kept = {trace for n in range(20) if n not in gone for trace in traces(openings[n])}
        hidden = [trace for trace in hidden if trace not in kept]  # the same answer was given to others
        assert len(hidden) >= 4 * len(gone)
        old_checkpoint, old_proofs = log.checkpoint(), [log.prove(n) for n in range(20)]
        done = erase(log, **BY_LAW, **({"records": [5]} if whose == "a record" else {"subject": ANA}))
        for files in (bytes_of(tmp_path), exports(tmp_path)):
            hits = [(name, trace) for name, data in files.items() for trace in hidden if trace in data]
            assert hits == []
        for receipt in [*receipts, done]:
            assert verify_receipt(receipt.to_bytes(), log.vkey).verdict is Verdict.VERIFIED
        for n, text in enumerate(old_proofs):
            proof = InclusionProof.parse(text)
            leaf = leaf_hash(log.record(n).to_bytes())
            assert verify_inclusion(leaf, n, 20, proof.hashes, root_of(old_checkpoint))
        extended = ConsistencyProof.parse(log.consistency(20))
        new_root = root_of(log.checkpoint())
        assert verify_consistency(20, log.size, extended.hashes, root_of(old_checkpoint), new_root)
        texts = [(p.chunk, p.text) for p in build.passages()]
        for n in range(20):
            made = verify_receipt(log.receipt(n, texts).to_bytes(), log.vkey)
            assert made.verdict is Verdict.VERIFIED
            assert set(log.private.openings(n)) == (set() if n in gone else set(made.withheld))
        log.verify()
    hits = [(name, trace) for name, data in bytes_of(tmp_path).items() for trace in hidden if trace in data]
    assert hits == []


def root_of(checkpoint):
    from carag.audit import Checkpoint, Note

    return Checkpoint.parse(Note.parse(checkpoint).text).root


def test_the_search_of_these_tests_would_find_it(tmp_path, build):
    """A value and salt left in clear anywhere is found in the files, the dump and the copy alike."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        (salt,) = {log.private.openings(0)["query"].salt}
    with contextlib.closing(sqlite3.connect(tmp_path / "audit.db", isolation_level=None)) as db:
        db.execute("INSERT INTO erased VALUES (?, ?, 1)", (9, "What about 0?"))
        db.execute("INSERT INTO shelf VALUES (9, ?)", (salt,))
    for files in (bytes_of(tmp_path), exports(tmp_path)):
        assert any(b"What about 0?" in data for data in files.values())
        assert any(salt in data or salt.hex().upper().encode() in data for data in files.values())


def test_the_record_says_what_and_why_and_not_who(tmp_path, build):
    """Neither the subject nor its records nor the two people are readable in an erasure of a person."""
    with build.open_log(tmp_path) as log:
        for who in (ANA, BO, ANA):
            ask(log, build, who)
        receipt = erase(log, subject=ANA, **BY_LAW)
        record = log.record(receipt.seq)
        assert record.event == Erasure(
            basis=Basis.LEGAL_OBLIGATION, count=2, fields=("answer", "query", "subject")
        )
        assert set(record.commitments) == {"actor", "approver", "targets"}
        assert not any(secret.encode() in receipt.record for secret in (ANA, *PEOPLE.values()))
        opened = verify_receipt(receipt.to_bytes(), log.vkey)
        assert opened.values == PEOPLE
        assert opened.undisclosed == ("targets",)
        targets = read_targets(log.private.openings(receipt.seq)["targets"].value)
        assert {target.seq for target in targets} == {0, 2}
        named = log.record(erase(log, records=[1], fields=["query"], **BY_LAW).seq).event
        assert (named.records, named.fields, named.count) == ((1,), ("query",), 1)


def test_one_field_of_one_record(tmp_path, build):
    """The other fields, and the same person's other records, still open."""
    with build.open_log(tmp_path) as log:
        for _ in range(3):
            ask(log, build, ANA)
        erase(log, records=[1], fields=["query"], **BY_LAW)
        assert set(log.private.openings(1)) == {"answer", "subject"}
        assert set(log.private.openings(2)) == {"answer", "query", "subject"}
        erase(log, subject=ANA, fields=["answer"], **BY_LAW)
        assert [set(log.private.openings(n)) for n in range(3)] == [
            {"query", "subject"},
            {"subject"},
            {"query", "subject"},
        ]


def test_the_log_goes_on_after_an_erasure(tmp_path, build):
    """Appending, reopening and erasing again; the same person may be recorded again."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        erase(log, subject=ANA, **BY_LAW)
        ask(log, build, ANA)
    with build.open_log(tmp_path) as log:
        assert log.size == 3
        assert {target.seq for target in log.private.of_subject(ANA)} == {2}
        erase(log, subject=ANA, **BY_LAW)
        assert log.verify().size == 4


def test_what_was_carried_out_is_not_carried_out_again(tmp_path, build):
    """After an erasure or a hold that ended well, an opening replaces no key and reads none of these records."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        erase(log, subject=ANA, **BY_LAW)
        assert log.private.settled == log.size == 2
        place_hold(log, "M-1", actor="counsel")
        assert log.private.settled == log.size == 3
        ask(log, build, BO)
    key = (tmp_path / "private.key").read_bytes()
    with build.open_log(tmp_path) as log:
        assert log.private.settled >= 3
    assert (tmp_path / "private.key").read_bytes() == key


def test_whoever_asks_later_is_told_which_record_erased_it(tmp_path, build):
    """An opening request, and a second erasure, name the erasure record; also after reopening."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        erase(log, records=[0], fields=["query"], **BY_LAW)
    with build.open_log(tmp_path) as log:
        opener = {"role": "auditor", "actor": "eve", "why": "REVIEW"}
        with pytest.raises(InvalidArgument, match="query of record 0 was erased by record 1"):
            disclose(log, 0, fields=["query"], **opener)
        with pytest.raises(InvalidArgument, match="query of record 0 was erased by record 1"):
            erase(log, records=[0], fields=["query"], **BY_LAW)
        assert set(disclose(log, 0, **opener)) == {"answer", "subject"}
        assert log.size == 3


# -- what is refused


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "either records or a subject"),
        ({"records": [0], "subject": ANA}, "either records or a subject"),
        ({"records": [9]}, "there is no record 9"),
        ({"records": [0], "fields": ["colour"]}, "record 0 has no colour"),
        ({"subject": "unknown"}, "no values of that subject"),
        ({"subject": ANA, "fields": ["colour"]}, "no values of that subject"),
        ({"records": [1]}, "no values of record 1"),
        ({"records": [2]}, "record 2 is a hold"),
        ({"records": range(2000)}, "at most 1000"),
        ({"records": [0], "basis": "BECAUSE"}, "not a valid Basis"),
        ({"records": [0], "approver": " dora  PRIVACY"}, "cannot approve"),
        ({"records": [0], "approver": ""}, "the person who approves"),
        ({"records": [0], "actor": " "}, "the person who acts"),
    ],
    ids=str,
)
def test_a_malformed_request_changes_nothing(tmp_path, build, changes, said):
    """It is refused before anything is written."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        log.append(Recovery("DRILL"))
        seq = place_hold(log, "M-1", actor="counsel", records=(50, 60)).seq
        before = exports(tmp_path)
        with pytest.raises(InvalidArgument, match=said):
            erase(log, **{**BY_LAW, **changes})
        assert (log.size, seq) == (3, 2)
        assert exports(tmp_path) == before


@pytest.mark.parametrize(
    ("retain", "waits"), [("fin7y", True), ("fin6y", True), ("fin5y", True), ("ai6m", False)]
)
def test_a_duty_to_keep_goes_before_a_request_and_not_before_an_order(tmp_path, build, retain, waits):
    """GDPR Art. 17(3)(b); a class that only keeps logs does not bind their values."""
    with build.open_log(tmp_path) as log:
        receipt = ask(log, build, ANA, retain=retain)
        assert log.record(0).retain == retain
        assert verify_receipt(receipt.to_bytes(), log.vkey).verdict is Verdict.VERIFIED
        request = {**PEOPLE, "subject": ANA, "basis": Basis.REQUEST}
        if not waits:
            erase(log, **request)
            return
        with pytest.raises(Refused, match=f"class {retain}.*Art. 17") as refused:
            erase(log, **request)
        assert refused.value.code == "RETENTION"
        assert log.size == 1
        erase(log, **{**request, "basis": Basis.UNLAWFUL})


def test_after_the_duty_has_run_out_a_request_is_met(tmp_path, build):
    """Seven years later to the day, not a day before."""
    ask_at, day = 1_763_755_557_000_000, 86_400_000_000
    now = [ask_at]
    with build.open_log(tmp_path, clock=lambda: now[0]) as log:
        ask(log, build, ANA)
        request = {**PEOPLE, "subject": ANA, "basis": Basis.STORAGE_LIMIT}
        now[0] = ask_at + (7 * 365 + 1) * day  # two leap days lie between: 2028 and 2032
        with pytest.raises(Refused, match="2032-11-21"):
            erase(log, **request)
        now[0] += day
        erase(log, **request)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 0},
        {"count": 2},
        {"fields": ()},
        {"fields": ("subject", "query")},
        {"fields": ("a name",)},
        {"records": (3, 3), "count": 2},
        {"records": (3, 2), "count": 2},
        {"records": (-1,)},
        {"basis": "X"},
    ],
    ids=str,
)
def test_an_erasure_event_is_in_order_or_refused(changes):
    """Nothing but codes and numbers, each once."""
    values = {"basis": Basis.REQUEST, "count": 1, "fields": ("query",), "records": (3,)}
    assert Erasure.from_json(Erasure(**values).to_json()) == Erasure(**values)
    with pytest.raises(InvalidArgument):
        Erasure(**{**values, **changes})


# -- crashes and copies


class Crash(Exception):
    """Stands for the power going."""


@pytest.mark.parametrize(
    "whose", [{"records": [0, 2]}, {"subject": ANA}, {"subject": ANA, "fields": ["query"]}]
)
def test_an_erasure_that_was_cut_off_is_finished_at_opening(tmp_path, build, whose, monkeypatch):
    """The record is there, the values still are, and then others are appended: opening finishes it."""

    def crash(*_):
        raise Crash

    with build.open_log(tmp_path) as log:
        for who in (ANA, BO, ANA):
            ask(log, build, who)
        before = log.private.openings(0)
        with monkeypatch.context() as patch:
            patch.setattr(log.private, "erase", crash)
            with pytest.raises(Crash):
                erase(log, **whose, **BY_LAW)
        ask(log, build, BO)  # in the same process, later
        assert "query" in log.private.openings(0)
    for _ in range(2):
        with build.open_log(tmp_path) as log:
            fields = whose.get("fields", ["answer", "query", "subject"])
            assert not set(fields) & set(log.private.openings(0))
            assert log.private.erased_by(2) == dict.fromkeys(fields, 3)
            assert len(log.private.openings(1)) == len(log.private.openings(4)) == 3
            assert log.private.settled == log.size == 5
    data = b"".join(bytes_of(tmp_path).values())
    assert not any(before[name].salt in data or before[name].value.encode() in data for name in fields)


def test_an_erasure_whose_record_was_refused_changes_nothing(tmp_path, build, monkeypatch):
    """No record, no deletion."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        with monkeypatch.context() as patch:
            patch.setattr(log, "append", lambda *_, **__: (_ for _ in ()).throw(AuditUnavailable("full")))
            with pytest.raises(AuditUnavailable):
                erase(log, subject=ANA, **BY_LAW)
        assert len(log.private.openings(0)) == 3
        erase(log, subject=ANA, **BY_LAW)
        assert log.private.openings(0) == {}


def test_a_copy_of_both_files_from_before_is_erased_again_or_refused(tmp_path, build):
    """Restored below a log of an earlier version, the values are back for as long as it takes to open the log."""
    live, before = tmp_path / "live", tmp_path / "before"
    with build.open_log(live) as log:
        for who in (ANA, BO, ANA):
            ask(log, build, who)
    shutil.copytree(live, before)
    laid_out_as_earlier(before)
    with build.open_log(live) as log:
        erase(log, records=[1], **BY_LAW)
    restore(before, live)
    with build.open_log(live) as log:
        assert log.private.openings(1) == {}
        assert log.private.erased_by(1)["query"] == 3
        erase(log, subject=ANA, **BY_LAW)
    restore(before, live)
    with pytest.raises(CorruptFile, match="older than record 4"):
        build.open_log(live)
    (live / "private.key").unlink()
    with build.open_log(live, accept_lost_values=True) as log:
        assert log.verify().size == 6


def restore(source, target):
    laid_out_as_earlier(target)
    for name in ("private.db", "private.key"):
        shutil.copy(source / name, target / name)


def test_records_without_a_class_keep_their_bytes(build):
    """The default class is not encoded, so that most records are shorter; an unknown one is refused."""
    body = build.record().to_bytes()
    assert b"retain" not in body
    assert Record.parse(body).retain == "fin7y"
    assert Record.parse(build.record(retain="ai6m").to_bytes()).retain == "ai6m"
    for wrong in (
        body.replace(b'"role"', b'"retain":"fin7y","role"'),
        body.replace(b'"role"', b'"retain":"x","role"'),
    ):
        with pytest.raises(CaragError):
            Record.parse(wrong)


def test_a_power_cut_that_takes_the_list_of_targets_does_not_take_the_erasure(tmp_path, build, monkeypatch):
    """An earlier version may have lost the values of its newest records; what was to be erased is noted beside them."""
    with build.open_log(tmp_path) as log:
        for who in (ANA, BO, ANA):
            ask(log, build, who)
        with monkeypatch.context() as patch:
            patch.setattr(log.private, "erase", lambda *_: (_ for _ in ()).throw(Crash))
            with pytest.raises(Crash):
                erase(log, subject=ANA, **BY_LAW)
        planned = log.private.of_subject(ANA)
    noted = [("INSERT INTO planned VALUES (?, ?)", target) for target in planned]
    build.edit(laid_out_as_earlier(tmp_path), "DELETE FROM value WHERE seq = 3", *noted)
    with build.open_log(tmp_path) as log:
        assert [len(log.private.openings(n)) for n in range(3)] == [0, 3, 0]
        assert log.private.planned() == []


def test_appends_go_on_while_values_are_erased(tmp_path, build):
    """Four writers and two erasers share a log; what was not erased opens, what was does not."""
    with build.open_log(tmp_path) as log:

        def write(who):
            for _ in range(12):
                ask(log, build, who)

        def wipe():
            for _ in range(6):
                with contextlib.suppress(InvalidArgument):  # nothing there at the moment
                    erase(log, subject=ANA, **BY_LAW)

        jobs = [(write, (who,)) for who in (ANA, BO, ANA, BO)] + [(wipe, ()), (wipe, ())]
        threads = [threading.Thread(target=job, args=arguments) for job, arguments in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with contextlib.suppress(InvalidArgument):
            erase(log, subject=ANA, **BY_LAW)
    with build.open_log(tmp_path) as log:
        asked = [n for n in range(log.size) if log.record(n).kind is RecordKind.QUERY]
        kept = [n for n in asked if log.private.openings(n)]
        assert (len(asked), len(kept)) == (48, 24)
        assert {log.private.openings(n)["subject"].value for n in kept} == {BO}
        assert all(set(log.private.erased_by(n)) == set(build.SECRETS) for n in set(asked) - set(kept))
        log.verify()


CHILD = """
import sys
from carag.audit import AuditLog, Ingest, erase
counts = dict.fromkeys(("started", "ended", "documents", "chunks", "quarantined", "rows"), 0)
event = Ingest(**counts, snapshot=b"S" * 32, table=b"T" * 32, embed=None, why="DRILL")
log = AuditLog.open(sys.argv[1])
while True:
    seqs = [log.append(event, secrets={"subject": f"victim-{n % 2}@bank.example"}).seq for n in range(4)]
    print("erasing", *seqs, flush=True)
    done = erase(log, subject="victim-0@bank.example", basis="GDPR_17_1_D", actor="a", approver="b").seq
    print("erased", seqs[0], seqs[2], flush=True)
"""


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.full)])
def test_killed_while_erasing_nothing_comes_back(tmp_path, rounds):
    """After kill -9 at any moment: what was said to be erased is, and so is whatever a record says was."""
    dice, said = random.Random(5), set()  # noqa: S311 - when to kill needs no secrecy
    for _ in range(rounds):
        with Child(CHILD, tmp_path) as child:
            lines = [child.stdout.readline() for _ in range(dice.randrange(1, 8))]
            time.sleep(dice.random() / 50)  # so that the kill comes at any moment of an erasure
            child.kill()
            lines += child.stdout.readlines()
        said |= {int(n) for line in lines if line.startswith("erased ") for n in line.split()[1:]}
        with AuditLog.open(tmp_path) as log:
            assert not any(log.private.openings(n) for n in said)
            erasures = [log.record(n) for n in range(log.size) if log.record(n).kind is RecordKind.ERASURE]
            for record in erasures:
                listed = read_targets(log.private.openings(record.seq)["targets"].value)
                assert all(target.field not in log.private.openings(target.seq) for target in listed)
                assert all(log.private.erased_by(target.seq)[target.field] <= record.seq for target in listed)
            log.verify()
        assert (tmp_path / "private.key").read_text().count("wrap ") == 1
    assert said
