"""Read the rows that were kept of the questions on circulars, and judge each."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.circulars.gold import Asked, families, holds
from bench.circulars.selective import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "CELLS",
    "CHOSEN",
    "EMBEDDERS",
    "ERRORS",
    "KEPT",
    "OWN",
    "SCORES",
    "SPARE",
    "K",
    "Run",
    "gold_of",
    "judged",
    "read_rows",
    "read_run",
]

KEPT: Final = Path(__file__).parent / "report"
K: Final = 6
CELLS: Final = ("compliance", "analyst")
EMBEDDERS: Final = ("minilm", "wordllama")
OWN: Final = "fused-1+mmr-0.7-20"
ERRORS: Final = (Fraction(1, 20), Fraction(1, 10))
SPARE: Final = 0.01
"""What the mean over the splits may be above the promised error."""

SCORES: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "similarity": lambda row: float(row["nearest"]),
    "word share": lambda row: float(row["words"]),
    "fused score": lambda row: float(row["scores"][0]),
    "margin": lambda row: _margin(row),
    "mean of similarity, word share and margin": lambda row: (
        (row["nearest"] + row["words"] + _margin(row)) / 3
    ),
}
"""Scores that a gate could test before a generator is called."""
CHOSEN: Final = "mean of similarity, word share and margin"


def _margin(row: dict[str, Any]) -> float:
    first, second = (*row["scores"], 0.0)[:2]
    return float(first - second)


class Run(NamedTuple):
    """Everything that the page is made of."""

    questions: dict[str, Asked]
    family: dict[str, str]
    ids: list[str]
    """Of the circulars, in the order of their file."""
    ingest: dict[str, Any]
    rows: dict[str, dict[str, dict[str, Any]]]
    """By system and question."""


def read_run(kept: Path, questions: Sequence[Asked]) -> Run:
    """Read the rows that were kept."""
    ingest = json.loads((kept / "ingest.json").read_text("utf-8"))
    with gzip.open(kept / "rows.jsonl.gz", "rt", encoding="utf-8") as lines:
        return read_rows(lines, ingest, questions)


def read_rows(lines: Iterable[str], ingest: dict[str, Any], questions: Sequence[Asked]) -> Run:
    """Read rows, one a line, of these questions alone."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        rows.setdefault(row["system"], {})[row["id"]] = row
    return Run({one.id: one for one in questions}, families(questions), ingest["ids"], ingest, rows)


def gold_of(run: Run, row: dict[str, Any]) -> list[bool]:
    """Tell of each passage of a row whether it holds the clause."""
    gold = run.questions[row["id"]].gold
    return [holds((run.ids[at], start, end), gold) for at, start, end in row["top"]]


def judged(run: Run, row: dict[str, Any], score: Callable[[dict[str, Any]], float]) -> Row:
    """Return a row as gates and curves read it."""
    gold = gold_of(run, row)
    return Row(
        run.family[row["id"]],
        score(row),
        row["code"] == "ANSWERED",
        any(gold[at] for at in row["cited"]),
        any(gold[:K]),
    )
