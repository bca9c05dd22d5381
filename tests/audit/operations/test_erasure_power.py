"""The power goes while values are erased: afterwards each is there and opens, or is gone for good, as was said."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from carag.audit import AuditLog, RecordKind
from carag.audit.records.custody import read_targets
from tests.audit.log import powercut

ROOT = Path(__file__).parents[3]
CHILD = """
import os, sys
from carag.audit import AuditLog, Ingest, erase, place_hold, release_hold
counts = dict.fromkeys(("started", "ended", "documents", "chunks", "quarantined", "rows"), 0)
event = Ingest(**counts, snapshot=b"S" * 32, table=b"T" * 32, embed=None, why="DRILL")
acks = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
two = {"actor": "a", "approver": "b"}

def said(*words):
    os.write(acks, (" ".join(map(str, words)) + "\\n").encode())

with AuditLog.open(sys.argv[1]) as log:
    for turn in range(4):
        kept = [log.append(event, secrets={"subject": "bo"}).seq for _ in range(2)]
        gone = [log.append(event, secrets={"subject": "ana"}).seq for _ in range(2)]
        said("kept", *kept)
        placed = place_hold(log, "M-1", actor="lea", subject="bo").seq
        said("held", placed)
        erase(log, subject="ana", basis="GDPR_17_1_D", **two)
        said("gone", *gone)
        release_hold(log, placed, **two)
        said("released", placed)
        erase(log, records=[kept[0]], basis="GDPR_17_1_E", **two)
        said("gone", kept[0])
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Record once what erasing does to a disk."""
    directory = tmp_path_factory.mktemp("erasing")
    home = directory / "log"
    AuditLog.open(home).close()
    command = [sys.executable, "-c", CHILD, str(home), str(home / "acks")]
    return powercut.traced(home, directory / "trace", *command)


@pytest.mark.parametrize("cuts", [60, pytest.param(600, marks=pytest.mark.full)])
def test_a_power_cut_while_erasing_leaves_no_half(tmp_path, history, cuts):
    """The log opens after every cut; what was acknowledged holds, and whatever is recorded as erased is.

    Half of the moments are right after a key file took its place, where a wrong order would show.
    """
    dice, erased, kept, held, unfinished = random.Random(11), 0, 0, 0, 0  # noqa: S311 - no secret
    kinds = ("nothing", "a beginning", "a half", "torn")
    keys = [at + 1 for at, event in enumerate(history.events) if (event.op, event.path) == ("s", "")]
    for number in range(cuts):
        moment = dice.choice(keys) if number % 2 else dice.randint(0, len(history.events))
        files, acks = powercut.cut(history, moment, kinds[number // 2 % 4], dice)
        home = tmp_path / str(number)
        home.mkdir(mode=0o700)
        for name, content in files.items():
            (home / name).write_bytes(content)
            (home / name).chmod(0o600)
        said = {word: set() for word in ("kept", "gone", "held", "released")}
        for line in acks:
            word, *numbers = line.split()
            said[word] |= set(map(int, numbers))
        unfinished += (home / "private.key").read_text().count("wrap ") == 2
        with AuditLog.open(home) as log:
            assert not any(log.private.openings(n) for n in said["gone"])
            erased += len(said["gone"])
            listed = set()
            for n in range(log.size):
                record = log.record(n)
                if record.kind is RecordKind.ERASURE:
                    opened = log.private.openings(n).get("targets")
                    listed |= set() if opened is None else {each.seq for each in read_targets(opened.value)}
                    listed |= set(record.event.records)
            assert not any(log.private.openings(n) for n in listed)
            for n in said["kept"] - listed:
                opening = log.private.openings(n)["subject"]
                assert opening.opens("subject", log.record(n).commitments["subject"])
                kept += 1
            in_force = {row.placed for row in log.private.held()}
            released = {
                log.record(n).event.placed for n in range(log.size) if log.record(n).kind is RecordKind.HOLD
            }
            assert said["held"] - released <= in_force
            assert not said["released"] & in_force
            held += len(said["held"])
            log.verify()
        assert (home / "private.key").read_text().count("wrap ") == 1
    assert erased > cuts
    assert kept > cuts / 2
    assert held > cuts / 2
    assert 0 < unfinished < cuts  # some cuts fell between the two keys
