"""Tell an index that had rows near a point, and erased them, from one that never had them, by its answers alone.

The attacker knows the rows that are left and the point that is suspected, and sees ids and scores of probes near it and
elsewhere. One guess needs no training: the share of true neighbours that are missing near it, less that elsewhere.
The other is a logistic regression over a handful of figures, fitted on half of the pairs and judged on the other half.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.erasing.peers import (
    Carag,
    FaissHnsw,
    FaissIvf,
    Hits,
    Hnswlib,
    HnswlibReplaced,
    K,
    PgVector,
    QdrantEdge,
    QdrantLocal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bench.erasing.peers import Peer

    Floats = NDArray[np.float64]

PAIRS: Final[dict[type[Peer], int]] = {
    Carag: 200,
    Hnswlib: 300,
    HnswlibReplaced: 200,
    FaissHnsw: 500,
    FaissIvf: 1000,
    PgVector: 60,
    QdrantEdge: 60,
    QdrantLocal: 30,
}
"""How many pairs: fewer where one takes long."""
ROWS: Final = 2_000
ERASED: Final = 50
DIM: Final = 32
_CLUSTERS: Final = 40
_SPREAD: Final = 0.5
_PROBES: Final = 500
NEAR: Final = 5
"""Where figures of probes near the suspected point begin: after as many differences, and before those elsewhere."""
_RESAMPLES: Final = 1_000


class World(NamedTuple):
    """Unit vectors of one pair."""

    rows: NDArray[np.float32]
    secret: NDArray[np.float32]
    fresh: NDArray[np.float32]
    """As many as the secret ones, for an index that only gives up a place to another row."""
    at: NDArray[np.intp]
    """(ERASED,) before which row each of them is inserted."""
    probes: NDArray[np.float32]
    """First those near the suspected point."""


def world(seed: int) -> World:
    """Draw one pair: clusters of rows, and a secret one of the same spread."""
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((_CLUSTERS, DIM))

    def near(some: Floats) -> NDArray[np.float32]:
        vectors = some + _SPREAD * draw.standard_normal(some.shape)
        unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(
            np.float32
        )
        return unit

    def anywhere(count: int) -> NDArray[np.float32]:
        return near(centres[draw.integers(_CLUSTERS, size=count)])

    rows, secret_at = anywhere(ROWS), draw.standard_normal((1, DIM))
    secret, fresh = near(secret_at.repeat(ERASED, axis=0)), anywhere(ERASED)
    probes = np.concatenate([near(secret_at.repeat(_PROBES, axis=0)), anywhere(_PROBES)])
    return World(rows, secret, fresh, draw.integers(ROWS + 1, size=ERASED), probes)


def answers(kind: type[Peer], drawn: World, *, secret: bool) -> list[Hits]:
    """Build one index of a pair, and return its answers by view."""
    rows, ids, had = drawn.rows, np.arange(ROWS), np.arange(ROWS, ROWS + ERASED)
    if secret:
        rows, ids = np.insert(rows, drawn.at, drawn.secret, axis=0), np.insert(ids, drawn.at, had)
    with tempfile.TemporaryDirectory() as home:
        peer = kind(Path(home))
        peer.add(rows, ids)
        if secret:
            peer.erase(had)
        if kind.replaces:
            peer.add(drawn.fresh, had + ERASED)
        found = [peer.search(drawn.probes, view) for view in kind.views]
        peer.close()
    return found


def figures(hits: Hits, true: Hits) -> Floats:
    """Return what the attacker computes; the first figure is the guess that needs no training."""
    missing = K - (hits.ids[:, :, None] == true.ids[:, None, :]).any(axis=1).sum(axis=1)
    loss = np.where(hits.ids < 0, 0, true.scores - hits.scores).mean(axis=1)
    seen = np.array([missing / K, missing > 0, loss, loss**2, (hits.ids < 0).any(axis=1)], np.float64)
    near, elsewhere = seen[:, :_PROBES].mean(axis=1), seen[:, _PROBES:].mean(axis=1)
    return np.concatenate([near - elsewhere, near, elsewhere])


def truth(kind: type[Peer], drawn: World) -> Hits:
    """Return the true neighbours among the rows that are left."""
    rows, ids = drawn.rows, np.arange(ROWS)
    if kind.replaces:
        rows, ids = np.concatenate([rows, drawn.fresh]), np.append(ids, np.arange(ERASED) + ROWS + ERASED)
    scores = drawn.probes @ rows.T
    best = np.argsort(-scores, axis=1)[:, :K]
    return Hits(ids[best], np.take_along_axis(scores, best, axis=1))


def auc(had: Floats, never: Floats) -> float:
    """Return how often a figure is greater where rows were erased; equal ones count half.

    Examples
    --------
    >>> auc(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    0.875
    """
    order = np.sort(never)
    below, not_above = np.searchsorted(order, had, "left"), np.searchsorted(order, had, "right")
    return float((below + not_above).mean() / (2 * len(never)))


def interval(had: Floats, never: Floats) -> tuple[float, float, float]:
    """Return the area under the curve and its 95 % interval, bootstrapped by pairs."""
    draw = np.random.default_rng(0)
    again = draw.integers(len(had), size=(_RESAMPLES, len(had)))
    low, high = np.quantile([auc(had[some], never[some]) for some in again], [0.025, 0.975])
    return auc(had, never), float(low), float(high)


def learnt(had: Floats, never: Floats) -> tuple[Floats, Floats]:
    """Fit a logistic regression on the first half of the pairs, and return its scores of the others."""
    half = len(had) // 2
    seen = np.concatenate([had[:half], never[:half]])
    middle, spread = seen.mean(axis=0), seen.std(axis=0)
    spread[spread == 0] = 1

    def design(some: Floats) -> Floats:
        return np.column_stack([np.ones(len(some)), (some - middle) / spread])

    rows, was = design(seen), np.repeat([1.0, 0.0], half)
    weights = np.zeros(rows.shape[1])
    for _ in range(25):  # Newton's steps, with a ridge because some figures say the same
        said = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (was - said) - weights
        bend = (rows * (said * (1 - said))[:, None]).T @ rows + np.eye(len(weights))
        weights += np.linalg.solve(bend, slope)
    return design(had[half:]) @ weights, design(never[half:]) @ weights


def measured(kind: type[Peer], pairs: int | None = None) -> Iterator[dict[str, Any]]:
    """Attack an index, and return a row of figures for each view."""
    pairs = pairs or PAIRS[kind]
    seen = np.empty((pairs, len(kind.views), 2, 3 * NEAR))
    same = np.zeros(len(kind.views), int)
    for seed in range(pairs):
        drawn = world(seed)
        true = truth(kind, drawn)
        for at, both in enumerate(
            zip(*(answers(kind, drawn, secret=one) for one in (True, False)), strict=True)
        ):
            seen[seed, at] = [figures(hits, true) for hits in both]
            same[at] += all(np.array_equal(*ends) for ends in zip(*both, strict=True))
    for at, view in enumerate(kind.views):
        had, never = seen[:, at, 0], seen[:, at, 1]
        yield {
            "index": f"{kind.name}, {view}" if view else kind.name,
            "means": kind.means,
            "pairs": pairs,
            "same": int(same[at]),
            "untrained": interval(had[:, 0], never[:, 0]),
            "trained": interval(*learnt(had, never)),
            "missing": [float(one[:, NEAR].mean()) for one in (had, never)],
        }
