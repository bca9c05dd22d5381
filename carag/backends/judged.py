"""Judge a backend's answer from question and answer alone, and refuse the whole answer if any part cannot be true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.backends.rows import index_of
from carag.errors import BackendFault
from carag.index import Plan

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from carag.backends.protocol import Admitted, Found, IndexState, Rows


_MAY_BE: Final = {
    Plan.AUTO: frozenset(Plan) - {Plan.AUTO},
    Plan.GRAPH: frozenset(Plan) - {Plan.AUTO},
    Plan.SCAN: frozenset(Plan) - {Plan.AUTO, Plan.GRAPH},
    Plan.EXACT: frozenset({Plan.EXACT, Plan.CERTIFIED}),
    Plan.CERTIFIED: frozenset({Plan.CERTIFIED}),
}
"""The plans that may run for each requested one: itself, and better ones."""


class SearchAsked(NamedTuple):
    """The question to a backend."""

    queries: NDArray[np.float32]
    """(nq, dim)"""
    wanted: int
    admitted: Admitted
    plan: Plan
    state: IndexState
    """As of the epoch that was asked."""


class CheckedAnswer(NamedTuple):
    """An answer that passed all checks."""

    keys: list[NDArray[np.int64]]
    """The rows of each query, in the backend's order."""
    similarities: list[NDArray[np.float32]]
    """Their scores, by our own kernel."""
    least: NDArray[np.float32]
    """(nq,) the least score of each query, by the backend; no row that it left out has a greater score."""
    admissible: int
    plan: Plan
    rows: Rows


def error_of(dim: int) -> float:
    """Return how much two float32 similarities of unit vectors may differ through the order of summation.

    By Cauchy and Schwarz each of the two sums of ``dim`` products is within ``dim`` roundings of the true one; a few
    more allow for the query's length and for the engine's conversion of a distance.
    """
    return 2.0 * (dim + 8) * 2.0**-24


def judge(found: Found, asked: SearchAsked) -> CheckedAnswer:
    """Judge an answer, and score it again.

    Raises BackendFault if its epoch or plan is not the one that was asked for, a column has the wrong form, a row is
    inadmissible, repeated, not of unit length or has a wrong score, or the count is impossible.
    """
    _of_what_was_asked(found, asked)
    lengths = _lengths(found, asked)
    with index_of(found.rows, asked.queries.shape[1]) as index:
        _admissible(found.rows, asked)
        keys = [row[:length] for row, length in zip(found.keys, lengths, strict=True)]
        for one in keys:
            if len(np.unique(one)) < len(one):
                raise BackendFault("the backend returned a row twice")
        named = np.unique(np.concatenate([*keys, np.empty(0, np.int64)]))
        if not np.array_equal(named, np.sort(found.rows.keys)):
            raise BackendFault("the backend described rows other than those it found")
        scores = [
            index.similarities(query, one) if one.size else np.empty(0, np.float32)
            for query, one in zip(asked.queries, keys, strict=True)
        ]
    least = np.full(len(keys), np.inf, np.float32)
    for at, (ours, told) in enumerate(zip(scores, found.scores, strict=True)):
        theirs = told[: ours.size]
        if not (np.abs(theirs - ours) <= error_of(asked.queries.shape[1])).all():  # False for NaN
            raise BackendFault("the backend returned a score that is not the row's")
        if ours.size:
            least[at] = theirs.min()
    count = found.admissible
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < named.size:
        raise BackendFault(f"the backend counts {count!r} admissible rows and returned {named.size}")
    return CheckedAnswer(keys, scores, least, int(count), found.plan, found.rows)


def _of_what_was_asked(found: Found, asked: SearchAsked) -> None:
    if found.plan not in _MAY_BE[asked.plan]:
        raise BackendFault(f"the backend ran the plan {found.plan!r}; want {asked.plan.value!r}")
    then, now = asked.state, found.state
    if (now.backend, now.collection, now.epoch, now.words) != (
        then.backend,
        then.collection,
        then.epoch,
        then.words,
    ):
        raise BackendFault(f"the backend answered for epoch {now.epoch!r}; want {then.epoch}")


def _lengths(found: Found, asked: SearchAsked) -> NDArray[np.int64]:
    """Return how many rows each query found; keys are 0 or more, followed only by -1."""
    wanted = (len(asked.queries), asked.wanted)
    for name, array, dtype in (("keys", found.keys, np.int64), ("scores", found.scores, np.float32)):
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != wanted:
            raise BackendFault(
                f"the backend returned {name} that are not {np.dtype(dtype)} of shape {wanted}"
            )
    lengths: NDArray[np.int64] = np.count_nonzero(found.keys >= 0, axis=1)
    padding = np.where(np.arange(asked.wanted) < lengths[:, np.newaxis], np.int64(0), np.int64(-1))
    if not np.array_equal(np.minimum(found.keys, 0), padding):
        raise BackendFault("the backend returned keys below 0, or a gap between keys")
    return lengths


def _admissible(rows: Rows, asked: SearchAsked) -> None:
    """Refuse rows whose own word, times, entity or audience do not pass."""
    admitted, known = asked.admitted, frozenset(asked.admitted.words)
    if not (rows.public_at <= admitted.as_of).all() or not (rows.expires_at > admitted.alive_at).all():
        raise BackendFault("the backend returned a row that is not public yet, or has expired")
    for word, entity, audience in _classes(rows):
        if word not in known or not admitted.policy.admits(word, entity, audience):
            raise BackendFault("the backend returned a row that the policy does not admit")


def _classes(rows: Rows) -> AbstractSet[tuple[int, int, int]]:
    return set(zip(rows.words.tolist(), rows.entities.tolist(), rows.audiences.tolist(), strict=False))
