"""What is claimed of a data set as a whole, and whether it holds: one function a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.ann.results import CARAG, GOAL_RECALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.ann.results import CellKey, CellResult

__all__ = ["Claim", "behind_best_plan", "claims", "graph_over_native"]

NATIVE: Final = "hnswlib-native"
UNFILTERED: Final = 1.5
"""Times hnswlib's throughput that the graph alone is to have where everything is admissible."""
WORST: Final = 2.0
"""Times the exact plan's p99 that the p99 of ``auto`` may be."""
PLANNER: Final = 1.2
"""How far behind the best single plan ``auto`` may be, ..."""
PLANNED: Final = 0.95
"""... in this part of the cells."""
EMPTY_US: Final = 12.0
"""Median microseconds in which a policy is made and found to admit nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and what was found."""

    wanted: str
    found: str
    holds: bool | None
    """None: nothing that it speaks of was measured."""
    missed: tuple[str, ...] = ()
    """Cells where it does not hold."""


def claims(cells: Sequence[CellResult]) -> list[Claim]:
    """Judge every claim on the cells of one data set."""
    return [judge(cells) for judge in _CLAIMS]


def graph_over_native(cell: CellResult, *, is_swept: bool = False) -> float | None:
    """Divide the throughput of the graph alone by hnswlib's at recall 0.99; one that falls short of it has none.

    Of the width to which the index was tuned; or swept, of the one that just reaches that recall, as hnswlib's is.
    """
    graph, native = cell.of(f"{CARAG}-graph"), cell.reached(NATIVE, GOAL_RECALL)
    if not graph or not native:
        return None
    if is_swept:
        return (cell.reached(f"{CARAG}-graph", GOAL_RECALL) or 0.0) / native
    return graph[0].qps / native if graph[0].recall >= GOAL_RECALL else 0.0


def behind_best_plan(cell: CellResult) -> float | None:
    """Divide the throughput of the best single plan at recall 0.99 by that of ``auto``."""
    rows = [cell.of(name)[0] for name in cell.engines if name.startswith(f"{CARAG}-") and "[" not in name]
    right = [row.qps for row in rows if row.recall >= GOAL_RECALL and not row.engine.endswith("-alone")]
    return max(right) / cell.auto.qps if right else None


# ---------------------------------------------------------------- the claims


def _goals_met(cells: Sequence[CellResult]) -> Claim:
    missed = _names(cell.key for cell in cells if not cell.met)
    return Claim(
        "every cell meets its goal", f"{len(cells) - len(missed)} of {len(cells)}", not missed, missed
    )


def _never_behind(cells: Sequence[CellResult]) -> Claim:
    missed = _names(cell.key for cell in cells if (ratio := cell.ratio()) is not None and ratio < 1)
    return Claim("no cell below 1 ×", f"{len(missed)} of {len(cells)} are", not missed, missed)


def _graph_unfiltered(cells: Sequence[CellResult], *, is_swept: bool = False) -> Claim:
    found = {
        cell.key: ratio
        for cell in cells
        if (cell.key.share, cell.key.variant) == (1.0, "word")
        and (ratio := graph_over_native(cell, is_swept=is_swept)) is not None
    }
    said = ", ".join(f"{ratio:.2f} ×" for ratio in found.values())
    missed = _names(key for key, ratio in found.items() if ratio < UNFILTERED)
    width = "its width swept" if is_swept else "as tuned"
    return _judged(f"`graph` unfiltered, {width}, ≥ {UNFILTERED:g} × {NATIVE}", said, len(found), missed)


def _graph_swept(cells: Sequence[CellResult]) -> Claim:
    return _graph_unfiltered(cells, is_swept=True)


def _graph_never_slower(cells: Sequence[CellResult]) -> Claim:
    found = {cell.key: ratio for cell in cells if (ratio := graph_over_native(cell)) is not None}
    missed = _names(key for key, ratio in found.items() if ratio < 1)
    said = f"{len(missed)} of {len(found)} are"
    return _judged(f"`graph` at no cell slower than {NATIVE}", said, len(found), missed)


def _graph_finds_some(cells: Sequence[CellResult]) -> Claim:
    lost = {cell.key: graph[0].recall_zero for cell in cells if (graph := cell.of(f"{CARAG}-graph"))}
    missed = _names(key for key, questions in lost.items() if questions)
    return _judged("`graph` answers no question with recall 0", f"{sum(lost.values()):,}", len(lost), missed)


def _worst_question(cells: Sequence[CellResult]) -> Claim:
    over = {
        cell.key: cell.auto.p99_us / exact[0].p99_us for cell in cells if (exact := cell.of(f"{CARAG}-exact"))
    }
    missed = _names(key for key, times in over.items() if times > WORST)
    said = f"at most {max(over.values(), default=0):.2f} ×"
    return _judged(f"p99 of `auto` ≤ {WORST:g} × that of `exact`", said, len(over), missed)


def _planner(cells: Sequence[CellResult]) -> Claim:
    behind = {cell.key: times for cell in cells if (times := behind_best_plan(cell)) is not None}
    missed = _names(key for key, times in behind.items() if times > PLANNER)
    part = 1 - len(missed) / max(1, len(behind))
    claim = f"`auto` within {PLANNER:g} × of the best single plan in {100 * PLANNED:g} % of cells"
    return Claim(claim, f"{100 * part:.0f} %", part >= PLANNED if behind else None, missed)


def _empty_policy(cells: Sequence[CellResult]) -> Claim:
    empty = [cell for cell in cells if (cell.key.share, cell.key.variant) == (0.0, "word")]
    took = {cell.key: cell.auto.p50_us for cell in empty}
    missed = _names(key for key, micros in took.items() if micros > EMPTY_US)
    said = ", ".join(f"{micros:g} µs" for micros in took.values())
    return _judged(f"a policy that admits nothing in ≤ {EMPTY_US:g} µs", said, len(took), missed)


_CLAIMS: Final = (
    *(_goals_met, _never_behind, _graph_unfiltered, _graph_swept, _graph_never_slower, _graph_finds_some),
    *(_worst_question, _planner, _empty_policy),
)


def _judged(wanted: str, found: str, judged: int, missed: tuple[str, ...]) -> Claim:
    return Claim(wanted, found, not missed, missed) if judged else Claim(wanted, "not measured", None)


def _names(keys: Iterable[CellKey]) -> tuple[str, ...]:
    return tuple(f"{key.variant} {key.label}" for key in keys)
