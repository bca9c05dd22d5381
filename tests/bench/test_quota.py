"""A process in a group has the fraction of a processor that it was given; where that cannot be, nothing is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from bench.service.quota import cpu_seconds, family, quota

if TYPE_CHECKING:
    from pathlib import Path

BUSY = "import time\nwhile True: pass"


def test_a_busy_process_is_stopped_by_its_quota() -> None:
    """It uses less than half of a processor, with room for a busy machine; without the group it is not stopped."""
    try:
        with quota(0.2) as group, subprocess.Popen([sys.executable, "-c", BUSY]) as process:
            group.take(process.pid)
            before, start = group.held(), time.monotonic()
            used = cpu_seconds([process.pid])
            time.sleep(1)
            used, seconds = cpu_seconds([process.pid]) - used, time.monotonic() - start
            periods, held = (now - then for now, then in zip(group.held(), before, strict=True))
            assert process.pid in family(process.pid)
            process.kill()
    except RuntimeError as error:
        pytest.skip(str(error))
    assert 0 < used <= seconds / 2
    assert 0 < held <= periods


def test_the_second_kind_of_groups_is_told_by_one_line(tmp_path: Path) -> None:
    """As a directory that stands for theirs: which files are written, and what they say."""
    with quota(0.25, groups=tmp_path) as group:
        (made,) = [one for one in tmp_path.iterdir() if one.is_dir()]
        assert "2500 10000" == (made / "cpu.max").read_text()
        assert "+cpu" == (tmp_path / "cgroup.subtree_control").read_text()
        group.take(os.getpid())
        (made / "cpu.stat").write_text("usage_usec 9\nnr_periods 4\nnr_throttled 3\n")
        assert (4, 3) == group.held()
        for file in made.iterdir():
            file.unlink()
    assert not made.exists()


def test_where_there_are_no_groups_nothing_runs(tmp_path: Path) -> None:
    """The message says what is wanted."""
    with (
        pytest.raises(RuntimeError, match="want root and cgroups of Linux"),
        quota(0.5, groups=tmp_path / "none"),
    ):
        pytest.fail("it ran without a quota")
