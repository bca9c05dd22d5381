"""Report what a gate before the generator does to the questions on circulars: ``python -m bench.circulars.gates``.

Writes ``REPORT.md`` from the rows in ``report/``, which hold ids, offsets, scores and outcomes, and no word of a
circular. With ``--ask WORK`` every question is asked again first, which takes long; what was asked is kept in the
directory WORK part by part, so that a run that was stopped goes on from there.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.circulars.asking import EMBEDDERS, ask_all
from bench.circulars.gold import Asked, families, holds, is_held_out, read_questions
from bench.circulars.selective import SPLITS, Row, measured_over, share_interval
from bench.embedders.measure import calibrate
from bench.harness import parser, table, write
from carag.policy import Profile
from carag.retrieval import calibrations_of
from carag.retrieval.confidence.shipped import Calibration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


PAGE: Final = Path(__file__).with_name("REPORT.md")
KEPT: Final = Path(__file__).with_name("report")
K: Final = 6
CELLS: Final = ("compliance", "analyst")
ERRORS: Final = (Fraction(1, 20), Fraction(1, 10))

_PAGE: Final = """\
# The questions on circulars: answered, declined, wrong

Written by `python -m bench.circulars.gates` from the rows in `report/`; change the command, not this page. What other
rankers, and chunks as LangChain cuts them, find of the same questions is in this file at tag `evidence-0.3`.

{count} questions on the Reserve Bank of India's circulars and directions: {on} that a clause answers, {near} on the
subject that nothing here answers, {off} on other subjects. A language model wrote questions and clauses by reading; no
person has reviewed them. Each question is asked once, of the circulars as they stand, through `Engine.ask` with the
profile of circulars and the default generator, which quotes up to three of eight passages. The session
compliance/surveil sees replaced circulars too: the questions are about the texts, whatever is in force.
analyst/research does not see them.

A passage holds the clause if they share half of the clause's characters or half of the passage's; a twin of the clause
in another circular counts. An answer is wrong if no passage that it cites holds the clause; so every answer to a
question that nothing here answers is wrong.

Questions whose clauses or twins share a circular form a family; a question that nothing answers is a family of its own.
Splits and intervals (95 %, in brackets) are by family. By the SHA-256 of the family's name {development} questions are
the development half; the other {held} are held out.

## Answers without a gate

“Not found”: the clause is not among the first six passages; “another quoted”: it is, and other clauses are quoted. The
last two columns are about the answers that cite the clause: whether a cited passage that holds it also holds a fact,
and whether the quoted sentences do.

{answers}

## The threshold that the profile ships

The highest multiple of 0.01 that declines at most 5 % of the questions of analyst/research that are answered by a
clause which that cell may use. It was chosen and measured on the same questions.

{shipped}

## What a promised error gives

{splits} random splits by family into two halves. The threshold is the lowest at or above which (wrong + 1) /
(answered + 1) of one half is at most the promised error; the other half is measured. Without such a threshold nothing
is answered. *Wrong* is the mean over the splits with answers; *over all*, the mean over all splits, where one without
answers counts 0 %. Coverage (of all questions) and over-refusal (declined, of the questions whose clause is among the
first six) are means over all splits. The score is the similarity, which the engine's gate tests; the session is
compliance/surveil.

{promises}
"""


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
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    with gzip.open(kept / "rows.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            rows.setdefault(row["system"], {})[row["id"]] = row
    return Run({one.id: one for one in questions}, families(questions), ingest["ids"], ingest, rows)


def gold_of(run: Run, row: dict[str, Any]) -> list[bool]:
    """Tell of each passage of a row whether it holds the clause."""
    gold = run.questions[row["id"]].gold
    return [holds((run.ids[at], start, end), gold) for at, start, end in row["top"]]


def judged(run: Run, row: dict[str, Any]) -> Row:
    """Return a row as a gate and its judge see it."""
    gold = gold_of(run, row)
    return Row(
        run.family[row["id"]],
        row["nearest"],
        row["code"] == "ANSWERED",
        any(gold[at] for at in row["cited"]),
        any(gold[:K]),
    )


def page(run: Run) -> str:
    """Write the page."""
    kinds = Counter(one.kind for one in run.questions.values())
    held = sum(is_held_out(family) for family in run.family.values())
    return _PAGE.format(
        count=len(run.questions),
        **kinds,
        development=len(run.questions) - held,
        held=held,
        answers=_answers(run),
        shipped=_shipped(run),
        splits=SPLITS,
        promises=_promises(run),
    )


def _answers(run: Run) -> str:
    head = ("embedder", "session", "answered", "right", "not found", "another quoted", "near answered")
    more = ("off answered", "declined", "cited clause holds the fact", "the quote holds it")
    return table([*head, *more], _answered(run))


def _answered(run: Run) -> Iterator[list[object]]:
    for embedder in EMBEDDERS:
        for cell in CELLS:
            came: Counter[str] = Counter()
            holding: dict[str, list[bool]] = {}
            saying: dict[str, list[bool]] = {}
            for row in run.rows[f"carag {embedder} {cell}"].values():
                if row["code"] != "ANSWERED":
                    came[row["code"]] += 1
                    continue
                gold, kind, family = gold_of(run, row), run.questions[row["id"]].kind, run.family[row["id"]]
                came["answered"] += 1
                if any(gold[at] for at in row["cited"]):
                    came["right"] += 1
                    cited = any(gold[at] and bool(row["facts"][at]) for at in row["cited"])
                    holding.setdefault(family, []).append(cited)
                    saying.setdefault(family, []).append(bool(row["said"]))
                else:
                    came[kind if kind != "on" else "another" if any(gold[:K]) else "missed"] += 1
            declined = ", ".join(f"{code} {came[code]}" for code in sorted(came) if code.isupper())
            figures = [came[name] for name in ("answered", "right", "missed", "another", "near", "off")]
            yield [embedder, cell, *figures, declined, _share(holding), _share(saying)]


def _share(values: Mapping[str, Sequence[bool]]) -> str:
    share, low, high = share_interval(values)
    return f"{100 * share:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def calibrations(run: Run) -> dict[str, tuple[Calibration, int]]:
    """Return, by embedder, what ``gate.toml`` of circulars is to say, and how many near misses it declines.

    In scope are the questions of analyst/research that are answered by a clause which that cell may use; out of scope
    are those on other subjects.
    """
    hidden = {*run.ingest["hidden"]["analyst"], *run.ingest["not stored"]}
    found = {}
    for embedder in EMBEDDERS:
        nearest: dict[str, list[float]] = {"on": [], "near": [], "off": []}
        for row in run.rows[f"carag {embedder} analyst"].values():
            asked = run.questions[row["id"]]
            if asked.kind != "on" or any(circular not in hidden for circular, _, _ in asked.gold):
                nearest[asked.kind].append(row["nearest"])
        on, near, off = (np.array(nearest[kind]) for kind in ("on", "near", "off"))
        measured = calibrate(on, [off, near])
        said = Calibration(
            threshold=measured.threshold,
            measured_on="RBI circulars",
            calibrated=True,
            in_scope=len(on),
            in_scope_declined=measured.in_scope_declined,
            out_of_scope=len(off),
            out_of_scope_declined=measured.out_of_scope_declined[0],
        )
        found[embedder] = said, measured.out_of_scope_declined[1]
    return found


def _shipped(run: Run) -> str:
    near = sum(one.kind == "near" for one in run.questions.values())
    said = calibrations_of(Profile.open("circulars"))
    return table(
        ["embedder", "threshold", "in scope, declined", "off, declined", "near, declined"],
        (
            [
                embedder,
                f"{one.threshold:.2f}{'' if said.get(embedder) == one else ' (`gate.toml` differs)'}",
                f"{one.in_scope_declined} of {one.in_scope}",
                f"{one.out_of_scope_declined} of {one.out_of_scope}",
                f"{declined} of {near}",
            ]
            for embedder, (one, declined) in calibrations(run).items()
        ),
    )


def _promises(run: Run) -> str:
    lines = []
    for embedder in EMBEDDERS:
        for name, only_held_out in (("all", False), ("held out", True)):
            rows = [
                judged(run, row)
                for row in run.rows[f"carag {embedder} compliance"].values()
                if is_held_out(run.family[row["id"]]) or not only_held_out
            ]
            for error in ERRORS:
                found = measured_over(rows, error)
                over_all = (found.wrong or 0.0) * (found.found - found.empty) / SPLITS
                wrong = "nothing answered" if found.wrong is None else f"{100 * found.wrong:.1f} %"
                shares = [f"{100 * one:.1f} %" for one in (over_all, found.coverage, found.over_refusal)]
                lines.append([embedder, name, f"{100 * error} %", found.found, wrong, *shares])
    head = [
        "embedder",
        "questions",
        "promised",
        "thresholds",
        "wrong",
        "over all",
        "coverage",
        "over-refusal",
    ]
    return table(head, lines)


def main() -> None:
    """Ask again if wanted, and write the page."""
    arguments = parser("bench.circulars.gates", __doc__)
    arguments.add_argument(
        "--ask", type=Path, metavar="WORK", help="ask every question of which it holds no row"
    )
    arguments.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    given = arguments.parse_args()
    if given.ask:
        if given.data is None:
            arguments.error(
                "no data: set CARAG_SHARED_DATA, or name with --data what holds rbi/circulars.jsonl.gz"
            )
        ask_all(Path(given.data), read_questions(), KEPT, given.ask)
    write(page(read_run(KEPT, read_questions())), PAGE)


if __name__ == "__main__":
    main()
