"""An oracle of filtered search that shares nothing with the core: float64, brute force, compiled by numba.

It asks every row, by the definition of the rules: required bits set, forbidden bits clear, version 1, no quarantine,
no tombstone, public by then and not expired, about an entity that may be read of, for everybody or a listed audience.
It never looks at ``Mask.mask``, ``Mask.value`` or ``Policy.admits``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from carag.index import SearchResult
    from carag.policy import Policy


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
"""What can be wrong with an answer, by the number :func:`judge` returns, counted from 1."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The live rows of an index, as its caller knows them, keys ascending."""

    vectors: NDArray[np.float32]
    """(n, dim) what the index keeps of the unit vectors."""
    words: NDArray[np.uint32]
    public_at: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    entities: NDArray[np.int64]
    audiences: NDArray[np.int64]
    keys: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Rows:
        """Select rows."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__slots__))

    def relabelled(self, words: NDArray[np.uint32]) -> Rows:
        """Give all rows other words."""
        return replace(self, words=words)


@dataclass(frozen=True, slots=True)
class Truth:
    """What some queries must find under one policy."""

    similarities: NDArray[np.float64]
    """(nq, n) of every row."""
    is_open: NDArray[np.bool_]
    """(n,) whether the policy admits the row."""
    best: NDArray[np.float64]
    """(nq, admissible) similarities of the admissible rows, largest first."""


def admits(rows: Rows, policy: Policy, as_of: int) -> NDArray[np.bool_]:
    """Ask of every row whether the policy admits it; (n,)."""
    pairs = [(mask.required, mask.forbidden) for mask in policy.masks]
    only = policy.allow_entities is not None
    listed = policy.allow_entities if policy.allow_entities is not None else policy.deny_entities
    is_open: NDArray[np.bool_] = _compiled().admits(
        rows.words,
        rows.public_at,
        rows.expires_at,
        rows.entities,
        rows.audiences,
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(listed, dtype=np.int64),
        only,
        np.array([0, *policy.audiences], dtype=np.int64),
        as_of,
    )
    return is_open


def truth(rows: Rows, queries: NDArray[np.float64], policy: Policy, as_of: int) -> Truth:
    """Compute what queries (nq, dim) must find, by looking at every row."""
    directions = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    similarities = directions @ rows.vectors.astype(np.float64).T
    is_open = admits(rows, policy, as_of)
    return Truth(similarities, is_open, -np.sort(-similarities[:, is_open], axis=1))


def judge(rows: Rows, expected: Truth, got: SearchResult, is_exact: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Judge answers, one number a query: 0 when right, else a position in :data:`VIOLATIONS`, from 1.

    Where ``is_exact`` an answer must also hold the nearest rows; any answer must be complete, admissible, without
    repetition, ordered (ties by smaller key), and true about its similarities.
    """
    verdicts: NDArray[np.int64] = _compiled().judge(
        rows.keys,
        expected.similarities,
        expected.is_open,
        expected.best,
        got.keys,
        got.similarities,
        got.counts,
        is_exact,
        TOLERANCE,
    )
    return verdicts


# ---------------------------------------------------------------- compiled


@dataclass(frozen=True, slots=True)
class _Compiled:
    admits: Callable[..., Any]
    judge: Callable[..., Any]


@cache
def _compiled() -> _Compiled:
    try:
        from numba import njit
    except ImportError as error:
        raise MissingExtra("the oracle is compiled by numba; install carag-engine[peers]") from error
    return _Compiled(njit(cache=True)(_admits), njit(cache=True)(_judge))


def _admits(words, public_at, expires_at, entities, audiences, pairs, listed, only, shared, as_of):  # type: ignore[no-untyped-def]
    is_open = np.zeros(words.shape[0], dtype=np.bool_)
    for i in range(words.shape[0]):
        word = np.int64(words[i])
        is_labelled = (word >> 27) & 7 == 1 and (word >> 30) & 1 == 0 and (word >> 31) & 1 == 0
        is_public = public_at[i] <= as_of and as_of < expires_at[i]
        is_listed = False
        for entity in listed:
            is_listed = is_listed or entity == entities[i]
        is_shared = False
        for audience in shared:
            is_shared = is_shared or audience == audiences[i]
        if is_labelled and is_public and is_shared and is_listed == only:
            for p in range(pairs.shape[0]):
                required, forbidden = pairs[p, 0], pairs[p, 1]
                if word & required == required and word & forbidden == 0:
                    is_open[i] = True
    return is_open


def _judge(sorted_keys, similarities, is_open, best, keys, got, counts, is_exact, tolerance):  # type: ignore[no-untyped-def]
    nq, k = keys.shape
    verdicts = np.zeros(nq, dtype=np.int64)
    last_met = np.full(sorted_keys.shape[0], -1)
    for q in range(nq):
        if counts[q] != min(k, best.shape[1]):
            verdicts[q] = 1
            continue
        for i in range(k):
            key, similarity = keys[q, i], got[q, i]
            if i >= counts[q]:
                if key != -1 or similarity != -np.inf:
                    verdicts[q] = 7
                    break
                continue
            row = np.searchsorted(sorted_keys, key)
            if row == sorted_keys.shape[0] or sorted_keys[row] != key or not is_open[row]:
                verdicts[q] = 2
            elif last_met[row] == q:
                verdicts[q] = 3
            elif not abs(similarities[q, row] - similarity) < tolerance:
                verdicts[q] = 4
            elif i > 0 and (
                similarity > got[q, i - 1] or (similarity == got[q, i - 1] and key < keys[q, i - 1])
            ):
                verdicts[q] = 5
            elif is_exact[q] and abs(similarities[q, row] - best[q, i]) >= tolerance:
                verdicts[q] = 6
            if verdicts[q]:
                break
            last_met[row] = q
    return verdicts
