"""Group commit: one write for all who wait, and a definite answer for each of them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import carag
from carag.audit import Checkpoint, InclusionProof, Verdict, verify_receipt
from carag.audit.log.group_commit import GroupCommit
from carag.errors import AuditUnavailable, InvalidArgument


class Gate:
    """A commit that waits until it is let through, and keeps what it got."""

    def __init__(self, fail=None):
        self.batches, self.fail = [], fail
        self.reached, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, items):
        self.batches.append(list(items))
        self.reached.release()
        assert self.open.acquire(timeout=30)
        if self.fail is not None:
            raise self.fail
        return [-item for item in items]


def submitting(group, items):
    """Submit each item from a thread of its own; answers come as (item, result or error)."""
    answers = []

    def submit(item):
        try:
            answers.append((item, group.submit(item)))
        except Exception as error:  # noqa: BLE001
            answers.append((item, error))

    threads = [threading.Thread(target=submit, args=(item,), daemon=True) for item in items]
    for thread in threads:
        thread.start()
    return answers, threads


def waiting(group, count):
    """Wait until this many items are queued."""
    until = time.monotonic() + 30
    while len(group._waiting) < count:
        assert time.monotonic() < until
        time.sleep(0.001)


def join(threads):
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_whoever_waits_is_written_together():
    """What arrives during a write is the next batch, no larger than allowed, and all get their own result."""
    gate = Gate()
    group = GroupCommit(gate, most=4)
    answers, threads = submitting(group, [1])
    gate.reached.acquire()
    more, rest = submitting(group, range(2, 9))
    waiting(group, 7)
    for _ in range(3):
        gate.open.release()
    join([*threads, *rest])
    assert [len(batch) for batch in gate.batches] == [1, 4, 3]
    assert sorted([*answers, *more]) == [(item, -item) for item in range(1, 9)]
    group.close()


def test_a_full_queue_refuses_at_once():
    """The one too many is told so without waiting, and those in front of it are not disturbed."""
    gate = Gate()
    group = GroupCommit(gate, room=3)
    answers, threads = submitting(group, [1])
    gate.reached.acquire()
    more, rest = submitting(group, [2, 3, 4])
    waiting(group, 3)
    with pytest.raises(AuditUnavailable, match="3 records are waiting"):
        group.submit(5)
    gate.open.release()
    gate.open.release()
    join([*threads, *rest])
    assert sorted([*answers, *more]) == [(item, -item) for item in range(1, 5)]
    group.close()


@pytest.mark.parametrize("error", [AuditUnavailable("disk"), OSError("disk"), KeyboardInterrupt()], ids=repr)
def test_a_failed_write_is_everyones_answer(error):
    """All callers of the batch fail, each with an error of its own; the next batch is tried."""
    gate = Gate(fail=error)
    group = GroupCommit(gate)
    first, threads = submitting(group, [0])
    gate.reached.acquire()
    answers, more = submitting(group, range(1, 6))
    waiting(group, 5)
    gate.open.release()
    gate.open.release()
    join([*threads, *more])
    assert len(gate.batches) == 2
    errors = [answer for _, answer in [*first, *answers]]
    assert {type(one) for one in errors} == {AuditUnavailable}
    assert len({id(one) for one in errors}) == 6
    gate.fail = None
    gate.open.release()
    assert group.submit(7) == -7
    group.close()


def test_no_caller_sees_what_another_submitted():
    """The error of a batch carries no frame of the thread that held all its items."""

    def commit(items):
        raise OSError(f"{len(items)} items of everybody")

    group = GroupCommit(commit)
    with pytest.raises(AuditUnavailable) as caught:
        group.submit("x")
    link, files = caught.value, []
    while link is not None:
        trace = link.__traceback__
        while trace is not None:
            files.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        link = link.__cause__
    assert "commit" not in files
    assert "submit" in files
    group.close()


def test_one_bad_item_does_not_take_the_others_along():
    """A refusal in the list of outcomes is that caller's alone."""
    group = GroupCommit(lambda items: [InvalidArgument("odd") if item % 2 else item for item in items])
    answers, threads = submitting(group, range(10))
    join(threads)
    for item, answer in answers:
        assert isinstance(answer, InvalidArgument) if item % 2 else answer == item
    group.close()


def test_a_commit_that_answers_too_few_fails_them_all():
    """After a bug in the commit no caller succeeds."""
    group = GroupCommit(lambda items: [])
    with pytest.raises(AuditUnavailable, match="could not be written"):
        group.submit(1)
    group.close()


def test_closing_writes_what_waits_and_refuses_what_comes():
    """Every caller gets an answer; none waits without end."""
    gate = Gate()
    group = GroupCommit(gate, most=2)
    answers, threads = submitting(group, [1])
    gate.reached.acquire()
    more, rest = submitting(group, [2, 3, 4])
    waiting(group, 3)
    closer = threading.Thread(target=group.close)
    closer.start()
    until = time.monotonic() + 30
    while not group._closed:
        assert time.monotonic() < until
    with pytest.raises(AuditUnavailable, match="closed"):
        group.submit(5)
    for _ in range(3):
        gate.open.release()
    join([closer, *threads, *rest])
    assert sorted([*answers, *more]) == [(item, -item) for item in range(1, 5)]
    group.close()


@pytest.fixture
def interruptible():
    """A shell starts what it puts in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_caller_leaves_the_rest_alone():
    """Ctrl-C while waiting ends the wait, not the writing."""
    gate = Gate()
    group = GroupCommit(gate)
    answers, threads = submitting(group, [1])
    gate.reached.acquire()

    def interrupt():
        waiting(group, 1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        group.submit(2)
    gate.open.release()
    gate.open.release()
    join([interrupter, *threads])
    gate.open.release()
    assert group.submit(3) == -3
    assert gate.batches == [[1], [2], [3]]
    assert answers == [(1, -1)]
    group.close()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_caller_does_not_keep_those_behind_it():
    """Callers of a batch let one another go; one that has left is passed over."""
    gate = Gate()
    group = GroupCommit(gate)
    first, threads = submitting(group, [0])
    gate.reached.acquire()  # what comes now is one batch
    before, more = submitting(group, [1])
    waiting(group, 1)
    threads += more
    rest = []

    def interrupt():
        waiting(group, 2)
        behind, late = submitting(group, [3, 4, 5])
        rest.append(behind)
        threads.extend(late)
        waiting(group, 5)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        group.submit(2)
    gate.open.release()
    gate.open.release()
    join([interrupter, *threads])
    assert gate.batches == [[0], gate.batches[1]]
    assert set(gate.batches[1]) == {1, 2, 3, 4, 5}
    assert sorted(first + before + rest[0]) == [(0, 0), (1, -1), (3, -3), (4, -4), (5, -5)]
    group.close()


def test_whoever_should_let_the_next_go_may_be_lost():
    """An interrupt at the worst moment delays the others only for a moment."""
    gate = Gate()
    group = GroupCommit(gate)
    let_go, lost = group._let_go, threading.Event()

    def losing():
        if threading.current_thread() is not group._thread and not lost.is_set():
            lost.set()
        else:
            let_go()

    group._let_go = losing
    first, threads = submitting(group, [0])
    gate.reached.acquire()
    answers, more = submitting(group, [1, 2, 3])
    waiting(group, 3)
    gate.open.release()
    gate.open.release()
    join([*threads, *more])
    assert lost.is_set()
    assert sorted(first + answers) == [(0, 0), (1, -1), (2, -2), (3, -3)]
    group.close()


# -- the log on top of it


def test_receipts_of_a_batch_share_its_checkpoint_and_all_verify(tmp_path, build):
    """Sixteen threads wait behind one held write: two batches, one checkpoint for all of the second."""
    with build.open_log(tmp_path) as log:
        append, reached, go = log._backend.append, threading.Event(), threading.Event()

        def held(batch):
            reached.set()
            assert go.wait(30)
            append(batch)

        log._backend.append = held
        first, one = submitting(SimpleGroup(log, build), [0])
        assert reached.wait(30)
        rest, threads = submitting(SimpleGroup(log, build), range(1, 17))
        waiting(log._appender, 16)
        go.set()
        join([*one, *threads])
        receipts = [receipt for _, receipt in [*first, *rest]]
        sizes = {Checkpoint.parse(InclusionProof.parse(r.proof).checkpoint.text).size for r in receipts}
        assert sizes == {1, 17}
        assert sorted(receipt.seq for receipt in receipts) == list(range(17))
        for receipt in receipts:
            checked = verify_receipt(receipt.to_bytes(), log.vkey)
            assert (checked.verdict, checked.values) == (Verdict.VERIFIED, build.SECRETS)
            assert log.record(receipt.seq).to_bytes() == receipt.record
            assert log._private.openings(receipt.seq).keys() == build.SECRETS.keys()
        assert log.verify().size == 17


class SimpleGroup:
    """A log as something to submit to."""

    def __init__(self, log, build):
        self.submit = lambda _: build.ask(log)


def test_a_failed_batch_fails_everyone_and_moves_nothing(tmp_path, build):
    """An error at the disk: no caller gets a receipt, the frontier stays, and nothing more is written."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        before, reached, go = log.checkpoint(), threading.Event(), threading.Event()
        link = log._backend.link

        class Failing:
            in_transaction = False

            def execute(self, statement, *parameters):
                done = db.execute(statement, *parameters)
                if statement == "COMMIT":
                    reached.set()
                    assert go.wait(30)
                    raise sqlite3.OperationalError("disk I/O error")
                return done

        db, link._db = link._db, Failing()
        first, one = submitting(SimpleGroup(log, build), [0])
        assert reached.wait(30)
        rest, threads = submitting(SimpleGroup(log, build), range(8))
        waiting(log._appender, 8)
        go.set()
        join([*one, *threads])
        assert [type(answer) for _, answer in [*first, *rest]] == [AuditUnavailable] * 9
        assert (log.size, log.checkpoint()) == (3, before)
        link._db = db
        with pytest.raises(AuditUnavailable, match="open the log again"):
            build.ask(log)
    with build.open_log(tmp_path) as log:  # one record got there unacknowledged: it is whole and counts
        assert log.size == 4
        assert log.verify().size == 4


def test_closing_answers_all_who_wait(tmp_path, build):
    """Twenty threads append while the log closes: each has a verified receipt or a refusal."""
    log = build.open_log(tmp_path)
    vkey, started = log.vkey, threading.Barrier(21)

    def work(_):
        started.wait(30)
        return [build.ask(log) for _ in range(5)][-1]

    group = SimpleGroup(log, build)
    group.submit = work
    answers, threads = submitting(group, range(20))
    started.wait(30)
    log.close()
    join(threads)
    assert len(answers) == 20
    for _, answer in answers:
        if not isinstance(answer, AuditUnavailable):
            assert verify_receipt(answer.to_bytes(), vkey).verdict is Verdict.VERIFIED
    with build.open_log(tmp_path) as again:
        assert again.verify().size == again.size


FORK = """
import os, sys
from carag.audit import AuditLog, Recovery
from carag.errors import AuditUnavailable

log = AuditLog.open(sys.argv[1])
log.append(Recovery("DRILL"))
if (child := os.fork()) == 0:
    try:
        log.append(Recovery("DRILL"))
    except AuditUnavailable as error:
        log.close()
        os._exit(0 if "fork" in str(error) else 2)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert log.append(Recovery("DRILL")).seq == 1
assert log.verify().size == 2
log.close()
"""


def test_a_child_process_neither_writes_nor_waits(tmp_path):
    """After a real fork: the child, which has no appender thread, is refused at once, and the parent goes on."""
    root = str(Path(carag.__file__).parents[1])
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": root}, timeout=60)
