"""Inject every fault that may lose a record, and count the losses: ``python -m bench.audit.faults``.

Processes killed, power cut on paper, and the same cuts on a log that does not wait for the disk, which must lose
something or the cuts prove nothing. The counts go to ``bench/audit/results/faults.json``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench.audit.kills import kill
from bench.audit.powercut import play, record

__all__ = ["main"]

HISTORIES: Final = {"as shipped": "", "synchronous=NORMAL": "evidence", "values not synced": "private"}


def main() -> None:
    """Count, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "faults.json")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="carag-faults-") as scratch:
        found["kill -9"] = asdict(kill(Path(scratch, "killed"), options.rounds))
        print(json.dumps(found), flush=True)
        for name, broken in HISTORIES.items():
            history = record(Path(tempfile.mkdtemp(dir=scratch)), broken=broken)
            found[f"power cut, {name}"] = {
                "events": len(history.events),
                **asdict(play(history, options.cuts)),
            }
            print(json.dumps(found), flush=True)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
