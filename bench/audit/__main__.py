"""Measure the audit log, and pymerkle's SqliteTree for comparison: ``python -m bench.audit``.

Durable appends with 2 ms added to every sync, for 1, 8 and 64 clients; then a log of a million records. The figures
go to ``bench/audit/results/figures.json`` and, as a page, to ``bench/audit/RESULTS.md``. ``--records`` and
``--seconds`` make it shorter, for a look.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.audit.appends import SUBJECTS
from bench.audit.million import measured
from bench.audit.report import page
from tests.audit.log.disk import ROOT, environment

CLIENTS: Final = (1, 8, 64)
SYNC_US: Final = 2000
HERE: Final = Path(__file__).parent
_QUIET: Final = 0.8


def appends(subject: str, clients: int, seconds: float, place: Path) -> dict[str, Any]:
    """Measure durable appends in a process on a slow disk."""
    directory = Path(tempfile.mkdtemp(prefix="carag-appends-", dir=place))
    count = directory.with_suffix(".syncs")
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "bench.audit.appends",
                subject,
                str(directory),
                str(clients),
                str(seconds),
            ],
            check=True,
            cwd=ROOT,
            env=environment(directory, sync_us=SYNC_US, count=count),
            stdout=subprocess.PIPE,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        syncs = int.from_bytes(count.read_bytes(), sys.byteorder)
    finally:
        shutil.rmtree(directory)
        count.unlink(missing_ok=True)
    return {"clients": clients, **found, "syncs_an_append": syncs / found["appends_with_warm_up"]}


def quiet(patience: float) -> float:
    """Wait for a moment when others leave this machine alone, at most so many seconds; return the idle share seen."""
    until, idle = time.monotonic() + patience, _idle()
    while idle < _QUIET and time.monotonic() < until:
        idle = _idle()
    return idle


def _idle(seconds: float = 0.5) -> float:
    def ticks() -> tuple[int, int]:
        numbers = [int(number) for number in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return numbers[3] + numbers[4], sum(numbers)

    idle, every = ticks()
    time.sleep(seconds)
    idle_then, every_then = ticks()
    return (idle_then - idle) / max(1, every_then - every)


def main() -> None:
    """Measure, keep and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument(
        "--rounds", type=int, default=3, help="the best of so many is kept, of either subject"
    )
    parser.add_argument(
        "--place", type=Path, default=Path(tempfile.gettempdir()), help="a disk with 6 GB to spare"
    )
    parser.add_argument(
        "--patience", type=float, default=0, help="seconds to wait for a quiet moment, each time"
    )
    parser.add_argument("--keep", type=Path, help="build the logs here, and use them again if they are here")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "figures.json")
    parser.add_argument("--page", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument("--parts", default="appends,log", help="what to measure; the rest is kept as it was")
    parser.add_argument(
        "--only-page", action="store_true", help="write the page of the committed results again"
    )
    options = parser.parse_args()
    faults = json.loads((HERE / "results" / "faults.json").read_text())
    if options.only_page:
        options.page.write_text(page(json.loads(options.out.read_text()), faults))
        return
    parts = options.parts.split(",")
    figures: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    figures |= {
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": f"{os.cpu_count()} CPUs, {platform.system()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        "sync_us": SYNC_US,
    }
    if "appends" in parts:
        figures["idle"], figures["appends"] = [], {subject: [] for subject in SUBJECTS}
        for clients in CLIENTS:
            rounds = []
            for _ in range(options.rounds):
                figures["idle"].append(quiet(options.patience))
                rounds.append(
                    {
                        subject: appends(subject, clients, options.seconds, options.place)
                        for subject in SUBJECTS
                    }
                )
            for subject in SUBJECTS:
                best = max((one[subject] for one in rounds), key=lambda found: float(found["appends_s"]))
                figures["appends"][subject].append(best)
                print(subject, json.dumps(best), flush=True)
    if "log" in parts:
        figures["log"] = {}
        for subject in SUBJECTS:
            directory = options.keep or Path(tempfile.mkdtemp(prefix="carag-million-", dir=options.place))
            (directory / subject).mkdir(parents=True, exist_ok=True)
            try:
                figures["log"][subject] = measured(
                    subject, directory / subject, options.records, before=lambda: quiet(options.patience)
                )
            finally:
                if not options.keep:
                    shutil.rmtree(directory)
            print(subject, json.dumps(figures["log"][subject]), flush=True)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1) + "\n")
    options.page.write_text(page(figures, faults))


if __name__ == "__main__":
    main()
