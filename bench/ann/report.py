"""Write the report, cell by cell, losses beside wins, and the section of docs/benchmarks.md made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.ann.claims import NATIVE, PLANNER, behind_best_plan, claims, graph_over_native
from bench.ann.others import MET, others, table, times
from bench.ann.results import CARAG, GOAL_P1, GOAL_RECALL, is_wide, width
from bench.ann.run import NEAR, QUOTED
from bench.sections import replaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.ann.results import CellResult, Results
    from bench.ann.run import Row

__all__ = ["BEGIN", "END", "replace_section", "report", "summary"]

BEGIN: Final = (
    "<!-- bench.ann: this section is written by `python -m bench.ann report --page docs/benchmarks.md` -->"
)
END: Final = "<!-- /bench.ann -->"
_WIDE: Final = "With AVX-512:"
"""The heading of the table of all kernels that use it."""
_VARIANTS: Final = {
    "word": "A policy word",
    "session": "A word, an instant and a deny list of 1,000 entities",
}


def report(results: Results, *, plots: Sequence[str] = ()) -> str:
    """Write the whole report as Markdown; `plots` are paths of pictures to show, relative to it."""
    parts = [
        "# Filtered search, measured side by side",
        _how(results),
        *(_dataset(name, cells) for name, cells in results.cells.items()),
        _builds(results),
        others(results.others),
        _left_out(results),
        *(f"![recall against throughput]({plot})" for plot in plots),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(results: Results) -> str:
    """Write the page's section, without its markers: for each kernel a table of the sets under each kind of policy."""
    kernels: dict[str, dict[str, list[CellResult]]] = {}
    for cells in results.cells.values():
        kernel = cells[0].machine["kernel"]
        heading = _WIDE if is_wide(kernel) else f"Kernel {kernel}:"
        kernels.setdefault(heading, {})[cells[0].auto.set] = cells
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
            "instant and a deny list of 1,000 entities besides.",
            *(
                part
                for heading in sorted(kernels, key=lambda heading: heading != _WIDE)
                for part in (heading, _short_table(kernels[heading]))
            ),
            f"Goals met: {met}. Which are not, and by how much, beside every peer, plan and recall: "
            "[the report](../bench/ann/REPORT.md).",
        ]
    )


def replace_section(page: str, section: str) -> str:
    """Put a section between the two markers of a page.

    Raises
    ------
    InvalidArgument
        If the markers are not both there, once, in order.
    """
    return replaced(page, BEGIN, END, section)


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
    made = (
        "and so is the making of the policy's own value."
        if results.machines[-1]["settings"].get("policy_inside")
        else "the policy's own value, which holds nothing of the rows, is made once a session, and a table says how "
        "long that takes."
    )
    return f"""{_machine(results)}

One query at a time, one thread, one core; engines take turns, and figures are medians of {rounds} rounds. What an
engine does with a policy (bitmaps, lists) is inside the timed call; {made}
Recall@10 is over min(10, admissible), against exact inner products in double precision, ties accepted. A peer's
throughput at a recall is interpolated in its own sweep over efforts and never extrapolated; CARAG is one point,
`plan="auto"` with no tuning. *neutral*: the policy is independent of the query; *anti*: none of the query's 100
nearest rows is admissible (where too few queries have such a policy, at most a tenth of what chance would give);
*corr*: most of them are. Engines that the scout finds more than {NEAR:g} × behind at both recalls are not measured
again, and carry fewer questions."""


def _dataset(name: str, cells: list[CellResult]) -> str:
    first = cells[0].auto
    machine = cells[0].machine
    where = "{cpu}, kernel {kernel}, commit {commit}, load {load} at the start.".format(**machine)
    parts = [f"## {name}: {first.rows:,} × {first.dim}", where, _verdict(cells)]
    for variant in dict.fromkeys(cell.key.variant for cell in cells):
        some = [cell for cell in cells if cell.key.variant == variant]
        parts += [
            f"### {_VARIANTS.get(variant, variant)}",
            _goals(some),
            "Where the time goes, and how the answers spread:",
            _quality(some),
            "Every plan on its own:",
            _plans(some),
            *(part for recall in QUOTED for part in _peers(some, recall)),
        ]
    return "\n\n".join(parts)


def _verdict(cells: list[CellResult]) -> str:
    lines = (
        [claim.wanted, claim.found, MET[claim.holds], "; ".join(claim.missed)] for claim in claims(cells)
    )
    parts = [table(["wanted", "found", "", "not in"], lines)]
    missed = [f"{cell.key.variant} {cell.key.label} ({_why(cell)})" for cell in cells if not cell.met]
    if missed:
        parts.append(f"Goals of cells that are not met: {'; '.join(missed)}.")
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


def _goals(cells: list[CellResult]) -> str:
    def line(cell: CellResult) -> list[str]:
        row, best = cell.auto, cell.best_peer(GOAL_RECALL)
        same = cell.best_peer(GOAL_RECALL, like=width(row))
        return [
            cell.key.label,
            f"{row.admissible:,.0f}",
            f"**{row.qps:,.0f}**",
            f"{row.recall:.4f}",
            _named(best),
            times(cell.ratio()),
            f"{_named(same)} ({width(row)})" if same else f"none ({width(row)})",
            times(cell.ratio(like=width(row))),
            f"{cell.goal:g} ×",
            MET[cell.met],
        ]

    head = ["admissible", "rows", "CARAG q/s", "recall", "best peer at 0.99", "ratio"]
    return table([*head, "best of the same code width", "ratio", "goal", ""], map(line, cells))


def _quality(cells: list[CellResult]) -> str:
    def line(cell: CellResult) -> list[str]:
        row = cell.auto
        return [
            cell.key.label,
            f"{row.n:,}",
            ", ".join(f"{plan} {count}" for plan, count in (row.plans or {}).items()),
            *(f"{value:,.0f}" for value in (row.p50_us, row.p95_us, row.p99_us)),
            f"{row.recall_p1:g}",
            f"{row.recall_zero}",
            f"{row.short}",
            f"{row.violations}",
            f"{row.policy_us:,.0f}",
        ]

    head = ["admissible", "questions", "answered by", "p50 µs", "p95 µs", "p99 µs", "p1 recall", "recall 0"]
    return table([*head, "short", "violations", "policy made, µs"], map(line, cells))


def _plans(cells: list[CellResult]) -> str:
    """Show ``auto`` against the best single plan, and the graph against hnswlib's."""
    names = list(
        dict.fromkeys(
            name
            for cell in cells
            for name in cell.engines
            if name.startswith(f"{CARAG}-") and "[" not in name
        )
    )

    def line(cell: CellResult) -> list[str]:
        single = {name: cell.of(name)[0] for name in names if cell.of(name)}
        behind = behind_best_plan(cell)
        native = cell.reached(NATIVE, GOAL_RECALL)
        graph = single.get(f"{CARAG}-graph")
        return [
            cell.key.label,
            *(_point(single.get(name)) for name in names),
            "-" if behind is None else f"{behind:.2f} ×{'' if behind <= PLANNER else ' **behind**'}",
            f"{native:,.0f}" if native else "never",
            times(graph_over_native(cell)),
            f"{100 * (graph.fallbacks or 0) / graph.n:.0f} %" if graph else "-",
        ]

    head = ["admissible", *(f"{name} q/s (recall)" for name in names), "best single plan over auto"]
    return table([*head, f"{NATIVE} at 0.99", "graph over it", "graph fell back"], map(line, cells))


def _peers(cells: list[CellResult], recall: float) -> list[str]:
    names = list(
        dict.fromkeys(name for cell in cells for name in cell.engines if name.split("[")[0] != CARAG)
    )

    def line(cell: CellResult) -> list[str]:
        return [cell.key.label, *(_at(cell, name, recall) for name in names)]

    return [
        f"Queries a second at recall {recall:g}, every engine (*never*: no effort reaches it; in italics: by the scout "
        "alone):",
        table(["admissible", *names], map(line, cells)),
    ]


def _at(cell: CellResult, name: str, recall: float) -> str:
    rows = cell.of(name)
    if not rows:
        return "-"
    qps = cell.reached(name, recall)
    is_scout = rows[0].phase == "scout"
    if qps is None:
        stopped = rows[-1].stopped
        text = f"never: {max(row.recall for row in rows):.2f}{' (given up)' if stopped else ''}"
    else:
        text = f"{qps:,.0f}"
    return f"*{text}*" if is_scout else text


def _builds(results: Results) -> str:
    lines = []
    for name, cells in results.cells.items():
        seen: dict[str, Row] = {}
        for cell in cells:
            for row in cell.rows:
                seen.setdefault(row.engine, row)
        lines += [
            [name, engine, f"{row.build_seconds:,.1f}", str(row.build_threads), f"{row.bytes_per_row:,.0f}"]
            for engine, row in seen.items()
            if not engine.startswith(f"{CARAG}-")
        ]
    head = ["set", "engine", "build, processor s", "threads", "bytes a row"]
    return "## Build and size\n\n" + table(head, lines)


def _left_out(results: Results) -> str:
    lines = [[record["set"], record["engine"], record["reason"]] for record in results.left_out]
    return "## Left out\n\n" + table(["set", "engine", "reason"], lines) if lines else ""


# ---------------------------------------------------------------- cells of tables


def _short(cell: CellResult | None) -> str:
    if cell is None:
        return ""
    ratio = cell.ratio()
    times = f"{ratio:.1f} ×" if ratio is not None else "-"
    return f"{cell.auto.qps:,.0f} ({times if cell.met else f'**{times}**'})"


def _named(reached: Any) -> str:
    return f"{reached.qps:,.0f} {reached.engine}" if reached else "none"


def _point(row: Row | None) -> str:
    return f"{row.qps:,.0f} ({row.recall:.3f})" if row else "-"
