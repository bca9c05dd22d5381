"""Compute percentiles of latency by nearest rank, each with the distribution-free interval of its rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.evaluation.row import STAGES, system_order
from carag.evaluation.statistics.estimate import NotMeasured, rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from carag.evaluation.row import Row


PERCENTILES: Final = (50, 95, 99)
_Z: Final = 1.959964
"""Quantile of the standard normal distribution at 0.975: 95 % lies between plus and minus this."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile in milliseconds.

    The interval is the values at the ranks ``n q ± 1.96 sqrt(n q (1 - q))``; an end is None if there are too few rows.
    """

    ms: float
    low: float | None
    high: float | None
    rows: int


def percentile(times: Sequence[float], percent: int) -> Percentile | NotMeasured:
    """Return the smallest time that at least `percent` per cent of the times do not exceed."""
    if not times:
        return NotMeasured("no row has this time")
    ordered, share = sorted(times), percent / 100
    reach = _Z * math.sqrt(len(ordered) * share * (1 - share))
    below, above = math.floor(len(ordered) * share - reach), math.ceil(len(ordered) * share + reach) + 1
    return Percentile(
        ms=rounded(ordered[-(-len(ordered) * percent // 100) - 1]),
        low=rounded(ordered[below - 1]) if below >= 1 else None,
        high=rounded(ordered[above - 1]) if above <= len(ordered) else None,
        rows=len(ordered),
    )


def latencies(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, Percentile | NotMeasured]]]:
    """Return percentiles by system, stage and ``p50``, ``p95``, ``p99``, over the rows that hold the time."""
    times: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of = times.setdefault(row.system, {stage: [] for stage in STAGES})
        for stage in STAGES:
            if (ms := row.latency_ms[stage]) is not None:
                of[stage].append(ms)
    return {
        system: {
            stage: {f"p{percent}": percentile(times[system][stage], percent) for percent in PERCENTILES}
            for stage in STAGES
        }
        for system in sorted(times, key=system_order)
    }
