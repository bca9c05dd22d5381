"""Define the plans and vector types of an index, and the results and statistics of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from carag.errors import InvalidArgument
from carag.index._core import ffi, lib
from carag.index._status import new_fault
from carag.index.hidden import HiddenRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from carag.index._core import CData


class DType(StrEnum):
    """The type in which an index stores vectors; answers are exact for the stored values."""

    FLOAT32 = "float32"
    """Full precision."""
    FLOAT16 = "float16"
    """Half the memory; similarities change by about 0.0005."""
    INT8 = "int8"
    """Eight bits per coordinate; similarities change by about 0.005."""


class Plan(StrEnum):
    """How a query is answered."""

    AUTO = "auto"
    """The cheaper of exact and scan, or the graph if rows that a scan finds near the query show it to be cheaper."""
    EXACT = "exact"
    """Score every admissible row and no other row: the exact answer."""
    GRAPH = "graph"
    """Search the HNSW graph, testing words during traversal; fall back to exact if that is cheaper or needed."""
    SCAN = "scan"
    """Estimate every admissible row from one bit per coordinate, and score those that are likely to be nearest."""
    CERTIFIED = "certified"
    """Give the exact answer without reading the vector of an inadmissible row."""


class Why(StrEnum):
    """Why a query was answered by its plan."""

    ASKED = "asked"
    NOTHING = "nothing admissible"
    CHEAPEST = "cheapest"
    ALL = "most admissible rows are wanted"
    BUDGET = "a walk over the graph was given up"
    FILL = "too few rows were found"
    NEAR = "by how many rows near the query are admissible"


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
    Why.NEAR: lib.CARAG_WHY_NEAR,
}
_PLANS: Final = {code: plan for plan, code in PLAN_CODES.items()}
_WHYS: Final = {code: why for why, code in WHY_CODES.items()}
_SHOWN: Final = 3
"""Greatest number of hits that a repr shows."""
_FALLBACKS: Final = (lib.CARAG_WHY_ALL, lib.CARAG_WHY_BUDGET, lib.CARAG_WHY_FILL)
_FEW: Final = 64
"""Greatest number of rows wanted by one query for which memory is kept between searches."""
_KEPT: Final = 16
"""Greatest number of such blocks of memory ("rooms") kept for each number of rows."""

_Written: TypeAlias = "tuple[bytearray, int, int, str]"
"""The core's output in one block (a ``carag_results`` and its arrays), the number of queries, the number of rows that
each wants, and the kernel. The block holds, in order: the report, of which only the numbers are read, because its
pointers may refer to other memory; (5, nq) int64 rows found, estimated, scored and expanded, and beam width; (nq, k)
int64 keys; (nq, k) float32 similarities; and (2, nq) uint8 plan and why."""
_BYTES: Final = ffi.typeof("uint8_t[]")
_POINTER: Final = ffi.typeof("carag_results *")
_REPORT: Final = ffi.sizeof("carag_results")
_TALLIES: Final = 5
_CHOICES: Final = 2


def _tallies(written: _Written) -> NDArray[np.int64]:
    memory, queries, _, _ = written
    return np.ndarray((_TALLIES, queries), np.int64, memory, _REPORT)


def _keys(written: _Written) -> NDArray[np.int64]:
    memory, queries, k, _ = written
    return np.ndarray((queries, k), np.int64, memory, _REPORT + 8 * _TALLIES * queries)


def _similarities(written: _Written) -> NDArray[np.float32]:
    memory, queries, k, _ = written
    return np.ndarray((queries, k), np.float32, memory, _REPORT + 8 * queries * (_TALLIES + k))


def _choices(written: _Written) -> NDArray[np.uint8]:
    memory, queries, k, _ = written
    return np.ndarray((_CHOICES, queries), np.uint8, memory, _REPORT + queries * (8 * _TALLIES + 12 * k))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchStats:
    """The cost and the plans of a search; ``(nq,)`` means one value per query. Values are decoded on access."""

    kernel: str
    """The kernel used; all kernels give the same bits."""
    _written: _Written

    @property
    def _report(self) -> CData:
        return ffi.from_buffer(_POINTER, self._written[0])

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
    def over_view(self) -> bool:
        """Whether a materialised view of the policy answered: an index of the admissible rows alone."""
        return bool(self._report.materialised)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan that gave each answer; never ``AUTO``."""
        return tuple(_PLANS[code] for code in _choices(self._written)[0].tolist())

    @property
    def whys(self) -> tuple[Why, ...]:
        """Why each answer was given by its plan."""
        return tuple(_WHYS[code] for code in _choices(self._written)[1].tolist())

    @property
    def fallbacks(self) -> NDArray[np.bool_]:
        """(nq,) whether a graph search or an estimate fell back to a scan: over budget, too few, or all rows wanted."""
        return np.isin(_choices(self._written)[1], _FALLBACKS)

    @property
    def estimates(self) -> NDArray[np.int64]:
        """(nq,) number of rows estimated by one bit per coordinate; for a scan, the admissible ones among them."""
        return _tallies(self._written)[1, :]

    @property
    def distance_computations(self) -> NDArray[np.int64]:
        """(nq,) number of rows scored by their eight-bit code or their vector."""
        return _tallies(self._written)[2, :]

    @property
    def hops(self) -> NDArray[np.int64]:
        """(nq,) number of graph nodes expanded, that is, whose neighbours were visited."""
        return _tallies(self._written)[3, :]

    @property
    def ef(self) -> NDArray[np.int64]:
        """(nq,) widest beam of the graph search; 0 if there was none."""
        return _tallies(self._written)[4, :]

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
        estimated, scored, hops, ef = _tallies(self._written)[1:, query].tolist()
        lines = [
            f"{self.plans[query].value}{' over a view' if self.over_view else ''}: {self.whys[query].value}",
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
    _written: _Written | None = field(init=False)
    _beside: Beside | None = field(init=False)

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Decode a field when it is first read, since most results are never read in full."""
            if name in ("_written", "_beside"):
                return None  # a result made by hand, or a search without hidden rows
            make = _FIELDS.get(name)
            if make is None or self._written is None:
                raise AttributeError(f"a SearchResult has no {name!r}")
            made = make(self._written)
            object.__setattr__(self, name, made)
            return made

    @property
    def wider(self) -> SearchResult:
        """What the wider policy admits, refused or not."""
        return self._found_beside().found

    @property
    def hidden(self) -> HiddenRows:
        """The rows that the wider policy admits and the search's own policy refuses."""
        found, words, refused = self._found_beside()
        return HiddenRows.among(found.keys, found.similarities, words, refused)

    def _found_beside(self) -> Beside:
        if self._beside is None:
            raise InvalidArgument(
                "this search did not look for hidden rows; pass also_hidden, the number wanted, to search()"
            )
        return self._beside

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


class Beside(NamedTuple):
    """The rows found under the wider policy."""

    found: SearchResult
    words: NDArray[np.uint32]
    refused: NDArray[np.uint8]
    """1 for those that the search's own policy did not admit."""


_FIELDS: Final[dict[str, Callable[[_Written], object]]] = {
    "keys": _keys,
    "similarities": _similarities,
    "counts": lambda written: _tallies(written)[0],
    "stats": lambda written: SearchStats(written[-1], written),
}


class SearchRoom:
    """Memory for what the core writes; rooms for one query and few rows are reused, by one search at a time."""

    __slots__ = ("_k", "_lent", "_memory", "_queries", "fault", "report")

    def __init__(self, queries: int, k: int) -> None:
        self._queries, self._k = queries, k
        self._memory = bytearray(_REPORT + queries * (_TALLIES * 8 + k * (8 + 4) + _CHOICES))
        self._lent = ffi.from_buffer(_BYTES, self._memory, True)
        tally = ffi.cast("int64_t *", self._lent + _REPORT)
        keys = tally + _TALLIES * queries
        similarities = ffi.cast("float *", keys + queries * k)
        choice = ffi.cast("uint8_t *", similarities + queries * k)
        self.report = ffi.cast("carag_results *", self._lent)
        self.report[0] = (
            *(keys, similarities),
            *(tally + at * queries for at in range(_TALLIES)),
            *(choice + at * queries for at in range(_CHOICES)),
        )
        self.fault = new_fault()

    def result(self, kernel: str, beside: Beside | None = None) -> SearchResult:
        """Read what was found, and release the room to other searches."""
        memory = self._memory
        if self._queries == 1 and self._k <= _FEW:
            memory = bytearray(memory)
            if len(kept := _rooms[self._k]) < _KEPT:
                kept.append(self)
        found = SearchResult.__new__(SearchResult)
        object.__setattr__(found, "_written", (memory, self._queries, self._k, kernel))
        if beside is not None:
            object.__setattr__(found, "_beside", beside)
        return found


_rooms: Final[tuple[list[SearchRoom], ...]] = tuple([] for _ in range(_FEW + 1))
"""Unused rooms for one query, by number of rows; ``pop`` gives a room to one caller only, even across threads."""


def search_room(queries: int, k: int) -> SearchRoom:
    """Return memory for one search, used by no other until its result is read."""
    if queries != 1 or k > _FEW:
        return SearchRoom(queries, k)
    try:
        return _rooms[k].pop()
    except IndexError:  # this is the first search for this many rows, or all rooms are in use
        return SearchRoom(queries, k)
