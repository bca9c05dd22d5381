"""The loop and the window: nothing is held up before it, everything after it, and no clock hides it."""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import AuditLog, Recovery
from carag.audit.anchors.anchor import check_known
from carag.audit.anchors.anchoring import Anchoring
from carag.audit.anchors.evidence import Evidence, Shelf
from carag.audit.anchors.exposure import Standing, Window
from carag.audit.operations.rotation import add_mldsa
from carag.audit.records.record import Record
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import SigningKey
from carag.audit.tlog.note import Note, NoteSignature
from carag.errors import AnchorUnavailable, AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra
from tests.sizes import examples

START = 1_763_755_557_000_000
DRILL = Recovery("DRILL")


class Clocks:
    """Two clocks that only a test moves; the second cannot be set."""

    def __init__(self):
        self.wall, self.steady = START, 100.0

    def pass_(self, seconds):
        self.wall += int(seconds * 1_000_000)
        self.steady += seconds


class Ledger:
    """An anchor in memory that can be down."""

    kind = "ledger"

    def __init__(self, place="memory"):
        self.place, self.down, self.seen, self.hold = place, False, [], None

    def submit(self, submission):
        if self.hold:
            self.hold.wait(10)
        if self.down:
            raise AnchorUnavailable("it is down")
        for known in self.seen:
            check_known(known, submission, self.place)
        self.seen.append(submission.tree)
        return Evidence(self.kind, self.place, submission.checkpoint, submission.now)

    def confirm(self, evidence, keys):
        return evidence.check_signed(keys)


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def log(build, tmp_path, clocks):
    with build.open_log(tmp_path / "log", clock=lambda: clocks.wall) as log:
        yield log


@pytest.fixture
def make(log, clocks, tmp_path):
    """Anchorings whose thread sleeps unless woken by records."""

    def anchoring(*anchors, **changes):
        options = {"every_seconds": 3600.0, "clock": lambda: clocks.wall, "monotonic": lambda: clocks.steady}
        return Anchoring(log, anchors, tmp_path / "log" / "anchors", **{**options, **changes})

    return anchoring


def ask(log, build):
    return build.ask(log)


def test_without_anchors_nothing_changes(log, build, make, tmp_path, clocks):
    """No file, no record, no refusal; the exposure says that no anchor is configured."""
    with make(window=Window(1, 1)) as anchoring:
        for _ in range(5):
            ask(log, build)
            clocks.pass_(9999)
        exposure = anchoring.exposure()
        assert anchoring.anchor() == ()
    assert (exposure.standing, exposure.size, exposure.records) == (Standing.NO_ANCHOR, 5, 5)
    assert not (tmp_path / "log" / "anchors").exists()
    assert log.size == 5


def test_a_round_leaves_evidence_and_a_record(log, build, make, tmp_path):
    """Each anchor's confirmation is a file, and a record that pins it."""
    ask(log, build)
    one, two = Ledger("memory/1"), Ledger("memory/2")
    anchoring = make(one, two)
    confirmed = anchoring.anchor()
    assert [evidence.place for evidence in confirmed] == ["memory/1", "memory/2"]
    for seq, evidence in enumerate(confirmed, start=1):
        event = log.record(seq).event
        data = (tmp_path / "log" / "anchors" / evidence.name).read_bytes()
        assert (event.anchor, event.size, event.evidence) == ("ledger", 1, hashlib.sha256(data).digest())
        assert Evidence.parse(data) == evidence
    assert anchoring.exposure().standing is Standing.COVERED
    assert anchoring.anchor() == ()  # its own records give it nothing to do
    assert log.size == 3
    assert len(anchoring.anchor(always=True)) == 2


def test_at_the_start_and_at_the_end(log, build, make):
    """Whatever was there before is anchored at once, whatever came after at the end."""
    ask(log, build)
    ledger = Ledger()
    with make(ledger) as anchoring:
        assert anchoring.exposure().anchored == 1
        ask(log, build)
        assert anchoring.exposure().standing is Standing.OPEN
    assert [tree.size for tree in ledger.seen] == [1, 3]
    anchoring.close()
    ask(log, build)


def test_every_so_many_records(log, build, make):
    """Records wake the thread before its time."""
    ledger = Ledger()
    with make(ledger, every_records=5) as anchoring:
        seen = threading.Event()
        submit = ledger.submit
        ledger.submit = lambda submission: (submit(submission), seen.set())[0]
        for _ in range(5):
            ask(log, build)
        assert not seen.wait(0.2)
        ask(log, build)
        assert seen.wait(10)
        assert ledger.seen[0].size in (5, 6)
    assert anchoring.exposure().standing is Standing.COVERED


def test_every_so_many_seconds(log, build, make):
    """Time alone brings a round too."""
    ledger, seen = Ledger(), threading.Event()
    submit = ledger.submit
    ledger.submit = lambda submission: (submit(submission), seen.set())[0]
    with make(ledger, every_seconds=0.05):
        ask(log, build)
        assert seen.wait(10)


def test_a_slow_anchor_holds_nothing_up(log, build, make):
    """While an anchor thinks, records are written."""
    ledger = Ledger()
    with make(ledger, every_records=1):
        ledger.hold = threading.Event()
        for _ in range(20):
            ask(log, build)
        assert log.size >= 20
        ledger.hold.set()


def test_an_anchor_that_is_down_blocks_nothing_before_the_window(log, build, make):
    """Up to the last record and second allowed; then no answer leaves; then one confirmation opens it again."""
    ledger = Ledger()
    ledger.down = True
    anchoring = make(ledger, window=Window(seconds=900, records=3))
    log.watch(anchoring.check)  # no thread: it would anchor when the test does not expect it
    for _ in range(3):
        ask(log, build)
    anchoring.anchor()
    with pytest.raises(AuditUnavailable, match=r"4 records.*it is down"):
        ask(log, build)
    assert log.size == 3
    exposure = anchoring.exposure()
    assert (exposure.records, exposure.failures) == (3, (("memory", "it is down"),))
    ledger.down = False
    anchoring.anchor()
    for _ in range(3):
        ask(log, build)
    assert anchoring.exposure().records == 3
    with pytest.raises(AuditUnavailable):
        ask(log, build)


def test_the_window_in_seconds(log, build, make, clocks):
    """The age of the oldest record that counts, not the time since the last anchoring: a quiet log may rest."""
    ledger = Ledger()
    with make(ledger, window=Window(seconds=900)) as anchoring:
        ask(log, build)
        anchoring.anchor()
        clocks.pass_(100_000)
        assert anchoring.exposure().standing is Standing.COVERED
        ledger.down = True
        ask(log, build)
        clocks.pass_(900)
        ask(log, build)
        assert anchoring.exposure().standing is Standing.OPEN
        clocks.pass_(1)
        assert anchoring.exposure().standing is Standing.EXCEEDED
        with pytest.raises(AuditUnavailable, match="901 s"):
            ask(log, build)
        assert log.append(DRILL).seq == log.size - 1  # what the log says of itself is not held up


@pytest.mark.parametrize("shift", [-10_000, 0])
def test_a_clock_set_back_hides_nothing(log, build, make, clocks, shift):
    """Exposure is also measured by a clock that cannot be set."""
    ledger = Ledger()
    with make(ledger, window=Window(seconds=900)) as anchoring:
        ledger.down = True
        ask(log, build)
        clocks.steady += 901
        clocks.wall += shift * 1_000_000
        assert anchoring.exposure().seconds == 901
        with pytest.raises(AuditUnavailable):
            ask(log, build)


def test_a_restart_hides_nothing(log, build, make, clocks):
    """Opened again, the exposure counts from the newest evidence and the records' own times."""
    ledger = Ledger()
    ask(log, build)
    make(ledger).anchor()
    ask(log, build)
    clocks.pass_(500)
    clocks.steady = 0.0
    exposure = make(ledger).exposure()
    assert (exposure.anchored, exposure.records, exposure.seconds) == (1, 1, 500)
    ledger.down = True
    again = make(ledger, window=Window(seconds=499))
    again.start()
    with pytest.raises(AuditUnavailable):
        ask(log, build)
    again.close()


def test_warn_instead_of_refuse(log, build, make, caplog):
    """Past the window one warning, and answers go on."""
    ledger = Ledger()
    ledger.down = True
    with caplog.at_level(logging.WARNING), make(ledger, window=Window(records=1, refuse=False)) as anchoring:
        for _ in range(4):
            ask(log, build)
        assert anchoring.exposure().standing is Standing.EXCEEDED
    warnings = [r for r in caplog.records if "not confirmed by any anchor" in r.getMessage()]
    assert len(warnings) == 1


def test_three_missed_rounds_are_an_alarm(log, build, make, caplog):
    """Warnings first, then errors."""
    ledger = Ledger()
    ledger.down = True
    anchoring = make(ledger)
    ask(log, build)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            anchoring.anchor()
    assert [r.levelno for r in caplog.records] == [logging.WARNING, logging.WARNING, logging.ERROR]


def test_one_of_two_suffices(log, build, make):
    """A confirmation by any anchor covers; the other's failure is still said."""
    ledger, down = Ledger("up"), Ledger("down")
    down.down = True
    ask(log, build)
    anchoring = make(down, ledger)
    assert len(anchoring.anchor()) == 1
    exposure = anchoring.exposure()
    assert (exposure.standing, exposure.failures) == (Standing.COVERED, (("down", "it is down"),))
    assert anchoring.anchor() == ()
    down.down = False
    assert [evidence.place for evidence in anchoring.anchor()] == ["down"]  # the other has nothing new to see
    assert (anchoring.exposure().failures, len(ledger.seen)) == ((), 1)


def test_a_contradicted_log_stops_at_once(log, build, make, outside):
    """An anchor with this log's own signature on another history: no record more, whatever the window says."""
    ledger = Ledger()
    outside.grow(log, 2)
    ledger.seen.append(Checkpoint(log.origin, 2, b"r" * 32))
    anchoring = make(ledger, window=Window(refuse=False))
    with pytest.raises(CorruptFile, match="forked"):
        anchoring.start()
    with pytest.raises(AuditUnavailable, match="contradicts"):
        ask(log, build)
    assert anchoring.exposure().standing is Standing.CONTRADICTED
    assert log.size == 2


def test_a_contradiction_in_the_thread_stops_the_log(log, build, make):
    """Found between two answers, it keeps the second back."""
    ledger = Ledger()
    with make(ledger, every_records=1) as anchoring:
        ledger.seen.append(Checkpoint(log.origin, 99, b"r" * 32))
        ask(log, build)
        ask(log, build)
        for _ in range(500):
            if anchoring.exposure().standing is Standing.CONTRADICTED:
                break
            threading.Event().wait(0.02)
        with pytest.raises(AuditUnavailable, match="rolled back"):
            ask(log, build)


def test_evidence_in_the_directory_convicts_the_log(log, build, make, tmp_path, clocks):
    """A log put back to an earlier copy, with its evidence left: it does not start."""
    ask(log, build)
    shutil.copytree(tmp_path / "log", tmp_path / "early")
    ask(log, build)
    make(Ledger()).anchor()
    shutil.copytree(tmp_path / "log" / "anchors", tmp_path / "early" / "anchors")
    with (
        build.open_log(tmp_path / "early", clock=lambda: clocks.wall) as early,
        pytest.raises(CorruptFile, match="rolled back"),
    ):
        Anchoring(early, [Ledger()], tmp_path / "early" / "anchors")


def damaged_evidence(evidence):
    data = evidence.to_bytes()
    stranger = SigningKey(evidence.tree.origin, b"s" * 32).sign(evidence.checkpoint.text)
    (own,) = evidence.checkpoint.signatures
    broken = Note(evidence.checkpoint.text, (NoteSignature(own.name, own.key_id, bytes(64)),))
    return {
        "no newline": data[:-1],
        "a space": data.replace(b",", b", ", 1),
        "another format": data.replace(b"anchor/v1", b"anchor/v2"),
        "a key more": data.replace(b'{"', b'{"a":1,"', 1),
        "a key less": data.replace(b'"proof":{},', b""),
        "a negative time": data.replace(b'"seen":', b'"seen":-'),
        "a kind with a space": data.replace(b'"ledger"', b'"led ger"'),
        "another place": data.replace(b'"memory"', b'"elsewhere"'),
        "no checkpoint": data.replace(b"\\n1\\n", b"\\none\\n"),
        "with a signature that does not hold": Evidence("ledger", "memory", broken, evidence.seen).to_bytes(),
        "signed by a stranger": Evidence("ledger", "memory", stranger, evidence.seen).to_bytes(),
        "nothing": b"",
    }


@pytest.mark.parametrize(
    "name",
    damaged_evidence(
        Evidence(
            "ledger", "memory", SigningKey("a", b"k" * 32).sign(Checkpoint("a", 1, b"r" * 32).to_text()), 1
        )
    ),
)
def test_damaged_evidence_is_said(log, build, make, name):
    """Evidence that cannot be read, belongs elsewhere, or is not signed by the log is refused."""
    ask(log, build)
    (evidence,) = make(Ledger()).anchor()
    (make(Ledger())._shelf.directory / evidence.name).write_bytes(damaged_evidence(evidence)[name])
    with pytest.raises(CorruptFile):
        make(Ledger())


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
@settings(max_examples=examples(20), deadline=None)
def test_law_the_newest_evidence_is_found(tmp_path_factory, sizes, data):
    """Whatever order it came in, the shelf lists the largest tree first."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf") / "anchors")
    key = SigningKey("log.example/1", b"k" * 32)
    for size in data.draw(st.permutations(sizes)):
        note = key.sign(Checkpoint("log.example/1", size, b"r" * 32).to_text())
        shelf.put(Evidence("ledger", data.draw(st.sampled_from("ab")), note, 1))
    found = [evidence.tree.size for evidence in shelf]
    assert found == sorted(found, reverse=True)
    assert shelf.newest().tree.size == max(sizes)


def test_a_disk_that_is_full_says_so(log, build, make, monkeypatch):
    """Evidence that cannot be stored confirms nothing."""
    from carag.audit.anchors import evidence as module

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    ask(log, build)
    anchoring = make(Ledger())
    monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(AuditUnavailable, match="No space"):
        anchoring.anchor()
    assert anchoring.exposure().standing is Standing.OPEN


def test_an_mldsa_line_goes_out_with_the_checkpoint(log, build, make):
    """What is anchored bears both signatures, and its evidence is still read and continued."""
    try:
        add_mldsa(log)
    except MissingExtra:
        pytest.skip("the installed cryptography has no ML-DSA")
    (evidence,) = make(Ledger()).anchor()
    assert len(evidence.checkpoint.signatures) == 2
    assert all(key.verifies(evidence.checkpoint) for key in log.keys.listed)
    ask(log, build)
    assert make(Ledger()).exposure().anchored == 1


@pytest.mark.parametrize("bad", [{"every_seconds": 0}, {"every_records": 0}])
def test_a_rhythm_is_positive(make, bad):
    """Zero is refused."""
    with pytest.raises(InvalidArgument):
        make(**bad)


@pytest.mark.parametrize("bad", [{"seconds": 0}, {"records": 0}, {"seconds": float("nan")}])
def test_a_window_is_positive(bad):
    """A window of zero is refused."""
    with pytest.raises(InvalidArgument):
        Window(**bad)


def test_many_writers_and_rounds_at_once(log, build, make):
    """Eight threads append while rounds run: every record is there, nothing is stuck, all is covered at the end."""
    ledger = Ledger()
    with make(ledger, every_records=3):
        threads = [threading.Thread(target=lambda: [ask(log, build) for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    kinds = [Record.parse(log._backend.body(seq)).kind for seq in range(log.size)]
    assert kinds.count("query") == 40
    assert isinstance(log, AuditLog)
    assert log.verify().size == log.size
    assert sorted(tree.size for tree in ledger.seen) == [tree.size for tree in ledger.seen]
