"""The log: durable or refused, one writer, and it notices what was done to its files."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from carag.audit import (
    AuditLog,
    Checkpoint,
    ConsistencyProof,
    EntityRule,
    InclusionProof,
    ListKind,
    Note,
    Passage,
    PolicyApplied,
    RecordKind,
    Recovery,
    Verdict,
    verify_receipt,
)
from carag.audit.tlog.merkle import EMPTY_ROOT, leaf_hash, verify_consistency, verify_inclusion
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from tests.audit.connections import failing

# -- appending and proving


def test_a_new_log_is_empty_and_says_so_under_its_signature(tmp_path, build):
    """A log has a signed checkpoint before it has a record."""
    with build.open_log(tmp_path) as log:
        checkpoint = Checkpoint.parse(Note.parse(log.checkpoint()).text)
        assert checkpoint == Checkpoint(build.ORIGIN, 0, EMPTY_ROOT) == log.verify()


def test_every_receipt_verifies_at_once_and_later(tmp_path, build):
    """A receipt verifies as it is returned, and a later one of the same record does too, closed."""
    with build.open_log(tmp_path) as log:
        receipts = build.grow(log, 9)
        texts = [(p.chunk, p.text) for p in build.passages()]
        for seq, receipt in enumerate(receipts):
            assert receipt.seq == seq
            for each, values in ((receipt, build.SECRETS), (log.receipt(seq, texts), {})):
                verification = verify_receipt(each.to_bytes(), log.vkey)
                assert (verification.verdict, verification.values) == (Verdict.VERIFIED, values)
            assert log.record(seq).to_bytes() == receipt.record


def test_every_kind_of_event_can_be_logged(tmp_path, build):
    """A refusal, an ingest and a recovery leave receipts as an answer does."""
    with build.open_log(tmp_path) as log:
        asked = {"query": build.SECRETS["query"], "subject": None}
        receipts = [
            log.append(build.refusal(), secrets=asked),
            log.append(build.access(kind=RecordKind.RETRIEVE), secrets=asked, passages=build.passages()),
            log.append(
                build.access(kind=RecordKind.EXPLAIN, index=None), secrets=asked, passages=build.passages(1)
            ),
            log.append(build.ingest(), secrets={"subject": "loader"}),
            log.append(Recovery("DRILL")),
        ]
        verdicts = [verify_receipt(receipt.to_bytes(), log.vkey).verdict for receipt in receipts]
        assert verdicts == [Verdict.VERIFIED] * 5
        kinds = [log.record(seq).kind.value for seq in range(5)]
        assert kinds == ["query", "retrieve", "explain", "ingest", "recovery"]


def test_no_receipt_opens_the_lists_it_was_decided_under(tmp_path, build):
    """The asker holds the receipt, and a deal list is not the asker's to read; the log's private half keeps it."""
    lists = '[{"deny":[0,320193]}]'
    policy = PolicyApplied(b"T" * 32, ((0x20, 0x10000), (0x01, 0x10000)), EntityRule(ListKind.DENY, 2))
    with build.open_log(tmp_path) as log:
        secrets = {**build.SECRETS, "entities": lists}
        first = log.append(build.access(policy=policy), secrets=secrets, passages=build.passages())
        again = log.receipt(0, [(p.chunk, p.text) for p in build.passages()])
        for receipt, withheld in ((first, ()), (again, ("answer", "query", "subject"))):
            checked = verify_receipt(receipt.to_bytes(), log.vkey)
            assert (checked.verdict, checked.undisclosed) == (Verdict.VERIFIED, ("entities",))
            assert checked.withheld == withheld
            assert b"[0,320193]" not in receipt.to_bytes()
        opening = log._private.openings(0)["entities"]
        assert opening.value == lists
        assert opening.opens("entities", log.record(0).commitments["entities"])


def test_proofs_hold_between_all_sizes(tmp_path, build):
    """Every record is proved under the newest checkpoint, which extends every earlier one."""
    with build.open_log(tmp_path) as log:
        roots = {}
        for _ in range(9):
            receipt = build.ask(log)
            checkpoint = Checkpoint.parse(Note.parse(log.checkpoint()).text)
            roots[checkpoint.size] = checkpoint.root
        for seq in range(9):
            proof = InclusionProof.parse(log.prove(seq))
            leaf = leaf_hash(log.record(seq).to_bytes())
            assert verify_inclusion(leaf, seq, 9, proof.hashes, roots[9])
            proof = ConsistencyProof.parse(log.consistency(seq + 1))
            assert verify_consistency(seq + 1, 9, proof.hashes, roots[seq + 1], roots[9])
        assert InclusionProof.parse(receipt.proof) == InclusionProof.parse(log.prove(8))


def test_it_goes_on_after_reopening(tmp_path, build):
    """Size, checkpoint, key and commit times continue where they stopped."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
        checkpoint, vkey = log.checkpoint(), log.vkey
    with AuditLog.open(tmp_path) as log:
        assert (log.size, log.checkpoint(), log.vkey, log.origin) == (5, checkpoint, vkey, build.ORIGIN)
        build.ask(log)
        assert log.verify().size == 6
        assert (tmp_path / "vkey").read_text() == vkey + "\n"


def test_two_logs_have_two_names(tmp_path):
    """Without a name of its own a log gets a random one, so a record cannot pass for another log's."""
    with AuditLog.open(tmp_path / "a") as first, AuditLog.open(tmp_path / "b") as second:
        assert first.origin != second.origin


def test_commit_times_never_run_backwards(tmp_path, build):
    """A clock that is set back repeats the last time, also across a restart."""
    ticks = iter([50, 40, 60])
    with build.open_log(tmp_path, clock=lambda: next(ticks)) as log:
        build.grow(log, 3)
    with build.open_log(tmp_path, clock=lambda: 7) as log:
        build.ask(log)
        assert [log.record(seq).committed for seq in range(4)] == [50, 50, 60, 60]
        log.verify()


def test_a_time_that_runs_backwards_is_noticed(tmp_path, build):
    """A signed history whose commit times go back is not one this log writes."""
    ticks = iter([50, 40])
    with build.open_log(tmp_path, clock=lambda: next(ticks)) as log:
        build.ask(log)
        log._tip = log._tip._replace(committed=0)
        build.ask(log)
        with pytest.raises(CorruptFile, match="record 1 has an earlier commit time"):
            log.verify()
    with pytest.raises(CorruptFile, match="record 1 has an earlier commit time"):
        build.open_log(tmp_path)


def test_threads_append_without_gaps(tmp_path, build):
    """Eight threads share a log; every receipt verifies and no number is given twice."""
    receipts = []
    with build.open_log(tmp_path) as log:
        threads = [threading.Thread(target=lambda: receipts.extend(build.grow(log, 5))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(receipt.seq for receipt in receipts) == list(range(40))
        assert {verify_receipt(r.to_bytes(), log.vkey).verdict for r in receipts} == {Verdict.VERIFIED}
        assert log.verify().size == 40


def test_nothing_personal_is_in_the_evidence(tmp_path, build):
    """Subject, question, answer and passages are in clear in no file; who has the keys opens the commitments."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        secrets = [*build.SECRETS.values(), *(passage.text for passage in build.passages())]
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert not any(secret.encode() in files for secret in secrets)
        openings = log.private.openings(0)
        assert {name: opening.value for name, opening in openings.items()} == build.SECRETS
        assert all(o.opens(name, log.record(0).commitments[name]) for name, o in openings.items())
        assert not any(opening.salt in files for opening in openings.values())


def test_proofs_outlive_the_private_values(tmp_path, build):
    """With private.key destroyed every record still proves; what was asked can no longer be opened."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / "private.key").unlink()
    with build.open_log(tmp_path, accept_lost_values=True) as log:
        log.verify()
        receipt = log.receipt(0, [(p.chunk, p.text) for p in build.passages()])
        verification = verify_receipt(receipt.to_bytes(), log.vkey)
        assert (verification.verdict, verification.values) == (Verdict.VERIFIED, {})
        assert verification.withheld == ("answer", "query", "subject")


KEY_OF_ANOTHER = "carag-private-key/v1\nindex {0}\nwrap {0}\n".format("A" * 43 + "=")
LOSSES = {
    "gone": Path.unlink,
    "emptied": lambda key: key.write_bytes(b""),
    "another's": lambda key: key.write_text(KEY_OF_ANOTHER),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_lost_values_are_never_made_anew_without_a_word(tmp_path, build, loss):
    """A log with records does not open without its key, unless the loss is accepted: then it is on record, once."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        size = log.size
    key = tmp_path / "private.key"
    kept = key.read_bytes()
    LOSSES[loss](key)
    lost = key.read_bytes() if key.exists() else None
    for _ in range(2):
        with pytest.raises(
            CorruptFile, match=r"restore both from one backup.*carag audit accept --lost-values"
        ):
            build.open_log(tmp_path)
    assert lost == (key.read_bytes() if key.exists() else None)
    key.write_bytes(kept)
    key.chmod(0o600)
    with build.open_log(tmp_path, accept_lost_values=True) as log:  # nothing is lost: nothing is dropped
        assert (log.size, len(log.private.openings(0))) == (size, 3)
    LOSSES[loss](key)
    for _ in range(2):
        with build.open_log(tmp_path, accept_lost_values=True) as log:
            assert (size + 1, Recovery("VALUES_LOST")) == (log.size, log.record(size).event)
            assert log.private.openings(0) == {}
    assert key.read_bytes() not in (kept, lost)
    with build.open_log(tmp_path) as log:
        assert log.private.openings(build.ask(log).seq).keys() == build.SECRETS.keys()


@pytest.mark.parametrize("step", ["DELETE FROM value", "INSERT INTO state", "INSERT INTO rec", "COMMIT"])
def test_a_loss_is_accepted_and_recorded_in_one_transaction(tmp_path, build, step, monkeypatch):
    """Wherever it is cut short, the log stays shut until the loss is accepted again, and the record comes once."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / "private.key").unlink()
    begin = AuditLog._start_over

    def cut_short(log):
        log._backend.link._db = failing(log._backend.link._db, step)
        begin(log)

    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "_start_over", cut_short)
        with pytest.raises(AuditUnavailable):
            build.open_log(tmp_path, accept_lost_values=True)
    with pytest.raises(CorruptFile, match="restore both"):
        build.open_log(tmp_path)
    with build.open_log(tmp_path, accept_lost_values=True) as log:
        assert [log.record(seq).kind for seq in range(log.size)] == [RecordKind.QUERY, RecordKind.RECOVERY]


def test_files_are_the_owners_alone(tmp_path, build):
    """Key, evidence and private values cannot be read by others, in whatever directory they lie."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        names = ["audit.key", "audit.db", "audit.db-wal", "private.key"]
        assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {0o600}


# -- what is refused


@pytest.mark.parametrize(
    "passage",
    [
        Passage("c", "hidden", 0.5, 0x21),
        Passage("c", "hidden", 0.5, 1 << 27 | 0x10021),
        Passage("c", "hidden", 0.5, 1 << 30 | 1 << 27 | 0x21),
    ],
    ids=["unlabelled", "forbidden bit", "quarantined"],
)
def test_an_inadmissible_passage_is_never_logged(tmp_path, build, passage):
    """The log refuses a passage outside the recorded masks, so nothing can be returned with it."""
    with build.open_log(tmp_path) as log:
        with pytest.raises(InvalidArgument, match="no mask"):
            log.append(build.access(), secrets=build.SECRETS, passages=[passage])
        assert log.size == 0


@pytest.mark.parametrize(
    "secrets",
    [{}, {"query": "q", "answer": "a", "colour": "red"}, {"query": "\ud800", "answer": "a"}, {"query": 5}],
    ids=str,
)
def test_a_malformed_append_changes_nothing(tmp_path, build, secrets):
    """Input errors are found before anything is written."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        before = log.checkpoint()
        with pytest.raises(InvalidArgument):
            log.append(build.access(), secrets=secrets, passages=build.passages())
        assert log.checkpoint() == before
        build.ask(log)
        assert log.verify().size == 2


def test_a_second_writer_is_refused(tmp_path, build):
    """One writer at a time, and the next one when it has closed."""
    with build.open_log(tmp_path), pytest.raises(StoreLocked):
        build.open_log(tmp_path)
    build.open_log(tmp_path).close()


def test_a_log_keeps_its_name(tmp_path, build):
    """Opening it under another origin is refused."""
    build.open_log(tmp_path).close()
    with pytest.raises(InvalidArgument, match="leave the origin out"):
        AuditLog.open(tmp_path, origin="audit.example/other")


@pytest.mark.parametrize("seq", [-1, 1, 5])
def test_there_is_no_proof_of_what_is_not_there(tmp_path, build, seq):
    """A sequence number outside the log is the caller's mistake."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        for ask in (log.prove, log.record, log.receipt):
            with pytest.raises(InvalidArgument):
                ask(seq)


def test_a_receipt_is_made_again_from_the_right_texts_only(tmp_path, build):
    """The log does not hand out a receipt that would not verify."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        texts = [(p.chunk, p.text) for p in build.passages()]
        for wrong in ([], texts[:1], texts[::-1], [texts[0], (texts[1][0], "another text")]):
            with pytest.raises(InvalidArgument, match="not those of the"):
                log.receipt(0, wrong)


def test_a_forked_child_is_refused(tmp_path, build, monkeypatch):
    """A child process shares the lock and the files but not what the parent writes next."""
    with build.open_log(tmp_path) as log:
        parent = os.getpid()
        monkeypatch.setattr("os.getpid", lambda: parent + 1)
        with pytest.raises(AuditUnavailable, match="fork"):
            build.ask(log)


def test_a_closed_log_refuses(tmp_path, build):
    """Use after close is an error, closing twice is not."""
    log = build.open_log(tmp_path)
    log.close()
    log.close()
    for use in (lambda: build.ask(log), log.verify, lambda: log.consistency(1), lambda: log.prove(0)):
        with pytest.raises(AuditUnavailable):
            use()


# -- failures while writing


WRITTEN = ["shelf", "holder", "value", "rec", "node"]


@pytest.mark.parametrize("statement", ["BEGIN", *(f"INSERT INTO {table}" for table in WRITTEN), "UPDATE cp"])
def test_a_failed_statement_leaves_the_log_as_it_was(tmp_path, build, statement):
    """A failure before COMMIT rolls back record and values, and the keys made for them; the next append is fine."""
    with build.open_log(tmp_path) as log:
        link, before = log._backend.link, log.checkpoint()
        rows = {table: link.execute(f"SELECT * FROM {table}").fetchall() for table in WRITTEN}  # noqa: S608
        link._db = failing(link._db, statement)
        with pytest.raises(AuditUnavailable):
            build.ask(log)
        assert (log.size, log.checkpoint()) == (0, before)
        assert rows == {table: link.execute(f"SELECT * FROM {table}").fetchall() for table in WRITTEN}  # noqa: S608
        assert (log._private._holders, log._private._shelves) == ({}, {})
        assert build.ask(log).seq == 0
        assert log.verify().size == 1
    with build.open_log(tmp_path) as log:
        assert {name: each.value for name, each in log.private.openings(0).items()} == build.SECRETS


@pytest.mark.parametrize("known", [False, True], ids=["first", "later"])
def test_an_error_between_values_and_record_leaves_neither(tmp_path, build, monkeypatch, known):
    """Both are one transaction, of which nothing else can be seen and no key is remembered."""
    with build.open_log(tmp_path) as log:
        if known:
            build.ask(log)
        size, link = log.size, log._backend.link
        with monkeypatch.context() as patch:
            patch.setattr(log._backend, "append", lambda _: 1 / 0)
            with pytest.raises(AuditUnavailable):
                log.append(
                    build.access(), secrets={**build.SECRETS, "subject": "bo"}, passages=build.passages()
                )
        assert (log.size, log.private.openings(size), log.private.of_subject("bo")) == (size, {}, [])
        assert link.read("SELECT count(*) FROM holder").fetchone() == (int(known),)
        log.append(build.access(), secrets={**build.SECRETS, "subject": "bo"}, passages=build.passages())
    with build.open_log(tmp_path) as log:
        assert log.private.openings(size)["subject"].value == "bo"


@pytest.mark.parametrize("after", [False, True], ids=["not committed", "committed after all"])
def test_a_failed_commit_poisons_the_log(tmp_path, build, after):
    """After an I/O error at COMMIT nothing is written until the file has been read again."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        link = log._backend.link
        link._db = failing(link._db, "COMMIT", after=after)
        for _ in range(3):
            with pytest.raises(AuditUnavailable):
                build.ask(log)
        assert log.size == 3
    with build.open_log(tmp_path) as log:
        assert log.size == 3 + after
        openings = log.private.openings(3)  # never acknowledged, yet whole: its values open its commitments
        assert len(openings) == 3 * after
        assert all(o.opens(name, log.record(3).commitments[name]) for name, o in openings.items())
        build.ask(log)
        log.verify()


def test_a_commit_waits_for_the_disk(tmp_path, build):
    """The file syncs at every COMMIT (NORMAL would not), and what is deleted is overwritten."""
    with build.open_log(tmp_path) as log:
        link = log._backend.link
        wanted = {"synchronous": 2, "journal_mode": "wal", "secure_delete": 1, "fullfsync": 1}
        assert {name: link.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            link.read("DELETE FROM rec")


def test_a_library_that_threads_cannot_share_is_refused(tmp_path, build, monkeypatch):
    """One connection serves several threads, which SQLite allows unless it was built without its locks."""
    monkeypatch.setattr("sqlite3.threadsafety", 1)
    with pytest.raises(AuditUnavailable, match="built in serialized mode"):
        build.open_log(tmp_path)


def test_a_full_disk_is_refused_and_nothing_is_lost(tmp_path, build):
    """When the database can grow no more, appends fail one by one and all that was acknowledged stays."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        link = log._backend.link
        (pages,) = link.execute("PRAGMA page_count").fetchone()
        link.execute(f"PRAGMA max_page_count={pages + 32}")
        with pytest.raises(AuditUnavailable, match="full"):
            build.grow(log, 50)
        size = log.size
        assert 3 < size < 50
        assert log.verify().size == size
        link.execute("PRAGMA max_page_count=100000")
        build.ask(log)
    with build.open_log(tmp_path) as log:
        assert log.verify().size == size + 1


def test_a_closed_connection_is_refused(tmp_path, build):
    """A connection lost under the log is an unavailable log."""
    with build.open_log(tmp_path) as log:
        log._backend.link._db.close()
        with pytest.raises(AuditUnavailable):
            build.ask(log)


@pytest.mark.parametrize("name", ["audit.db", "audit.db-wal"])
@pytest.mark.parametrize("instead", ["nothing", "a directory", "a copy"])
def test_a_replaced_file_is_refused(tmp_path, build, name, instead):
    """If a file's name leads elsewhere, the record would be written where no reader finds it."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        path = tmp_path / name
        content = path.read_bytes()
        path.unlink()
        if instead == "a directory":
            path.mkdir()
        elif instead == "a copy":
            path.write_bytes(content)
        with pytest.raises(AuditUnavailable):
            build.ask(log)
        assert log.size == 1
        if path.is_dir():
            path.rmdir()


def test_records_written_past_the_log_are_noticed(tmp_path, build):
    """If another process got a record in, this one stops rather than fork the history."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        build.edit(tmp_path / "audit.db", ("INSERT INTO rec VALUES (1, ?)", (b"{}",)))
        with pytest.raises(AuditUnavailable, match="no longer ends"):
            build.ask(log)


@pytest.mark.parametrize("name", ["audit.db", "private.db", "private.key", "audit.key", "audit.lock"])
def test_an_unusable_path_is_an_unavailable_log(tmp_path, name):
    """A directory where a file should be, and a file where the directory should be, are refused."""
    (tmp_path / "log" / name).mkdir(parents=True)
    with pytest.raises((AuditUnavailable, CorruptFile)):
        AuditLog.open(tmp_path / "log")
    (tmp_path / "file").write_text("a file")
    with pytest.raises(AuditUnavailable):
        AuditLog.open(tmp_path / "file")


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    "url",
    ["postgresql://app:s3cret@db/audit", "postgres://db/audit", "postgresql:///audit", "s3://bucket/logs"],
)
def test_a_url_is_no_directory_and_says_what_to_write(tmp_path, monkeypatch, url, kind):
    """No directory of that name is made, and a password in it is not shown."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="carag share URL --store DIRECTORY") as refused:
        AuditLog.open(kind(url))
    assert "s3cret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
