"""Measure the labels: ``python -m bench.labels audit``.

Reads the directory named by ``CARAG_SHARED_DATA``, prints the report and writes it to ``AUDIT.md`` beside this
file. Ends with 1 where a judged passage is no longer found.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bench.labels.audit_report import report
from bench.labels.compare import compare, label_audited
from bench.labels.second_reading import read_explanations
from bench.labels.table import read_table
from carag.policy import PolicyTable

_HERE = Path(__file__).parent


def main() -> int:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.labels", description=__doc__)
    parser.add_argument("what", choices=["audit"], help="audit: the hand-audited passages against the labels")
    parser.add_argument("--table", type=Path, default=_HERE / "audited.csv")
    parser.add_argument("--out", type=Path, default=_HERE / "AUDIT.md")
    arguments = parser.parse_args()
    if not (shared := os.environ.get("CARAG_SHARED_DATA")):
        print("set CARAG_SHARED_DATA to the directory with edgar/", file=sys.stderr)
        return 64
    labelled = label_audited(read_table(arguments.table), Path(shared) / "edgar")
    table = PolicyTable.shipped()
    written = report(compare(labelled, table.cells), labelled, read_explanations(_HERE / "explained.csv"))
    print(written)
    arguments.out.write_text(written, encoding="utf-8")
    return 1 if labelled.lost else 0


if __name__ == "__main__":
    sys.exit(main())
