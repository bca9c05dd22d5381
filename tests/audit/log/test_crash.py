"""Killed at any moment, the log has every record it acknowledged."""

from __future__ import annotations

import pytest

from tests.audit.log.kills import kill


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.full)])
def test_no_acknowledged_record_is_lost(tmp_path, rounds):
    """After kill -9, over and over on one log, every acknowledged record is there, in place, unaltered and opens.

    Every begin that was acknowledged has its end, or a recovery record names it: no call of a model is hidden.
    """
    kills = kill(tmp_path / "log", rounds)
    assert (kills.rounds, kills.lost, kills.unopened, kills.hidden) == (rounds, 0, 0, 0), kills
    assert kills.acknowledged >= rounds
    assert kills.cut_short > 0
