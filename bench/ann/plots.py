"""Pictures of a run: recall against throughput in every cell, and throughput against the admissible share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from bench.ann.engine import optional
from bench.ann.results import CARAG, GOAL_RECALL

if TYPE_CHECKING:
    from pathlib import Path

    from bench.ann.results import CellResult, Results

__all__ = ["draw"]

_COLUMNS: Final = 4
_CORRELATIONS: Final = ("neutral", "anti", "corr")


def draw(results: Results, home: Path) -> list[Path]:
    """Draw two pictures for every data set and variant; return their paths.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    optional("matplotlib").use("Agg")
    home.mkdir(parents=True, exist_ok=True)
    made = []
    for name, cells in results.cells.items():
        for variant in dict.fromkeys(cell.key.variant for cell in cells):
            some = [cell for cell in cells if cell.key.variant == variant]
            made += [
                _sweeps(some, name, home / f"{name}-{variant}-sweeps.png"),
                _shares(some, name, home / f"{name}-{variant}-shares.png"),
            ]
    return made


def _colours(cells: list[CellResult]) -> dict[str, Any]:
    names = list(dict.fromkeys(engine for cell in cells for engine in cell.engines))
    peers = [name for name in names if not name.startswith(CARAG)]
    palette = optional("matplotlib").colormaps["tab20"].colors
    colours: dict[str, Any] = {name: palette[2 + at % 18] for at, name in enumerate(peers)}
    return colours | {CARAG: "black", f"{CARAG}-graph": "dimgrey"}


def _sweeps(cells: list[CellResult], name: str, path: Path) -> Path:
    plt = optional("matplotlib.pyplot")
    colours = _colours(cells)
    lines = -(-len(cells) // _COLUMNS)
    figure, axes = plt.subplots(lines, _COLUMNS, figsize=(4 * _COLUMNS, 3 * lines), squeeze=False)
    for cell, axis in zip(cells, axes.flat, strict=False):
        for engine, colour in colours.items():
            rows = sorted((row for row in cell.of(engine) if row.effort), key=lambda row: row.effort)
            single = [row for row in cell.of(engine) if not row.effort]
            axis.plot([r.recall for r in rows], [r.qps for r in rows], ".-", color=colour, lw=1, ms=3)
            mark = "*" if engine == CARAG else "o"
            axis.plot([r.recall for r in single], [r.qps for r in single], mark, color=colour, label=engine)
        axis.set(title=cell.key.label, yscale="log", xlim=(0.8, 1.005))
        axis.grid(visible=True, alpha=0.3)
        axis.axvline(GOAL_RECALL, color="grey", lw=0.5)
    for axis in axes.flat[len(cells) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=7, fontsize=8)
    figure.suptitle(f"{name}: queries a second against recall@10, one thread")
    figure.tight_layout(rect=(0, 0.05, 1, 0.97))
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return path


def _shares(cells: list[CellResult], name: str, path: Path) -> Path:
    plt = optional("matplotlib.pyplot")
    colours = _colours(cells)
    figure, axes = plt.subplots(1, len(_CORRELATIONS), figsize=(17, 5), sharey=True, layout="constrained")
    for correlation, axis in zip(_CORRELATIONS, axes, strict=True):
        some = [cell for cell in cells if cell.key.correlation == correlation]
        for engine, colour in colours.items():
            found = [
                (cell.auto.admissible, cell.reached(engine, GOAL_RECALL)) for cell in some if cell.of(engine)
            ]
            points = [(max(rows, 0.5), qps or math.nan) for rows, qps in found]
            style = {"lw": 2.5, "marker": "*"} if engine == CARAG else {"lw": 1, "marker": "."}
            axis.plot(*zip(*points, strict=True), color=colour, label=engine, **style) if points else None
        axis.set(title=correlation, xscale="log", yscale="log", xlabel="admissible rows")
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("queries a second at recall 0.99")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.suptitle(f"{name}: one thread")
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return path
