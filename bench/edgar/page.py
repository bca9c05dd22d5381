"""Write the section on the SEC EDGAR benchmark, from its committed reports: ``python -m bench.edgar.page``."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.sections import replaced
from carag.evaluation.row import SYSTEMS

__all__ = ["BEGIN", "END", "section"]

HERE: Final = Path(__file__).parent
BEGIN: Final = "<!-- bench.edgar: this section is written by `python -m bench.edgar.page` -->"
END: Final = "<!-- /bench.edgar -->"

_COLUMNS: Final = (
    ("CVR by query", "everything", "cvr_query"),
    ("and in prompt, log or cache", "everything", "cvr_touch"),
    ("canaries disclosed", "everything", "odr_canary"),
    ("existence disclosed", "everything", "existence"),
    ("admissible recall@8", "real", "admissible_recall"),
    ("F1, answerable", "real", "f1_answerable"),
    ("over-refusal", "real", "over_refusal"),
    ("under-refusal", "real", "under_refusal"),
)


def section(report: dict[str, Any], full: dict[str, Any], where: str) -> str:
    """Write the section.

    Parameters
    ----------
    report, full : dict
        At the paper's size and of all filings, as ``report.json`` holds them.
    where : str
        The directory that holds both, as the page links to it.
    """
    first, *others = report["models"]
    cells = _cells(first)
    run, every = report["run"], cells["everything"]
    trials, violating = (sum(one[name] for one in run["trials"]) for name in ("pairs", "violating"))
    worlds = run["worlds"]
    lines = [
        f"{run['chunks']:,} chunks of {run['filings']:,} real filings; {every['pairs']:,} (question, session) pairs "
        f"about {every['filers']} filers, adversaries among them; twelve systems with the same models "
        f"({first['embedder']}, {first['generator']}). In brackets 95 % intervals, bootstrapped by filer and question.",
        "",
        f"Besides, {trials:,} randomised (query, policy) pairs at the level of retrieval, {violating} violations; and "
        f"{worlds['asked']:,} pairs asked in {worlds['worlds']} stores rebuilt without what the session may not see, "
        f"{worlds['differing']} with another answer. [The report]({where}/paper/report.md) has every measure, stratum "
        "and difference, the paper's table beside ours, and what each figure rests on. Made by `carag bench edgar "
        "--data DIR --model local --out OUT`; again from its rows, to the last byte, by `carag bench edgar --from ROWS "
        "--out OUT`.",
        "",
        f"| system | {' | '.join(title for title, _, _ in _COLUMNS)} | retrieval p95, ms |",
        "|---" * (len(_COLUMNS) + 2) + "|",
    ]
    for system in [name for name in SYSTEMS if name in every["systems"]]:
        found = [_figure(cells[scope]["systems"][system][measure]) for _, scope, measure in _COLUMNS]
        p95 = first["latency_ms"][system]["retrieve"]["p95"]["ms"]
        lines.append(f"| {system} | {' | '.join(found)} | {p95:.2f} |")
    missed = [one for one in first["targets"] if one["state"] == "missed"]
    met = sum(one["state"] == "met" for one in first["targets"])
    lines += [
        "",
        f"Of {len(first['targets'])} goals set before, {met} are met.{' Missed:' if missed else ''}",
        "",
    ]
    lines += [f"- {one['statement']}: by {one['missed_by']:.3g}." for one in missed]
    for other in others:
        real = _cells(other)["real"]
        f1 = "; ".join(f"{name} {_figure(got['f1_answerable'])}" for name, got in real["systems"].items())
        lines += ["", f"With {other['generator']}, {real['pairs']} pairs: F1 on answerable questions: {f1}."]
    return "\n".join([*lines, "", _at_full_size(full, where)])


def _at_full_size(full: dict[str, Any], where: str) -> str:
    run, model = full["run"], full["models"][0]
    every, real = (_cells(model)[scope] for scope in ("everything", "real"))
    p95 = {system: f"{got['retrieve']['p95']['ms']:.2f}" for system, got in model["latency_ms"].items()}
    shown = {
        system: "; ".join(
            f"{title} {_figure(cell['systems'][system][measure])}"
            for cell, title, measure in (
                (every, "CVR by query", "cvr_query"),
                (every, "canaries disclosed", "odr_canary"),
                (real, "F1, answerable,", "f1_answerable"),
            )
        )
        for system in ("vanilla", "oracle", "carag-certified")
    }
    states = Counter(one["state"] for one in model["targets"])
    missed = "; ".join(one["statement"] for one in model["targets"] if one["state"] == "missed")
    return (
        f"[At full size]({where}/full/report.md), {run['chunks']:,} chunks of {run['filings']:,} filings of "
        f"{run['filers']:,} filers, {every['pairs']:,} pairs, {model['embedder']}: "
        + ". ".join(f"{system}: {figures}" for system, figures in shown.items())
        + f". Retrieval p95 in ms: vanilla {p95['vanilla']}, carag-auto {p95['carag-auto']}, carag-certified "
        f"{p95['carag-certified']}. {states['met']} goals are met, {states['not measured']} not measured, "
        f"{states['missed']} missed: {missed}."
    )


def _cells(model: dict[str, Any]) -> dict[str, Any]:
    return {cell["scope"]: cell for cell in model["cells"] if not cell["dimension"]}


def _figure(figure: dict[str, Any]) -> str:
    if "value" not in figure:
        return "not measured"
    if figure["numerator"] == 0:
        return f"0 of {figure['denominator']:,}"
    value = f"{100 * figure['value']:.1f} %"
    if figure["low"] is None or figure["numerator"] == figure["denominator"]:
        return value
    return f"{value} ({100 * figure['low']:.1f} .. {100 * figure['high']:.1f})"


def main() -> None:
    """Write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=HERE.parents[1] / "docs" / "benchmarks.md")
    given = parser.parse_args()
    paper, full = [json.loads((HERE / run / "report.json").read_text("utf-8")) for run in ("paper", "full")]
    made = section(paper, full, "../bench/edgar")
    given.page.write_text(replaced(given.page.read_text("utf-8"), BEGIN, END, made), encoding="utf-8")


if __name__ == "__main__":
    main()
