"""Replay questions on real filings: ``python -m bench.replay --queries 10000``; 1 if an answer changed.

Reads ``edgar/`` in the directory named by ``CARAG_SHARED_DATA``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from bench.replay.replay import read_edgar, replay, say


def main() -> int:
    """Run, print, and fail on any difference."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--filings", type=int, help="number of filings to use; all by default")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not (shared := os.environ.get("CARAG_SHARED_DATA")):
        print("set CARAG_SHARED_DATA to the directory with edgar/", file=sys.stderr)
        return 64
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    lines, questions = read_edgar(Path(shared, "edgar"), filings=arguments.filings, seed=arguments.seed)
    say(f"{len(lines)} filings read")
    report = replay(lines, questions, queries=arguments.queries, seed=arguments.seed)
    print(report)
    print(f"{'commit':16} {commit.stdout.strip()}")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
