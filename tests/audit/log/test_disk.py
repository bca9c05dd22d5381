"""The log on a disk that loses power, fails or fills up: what was acknowledged is there, what failed was said."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from carag.audit import AuditLog
from tests.audit.log.disk import environment
from tests.audit.log.powercut import play, record

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the disk is preloaded, as Linux does it")


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """Record each kind of history once: eight writers, ninety-six records, checkpoints every few."""
    made = {}

    def history(broken):
        if broken not in made:
            made[broken] = record(tmp_path_factory.mktemp("power"), broken=broken)
        return made[broken]

    return history


@pytest.mark.parametrize("cuts", [48, pytest.param(600, marks=pytest.mark.full)])
def test_a_power_cut_loses_nothing_acknowledged(histories, cuts):
    """Unsynced writes dropped, cut short, reordered or torn: every acknowledged record is there and opens."""
    losses = play(histories(""), cuts)
    assert (losses.cuts, losses.lost, losses.unopened, losses.corrupt) == (cuts, 0, 0, 0), losses
    assert losses.acknowledged > 10 * cuts


@pytest.mark.parametrize("cuts", [24, pytest.param(600, marks=pytest.mark.full)])
def test_the_harness_finds_a_log_that_does_not_wait(histories, cuts):
    """With synchronous=NORMAL the same cuts lose acknowledged records, so their absence above means something."""
    losses = play(histories("syncs"), cuts)
    assert losses.lost > 0
    assert all(
        "rollback" in reason for reason in losses.reasons
    )  # the pin of a close that was waited for tells


def test_the_harness_finds_values_that_are_not_there(histories):
    """Where records are written without their values, they are there and cannot be opened."""
    losses = play(histories("values"), 24)
    assert (losses.lost, losses.corrupt) == (0, 0)
    assert losses.unopened > 0


def acknowledged(home, **disk):
    """Run eight writers on such a disk until they are done or refused; return what was acknowledged."""
    AuditLog.open(home).close()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.audit.log.writers",
            str(home),
            "--each",
            "20",
            "--acks",
            str(home) + ".acks",
        ],
        cwd=ROOT,
        env=environment(home, **disk),
        capture_output=True,
        timeout=120,
    )
    acks = Path(str(home) + ".acks")
    return [line.split() for line in acks.read_text().splitlines()] if acks.exists() else []


@pytest.mark.parametrize("failing", [8, 9, 14, 23])
def test_a_sync_that_fails_is_the_last(tmp_path, failing):
    """EIO from the n-th sync on: no record is acknowledged after it, and none before it is lost."""
    acks = acknowledged(tmp_path / "log", fail_sync=failing, count=tmp_path / "syncs")
    assert len(acks) < 160
    with AuditLog.open(tmp_path / "log") as log:
        for seq, digest in acks:
            assert hashlib.sha256(log.record(int(seq)).to_bytes()).hexdigest() == digest
        assert log.verify().size == log.size >= len(acks)


@pytest.mark.parametrize("room", [40_000, 150_000, 300_000])
def test_a_full_disk_refuses_and_keeps(tmp_path, room):
    """ENOSPC at any point: writers are refused, and all that they were told of is there."""
    acks = acknowledged(tmp_path / "log", full_after=room)
    assert len(acks) < 160
    with AuditLog.open(tmp_path / "log") as log:
        for seq, digest in acks:
            assert hashlib.sha256(log.record(int(seq)).to_bytes()).hexdigest() == digest
        assert log.verify().size == log.size >= len(acks)


def test_one_record_waits_for_the_disk_once(tmp_path):
    """A lone client's append, with its values, costs one sync."""
    counts = []
    for each in (10, 60):
        home = tmp_path / str(each)
        AuditLog.open(home).close()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.audit.log.writers",
                str(home),
                "--clients",
                "1",
                "--each",
                str(each),
            ],
            cwd=ROOT,
            env=environment(home, count=tmp_path / f"{each}.syncs"),
            check=True,
        )
        counts.append(int.from_bytes((tmp_path / f"{each}.syncs").read_bytes(), sys.byteorder))
    assert 50 <= counts[1] - counts[0] <= 55  # and a checkpoint now and then
