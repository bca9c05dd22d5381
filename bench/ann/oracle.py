"""An oracle of filtered search that shares nothing with the core: float64, numba-compiled, brute force.

It restates the rules from their definition (required bits set, forbidden bits clear, version 1, no quarantine,
no tombstone, public by then) and never looks at ``Mask.mask`` or ``Mask.value``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from carag.policy import Policy

__all__ = ["TOLERANCE", "VIOLATIONS", "Rows", "Truth", "judge", "truth"]

TOLERANCE: Final = 1e-6
"""Similarities that differ by less may change places: float32 has 24 bits."""

VIOLATIONS: Final = (
    "wrong count",
    "inadmissible row",
    "row twice",
    "wrong similarity",
    "out of order",
    "nearer row missed",
    "padding not empty",
)
"""What can be wrong with an answer, by the position :func:`judge` returns, counted from 1."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The live rows of an index, as its caller knows them."""

    vectors: NDArray[np.float64]
    """(n, dim), any length."""
    words: NDArray[np.uint32]
    public_at: NDArray[np.int64]
    keys: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Truth:
    """What one query must find."""

    similarities: NDArray[np.float64]
    """(n,) cosine of every row."""
    is_open: NDArray[np.bool_]
    """(n,) whether the policy admits the row."""
    best: NDArray[np.float64]
    """Similarities of the admissible rows, largest first."""


def truth(rows: Rows, query: NDArray[np.float64], policy: Policy, as_of: int) -> Truth:
    """Compute the truth of one query by looking at every row."""
    pairs = np.array([(mask.required, mask.forbidden) for mask in policy.masks], dtype=np.int64).reshape(
        -1, 2
    )
    similarities, is_open = _compiled().scan(rows.vectors, rows.words, rows.public_at, query, pairs, as_of)
    return Truth(similarities, is_open, -np.sort(-similarities[is_open]))


def judge(
    rows: Rows,
    expected: Truth,
    keys: NDArray[np.int64],
    similarities: NDArray[np.float32],
    count: int,
    *,
    exact: bool,
) -> int:
    """Judge one answer: 0 when right, else a position in :data:`VIOLATIONS`, from 1.

    An exact answer must also hold the nearest rows; any answer must be complete, admissible, without
    repetition, ordered (ties by smaller key), and true about its similarities.
    """
    order = np.argsort(rows.keys)
    return int(
        _compiled().judge(
            rows.keys[order],
            expected.similarities[order],
            expected.is_open[order],
            expected.best,
            keys,
            similarities,
            count,
            exact,
            TOLERANCE,
        )
    )


@dataclass(frozen=True, slots=True)
class _Compiled:
    scan: Callable[..., Any]
    judge: Callable[..., Any]


@cache
def _compiled() -> _Compiled:
    try:
        from numba import njit
    except ImportError as error:
        raise MissingExtra("the oracle is compiled by numba; install carag-engine[bench]") from error
    return _Compiled(njit(cache=True)(_scan), njit(cache=True)(_judge))


def _scan(vectors, words, public_at, query, pairs, as_of):  # type: ignore[no-untyped-def]
    n, dim = vectors.shape
    similarities = np.empty(n)
    is_open = np.zeros(n, dtype=np.bool_)
    query_length = np.sqrt(np.sum(query * query))
    for i in range(n):
        dot, squares = 0.0, 0.0
        for j in range(dim):
            dot += vectors[i, j] * query[j]
            squares += vectors[i, j] * vectors[i, j]
        similarities[i] = dot / (np.sqrt(squares) * query_length)
        word = np.int64(words[i])
        labelled = (word >> 27) & 7 == 1 and (word >> 30) & 1 == 0 and (word >> 31) & 1 == 0
        if labelled and public_at[i] <= as_of:
            for p in range(pairs.shape[0]):
                required, forbidden = pairs[p, 0], pairs[p, 1]
                if word & required == required and word & forbidden == 0:
                    is_open[i] = True
    return similarities, is_open


def _judge(sorted_keys, similarities, is_open, best, keys, got, count, exact, tolerance):  # type: ignore[no-untyped-def]
    if count != min(keys.shape[0], best.shape[0]):
        return 1
    for i in range(count):
        row = np.searchsorted(sorted_keys, keys[i])
        if row == sorted_keys.shape[0] or sorted_keys[row] != keys[i] or not is_open[row]:
            return 2
        for j in range(i):
            if keys[j] == keys[i]:
                return 3
        if abs(similarities[row] - got[i]) >= tolerance:
            return 4
        if i > 0 and (got[i] > got[i - 1] or (got[i] == got[i - 1] and keys[i] < keys[i - 1])):
            return 5
        if exact and abs(similarities[row] - best[i]) >= tolerance:
            return 6
    for i in range(count, keys.shape[0]):
        if keys[i] != -1 or got[i] != -np.inf:
            return 7
    return 0
