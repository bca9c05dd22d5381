"""A backend that lies in one of eight ways: its answers look right and are not."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from carag.backends import Rows

if TYPE_CHECKING:
    from numpy.random import Generator

    from carag.backends import Found, VectorBackend


class Lie(StrEnum):
    """What is untrue in an answer."""

    INADMISSIBLE = "a row that the policy refuses, unchanged or with a word that would pass"
    SHORT = "fewer rows than it counts"
    DUPLICATE = "a row twice"
    STALE = "the answer of another epoch"
    FOREIGN = "a row that the store never had"
    NAN = "a NaN, as a score or in a vector"
    COUNT = "a wrong number of admissible rows"
    VECTOR = "a vector that is longer, or does not match the score"


class Lying:
    """A backend whose searches are answered with a lie; it may return rows of `others`, which were not asked for."""

    def __init__(self, backend: VectorBackend, lie: Lie, rng: Generator, others: Rows) -> None:
        self._backend, self._lie, self._rng, self._others = backend, lie, rng, others
        self.told = 0
        """Answers that were changed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def search(self, queries: Any, k: int, admitted: Any, *, plan: Any, at: int | None = None) -> Found:
        found = self._backend.search(queries, k, admitted, plan=plan, at=at)
        if found.keys.size == 0:
            return found
        lied = getattr(self, f"_{self._lie.name.lower()}")(found, queries, admitted)
        self.told += lied is not None
        return found if lied is None else lied

    def _place(self, found: Found) -> tuple[int, int] | None:
        """Draw a query that found rows, and a place in its list."""
        lengths = (found.keys >= 0).sum(axis=1)
        if not lengths.any():
            return None
        query = int(self._rng.choice(np.flatnonzero(lengths)))
        return query, int(self._rng.integers(lengths[query]))

    def _in_place_of_one(self, found: Found, queries: Any, row: Rows) -> Found | None:
        """Put a row in place of another, or in an empty place, so that nothing else is untrue."""
        keys, scores = found.keys.copy(), found.scores.copy()
        query, at = self._place(found) or (0, 0)
        if row.keys[0] in keys[query]:
            return None
        keys[query, at] = row.keys[0]
        scores[query, at] = np.float32(queries[query] @ row.vectors[0])
        both = Rows(*(np.concatenate([ours, one]) for ours, one in zip(found.rows, row, strict=True)))
        named = np.isin(both.keys, keys) & _first(both.keys)
        return found._replace(keys=keys, scores=scores, rows=Rows(*(column[named] for column in both)))

    def _inadmissible(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        others = self._others
        closed = [
            at
            for at, about in enumerate(zip(others.words, others.entities, others.audiences, strict=True))
            if not admitted.policy.admits(*map(int, about))
        ]
        if not closed:
            return None
        at = int(self._rng.choice(closed))
        row = Rows(*(column[at : at + 1].copy() for column in others))
        if self._rng.random() < 0.5:  # only the label store knows better
            row.words[:] = admitted.words[0]
            row.public_at[:], row.expires_at[:] = 0, 2**32 - 1
        return self._in_place_of_one(found, queries, row)

    def _short(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        place = self._place(found)
        if place is None:
            return None
        keys, scores = found.keys.copy(), found.scores.copy()
        query, at = place
        keys[query, at:], scores[query, at:] = -1, -np.inf
        named = np.isin(found.rows.keys, keys)
        return found._replace(keys=keys, scores=scores, rows=Rows(*(column[named] for column in found.rows)))

    def _duplicate(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        place = self._place(found)
        if place is None or (found.keys[place[0]] >= 0).sum() < 2:
            return None
        query, at = place
        keys, scores = found.keys.copy(), found.scores.copy()
        other = (at + 1) % int((keys[query] >= 0).sum())
        keys[query, at], scores[query, at] = keys[query, other], scores[query, other]
        named = np.isin(found.rows.keys, keys)
        return found._replace(keys=keys, scores=scores, rows=Rows(*(column[named] for column in found.rows)))

    def _stale(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        state = found.state
        if self._rng.random() < 0.5:
            return found._replace(state=state._replace(epoch=state.epoch + int(self._rng.choice([-1, 1]))))
        return found._replace(state=state._replace(words=state.words[1:]))

    def _foreign(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        row = Rows(*(column[:1].copy() for column in self._others))
        row.keys[:] = 10**12
        row.words[:], row.public_at[:], row.expires_at[:] = admitted.words[0], 0, 2**32 - 1
        row.audiences[:] = 0
        row.entities[:] = 0 if admitted.allow_entities is None else admitted.allow_entities[0]
        return self._in_place_of_one(found, queries, row)

    def _nan(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        place = self._place(found)
        if place is None:
            return None
        scores, vectors = found.scores.copy(), found.rows.vectors.copy()
        if self._rng.random() < 0.5:
            scores[place] = np.nan
        else:
            vectors[int(self._rng.integers(len(vectors))), 0] = self._rng.choice([np.nan, np.inf])
        return found._replace(scores=scores, rows=found.rows._replace(vectors=vectors))

    def _count(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        wrong = found.admissible + int(self._rng.choice([-2, -1, 1, 7]))
        return found._replace(admissible=wrong)

    def _vector(self, found: Found, queries: Any, admitted: Any) -> Found | None:
        if not found.rows.keys.size:
            return None
        vectors = found.rows.vectors.copy()
        at = int(self._rng.integers(len(vectors)))
        vectors[at] = vectors[at] * 1.001 if self._rng.random() < 0.5 else -vectors[at]
        scores = found.scores
        if vectors[at] @ found.rows.vectors[at] < 0 and (np.abs(scores[found.keys >= 0]) < 1e-3).any():
            return None  # a row at a right angle to a query: the other way round it has the same score
        return found._replace(rows=found.rows._replace(vectors=vectors))


class Spy:
    """A backend that remembers its questions."""

    def __init__(self, backend: VectorBackend) -> None:
        self._backend = backend
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def search(self, queries: Any, k: int, admitted: Any, **more: Any) -> Found:
        self.asked.append(admitted)
        return self._backend.search(queries, k, admitted, **more)

    def count(self, admitted: Any, **more: Any) -> int:
        self.asked.append(admitted)
        return self._backend.count(admitted, **more)


def _first(keys: Any) -> Any:
    """Mark the first of equal keys."""
    marks = np.zeros(len(keys), bool)
    marks[np.unique(keys, return_index=True)[1]] = True
    return marks
