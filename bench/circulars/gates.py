"""Write what scores tell right from wrong answers on circulars, and what a gate before the generator promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.auc import area_under_curve
from bench.circulars.gold import is_held_out
from bench.circulars.kept import CELLS, CHOSEN, EMBEDDERS, ERRORS, OWN, SCORES, judged
from bench.circulars.selective import SPLITS, Row, measured_over, risk_coverage
from bench.embedders.measure import calibrate
from carag.policy import Profile
from carag.retrieval import calibrations_of
from carag.retrieval.confidence.shipped import Calibration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.circulars.kept import Run

__all__ = ["BEFORE", "calibrations", "curve", "gate", "promises", "rows_of", "scores", "shipped"]

SHOWN: Final = ("similarity", CHOSEN)
"""Scores of which splits are measured: what the engine's gate tests, and the one chosen."""
BEFORE: Final = {
    "BELOW_GATE": "below",
    "NOTHING_ABOUT_IT": "before",
    "TOO_FEW_WORDS": "before",
    "ASKED_BACK": "before",
    "NO_ADMISSIBLE_EVIDENCE": "before",
}
"""Codes of declines that come before the generator."""


def gate(run: Run) -> str:
    """Count the calls of the generator below a gate and above it."""
    lines = [
        "## The gate stands before the generator",
        "",
        "Asked again behind a gate at the median of all similarities, with a generator that counts its calls.",
        "",
        "| embedder | session | below the gate | calls | declined before it | calls | others | calls |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for embedder in EMBEDDERS:
        for cell in CELLS:
            groups = {name: [0, 0] for name in ("below", "before", "others")}
            for row in run.rows[f"gated {embedder} {cell}"].values():
                group = groups[BEFORE.get(row["code"], "others")]
                group[0] += 1
                group[1] += row["calls"]
            lines.append(
                f"| {embedder} | {cell} | {' | '.join(f'{count} | {calls}' for count, calls in groups.values())} |"
            )
    return "\n".join(lines)


def calibrations(run: Run) -> dict[str, tuple[Calibration, int]]:
    """Return, by embedder, what ``gate.toml`` of circulars is to say, and how many near misses it declines.

    In scope are the questions of analyst/research that a clause answers which that cell may use, and out of scope those
    on other subjects.
    """
    hidden = {*run.ingest["hidden"]["analyst"], *run.ingest["not stored"]}
    found = {}
    for embedder in EMBEDDERS:
        nearest: dict[str, list[float]] = {"on": [], "near": [], "off": []}
        for row in run.rows[f"carag {embedder} analyst {OWN}"].values():
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


def shipped(run: Run) -> str:
    """Write what the profile's gate was measured to decline."""
    near = sum(one.kind == "near" for one in run.questions.values())
    said = calibrations_of(Profile.open("circulars"))
    lines = [
        "## The threshold that the profile ships",
        "",
        "The highest multiple of 0.01 that declines at most 5 % of the questions of analyst/research that a clause",
        "answers which that cell may use; of all questions, and so measured on those that it was chosen by.",
        "",
        "| embedder | threshold | in scope, declined | off, declined | near, declined |",
        "|---|---|---|---|---|",
    ]
    for embedder, (one, declined) in calibrations(run).items():
        stale = "" if said.get(embedder) == one else " (`gate.toml` differs)"
        lines.append(
            f"| {embedder} | {one.threshold:.2f}{stale} | {one.in_scope_declined} of {one.in_scope} | "
            f"{one.out_of_scope_declined} of {one.out_of_scope} | {declined} of {near} |"
        )
    return "\n".join(lines)


def rows_of(
    run: Run, embedder: str, cell: str, score: str, *, half: bool | None = None, near: bool = True
) -> list[Row]:
    """Return rows of all questions, of one half (True: held out), or without those that nearly are answered."""
    return [
        judged(run, row, SCORES[score])
        for row in run.rows[f"carag {embedder} {cell} {OWN}"].values()
        if half in (None, is_held_out(run.family[row["id"]]))
        and (near or run.questions[row["id"]].kind != "near")
    ]


def scores(run: Run) -> str:
    """Compare the scores, on the development half and on the one held out."""
    lines = [
        "## Which score tells right from wrong",
        "",
        "Area under the ROC curve of the answers that cite the clause against the others (0.5 is a coin's), and",
        "against kinds of wrong answers on the development half; and the greatest share of the questions, in per",
        "cent, that can be answered with at most 5, 10, 20 and 30 % wrong if the threshold is read off the same",
        "questions. Margin is the fused score of the first passage minus the second's. All are known before the",
        "generator is called. compliance/surveil.",
    ]
    areas: dict[tuple[bool, str, str], float] = {}
    for embedder in EMBEDDERS:
        lines += [
            "",
            f"### {embedder}",
            "",
            "| score | development | against near | against off | against other clauses | answered | held out | "
            "answered, held out |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for score in SCORES:
            cells = []
            for half in (False, True):
                rows = [row for row in rows_of(run, embedder, "compliance", score, half=half) if row.answered]
                wrong = [row for row in rows if not row.right]
                right = [row.score for row in rows if row.right]
                area = area_under_curve(right, [row.score for row in wrong])
                cells.append(str(area))
                areas[half, embedder, score] = area.value
                if not half:
                    for kind in ("near", "off", "on"):
                        ids = {run.family[one.id] for one in run.questions.values() if one.kind == kind}
                        of_kind = [row.score for row in wrong if row.family in ids]
                        cells.append(f"{area_under_curve(right, of_kind).value:.3f}")
                cells.append(_reach(rows_of(run, embedder, "compliance", score, half=half)))
            lines.append(f"| {score} | {' | '.join(cells)} |")
    return "\n".join(
        [
            *lines,
            "",
            "Chosen on the development half: the mean of similarity, word share and margin, which has the greatest",
            "area with both embedders. Questions on other subjects are told apart by every score but the margin. Near",
            "misses hardly are by any: they ask for what the clauses that are there do not say.",
            "On the half held out the greatest area is that of "
            + " and ".join(
                f"the {max(SCORES, key=lambda one: areas[True, embedder, one])} with {embedder}"
                for embedder in EMBEDDERS
            )
            + ".",
        ]
    )


def _reach(rows: Sequence[Row]) -> str:
    points = _points(rows)
    return ", ".join(
        f"{100 * max((covered for covered, risk in points if risk <= most), default=0.0):.0f}"
        for most in (0.05, 0.1, 0.2, 0.3)
    )


def _points(rows: Sequence[Row]) -> list[tuple[float, float]]:
    answered = [row for row in rows if row.answered]
    return risk_coverage([row.score for row in answered], [row.right for row in answered], len(rows))


def promises(run: Run) -> str:
    """Choose thresholds on half of the questions by a promised error, and measure the other half."""
    lines = [
        "## What a promised error gives",
        "",
        f"{SPLITS} random splits by family into two halves. The threshold is the least at or above which (wrong + 1) /",
        "(answered + 1) of the one half is at most the promised error; the other half is measured. Without such a",
        "threshold nothing is answered. Wrong is the mean over the splits with answers, whose calibrating half was",
        "mostly a lucky one where there are few; beside it, “…”, the mean over all splits, one without answers being",
        "0 %. Coverage (of all questions) and over-refusal (declined, of the questions whose clause is among the first",
        "six) are means over all splits. The engine's gate tests the similarity; the mean is tested here alone.",
        "",
        "| embedder | session | score | questions | promised | thresholds | wrong of answered | … | coverage | "
        "over-refusal |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for embedder, cell, score, name, error, found in _measured(run):
        wrong = "nothing answered" if found.wrong is None else f"{100 * found.wrong:.1f} %"
        lines.append(
            f"| {embedder} | {cell} | {score} | {name} | {100 * error} % | {found.found} | {wrong} | "
            f"{100 * (found.wrong or 0.0) * (found.found - found.empty) / SPLITS:.1f} % | "
            f"{100 * found.coverage:.1f} % | {100 * found.over_refusal:.1f} % |"
        )
    return "\n".join(lines)


def _measured(run: Run) -> Iterator[tuple[Any, ...]]:
    for embedder in EMBEDDERS:
        for cell in CELLS:
            for score in SHOWN if cell == CELLS[0] else (CHOSEN,):
                sets: dict[str, dict[str, bool]] = {
                    "all": {},
                    "held out": {"half": True},
                    "without near": {"near": False},
                }
                for name, chosen in sets.items():
                    if cell == CELLS[0] or name == "all":
                        rows = rows_of(run, embedder, cell, score, **chosen)
                        for error in ERRORS:
                            yield embedder, cell, score, name, error, measured_over(rows, error)


def curve(run: Run) -> str:
    """Tell the share of wrong answers by the share answered."""
    steps = np.arange(1, 11) / 10
    lines = [
        "## Risk and coverage",
        "",
        "Share of wrong answers, in per cent, where the tenth, two tenths, … of all questions are answered, those of",
        "the greatest score first; empty where fewer are answered without any gate. compliance/surveil.",
        "",
        f"| embedder | score | {' | '.join(f'{100 * step:.0f} %' for step in steps)} |",
        f"|---|---|{'---|' * len(steps)}",
    ]
    for embedder in EMBEDDERS:
        for score in SCORES:
            points = _points(rows_of(run, embedder, "compliance", score))
            cells = []
            for step in steps:
                reached = [risk for covered, risk in points if covered >= step]
                cells.append(f"{100 * reached[0]:.1f}" if reached else "")
            lines.append(f"| {embedder} | {score} | {' | '.join(cells)} |")
    return "\n".join(lines)
