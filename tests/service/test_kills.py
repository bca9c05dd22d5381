"""A service that is killed, or asked to end, at any moment loses nothing that a client received."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from bench.service.kills import Kills, Load, examined, kill
from bench.service.office import Office

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("by", "rounds"),
    [
        pytest.param(signal.SIGKILL, 3, marks=pytest.mark.release),
        pytest.param(signal.SIGTERM, 2, marks=pytest.mark.release),
        pytest.param(signal.SIGKILL, 20, marks=pytest.mark.full),
        pytest.param(signal.SIGTERM, 20, marks=pytest.mark.full),
    ],
)
def test_no_answer_that_arrived_is_lost(tmp_path: Path, by: signal.Signals, rounds: int) -> None:
    """Each is in the log and verifies with both verifiers; other records belong to requests that were cut off."""
    found = kill(tmp_path, rounds, by=by)
    assert (found.lost, found.refused, found.unaccounted, found.damaged) == (0, 0, 0, [])
    assert found.acknowledged > rounds
    assert found.codes == ([] if by is signal.SIGKILL else [0] * rounds)
    assert found.cut >= (rounds if by is signal.SIGKILL else 0)


@pytest.mark.release
def test_the_count_finds_a_log_that_was_put_back(tmp_path: Path) -> None:
    """With the store from before the load in its place, every answer is lost, and the log does not verify."""
    office = Office(tmp_path)
    before = shutil.copytree(office.home, tmp_path / "before")
    load, kills = Load(office), Kills()
    with office.served() as served:
        load.start(served.port)
        load.wait(6)
        served.process.kill()
        load.join()
    shutil.rmtree(office.home)
    before.rename(office.home)
    examined(office.home, (office.home / "vkey").read_text().strip(), load, 0, kills)
    assert kills.lost == len(load.receipts) > 5
    assert len(kills.damaged) == 1
