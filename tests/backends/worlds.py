"""Rows, label stores and questions that the tests of backends share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench.ann.worlds import AS_OF, draw_columns, draw_policy, draw_vectors
from carag import Index
from carag.backends import Rows, rows_of
from carag.policy import NEVER, Mask, Policy, policy_word


class Labels(dict[int, int]):
    """A label store: word by key. Other keys are foreign."""

    def words_of(self, keys):
        return {key: self[key] for key in keys if key in self}


class World(NamedTuple):
    """Rows, an index of all of them, and their labels."""

    rows: Rows
    index: Index
    labels: Labels

    @classmethod
    def of(cls, rows: Rows) -> World:
        index = Index(rows.vectors.shape[1], M=4, ef_construction=10)
        columns = {name: getattr(rows, name) for name in ("public_at", "expires_at", "entities", "audiences")}
        index.add(rows.vectors, rows.words, rows.keys, allow_quarantine=True, **columns)
        return cls(rows, index, Labels(zip(rows.keys.tolist(), rows.words.tolist(), strict=True)))


def drawn_world(rng: np.random.Generator, most: int = 60, dim: int = 8) -> World:
    """Draw clusters, copies and extreme lengths; unlabelled and quarantined words, times, entities, audiences."""
    n = int(rng.integers(1, most))
    vectors = draw_vectors(rng, n, dim)
    vectors[~vectors.any(axis=1)] = 1.0
    return World.of(rows_of(vectors, keys=rng.permutation(n) * 3, **draw_columns(rng, n)))


def drawn_question(rng: np.random.Generator, world: World) -> dict[str, Any]:
    """Draw a policy, its times and ``k``."""
    as_of = int(rng.choice(AS_OF))
    alive_at = int(rng.choice([one for one in AS_OF if one >= as_of]))
    k = int(rng.choice([1, 2, 10, 100]))
    return {"k": k, "policy": draw_policy(rng, world.rows.words), "as_of": as_of, "alive_at": alive_at}


def drawn_queries(rng: np.random.Generator, world: World, count: int) -> Any:
    """Draw queries: rows, vectors near rows, and any vectors."""
    dim = world.rows.vectors.shape[1]
    queries = rng.standard_normal((count, dim))
    near = world.rows.vectors[rng.integers(0, len(world.rows.keys), count)]
    queries = near * rng.choice([0, 1, 3], (count, 1)) + queries * rng.choice([0, 0.1, 1], (count, 1))
    queries[~queries.any(axis=1)] = 1.0
    return queries.astype(np.float32)


def plain_rows(
    n: int, dim: int, seed: int = 0, bits: Any = 1, first: int = 0, kind: str = "gaussian"
) -> Rows:
    """Make rows that are always public, with keys from ``first``."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, dim))
    if kind == "clustered":
        vectors = 0.3 * vectors + rng.standard_normal((20, dim))[rng.integers(0, 20, n)]
    words = np.broadcast_to(policy_word(np.asarray(bits, np.int64)), (n,))
    return rows_of(vectors, words, np.arange(first, first + n))


def assert_equal(expected: Any, got: Any) -> None:
    """Compare two results to the last byte: keys, similarities, counts, and the number of admissible rows."""
    assert expected.keys.tolist() == got.keys.tolist()
    assert expected.similarities.tobytes() == got.similarities.tobytes()
    assert expected.counts.tolist() == got.counts.tolist()
    assert expected.stats.admissible == got.stats.admissible


EVERYTHING = Policy(Mask())
ALWAYS = {"as_of": 0, "alive_at": NEVER - 1}
