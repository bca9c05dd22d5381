"""What a search returns: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Plan", "SearchResult", "SearchStats"]


class Plan(StrEnum):
    """How a query is, or was, answered."""

    AUTO = "auto"
    """Ask for the cheaper of the two below, chosen from the exact number of admissible rows."""
    EXACT = "exact"
    """Score every admissible row and no other."""
    GRAPH = "graph"
    """Walk the HNSW graph, testing words on the way; becomes exact when that is cheaper or needed."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchStats:
    """What a search cost, and how it ran; ``(nq,)`` means one value a query."""

    admissible: int
    """Rows the policy admits at ``as_of``: exact, counted before the search."""
    rows: int
    """Live rows (not deleted) in the index."""
    plans: tuple[Plan, ...]
    """The plan that made each answer: ``EXACT`` or ``GRAPH``."""
    distance_computations: NDArray[np.int64]
    """(nq,) vectors scored."""
    hops: NDArray[np.int64]
    """(nq,) rows whose neighbours were looked at in the graph."""
    ef: NDArray[np.int64]
    """(nq,) widest beam the graph search used; 0 without one."""
    fallbacks: NDArray[np.bool_]
    """(nq,) whether a graph search ran out of budget or rows and became the exact scan."""
    kernel: str
    """The distance kernel in use; all give the same bits."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The nearest admissible rows of each query, nearest first, ties by smaller key."""

    keys: NDArray[np.int64]
    """(nq, k); -1 beyond ``counts``."""
    similarities: NDArray[np.float32]
    """(nq, k) cosine; -inf beyond ``counts``."""
    counts: NDArray[np.int64]
    """(nq,) always ``min(k, admissible)``."""
    stats: SearchStats
