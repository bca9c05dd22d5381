"""Measure quality, calibration and speed of an embedder, with intervals."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bench.embedders.pool import Question
    from carag.retrieval.embedder import Embedder


K: Final = 8
RESAMPLES: Final = 2_000
SEED: Final = 20261121
PASSES: Final = 7
MOST_DECLINED: Final = 0.05
"""Share of the in-scope questions that the gate may decline."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions, with the 95 % percentile-bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Quality:
    """How well questions find their evidence."""

    recall: Estimate
    """Share of a question's pieces of evidence that some chunk among the first :data:`K` holds."""
    reciprocal_rank: Estimate
    """Of the first chunk that holds any of it."""
    top: NDArray[np.float32]
    """Best similarity of each question."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds to embed one question."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold, and the share of each set of questions that it declines."""

    threshold: float
    in_scope_declined: int
    out_of_scope_declined: tuple[int, ...]


def quality(embedder: Embedder, vectors: NDArray[np.float32], questions: Sequence[Question]) -> Quality:
    """Search the pool exactly with every question; ties go to the smaller row."""
    recalls: list[float] = []
    ranks: list[float] = []
    top: list[np.float32] = []
    for question in questions:
        similarities = vectors @ embedder.embed_query(question.text)
        rank = np.empty(len(vectors), dtype=np.int64)
        rank[np.argsort(-similarities, kind="stable")] = np.arange(1, len(vectors) + 1)
        best = [int(rank[list(rows)].min()) for rows in question.evidence]
        recalls.append(sum(one <= K for one in best) / len(best))
        ranks.append(1 / min(best))
        top.append(similarities.max())
    return Quality(_estimate(recalls), _estimate(ranks), np.array(top, dtype=np.float32))


def query_latency(embedder: Embedder, questions: Sequence[Question]) -> Latency:
    """Embed all questions several times over, one at a time; a question's time is its median."""
    milliseconds = np.empty((PASSES, len(questions)))
    for row in milliseconds:
        for column, question in enumerate(questions):
            start = time.perf_counter()
            embedder.embed_query(question.text)
            row[column] = 1e3 * (time.perf_counter() - start)
    p50, p95 = np.percentile(np.median(milliseconds, axis=0), [50, 95])
    return Latency(float(p50), float(p95))


def ingest_seconds(embedder: Embedder, texts: Sequence[str]) -> float:
    """Embed a small corpus once, with the embedder's default threads."""
    start = time.perf_counter()
    embedder.embed_documents(texts)
    return time.perf_counter() - start


def calibrate(in_scope: NDArray[np.float32], out_of_scope: Sequence[NDArray[np.float32]]) -> Gate:
    """Choose the highest multiple of 0.01 that declines at most 5 % of the in-scope questions."""
    hundredths = range(-100, 101)
    kept = [h for h in hundredths if np.mean(in_scope < h / 100) <= MOST_DECLINED]
    threshold = max(kept) / 100
    return Gate(
        threshold,
        int(np.sum(in_scope < threshold)),
        tuple(int(np.sum(top < threshold)) for top in out_of_scope),
    )


def _estimate(values: Sequence[float]) -> Estimate:
    sample = np.array(values, dtype=np.float64)
    rng = np.random.default_rng(SEED)
    means = sample[rng.integers(0, len(sample), (RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(float(sample.mean()), float(low), float(high))
