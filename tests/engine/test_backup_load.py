"""Backed up while it is asked, changed, held and erased by another process, a store loses nothing acknowledged."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import Checkpoint, Recovery
from carag.audit.auditor.reader import LogReader
from carag.audit.receipts.receipt import checkpoint_in, open_envelope
from carag.engine.backup import Behind, back_up, restore
from carag.errors import InvalidArgument
from tests.engine.test_backup import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds for what takes milliseconds on a quiet machine."""


@contextmanager
def used(home: Path, kept: Path) -> Iterator[None]:
    """Have another process use a store until the block ends."""
    kept.mkdir()
    words = [sys.executable, "-m", "tests.engine.busy_store", str(home), str(kept)]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            waited(lambda: len(acknowledged(kept)) > 20 or process.poll() is not None)
            assert process.poll() is None
            yield
            assert process.poll() is None, "the process that used the store ended with an error"
        finally:
            (kept / "stop").touch()
            try:
                code = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    assert code == 0


def waited(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def acknowledged(kept: Path) -> list[Path]:
    """The receipts that were handed out so far, oldest first."""
    return sorted(kept.glob("[0-9]*.json"))


def lost(home: Path, records: dict[int, str]) -> int:
    """How many of these records a store does not have, or not as they were."""
    with LogReader(home) as log:
        bodies = {seq: body.decode() for seq, body in log.bodies()}
    return sum(bodies.get(seq) != record for seq, record in records.items())


@pytest.mark.parametrize(
    "rounds", [pytest.param(4, marks=pytest.mark.release), pytest.param(100, marks=pytest.mark.full)]
)
def test_no_acknowledged_record_is_lost_and_no_restore_behind_an_anchor_goes_unnoticed(
    tmp_path: Path, rounds: int
) -> None:
    """Each time the restored store opens, answers and continues every receipt handed out before the backup began."""
    home, kept = tmp_path / "store", tmp_path / "kept"
    missing = noticed = compared = closed = 0
    records: dict[int, str] = {}
    with used(home, kept):
        for _ in range(rounds):
            backup, keys, again = (tmp_path / name for name in ("backup", "keys", "again"))
            before = acknowledged(kept)
            for path in before:
                if int(path.stem) not in records:
                    records[int(path.stem)] = open_envelope(path.read_bytes()).record
            back_up(home, backup, keys=keys)
            ledger = Ledger(tmp_path / "ledger")
            after = len(acknowledged(kept))
            waited(lambda after=after: len(acknowledged(kept)) > after + 2)
            newest = acknowledged(kept)[-1]
            ledger.path.write_text(checkpoint_in(newest.read_bytes()).to_text())
            try:
                restore(backup, keys, again, anchors=[ledger])
            except Behind as behind:
                noticed += "rolled back" in str(behind) and not again.exists()
            known = {path.name: path.read_bytes() for path in before[-3:]}
            done = restore(backup, keys, again, kept=known)
            compared += done.compared
            missing += lost(again, records)
            closed += opened_and_closed(again, sorted(records)[-100:])
            for path in (backup, keys, again):
                shutil.rmtree(path)
    assert (missing, noticed, compared, closed) == (0, rounds, 3 * rounds, 0)


def opened_and_closed(home: Path, numbers: list[int]) -> int:
    """Open a restored store, ask it, and count the values that it cannot open although they were not erased."""
    with Engine.open(home, create=False) as engine:
        assert engine.retrieve(
            "When does branch 3 report?", Session(role="employee", purpose="work")
        ).passages
        log, shut = engine.log, 0
        for seq in numbers:
            kept = set(log.private.openings(seq)) | set(log.private.erased_by(seq))
            shut += set(log.record(seq).commitments) != kept
        return shut


@pytest.mark.release
def test_a_killed_backup_leaves_nothing_that_restore_takes_for_whole(tmp_path: Path) -> None:
    """Killed at whatever moment: either all of it is in place, or there is not a backup."""
    home, kept = tmp_path / "store", tmp_path / "kept"
    whole = 0
    with used(home, kept):
        pass
    for number in range(12):
        backup, keys = tmp_path / f"backup{number}", tmp_path / f"keys{number}"
        words = ["-m", "carag", "backup", "--store", home, "--to", backup, "--keys", keys]
        with subprocess.Popen(
            [sys.executable, *map(str, words)], cwd=ROOT, stdout=subprocess.DEVNULL
        ) as process:
            waited(
                lambda backup=backup, process=process: (
                    any(backup.parent.glob(f".{backup.name}.*")) or process.poll() is not None
                )
            )
            time.sleep(number * 0.004)
            process.send_signal(signal.SIGKILL)
        if backup.exists():
            whole += restore(backup, keys, tmp_path / f"again{number}").rows > 0
        else:
            with pytest.raises(InvalidArgument, match="is not a backup"):
                restore(backup, keys, tmp_path / f"again{number}")
    assert whole == len(list(tmp_path.glob("backup*")))


@pytest.mark.release
def test_what_was_lost_and_accepted_is_on_record(tmp_path: Path) -> None:
    """A store put back behind what its users hold says so itself, and goes on."""
    home, kept = tmp_path / "store", tmp_path / "kept"
    with used(home, kept):
        done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
        waited(lambda: int(acknowledged(kept)[-1].stem) > done.records)
    newest = acknowledged(kept)[-1].read_bytes()
    restored = restore(
        tmp_path / "backup", tmp_path / "keys", tmp_path / "again", kept={"newest": newest}, accept_loss=True
    )
    size = Checkpoint.parse(checkpoint_in(newest).text).size
    assert restored.lost == size - done.records > 0
    with Engine.open(tmp_path / "again") as engine:
        said = [engine.log.record(seq).event for seq in range(done.records, engine.log.size)]
        assert Recovery(f"RESTORED_WITH_LOSS:{done.records}/{size}") in said
