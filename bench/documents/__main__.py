"""Measure what storing a document and opening a store cost beside embedder and index: ``python -m bench.documents``.

Each run is a process of its own, in turn by kind. Prints a report, and writes it to ``RESULTS.md`` and every run to
``results.json`` beside this file. Wants a machine with nothing else to do, 3 GB of disk, and half an hour, most of it
for the store of a million documents; ``--store DIR`` keeps that one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.documents.report import about, report

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
A_CALL: Final = 100_000
"""Documents of one call while the large store is built."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000, help="documents added in each run")
    parser.add_argument("--rows", type=int, default=1_000_000, help="documents of the store that is opened")
    parser.add_argument("--store", type=Path, help="where that store is kept; built there if it is missing")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    count, seed = given.documents, given.seed
    found: dict[str, Any] = {"about": about(given), "add": [], "open": []}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(given.rounds):
            for a_call in (count, max(1, count // 100)):
                home = Path(scratch) / f"{turn}-{a_call}"
                found["add"].append({"a_call": a_call, **_step("add", home, count, a_call, seed)})
        store = given.store or Path(scratch) / "large"
        if not store.exists():
            found["built"] = _step("add", store, given.rows, min(A_CALL, given.rows), seed)
        for _ in range(given.rounds):
            for step in ("open-cold", "open", "open"):
                found["open"].append({"step": step, **_step(step, store, seed)})
    found["load_end"] = os.getloadavg()[0]
    written = report(found)
    print(written)
    given.out.mkdir(exist_ok=True)
    (given.out / "results.json").write_text(
        json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    (given.out / "RESULTS.md").write_text(written, encoding="utf-8")


def _step(step: str, home: Path, *numbers: int) -> dict[str, float]:
    """Run one step of :mod:`bench.documents.measure` in a process of its own."""
    command = [sys.executable, "-m", "bench.documents.measure", step, str(home), *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    figures: dict[str, float] = json.loads(done.stdout)
    print(step, *numbers, done.stdout.decode().strip(), file=sys.stderr)
    return figures


if __name__ == "__main__":
    main()
