"""Throughput of batches: many queries under one policy in one call, on all cores; making the policy is timed, too."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.ann.curves import Point, qps_at
from bench.ann.engine import Batched
from bench.ann.policies import one_policy_cells
from bench.ann.results import GOAL_RECALL
from bench.ann.run import ENOUGH, K
from bench.ann.truth import bars, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bench.ann.policies import Cell
    from bench.ann.run import Entry, Field, Settings
    from bench.ann.truth import Bars

__all__ = ["measure_batches"]


def measure_batches(
    about: Field, cells: list[Cell], entries: list[Entry], settings: Settings
) -> Iterator[dict[str, Any]]:
    """Ask every neutral word cell's first policy of every engine with a batch call, engines taking turns.

    An effort at which a single query is so slow that the batch would take longer than a cell's seconds is left
    out, with all larger ones.
    """
    threads = os.cpu_count() or 1
    entries = [entry for entry in entries if isinstance(entry.engine, Batched)]
    chosen = one_policy_cells(cells, settings.queries)
    for cell, truth in zip(chosen, bars(about.rows, about.queries, chosen, K), strict=True):
        asked = np.ascontiguousarray(about.queries[cell.asked[:, 0]])
        seen: dict[str, dict[int, list[float]]] = {}
        recalls: dict[tuple[str, int], float] = {}
        for entry in entries:
            engine = entry.engine
            for effort in engine.efforts:
                if _alone(engine, cell, asked, effort) * len(asked) / threads > settings.seconds:
                    break
                took, ids = _ask(engine, cell, asked, effort, threads)
                seen.setdefault(engine.name, {})[effort] = [took]
                recalls[engine.name, effort] = _recall(about, cell, truth, asked, ids)
                if recalls[engine.name, effort] >= ENOUGH and effort:
                    break
        for _ in range(settings.rounds - 1):
            for entry in entries:
                for effort, times in seen.get(entry.engine.name, {}).items():
                    times.append(_ask(entry.engine, cell, asked, effort, threads)[0])
        for entry in entries:
            name = entry.engine.name
            for effort, times in seen.get(name, {}).items():
                points = [
                    Point(e, recalls[name, e], len(asked) / float(np.median(t)))
                    for e, t in seen[name].items()
                ]
                yield {
                    "set": about.name,
                    "share": cell.share,
                    "engine": name,
                    "effort": effort,
                    "threads": threads,
                    "n": len(asked),
                    "qps": round(len(asked) / float(np.median(times)), 1),
                    "recall": round(recalls[name, effort], 4),
                    "qps_at_0.99": qps_at(points, GOAL_RECALL),
                    "seed": about.seed,
                    "commit": about.commit,
                }


def _alone(engine: Any, cell: Cell, asked: NDArray[np.float32], effort: int) -> float:
    """Time the third of three single queries."""
    took = 0.0
    for query in asked[:3]:
        begin = time.perf_counter()
        engine.search(query, K, engine.policy(cell.requests[0]), effort)
        took = time.perf_counter() - begin
    return took


def _ask(
    engine: Any, cell: Cell, asked: NDArray[np.float32], effort: int, threads: int
) -> tuple[float, NDArray[np.int64]]:
    begin = time.perf_counter()
    ids = engine.search_batch(asked, K, engine.policy(cell.requests[0]), effort, threads)
    return time.perf_counter() - begin, ids


def _recall(
    about: Field, cell: Cell, truth: Bars, asked: NDArray[np.float32], ids: NDArray[np.int64]
) -> float:
    verdicts = [
        judge(found, query, cell.requests[0], about.rows, int(truth.wanted[at]), float(truth.similarity[at]))
        for at, (query, found) in enumerate(zip(asked, ids, strict=True))
    ]
    return float(np.mean([verdict.recall for verdict in verdicts]))
