"""Define the plans and vector types of an index, and the results and statistics of a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index._buffers import room
from carag.index._core import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from carag.index._core import CData

__all__ = [
    "DTYPE_CODES",
    "PLAN_CODES",
    "WHY_CODES",
    "DType",
    "Hits",
    "Plan",
    "SearchResult",
    "SearchRoom",
    "SearchStats",
    "Why",
]


class DType(StrEnum):
    """The type in which an index keeps vectors; answers are exact for the kept values."""

    FLOAT32 = "float32"
    """Full precision."""
    FLOAT16 = "float16"
    """Half the memory; similarities change by about 0.0005."""
    INT8 = "int8"
    """Eight bits per coordinate; similarities change by about 0.005."""


class Plan(StrEnum):
    """The way in which a query is answered."""

    AUTO = "auto"
    """Use the cheapest of exact, scan and graph, estimated from the exact number of admissible rows."""
    EXACT = "exact"
    """Score every admissible row and no other: the exact answer."""
    GRAPH = "graph"
    """Search the HNSW graph, testing words during traversal; falls back to exact if that is cheaper or needed."""
    SCAN = "scan"
    """Estimate every admissible row from one bit per coordinate, and score the likely nearest."""
    CERTIFIED = "certified"
    """The exact answer, without reading a vector of an inadmissible row."""


class Why(StrEnum):
    """Why a query was answered by the plan that it was."""

    ASKED = "asked"
    NOTHING = "nothing admissible"
    CHEAPEST = "cheapest"
    ALL = "most admissible rows are wanted"
    BUDGET = "the graph had spent what an exact answer costs"
    FILL = "too few rows were found"


DTYPE_CODES: Final = {
    DType.FLOAT32: lib.CARAG_FLOAT32,
    DType.FLOAT16: lib.CARAG_FLOAT16,
    DType.INT8: lib.CARAG_INT8,
}
PLAN_CODES: Final = {
    Plan.AUTO: lib.CARAG_PLAN_AUTO,
    Plan.EXACT: lib.CARAG_PLAN_EXACT,
    Plan.GRAPH: lib.CARAG_PLAN_GRAPH,
    Plan.SCAN: lib.CARAG_PLAN_SCAN,
    Plan.CERTIFIED: lib.CARAG_PLAN_CERTIFIED,
}
WHY_CODES: Final = {
    Why.ASKED: lib.CARAG_WHY_ASKED,
    Why.NOTHING: lib.CARAG_WHY_NOTHING,
    Why.CHEAPEST: lib.CARAG_WHY_CHEAPEST,
    Why.ALL: lib.CARAG_WHY_ALL,
    Why.BUDGET: lib.CARAG_WHY_BUDGET,
    Why.FILL: lib.CARAG_WHY_FILL,
}
_PLANS: Final = {code: plan for plan, code in PLAN_CODES.items()}
_WHYS: Final = {code: why for why, code in WHY_CODES.items()}
_SHOWN: Final = 3
"""Greatest number of hits that a repr shows."""
_FALLBACKS: Final = (lib.CARAG_WHY_ALL, lib.CARAG_WHY_BUDGET, lib.CARAG_WHY_FILL)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchStats:
    """The cost and the plans of a search; ``(nq,)`` means one value per query.

    Values are computed from the core's report on access: a search of a few microseconds has no time for it.
    """

    kernel: str
    """The kernel in use; all give the same bits."""
    _report: CData
    """A ``carag_results``, of which only the numbers are read: the arrays of its pointers may be freed."""
    _work: NDArray[np.int64]
    """(5, nq): numbers of rows found, estimated, scored and expanded; beam width."""
    _codes: NDArray[np.uint8]
    """(2, nq): plan, why"""

    @property
    def admissible(self) -> int:
        """Number of rows that the policy admits at ``as_of``: exact, counted before the search."""
        return int(self._report.admissible)

    @property
    def rows(self) -> int:
        """Number of live rows (not deleted) in the index."""
        return int(self._report.rows)

    @property
    def classes(self) -> int:
        """Number of admissible classes: distinct (word, terms) among the rows."""
        return int(self._report.classes)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan that gave each answer; never ``AUTO``."""
        return tuple(_PLANS[code] for code in self._codes[0].tolist())

    @property
    def whys(self) -> tuple[Why, ...]:
        """Why each answer has its plan."""
        return tuple(_WHYS[code] for code in self._codes[1].tolist())

    @property
    def fallbacks(self) -> NDArray[np.bool_]:
        """(nq,) whether a graph or an estimate fell back to a scan: over budget, too few rows, or all rows wanted."""
        return np.isin(self._codes[1], _FALLBACKS)

    @property
    def estimates(self) -> NDArray[np.int64]:
        """(nq,) number of rows estimated by one bit per coordinate."""
        return self._work[1, :]

    @property
    def distance_computations(self) -> NDArray[np.int64]:
        """(nq,) number of rows scored by their eight-bit code or their vector."""
        return self._work[2, :]

    @property
    def hops(self) -> NDArray[np.int64]:
        """(nq,) number of graph nodes expanded, that is, whose neighbours were visited."""
        return self._work[3, :]

    @property
    def ef(self) -> NDArray[np.int64]:
        """(nq,) widest beam of the graph search; 0 if there was none."""
        return self._work[4, :]

    @property
    def nanoseconds(self) -> dict[Plan, float]:
        """Predicted cost of one query in nanoseconds, under each plan that was considered."""
        predicted = self._report.nanoseconds
        return {plan: predicted[code] for plan, code in PLAN_CODES.items() if predicted[code] > 0.0}

    def explain(self, query: int = 0) -> str:
        """Explain in a few lines how one query was answered.

        Examples
        --------
        >>> from carag.index import Index
        >>> from carag.policy import Mask, policy_word
        >>> index = Index(2)
        >>> keys = index.add([[1, 0], [0, 1]], [policy_word(1), policy_word(2)])
        >>> print(index.search([1, 1], 5, Mask(required=1), plan="exact").stats.explain())
        exact: asked
        1 of 2 rows admissible, classes: 1
        0 rows estimated, 1 scored, 0 expanded in a beam of 0
        """
        estimated, scored, hops, ef = self._work[1:, query].tolist()
        lines = [
            f"{self.plans[query].value}: {self.whys[query].value}",
            f"{self.admissible:,} of {self.rows:,} rows admissible, classes: {self.classes:,}",
            f"{estimated:,} rows estimated, {scored:,} scored, {hops:,} expanded in a beam of {ef:,}",
        ]
        if costs := self.nanoseconds:
            plans = sorted(costs, key=costs.__getitem__)
            lines.append("predicted: " + ", ".join(f"{plan} {costs[plan] / 1e3:,.1f} µs" for plan in plans))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hits:
    """The rows found for one query, nearest first and without padding; iterates over pairs of key and similarity."""

    keys: NDArray[np.int64]
    similarities: NDArray[np.float32]

    def __len__(self) -> int:
        """Count the rows found."""
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.keys.tolist(), self.similarities.tolist(), strict=True)

    def __repr__(self) -> str:
        nearest = [f"{key}: {similarity:.3f}" for key, similarity in islice(self, _SHOWN)]
        return f"<Hits {', '.join(nearest) or 'none'}{', ...' if len(self) > _SHOWN else ''}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchResult:
    """The nearest admissible rows of each query, nearest first, ties by smaller key.

    Examples
    --------
    >>> from carag.index import Index
    >>> from carag.policy import Mask, policy_word
    >>> index = Index(2)
    >>> keys = index.add([[1, 0], [0, 1]], [policy_word("J_US"), policy_word("J_EU")])
    >>> result = index.search([[1, 1], [0, 1]], 5, Mask(forbidden="J_EU"))
    >>> result
    <SearchResult of 2 queries: 2 rows, 1 of 2 admissible>
    >>> for hits in result:
    ...     print(hits)
    <Hits 0: 0.707>
    <Hits 0: 0.000>
    """

    keys: NDArray[np.int64]
    """(nq, k); -1 beyond ``counts``."""
    similarities: NDArray[np.float32]
    """(nq, k) cosine; -inf beyond ``counts``."""
    counts: NDArray[np.int64]
    """(nq,) always ``min(k, admissible)``."""
    stats: SearchStats

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.counts)

    def __iter__(self) -> Iterator[Hits]:
        for keys, similarities, count in zip(self.keys, self.similarities, self.counts, strict=True):
            yield Hits(keys[:count], similarities[:count])

    def __repr__(self) -> str:
        return (
            f"<SearchResult of {len(self)} queries: {self.counts.sum()} rows, "
            f"{self.stats.admissible:,} of {self.stats.rows:,} admissible>"
        )


class SearchRoom:
    """Room for what the core finds for ``nq`` queries."""

    __slots__ = ("_codes", "_keys", "_similarities", "_work", "report")

    def __init__(self, nq: int, k: int) -> None:
        self._keys, self._similarities = np.empty((nq, k), np.int64), np.empty((nq, k), np.float32)
        self._work, self._codes = np.empty((5, nq), np.int64), np.empty((2, nq), np.uint8)
        tally, choice = room(self._work), room(self._codes)
        self.report = ffi.new(
            "carag_results *",
            (
                room(self._keys),
                room(self._similarities),
                *(tally, tally + nq, tally + 2 * nq, tally + 3 * nq, tally + 4 * nq),
                *(choice, choice + nq),
            ),
        )

    def result(self, kernel: str) -> SearchResult:
        """Read what was found, once the search is over."""
        stats = SearchStats(kernel, self.report, self._work, self._codes)
        return SearchResult(self._keys, self._similarities, self._work[0], stats)
