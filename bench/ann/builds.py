"""How long a graph takes to build, against hnswlib's at the same M and efConstruction, thread for thread.

The builds take turns. Each is followed by an unfiltered search at a fixed beam, so that a fast build of a bad graph
shows.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Request, graph_degree, optional
from bench.ann.ours import new_index
from bench.ann.peers.hnswlib import EF_CONSTRUCTION, build_graph
from bench.ann.run import K
from bench.ann.truth import judge
from carag.policy import Mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from bench.ann.run import Field


BEAM: Final = 64
_QUERIES: Final = 500


def measure_builds(
    about: Field, near: NDArray[np.int64], *, rounds: int, dtypes: tuple[str, ...], threads: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    """Build `rounds` times with each number of threads, engines taking turns.

    Parameters
    ----------
    near : (nq, at least 10) int64
        Each query's nearest rows.
    threads : tuple of int
        Empty: one, and all.
    """
    engines: dict[str, Callable[[Field, int], tuple[float, float, Any]]] = {
        **{f"carag[{dtype}]": _carag(dtype) for dtype in dtypes},
        "hnswlib": _hnswlib,
    }
    for hands in threads or sorted({1, os.cpu_count() or 1}):
        seen: dict[str, list[float]] = {name: [] for name in engines}
        last: dict[str, tuple[float, float]] = {}
        for _ in range(rounds):
            for name, build in engines.items():
                seconds, size, ask = build(about, hands)
                seen[name].append(seconds)
                last[name] = size, _recall(about, near, ask)
        for name, times in seen.items():
            yield {
                "set": about.name,
                "engine": name,
                "threads": hands,
                "M": graph_degree(len(about.rows.words)),
                "ef_construction": EF_CONSTRUCTION,
                "seconds": round(float(np.median(times)), 2),
                "rounds": rounds,
                "bytes_per_row": round(last[name][0], 1),
                f"recall_at_ef_{BEAM}": round(last[name][1], 4),
                "times_hnswlib": round(float(np.median(seen["hnswlib"]) / np.median(times)), 2),
                "seed": about.seed,
                "commit": about.commit,
            }


def _carag(dtype: str) -> Callable[[Field, int], tuple[float, float, Any]]:
    def build(about: Field, threads: int) -> tuple[float, float, Any]:
        index, seconds = new_index(about.rows, dtype, sessions=False, threads=threads)
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "index"
            index.save(path)
            size = path.stat().st_size / len(about.rows.words)

        def ask(query: NDArray[np.float32]) -> NDArray[np.int64]:
            keys: NDArray[np.int64] = index.search(query, K, Mask(), plan="graph", ef_search=BEAM).keys[0]
            return keys

        return seconds, size, ask

    return build


def _hnswlib(about: Field, threads: int) -> tuple[float, float, Any]:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "graph"
        seconds = build_graph(about.rows, path, threads=threads)
        graph = optional("hnswlib").Index("ip", about.rows.vectors.shape[1])
        graph.load_index(str(path))
        size = path.stat().st_size / len(about.rows.words)
    graph.set_ef(BEAM)

    def ask(query: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(graph.knn_query(query, K, num_threads=1)[0][0], dtype=np.int64)

    return seconds, size, ask


def _recall(about: Field, near: NDArray[np.int64], ask: Any) -> float:
    found = []
    for query, best in zip(about.queries[:_QUERIES], near, strict=False):
        bar = float(about.rows.vectors[best[K - 1]].astype(np.float64) @ query.astype(np.float64))
        found.append(judge(ask(query), query, Request(), about.rows, K, bar).recall)
    return float(np.mean(found))
