"""Recall of the unfiltered graph against hnswlib's, at the same M, efConstruction and ef.

The data are seeded: 26,595 vectors of 1,024 dimensions from a mixture of local subspaces, with the intrinsic
dimension and the difficulty of text embeddings. Queries come from the same mixture and are not in the index.
Both libraries build with one thread; recall counts rows by their true similarity, so ties are fair.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.truth import TIE
from carag.errors import MissingExtra
from carag.index import Index
from carag.policy import Mask, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


K: Final = 10


@dataclass(frozen=True, slots=True)
class Score:
    """One library at one ef."""

    recall: float
    """Mean recall@10 over the queries."""
    worst: float
    """Recall of the worst query."""
    milliseconds: float
    """Median time of one query on one thread, one call each."""
    scored: float | None = None
    """Mean share of the rows whose vector was scored; the largest of a query in ``scored_most``."""
    scored_most: float | None = None
    fallbacks: int | None = None
    """Queries that became exact scans."""


@dataclass(frozen=True, slots=True)
class Report:
    """Both libraries on the same data."""

    rows: int
    dim: int
    queries: int
    M: int
    ef_construction: int
    intrinsic_dimension: float
    build_seconds: dict[str, float]
    scores: dict[str, dict[str, Score]]
    """By ``ef=...``, then by library."""


def measure(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    *,
    efs: tuple[int, ...] = (24, 64, 96, 128),
    M: int = 32,  # noqa: N803 - the paper's name
    ef_construction: int = 200,
) -> Report:
    """Build both libraries on one thread and compare them at each ef."""
    similarities = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    bar = -np.partition(-similarities, K - 1, axis=1)[:, K - 1]

    def recall(found: NDArray[np.int64]) -> NDArray[np.float64]:
        got = np.take_along_axis(similarities, found, axis=1)
        hits: NDArray[np.float64] = np.mean(got >= bar[:, np.newaxis] - TIE, axis=1)
        return hits

    begin = time.perf_counter()
    index = Index(vectors.shape[1], M=M, ef_construction=ef_construction)
    index.add(vectors, np.full(len(vectors), policy_word(0)))
    built = time.perf_counter() - begin
    begin = time.perf_counter()
    peer = _hnswlib(vectors, M, ef_construction)
    peer_built = time.perf_counter() - begin

    scores: dict[str, dict[str, Score]] = {}
    for ef in efs:
        answer = index.search(queries, K, Mask(), plan="graph", ef_search=ef)
        scored = answer.stats.distance_computations / len(vectors)
        ours = recall(answer.keys)
        peer.set_ef(ef)
        theirs = recall(peer.knn_query(queries, K, num_threads=1)[0].astype(np.int64))
        scores[f"ef={ef}"] = {
            "carag": Score(
                recall=round(float(ours.mean()), 4),
                worst=float(ours.min()),
                milliseconds=_median_ms(partial(_search_graph, index, ef), queries),
                scored=round(float(scored.mean()), 4),
                scored_most=round(float(scored.max()), 4),
                fallbacks=int(answer.stats.fallbacks.sum()),
            ),
            "hnswlib": Score(
                recall=round(float(theirs.mean()), 4),
                worst=float(theirs.min()),
                milliseconds=_median_ms(partial(peer.knn_query, k=K, num_threads=1), queries),
            ),
        }
    return Report(
        rows=len(vectors),
        dim=vectors.shape[1],
        queries=len(queries),
        M=M,
        ef_construction=ef_construction,
        intrinsic_dimension=round(intrinsic_dimension(similarities), 1),
        build_seconds={"carag": round(built, 1), "hnswlib": round(peer_built, 1)},
        scores=scores,
    )


def intrinsic_dimension(similarities: NDArray[np.float64], neighbours: int = 100) -> float:
    """Estimate the local intrinsic dimension: Levina & Bickel 2004, over each query's nearest rows."""
    nearest = -np.sort(-similarities, axis=1)[:, :neighbours]
    distances = np.sqrt(np.maximum(2.0 - 2.0 * nearest, 1e-12))
    return float(np.mean(1.0 / np.mean(np.log(distances[:, -1:] / distances[:, :-1]), axis=1)))


def _search_graph(index: Index, ef: int, query: NDArray[np.float32]) -> object:
    return index.search(query, K, Mask(), plan="graph", ef_search=ef)


def _median_ms(search: Callable[[NDArray[np.float32]], object], queries: NDArray[np.float32]) -> float:
    times = []
    for query in queries:
        begin = time.perf_counter()
        search(query)
        times.append(time.perf_counter() - begin)
    return round(1_000 * float(np.median(times)), 3)


def _hnswlib(vectors: NDArray[np.float32], M: int, ef_construction: int) -> Any:  # noqa: N803
    try:
        import hnswlib
    except ImportError as error:
        raise MissingExtra("hnswlib is not installed; install carag-engine[bench]") from error
    peer = hnswlib.Index("ip", vectors.shape[1])
    peer.init_index(len(vectors), M=M, ef_construction=ef_construction, random_seed=0)
    peer.add_items(vectors, num_threads=1)
    return peer
