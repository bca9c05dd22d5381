"""Throughput at a recall, read off a sweep: interpolated between neighbours, never beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Point:
    """One effort of a sweep."""

    effort: int
    recall: float
    qps: float


def qps_at(points: Sequence[Point], recall: float) -> float | None:
    """Return the most queries a second at which a sweep reaches a recall, or None if it never does.

    Between two neighbouring efforts that enclose the recall, the logarithm of the throughput is linear in the
    recall. A point at or above the recall counts as it is. Effort 0 stands for an engine's own choice, which is
    no neighbour of any other.

    Examples
    --------
    >>> sweep = [Point(16, 0.90, 4000.0), Point(64, 1.00, 1000.0)]
    >>> round(qps_at(sweep, 0.95))
    2000
    >>> qps_at(sweep[:1], 0.95) is None
    True
    """
    reached = [point.qps for point in points if point.recall >= recall]
    sweep = sorted((point for point in points if point.effort), key=lambda point: point.effort)
    for low, high in pairwise(sweep):
        if low.recall < recall <= high.recall:
            part = (recall - low.recall) / (high.recall - low.recall)
            reached.append(math.exp((1 - part) * math.log(low.qps) + part * math.log(high.qps)))
    return max(reached, default=None)
