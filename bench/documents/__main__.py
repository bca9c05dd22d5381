"""Measure what storing a document and opening a store cost beside embedder and index: ``python -m bench.documents``.

Each run is a process of its own, in turn by kind. Prints a report, and writes it to ``RESULTS.md`` and every run to
``results.json`` beside this file. Wants a machine with nothing else to do, 3 GB of disk, and half an hour, most of it
for the store of a million documents; ``--store DIR`` keeps that one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.documents.corpus import DIM
from bench.documents.report import report
from bench.harness import about, child, parser

HERE: Final = Path(__file__).parent
_SETTINGS: Final = ("documents", "rows", "rounds", "seed")
A_CALL: Final = 100_000
"""Documents of one call while the large store is built."""


def main() -> None:
    """Measure, print, write."""
    arguments = parser("bench.documents", __doc__)
    arguments.add_argument("--documents", type=int, default=100_000, help="documents added in each run")
    arguments.add_argument(
        "--rows", type=int, default=1_000_000, help="documents of the store that is opened"
    )
    arguments.add_argument(
        "--store", type=Path, help="where that store is kept; built there if it is missing"
    )
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    count, seed = given.documents, given.seed
    found: dict[str, Any] = {
        "about": about(
            **{name: getattr(given, name) for name in _SETTINGS}, dim=DIM, sqlite=sqlite3.sqlite_version
        ),
        "add": [],
        "open": [],
    }
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
    figures = child("bench.documents.measure", step, home, *numbers)
    print(step, *numbers, figures, file=sys.stderr)
    return figures


if __name__ == "__main__":
    main()
