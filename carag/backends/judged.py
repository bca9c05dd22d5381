"""Judge what a backend returned, and refuse the whole of it if any part cannot be true.

Nothing here asks the backend, or the label store: what is judged is the answer beside the question.
"""

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

__all__ = ["Asked", "Judged", "error_of", "judge"]

_MAY_BE: Final = {
    Plan.AUTO: frozenset(Plan) - {Plan.AUTO},
    Plan.GRAPH: frozenset(Plan) - {Plan.AUTO},
    Plan.SCAN: frozenset(Plan) - {Plan.AUTO, Plan.GRAPH},
    Plan.EXACT: frozenset({Plan.EXACT, Plan.CERTIFIED}),
    Plan.CERTIFIED: frozenset({Plan.CERTIFIED}),
}
"""The plans that may run where one was asked for: itself, and what is better."""


class Asked(NamedTuple):
    """What a backend was asked."""

    queries: NDArray[np.float32]
    """(nq, dim)"""
    wanted: int
    admitted: Admitted
    plan: Plan
    state: IndexState
    """At whose epoch."""


class Judged(NamedTuple):
    """An answer in which nothing was found that cannot be true."""

    keys: list[NDArray[np.int64]]
    """Of each query, in the backend's order."""
    similarities: list[NDArray[np.float32]]
    """By our own kernel."""
    least: NDArray[np.float32]
    """(nq,) the least score of each query by the backend; no row that it left out has a greater one."""
    admissible: int
    plan: Plan
    rows: Rows


def error_of(dim: int) -> float:
    """Return how far apart two float32 similarities of unit vectors may be, whatever the order of the sum.

    A sum of ``dim`` products is within ``dim`` roundings of the true one, by Cauchy and Schwarz, in either of the two;
    a few more are of the query's length and of what an engine makes of a distance.
    """
    return 2.0 * (dim + 8) * 2.0**-24


def judge(found: Found, asked: Asked) -> Judged:
    """Judge an answer and score it anew.

    Raises
    ------
    BackendFault
        If it is of another epoch or plan than was asked for, if a column has another form, if a row is inadmissible,
        comes twice, is not of unit length or does not have the score that was told, or if the count cannot be.
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
            raise BackendFault("the backend described other rows than those that it found")
        scores = [
            index.similarities(query, one) if one.size else np.empty(0, np.float32)
            for query, one in zip(asked.queries, keys, strict=True)
        ]
    least = np.full(len(keys), np.inf, np.float32)
    for at, (ours, told) in enumerate(zip(scores, found.scores, strict=True)):
        theirs = told[: ours.size]
        if not (np.abs(theirs - ours) <= error_of(asked.queries.shape[1])).all():  # of NaN neither is true
            raise BackendFault("the backend returned a score that is not the row's")
        if ours.size:
            least[at] = theirs.min()
    count = found.admissible
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < named.size:
        raise BackendFault(f"the backend counts {count!r} admissible rows and returned {named.size}")
    return Judged(keys, scores, least, int(count), found.plan, found.rows)


def _of_what_was_asked(found: Found, asked: Asked) -> None:
    if found.plan not in _MAY_BE[asked.plan]:
        raise BackendFault(f"the backend ran the plan {found.plan!r}; {asked.plan.value!r} was asked for")
    then, now = asked.state, found.state
    if (now.backend, now.collection, now.epoch, now.words) != (
        then.backend,
        then.collection,
        then.epoch,
        then.words,
    ):
        raise BackendFault(f"the backend answered of epoch {now.epoch!r}; {then.epoch} was asked for")


def _lengths(found: Found, asked: Asked) -> NDArray[np.int64]:
    """Return how many rows each query found: keys of 0 or more, and behind them -1 alone."""
    wanted = (len(asked.queries), asked.wanted)
    for name, array, dtype in (("keys", found.keys, np.int64), ("scores", found.scores, np.float32)):
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != wanted:
            raise BackendFault(f"the backend returned {name} that are no {wanted} {np.dtype(dtype)}")
    lengths: NDArray[np.int64] = np.count_nonzero(found.keys >= 0, axis=1)
    padding = np.where(np.arange(asked.wanted) < lengths[:, np.newaxis], np.int64(0), np.int64(-1))
    if not np.array_equal(np.minimum(found.keys, 0), padding):
        raise BackendFault("the backend returned keys below 0, or a gap between keys")
    return lengths


def _admissible(rows: Rows, asked: Asked) -> None:
    """Refuse rows whose word, times or entity do not pass, as they came with the hit."""
    admitted, known = asked.admitted, frozenset(asked.admitted.words)
    if not (rows.public_at <= admitted.as_of).all() or not (rows.expires_at > admitted.alive_at).all():
        raise BackendFault("the backend returned a row outside of its times")
    for word, entity in _pairs(rows):
        if word not in known or not admitted.policy.admits(word, entity):
            raise BackendFault("the backend returned a row that the policy does not admit")


def _pairs(rows: Rows) -> AbstractSet[tuple[int, int]]:
    return set(zip(rows.words.tolist(), rows.entities.tolist(), strict=False))
