"""A log moves values from the ``private.db`` of versions up to 0.3 into its file, once and whole."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import sys
import tarfile
from pathlib import Path

import pytest

from carag.audit import AuditLog, RecordKind, Recovery, erase
from carag.audit.auditor.reader import LogReader
from carag.audit.private import earlier
from carag.audit.private.openable import PrivateReader, openable
from carag.errors import AuditUnavailable, CaragError, CorruptFile
from tests.audit.connections import Watched
from tests.audit.log import powercut
from tests.audit.log.earlier import laid_out_as_earlier

GOLDEN = Path(__file__).parents[1] / "golden" / "log-0.3.tar.gz"
"""A log that evidence-0.3 wrote: six questions, a hold on bo, two erasures, one more question."""
ERASED = {(0, "subject"): 7, (2, "answer"): 8, (2, "query"): 8}
ASKED = ("ana@bank.example", "bo@bank.example", None)


@pytest.fixture
def old(tmp_path):
    """Unpack the log of an earlier version."""
    with tarfile.open(GOLDEN) as packed:
        for member in packed.getmembers():
            packed.extract(member, tmp_path / "log", filter="data")
    for key in ("audit.key", "private.key"):
        (tmp_path / "log" / key).chmod(0o600)
    return tmp_path / "log"


def check(log):
    """Everything opens that is not erased, and the hold is in force."""
    for seq in range(6):
        wanted = {"subject": ASKED[seq % 3], "query": f"q{seq}", "answer": "It fell — 3 %."}
        kept = {name: value for name, value in wanted.items() if value and (seq, name) not in ERASED}
        openings = log.private.openings(seq)
        assert {name: each.value for name, each in openings.items()} == kept
        assert all(each.opens(name, log.record(seq).commitments[name]) for name, each in openings.items())
        assert log.private.erased_by(seq) == {name: by for (n, name), by in ERASED.items() if n == seq}
    assert [hold.placed for hold in log.private.held()] == [6]
    assert {seq for seq, _ in log.private.of_subject("bo@bank.example")} == {1, 4, 6}
    assert {seq for seq, _ in log.private.of_subject("ana@bank.example")} == {3, 9}


def seen(directory):
    """Return what readers without the lock find: records, values, and what can be opened."""
    with LogReader(directory) as reader, PrivateReader(directory) as values:
        proofs = [reader.prove(seq) for seq in range(reader.size)]
        opened = {name: [(n, one.value) for n, one in values.of_field(name)] for name in ("query", "subject")}
        return proofs, opened, [openable(directory, seq, ("subject", "query")) for seq in range(10)]


# -- moved whole


def test_readers_see_the_same_before_and_after(old):
    """Read, written and read again: records, proofs and values are those of the earlier version, in one file."""
    before = seen(old)
    assert before[1]["query"] == [(n, f"q{n}") for n in (0, 1, 3, 4, 5, 9)]
    for _ in range(2):
        with AuditLog.open(old) as log:
            check(log)
            log.verify()
            assert seen(old) == before
        assert seen(old) == before
        assert not list(old.glob("private.db*"))


def test_the_log_goes_on(old, build):
    """Records are added, and values of both versions are erased, also those sealed for a record without a subject."""
    with AuditLog.open(old) as log:
        build.ask(log)
        by_law = {"basis": "GDPR_17_1_D", "actor": "a", "approver": "b"}
        erase(log, records=[5], fields=["query"], **by_law)
        erase(log, subject="ana@bank.example", **by_law)
        assert [set(log.private.openings(n)) for n in (3, 5, 9, 10)] == [set(), {"answer"}, set(), set()]
    with AuditLog.open(old) as log:
        assert log.private.openings(0).keys() == {"answer", "query"}
        assert log.verify().size == 13


def test_nothing_is_left_of_the_old_file(old):
    """Not even under another name of it: it was overwritten with zeros before it was removed."""
    for name in ("private.db", "audit.db"):
        os.link(old / name, old.parent / name)
    AuditLog.open(old).close()
    left = (old.parent / "private.db").read_bytes()
    assert (len(left), left.strip(b"\0")) == (40960, b"")
    assert (old.parent / "audit.db").read_bytes() == (old / "audit.db").read_bytes()


def test_values_of_appends_that_were_cut_short_are_dropped(old, build):
    """The earlier version wrote values before their record, which a kill may have prevented."""
    build.edit(old / "private.db", "INSERT INTO value SELECT 10, field, holder, box FROM value WHERE seq = 9")
    with AuditLog.open(old) as log:
        check(log)
        assert log.private.openings(10) == {}
        assert log.private.openings(build.ask(log).seq).keys() == build.SECRETS.keys()


# -- cut short


def test_killed_at_any_step_it_is_moved_or_not(old, monkeypatch):
    """Before every statement and every change to a file: the next opening finds either state, and has every value."""
    states = []

    def killed():
        target = old.parent / f"killed-{len(states)}"
        shutil.copytree(old, target, ignore=shutil.ignore_patterns("*-shm"))
        states.append(target)

    def watched(original):
        return lambda *arguments: (killed(), original(*arguments), killed())[1]

    taken = earlier.take_over

    def watching(link, size):
        link._db = Watched(link._db, lambda _, run: (killed(), run())[1])
        taken(link, size)
        killed()

    with monkeypatch.context() as patch:
        patch.setattr("carag.audit.log.directory.take_over", watching)
        patch.setattr(earlier, "_overwrite", watched(earlier._overwrite))
        patch.setattr(Path, "unlink", watched(Path.unlink))
        AuditLog.open(old).close()
    had = {name: sum((state / name).exists() for state in states) for name in ("private.db", "audit.db")}
    assert len(states) == had["audit.db"] > had["private.db"] > 20
    for state in states:
        with AuditLog.open(state) as log:
            check(log)
        assert not list(state.glob("private.db*"))


MOVE = "import sys; from carag.audit import AuditLog; AuditLog.open(sys.argv[1]).close()"


@pytest.mark.skipif(sys.platform != "linux", reason="the disk is preloaded, as Linux does it")
@pytest.mark.parametrize("cuts", [60, pytest.param(600, marks=pytest.mark.full)])
def test_a_power_cut_leaves_no_half(old, cuts):
    """Unsynced writes dropped, cut short, reordered or torn, at any moment: the next opening has every value.

    Half of the moments are while the old file is overwritten and removed.
    """
    history = powercut.traced(old, old.parent / "trace", sys.executable, "-c", MOVE, str(old))
    dice, moved = random.Random(3), 0  # noqa: S311 - the moments are not a secret
    removing = [at + 1 for at, event in enumerate(history.events) if event.path == "private.db"]
    for number in range(cuts):
        moment = dice.choice(removing) if number % 2 else dice.randint(0, len(history.events))
        kind = "torn" if number % 2 else ("nothing", "a beginning", "a half", "torn")[number // 2 % 4]
        files, _ = powercut.cut(history, moment, kind, dice)
        home = old.parent / f"cut-{number}"
        home.mkdir(mode=0o700)
        for name, content in files.items():
            (home / name).write_bytes(content)
            (home / name).chmod(0o600)
        moved += "private.db" not in files
        with AuditLog.open(home) as log:
            check(log)
        assert not list(home.glob("private.db*"))
    assert 0 < moved < cuts


# -- what is not the file that was moved


@pytest.mark.parametrize(
    "change", ["DELETE FROM erased", "UPDATE state SET settled = 1", "DELETE FROM value WHERE seq = 3"]
)
def test_another_file_beside_the_moved_values_is_kept_and_the_log_shut(old, build, change):
    """Less, more or other rows: it may be a restored copy; moved away, the log opens."""
    copy = old.parent / "private.db"
    shutil.copy(old / "private.db", copy)
    AuditLog.open(old).close()
    build.edit(copy, change)
    shutil.copy(copy, old / "private.db")
    before = (old / "private.db").read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptFile, match=r"has other values than .* move it out of the store"):
            AuditLog.open(old)
    assert (old / "private.db").read_bytes() == before
    (old / "private.db").rename(copy)
    with AuditLog.open(old) as log:
        check(log)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"not a database, but long enough to be one" * 200),
        lambda path: path.write_bytes(path.read_bytes()[:8192]),
        lambda path: (
            path.unlink(),
            sqlite3.connect(path).executescript("CREATE TABLE mine (x); VACUUM;").close(),
        ),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["other bytes", "cut", "other tables", "a directory"],
)
def test_a_file_that_is_no_private_half_is_refused(old, spoil):
    """Neither other tables nor other bytes are moved or overwritten; with the right file back all is there."""
    path, copy = old / "private.db", old.parent / "private.db"
    shutil.copy(path, copy)
    spoil(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(CaragError, match=r"private\.db"):
        AuditLog.open(old)
    assert before == (None if path.is_dir() else path.read_bytes())
    (path.rmdir if path.is_dir() else path.unlink)()
    shutil.copy(copy, path)
    with AuditLog.open(old) as log:
        check(log)


# -- lost


@pytest.mark.parametrize(
    "loss", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(bytes(4096))]
)
@pytest.mark.parametrize("key", [True, False])
def test_a_lost_file_keeps_the_log_shut_until_that_is_accepted(old, loss, key):
    """With or without its key; accepted, the loss is on record and what is asked from then on opens."""
    loss(old / "private.db")
    if not key:
        (old / "private.key").unlink()
    left = {path.name: path.read_bytes() for path in old.iterdir() if path.name.startswith("private")}
    for _ in range(2):
        with pytest.raises(CorruptFile, match=r"carag audit accept --lost-values"):
            AuditLog.open(old)
    assert left == {path.name: path.read_bytes() for path in old.iterdir() if path.name.startswith("private")}
    assert {"not kept in this directory"} == set(openable(old, 0, ["query"]).values()) or (
        old / "private.db"
    ).exists()
    for _ in range(2):
        with AuditLog.open(old, accept_lost_values=True) as log:
            assert (log.size, log.record(10).event) == (11, Recovery("VALUES_LOST"))
            assert not any(log.private.openings(seq) for seq in range(11))
            assert [hold.placed for hold in log.private.held()] == [6]
    assert not (old / "private.db").exists()


def test_an_erasure_that_an_earlier_version_left_unfinished_is_finished(tmp_path, build, monkeypatch):
    """Recorded there and not carried out: moved, it is."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        with monkeypatch.context() as patch, contextlib.suppress(AuditUnavailable):
            patch.setattr(log.private, "erase", lambda *_: (_ for _ in ()).throw(AuditUnavailable("killed")))
            erase(log, records=[1], basis="GDPR_17_1_D", actor="a", approver="b")
        assert log.record(3).kind is RecordKind.ERASURE
    laid_out_as_earlier(tmp_path)
    with build.open_log(tmp_path) as log:
        assert [len(log.private.openings(seq)) for seq in range(3)] == [3, 0, 3]
