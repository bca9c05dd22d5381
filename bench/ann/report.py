"""Write the report, cell by cell, losses beside wins, and the section of docs/benchmarks.md made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.results import GOAL_P1, GOAL_RECALL, is_wide
from bench.ann.tax import VIEW_GOAL, tax_goal
from bench.harness import replaced, table
from carag.evaluation.report.svg import Dot, dots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.ann.results import CellResult, Results


_COMMAND: Final = "python -m bench.ann report --page docs/benchmarks.md"
_VARIANTS: Final = {
    "word": "A policy word",
    "session": "A word, an instant and a deny list of 1,000 entities",
    "audiences": "The 300 groups of a session, with 10,000 lists of groups that may see a row",
}
_DRAWN: Final = ("mixture-1m-128", "mixture-200k-384")
MET: Final = {True: "met", False: "**not met**", None: "-"}
"""What a table says of a goal; None: it was not measured."""


def report(results: Results) -> str:
    """Write the whole report as Markdown."""
    parts = [
        "# Filtered search, measured side by side",
        _how(results),
        *(_dataset(name, cells) for name, cells in results.cells.items()),
        *_others(results.others),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(results: Results) -> str:
    """Write the page's section, without its marks: the sets under each kind of policy, with AVX-512 if measured so."""
    wide = {
        cells[0].auto.set: cells for cells in results.cells.values() if is_wide(cells[0].machine["kernel"])
    }
    met = "; ".join(
        f"{name} ({cells[0].auto.rows:,} × {cells[0].auto.dim}) {sum(cell.met for cell in cells)} of {len(cells)}"
        for name, cells in results.cells.items()
    )
    return "\n\n".join(
        [
            _machine(results),
            'Queries a second of CARAG as it comes (`plan="auto"`, one thread), and in brackets how many times that '
            "of the best of all peers at a recall@10 of 0.99; bold where a goal is missed. *anti*: the policy "
            "closes the query's own neighbourhood; *corr*: it admits little else. A *session* asks with an "
            "instant and a deny list of 1,000 entities as well. With AVX-512:",
            _short_table(wide or results.cells),
            f"Goals met: {met}. [The report](../bench/ann/REPORT.md) has the cells of the other kernel too, the best "
            "peer of each cell, and the goals that are missed.",
        ]
    )


def replace_section(page: str, section: str) -> str:
    """Put a section between the two marks of a page."""
    return replaced(page, section, _COMMAND, "bench.ann")


def plot(results: Results) -> str:
    """Draw how many times the best peer's throughput CARAG has, by how few rows a policy word admits."""
    marks = [
        Dot(
            f"{cell.key.label} of {cell.auto.rows:,} × {cell.auto.dim}",
            cell.ratio(),
            note=f"{cell.auto.qps:,.0f} queries/s",
        )
        for name in _DRAWN
        for cell in results.cells.get(name, ())
        if (cell.key.variant, cell.key.correlation) == ("word", "neutral")
    ]
    return dots(
        "Throughput under a policy word, in times the best peer's at a recall of 0.99 (AVX-512)",
        marks,
        unit="times",
    )


# ---------------------------------------------------------------- parts


def _short_table(sets: dict[str, list[CellResult]]) -> str:
    columns = {
        f"{name}, {variant}": {cell.key.label: cell for cell in cells if cell.key.variant == variant}
        for name, cells in sets.items()
        for variant in dict.fromkeys(cell.key.variant for cell in cells)
    }
    keys = {cell.key for cells in columns.values() for cell in cells.values()}
    labels = dict.fromkeys(key.label for key in sorted(keys, key=lambda key: (key.closed, key.label)))
    return table(
        ["admissible", *columns],
        ([label, *(_short(cells.get(label)) for cells in columns.values())] for label in labels),
    )


def _machine(results: Results) -> str:
    about = results.machines[-1]
    cores = dict.fromkeys(
        f"{one['cpu']}, {one['processors']} processors, kernel {one['kernel']}" for one in results.machines
    )
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    seeds = sorted({cell.auto.seed for cells in results.cells.values() for cell in cells})
    commits = sorted({cell.auto.commit for cells in results.cells.values() for cell in cells})
    return (
        f"{'; '.join(cores)}; Python {about['python']}, "
        f"{versions}. Commit {', '.join(commits)}; seed {', '.join(map(str, seeds))}."
    )


def _how(results: Results) -> str:
    rounds = max(len(cell.auto.qps_rounds) for cells in results.cells.values() for cell in cells)
    return f"""{_machine(results)}

One query at a time, one thread, one core; engines take turns, and figures are medians of {rounds} rounds. What an
engine does with a policy (bitmaps, lists), and making the policy's own value, is inside the timed call. Recall@10 is
over min(10, admissible), against exact inner products in double precision; ties are accepted. A peer's throughput at a
recall is interpolated in its own sweep over efforts and never extrapolated. CARAG is one point, `plan="auto"` with no
tuning. *anti*: none of the query's 100 nearest rows is admissible (where too few queries have such a policy, at most a
tenth of what chance would give); *corr*: most of them are.

Only the best peer of each cell stands here. Every peer, plan and recall, with the rows behind them, is in this file at
tag `evidence-0.3`; so are the peers that were the fastest in no cell and are no longer measured (Qdrant, zvec, SVS,
USearch, Voyager, WardOwl, and FAISS's flat and RaBitQ indexes)."""


def _dataset(name: str, cells: list[CellResult]) -> str:
    first = cells[0].auto
    where = "{cpu}, kernel {kernel}, commit {commit}, load {load} at the start.".format(**cells[0].machine)
    missed = [f"{cell.key.variant} {cell.key.label} ({_why(cell)})" for cell in cells if not cell.met]
    goals = f"Goals met: {len(cells) - len(missed)} of {len(cells)}."
    parts = [
        f"## {name}: {first.rows:,} × {first.dim}",
        f"{where} {goals}" + (f" Missed: {'; '.join(missed)}." if missed else ""),
    ]
    for variant in dict.fromkeys(cell.key.variant for cell in cells):
        some = [cell for cell in cells if cell.key.variant == variant]
        parts += [f"### {_VARIANTS.get(variant, variant)}", _cells(some)]
        parts += [_every_engine(some)] if variant == "audiences" else []
    return "\n\n".join(parts)


def _why(cell: CellResult) -> str:
    row = cell.auto
    reasons = []
    if row.recall < GOAL_RECALL:
        reasons.append(f"recall {row.recall:.4f}")
    if row.recall_p1 < GOAL_P1:
        reasons.append(f"p1 recall {row.recall_p1:g}")
    if row.short or row.violations:
        reasons.append(f"{row.short} short, {row.violations} violations")
    best, ratio = cell.best_peer(GOAL_RECALL), cell.ratio()
    if best and ratio is not None and ratio < cell.goal:
        reasons.append(f"{ratio:.2f} × {best.engine}, goal {cell.goal:g} ×")
    return ", ".join(reasons)


def _cells(cells: list[CellResult]) -> str:
    def line(cell: CellResult) -> list[str]:
        row, best = cell.auto, cell.best_peer(GOAL_RECALL)
        return [
            cell.key.label,
            f"{row.admissible:,.0f}",
            f"**{row.qps:,.0f}**",
            f"{best.qps:,.0f} {best.engine}" if best else "none",
            _times(cell.ratio()),
            f"{cell.goal:g} ×",
            MET[cell.met],
            f"{row.recall:.4f}",
            f"{row.recall_p1:g}",
            *(f"{value:,.0f}" for value in (row.p50_us, row.p95_us, row.p99_us)),
            ", ".join(f"{plan} {count}" for plan, count in (row.plans or {}).items()),
            f"{row.short}, {row.violations}",
        ]

    head = [
        "admissible",
        "rows",
        "CARAG q/s",
        "best peer at 0.99",
        "ratio",
        "goal",
        "",
        "recall",
        "p1 recall",
    ]
    return table(
        [*head, "p50 µs", "p95 µs", "p99 µs", "questions by plan", "short, violations"], map(line, cells)
    )


def _every_engine(cells: list[CellResult]) -> str:
    """Show each engine at its cheapest effort with a recall of 0.99, or else at its best recall."""

    def line(cell: CellResult, engine: str) -> list[str]:
        rows = cell.of(engine)
        enough = [row for row in rows if row.recall >= GOAL_RECALL]
        row = min(enough, key=lambda row: row.p50_us) if enough else max(rows, key=lambda row: row.recall)
        return [
            cell.key.label,
            engine,
            f"{row.p50_us:,.0f}",
            _times(row.p50_us / cell.auto.p50_us),
            f"{row.recall:.4f}",
            str(row.n),
            f"{row.short}, {row.violations}",
        ]

    head = ["admissible", "engine", "p50 µs", "CARAG's", "recall", "questions", "short, violations"]
    return table(head, (line(cell, engine) for cell in cells for engine in cell.engines))


def _others(records: Sequence[dict[str, Any]]) -> list[str]:
    """Show builds, the policy tax, and indexes built from a stream."""
    of: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        of.setdefault(record["kind"], []).append(record)
    return [
        _recorded("Builds, taking turns", of.get("build", [])),
        _taxes(of.get("tax", [])),
        _recorded(
            "A pass over classes, under a policy that is met for the first time or kept",
            of.get("classes", []),
        ),
        _recorded("Built from a stream", of.get("large build", [])),
        _recorded("A file of many rows, mapped and searched", of.get("large", [])),
    ]


def _recorded(title: str, records: list[dict[str, Any]]) -> str:
    if not records:
        return ""
    columns = [column for column in records[0] if column not in ("kind", "seed", "commit")]
    lines = ([_plain(record.get(column)) for column in columns] for record in records)
    return f"## {title}\n\n" + table([name.replace("_", " ") for name in columns], lines)


def _taxes(records: list[dict[str, Any]]) -> str:
    """Show throughput under a policy, and with a view of it, over that of an index of the admissible rows alone."""
    if not records:
        return ""
    names = ("set", "share", "admissible", "n", "qps_under_policy", "recall_under_policy", "qps_rows_alone")
    lines = (
        [
            *(_plain(record[name]) for name in names),
            *_against(record["ratio"], tax_goal(record["share"])),
            *_against(record.get("ratio_with_view"), VIEW_GOAL),
        ]
        for record in records
    )
    head = ["set", "share", "rows", "questions", "under policy q/s", "recall", "rows alone q/s"]
    return "## Policy tax\n\n" + table([*head, "ratio", "goal", "", "ratio with a view", "goal", ""], lines)


# ---------------------------------------------------------------- cells of tables


def _short(cell: CellResult | None) -> str:
    if cell is None:
        return ""
    ratio = cell.ratio()
    times = f"{ratio:.1f} ×" if ratio is not None else "-"
    return f"{cell.auto.qps:,.0f} ({times if cell.met else f'**{times}**'})"


def _against(ratio: float | None, wanted: float) -> list[str]:
    return [_times(ratio), f"{wanted:g} ×", MET[None if ratio is None else ratio >= wanted]]


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} ×"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{np.round(value, 4):g}"
    return "never" if value is None else str(value)
