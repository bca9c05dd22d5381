"""Measure the audit log, and pymerkle's SqliteTree for comparison: ``python -m bench.audit``.

Durable appends with 2 ms added to every sync, for 1, 8 and 64 clients; then a log of a million records. The figures
go to ``bench/audit/results/figures.json`` and, as a page, to ``bench/audit/RESULTS.md``. ``--records`` and
``--seconds`` make it shorter, for a look.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.audit.appends import SUBJECTS
from bench.audit.million import measured
from bench.audit.report import page
from bench.harness import child, parser, write
from tests.audit.log.disk import environment

CLIENTS: Final = (1, 8, 64)
SYNC_US: Final = 2000
HERE: Final = Path(__file__).parent


def appends(subject: str, clients: int, seconds: float, place: Path) -> dict[str, Any]:
    """Measure durable appends in a process on a slow disk."""
    directory = Path(tempfile.mkdtemp(prefix="carag-appends-", dir=place))
    count = directory.with_suffix(".syncs")
    try:
        slow = environment(directory, sync_us=SYNC_US, count=count)
        found = child("bench.audit.appends", subject, directory, clients, seconds, environment=slow)
        syncs = int.from_bytes(count.read_bytes(), sys.byteorder)
    finally:
        shutil.rmtree(directory)
        count.unlink(missing_ok=True)
    return {"clients": clients, **found, "syncs_an_append": syncs / found["appends_with_warm_up"]}


def _appends(rounds: int, seconds: float, place: Path) -> dict[str, list[dict[str, Any]]]:
    """Measure both in turn, and keep the best round of each."""
    best: dict[str, list[dict[str, Any]]] = {subject: [] for subject in SUBJECTS}
    for clients in CLIENTS:
        found = [{name: appends(name, clients, seconds, place) for name in SUBJECTS} for _ in range(rounds)]
        for subject, kept in best.items():
            kept.append(max((one[subject] for one in found), key=lambda one: float(one["appends_s"])))
            print(subject, json.dumps(kept[-1]), flush=True)
    return best


def _logs(records: int, place: Path, keep: Path | None) -> dict[str, dict[str, Any]]:
    found = {}
    for subject in SUBJECTS:
        directory = keep or Path(tempfile.mkdtemp(prefix="carag-million-", dir=place))
        (directory / subject).mkdir(parents=True, exist_ok=True)
        try:
            found[subject] = measured(subject, directory / subject, records)
        finally:
            if not keep:
                shutil.rmtree(directory)
        print(subject, json.dumps(found[subject]), flush=True)
    return found


def main() -> None:
    """Measure, keep and report."""
    arguments = parser("bench.audit", __doc__)
    arguments.add_argument("--records", type=int, default=1_000_000)
    arguments.add_argument("--seconds", type=float, default=8)
    arguments.add_argument(
        "--rounds", type=int, default=3, help="of which the best is kept, of either subject"
    )
    arguments.add_argument(
        "--place", type=Path, default=Path(tempfile.gettempdir()), help="a disk with 6 GB to spare"
    )
    arguments.add_argument(
        "--keep", type=Path, help="build the logs here, and use them again if they are here"
    )
    arguments.add_argument("--out", type=Path, default=HERE / "results" / "figures.json")
    arguments.add_argument(
        "--parts", default="appends,log", help="what to measure; the rest is kept as it was"
    )
    arguments.add_argument(
        "--only-page", action="store_true", help="write the page from the committed results"
    )
    options = arguments.parse_args()
    faults = json.loads((HERE / "results" / "faults.json").read_text())
    figures: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    if not options.only_page:
        figures |= {
            "when": datetime.now(UTC).isoformat(timespec="minutes"),
            "machine": f"{os.cpu_count()} CPUs, {platform.system()}, Python {platform.python_version()}, "
            f"SQLite {sqlite3.sqlite_version}, load {os.getloadavg()[0]:.1f} at the start",
            "sync_us": SYNC_US,
        }
        if "appends" in options.parts:
            figures["appends"] = _appends(options.rounds, options.seconds, options.place)
        if "log" in options.parts:
            figures["log"] = _logs(options.records, options.place, options.keep)
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    write(page(figures, faults), HERE / "RESULTS.md")


if __name__ == "__main__":
    main()
