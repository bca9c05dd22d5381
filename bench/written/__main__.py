"""Measure which written sentences the guard lets out: ``CARAG_SHARED_DATA=DIR python -m bench.written``.

200 pairs of sentences about tables and clauses of real filings and circulars: a right one, and the same one with one
change of value, label, unit or period. None of the wrong ones may pass, and at most 10 of the right ones be refused.
Rules were tuned on one half of the documents alone. Writes ``RESULTS.md`` and ``results.json``, which has no text of
a document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from bench.harness import about, parser
from bench.written.drafts import CHANGES, pairs
from carag.generation.generator import Draft
from carag.generation.held import held

HERE: Final = Path(__file__).parent
HALVES: Final = ("tuned on", "held out")


def main() -> None:
    """Measure, print, write."""
    arguments = parser("bench.written", __doc__, data=True)
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    rows: list[dict[str, Any]] = []
    for number, pair in enumerate(pairs(given.data)):
        for kind, text in (("right", pair.right), ("wrong", pair.wrong)):
            found = held("", Draft(text, (0,)), [pair.passage])
            rows.append(
                {
                    "pair": number,
                    "chunk": pair.passage.chunk_id,
                    "source": pair.source,
                    "half": HALVES[pair.half],
                    "kind": kind,
                    "change": pair.change,
                    "passed": not found.left_out,
                    "why": [one.value for one in found.left_out],
                }
            )
    text = report(rows, about())
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "results.json").write_text(json.dumps(rows, indent=0) + "\n", "utf-8")
    (given.out / "RESULTS.md").write_text(text, "utf-8")
    print(text)


def report(rows: list[dict[str, Any]], run: dict[str, Any]) -> str:
    """Write the page of results."""
    lines = [
        "# Which written sentences leave?",
        "",
        f"`python -m bench.written`, {run['date']}. Pairs of sentences about real tables and clauses: one right, one "
        "with a single change. Rules were tuned on the first half of the documents.",
        "",
        "| half | source | right, refused | wrong, passed | "
        + " | ".join(f"passed: {one}" for one in CHANGES)
        + " |",
        "|---|---|---:|---:|" + "---:|" * len(CHANGES),
    ]
    for half in (*HALVES, "both"):
        for source in ("table", "prose", "both"):
            some = [
                one for one in rows if half in (one["half"], "both") and source in (one["source"], "both")
            ]
            right = [one for one in some if one["kind"] == "right"]
            wrong = [one for one in some if one["kind"] == "wrong"]
            cells = [_of([not one["passed"] for one in right]), _of([one["passed"] for one in wrong])]
            cells += [_of([one["passed"] for one in wrong if one["change"] == change]) for change in CHANGES]
            lines.append(f"| {half} | {source} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _of(counted: list[bool]) -> str:
    return f"{sum(counted)} of {len(counted)}"


if __name__ == "__main__":
    main()
