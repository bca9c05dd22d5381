"""Give processes a fixed fraction of one processor, and count what they and the machine use (Linux, control groups).

Where processes fight for few processors, their rates say how the scheduler shared them. A process that is held to a
fraction by the kernel gets that fraction whatever else runs, as long as the machine has some idle time left.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_GROUPS: Final = Path("/sys/fs/cgroup")
_PERIOD: Final = 10_000
"""Microseconds in which a quota is spent and renewed: short, for a process that is held may hold a lock."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_IDLE: Final = slice(3, 5)
"""Idle, and waiting for a disk, in a line of /proc/stat; proc(5)."""


class Quota:
    """A group of processes that is held to a fraction of one processor."""

    def __init__(self, group: Path) -> None:
        self._group = group

    def take(self, pid: int) -> None:
        """Take a process with all its threads."""
        (self._group / "cgroup.procs").write_text(str(pid))

    def held(self) -> tuple[int, int]:
        """Return in how many periods its processes ran, and in how many of them they were stopped by the quota."""
        stated = dict(line.split() for line in (self._group / "cpu.stat").read_text().splitlines())
        return int(stated["nr_periods"]), int(stated["nr_throttled"])


@contextmanager
def quota(fraction: float, *, groups: Path = _GROUPS) -> Iterator[Quota]:
    """Make a group until the context ends, by when its processes must have ended.

    Raises
    ------
    RuntimeError
        If no group with a quota can be made here.
    """
    is_first = (groups / "cpu" / "cpu.cfs_quota_us").exists()  # of two versions of control groups
    group = (groups / "cpu" if is_first else groups) / f"carag-{os.getpid()}-{time.monotonic_ns()}"
    budget = round(fraction * _PERIOD)
    try:
        if is_first:
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(budget))
        else:
            (groups / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            (group / "cpu.max").write_text(f"{budget} {_PERIOD}")
    except OSError as error:
        raise RuntimeError(
            f"no control group with a quota can be made in {groups}: {error.strerror}; want root and cgroups of Linux"
        ) from error
    try:
        yield Quota(group)
    finally:
        _removed(group)


def _removed(group: Path) -> None:
    """Remove a group; the kernel takes a moment to see that its processes are gone."""
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return


def cpu_seconds(pids: Sequence[int]) -> float:
    """Add up the processor time of processes; one that has ended counts nothing."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])  # utime and stime, proc(5)
    return ticks / _TICKS


def family(pid: int) -> list[int]:
    """Return the siblings of a process with itself: of one that works for a server, all that do."""
    mother = _mother(pid)
    pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    return [one for one in pids if _mother(one) == mother]


def _mother(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def busy_seconds(cores: Sequence[int]) -> float:
    """Add up the time in which processors ran anything, by whomever."""
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in {f"cpu{core}" for core in cores}:
            # Up to the time that other machines on this one took.
            times = [int(field) for field in fields[:8]]
            ticks += sum(times) - sum(times[_IDLE])
    return ticks / _TICKS
