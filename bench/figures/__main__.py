"""Measure the table reader: ``python -m bench.figures --data DIR`` writes RESULTS.md.

``--split reported`` asks what was not looked at while it was made, and prints counts alone.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Final

from bench.commit import commit
from bench.figures.filings import filings
from bench.figures.tables import gated, ungated
from carag.evaluation.run_metadata import processor_name

_PAGE: Final = """\
# What the table reader finds

Written by `python -m bench.figures --split {split}`; do not edit. Commit {commit}, {cpu},
{seconds:.0f} s. Nothing is drawn at random, so there is no seed: the same data give the same figures. The reader and
its constants were made with the dev questions in view, so these flatter it; `--split reported` asks what was never
looked at.

## TAT-QA {file}: a question and its table

The best cell, whatever the gate says, of the questions whose answer is one number that a cell of their table prints
(type `span`, evidence in a table, one answer, a number and no bare year; signs and currencies aside).

| n | right cell | right row | none |
|---|---|---|---|
| {u.asked} | {cell:.1%} ({u.right_cell}) | {row:.1%} ({u.right_row}) | {u.none} |

What passes the gate, of all questions of the file, of any type. No question names a company, so the gate is given one.
Right is within ±0.5 % of the one answer or half a unit of its last digit, scale counted, sign not.

| n | answered | right of those answered |
|---|---|---|
| {g.asked} | {g.answered} | {right:.1%} ({g.right}) |

## FinanceBench, {split} questions

{asked} questions, of which {numeric} have a number as answer. Right is within ±0.5 %, or half a unit of the answer's
last digit, scale counted. Of the whole filing, several hundred chunks are given at once.

| passages | answered | right | wrong |
|---|---|---|---|
{ways}

Of {t.chunks:,} chunks of these filings with three rows of figures or more, {t.headless:,} have no year above their
first row; for {t.given:,} of them ({given:.0%}) the head rows are found in the document.
"""


def main() -> int:
    """Ask, print, and write the page of the development split."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("CARAG_SHARED_DATA"),
        required="CARAG_SHARED_DATA" not in os.environ,
    )
    parser.add_argument("--split", choices=("dev", "reported"), default="dev")
    parser.add_argument(
        "--show", action="store_true", help="print what is answered; of the development split alone"
    )
    given = parser.parse_args()
    show = given.show and given.split == "dev"

    began = time.monotonic()
    best, passed = ungated(given.data, given.split), gated(given.data, given.split)
    if show:
        for question, answer, figure in passed.wrong:
            print(f"TAT-QA: {question}\n  {answer}\n  False: {figure}\n")
    asked, numeric, counts, torn = filings(given.data, given.split, show=show)
    page = _PAGE.format(
        split=given.split,
        file="dev" if given.split == "dev" else "test",
        commit=commit(),
        cpu=processor_name(),
        seconds=time.monotonic() - began,
        u=best,
        cell=best.right_cell / best.asked,
        row=best.right_row / best.asked,
        g=passed,
        right=passed.right / max(passed.answered, 1),
        asked=asked,
        numeric=numeric,
        ways="\n".join(
            f"| {way} | {one.answered} | {one.right} | {one.answered - one.right} |"
            for way, one in counts.items()
        ),
        t=torn,
        given=torn.given / max(torn.headless, 1),
    )
    print(page)
    if given.split == "dev":
        (Path(__file__).parent / "RESULTS.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
