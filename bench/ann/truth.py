"""What the right answers are: exact inner products in double precision, and what an answer is worth.

Ties pass: a returned id is right if it is admissible and its exact similarity is not below the exact k-th best by
more than 1e-6, so that no engine is punished for the order of equal rows or for float32 rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bench.ann.engine import Request, Rows
    from bench.ann.policies import Cell


TIE: Final = 1e-6
"""By which the similarities of two rows may differ that count as equal."""
_QUERIES_AT_ONCE: Final = 64
_ROWS_AT_ONCE: Final = 50_000
_PAIRS_AT_ONCE: Final = 1 << 27
"""Similarities in memory at a time, a GiB of them: the more rows, the fewer queries."""
_DEEP: Final = 0.02
"""Part of the rows, of an unfiltered ranking, that is looked through before all admissible rows are ranked."""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """For every question of a cell, how many rows are wanted and how similar the last of them is."""

    wanted: NDArray[np.int64]
    """(n,) ``min(k, admissible)``."""
    similarity: NDArray[np.float64]
    """(n,) of the last wanted row; infinite where none is."""
    admissible: NDArray[np.int64]
    """(n,)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer, judged."""

    recall: float
    """Over ``min(k, admissible)``; 1 where nothing is admissible."""
    short: bool
    """Fewer distinct rows than ``min(k, admissible)``."""
    violations: int
    """Rows that the policy does not admit, that do not exist, or that come twice."""


def similarities(
    vectors: NDArray[np.float32], queries: NDArray[np.float32]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield (first query, similarities to every row) for a few queries at a time."""
    at_once = max(1, min(_QUERIES_AT_ONCE, _PAIRS_AT_ONCE // len(vectors)))
    for first in range(0, len(queries), at_once):
        some = queries[first : first + at_once].astype(np.float64)
        out = np.empty((len(some), len(vectors)))
        for row in range(0, len(vectors), _ROWS_AT_ONCE):
            part = vectors[row : row + _ROWS_AT_ONCE].astype(np.float64)
            out[:, row : row + len(part)] = some @ part.T
        yield first, out


def nearest(vectors: NDArray[np.float32], queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Rank the `count` nearest rows of every query under no policy."""
    found = np.empty((len(queries), min(count, len(vectors))), dtype=np.int64)
    for first, sims in similarities(vectors, queries):
        found[first : first + len(sims)] = [_top(row, count) for row in sims]
    return found


def bars(rows: Rows, queries: NDArray[np.float32], cells: list[Cell], k: int) -> list[Bars]:
    """Find the exact bar of every question of every cell, in one pass over the rows."""
    made = [_unranked(cell, rows, k) for cell in cells]
    questions: dict[int, list[tuple[int, int, int]]] = {}
    for c, cell in enumerate(cells):
        for at, (query, mask) in enumerate(cell.asked.tolist()):
            questions.setdefault(query, []).append((c, at, mask))
    for first, sims in similarities(rows.vectors, queries):
        for query, exact in enumerate(sims, start=first):
            ranked = _top(exact, max(k, int(_DEEP * len(exact))))
            near = rows.some(ranked)
            for c, at, mask in questions.get(query, ()):
                wanted = int(made[c].wanted[at])
                request = cells[c].requests[mask]
                best = exact[ranked[request.admissible(near)][:wanted]]
                if len(best) < wanted:
                    best = -np.sort(-exact[request.admissible(rows)])[:wanted]
                if wanted:
                    made[c].similarity[at] = best[wanted - 1]
    return made


def _unranked(cell: Cell, rows: Rows, k: int) -> Bars:
    counts = np.array([np.count_nonzero(request.admissible(rows)) for request in cell.requests])
    admissible = counts[cell.asked[:, 1]].astype(np.int64)
    return Bars(np.minimum(k, admissible), np.full(len(admissible), np.inf), admissible)


def judge(
    ids: NDArray[np.int64],
    query: NDArray[np.float32],
    request: Request,
    rows: Rows,
    wanted: int,
    bar: float,
) -> Verdict:
    """Judge one answer; negative ids are padding."""
    given = ids[ids >= 0]
    known = np.unique(given[given < len(rows.words)])
    admitted = known[request.admissible(rows.some(known))]
    exact = rows.vectors[admitted].astype(np.float64) @ query.astype(np.float64)
    right = min(wanted, int(np.count_nonzero(exact >= bar - TIE)))
    return Verdict(
        recall=right / wanted if wanted else 1.0,
        short=len(known) < wanted,
        violations=len(given) - len(admitted),
    )


def _top(sims: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    count = min(count, len(sims))
    some = np.argpartition(-sims, count - 1)[:count] if count < len(sims) else np.arange(len(sims))
    return some[np.argsort(-sims[some], kind="stable")]
