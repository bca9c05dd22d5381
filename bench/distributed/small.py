"""Ask a few real shards, a process each, and say how far the simulation is off from that.

The simulation is given what one process alone takes, and how many cores there are: where three shards share one
core, the model's node has one core, too. So what is checked is that a question to several shards takes what their
pieces say, scatter, merge and processes included.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.distributed.shard import K, masks, new_shard, queries_of
from bench.distributed.simulate import UNTROUBLED, Cluster, Piece, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

__all__ = ["compared"]

_WARM: Final = 5
"""Questions that are not counted."""


def compared(shards: int, rows: int, dim: int, questions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Ask one shard, then all of them, and simulate the second from the first."""
    cores = len(os.sched_getaffinity(0))
    asked = queries_of(dim, questions + _WARM, seed)
    with _processes(1, rows, dim, seed) as one:
        alone = {count: _taken(one, asked, count) for count in masks(rows)}
    with _processes(shards, rows, dim, seed) as several:
        for count, piece in alone.items():
            real = _taken(several, asked, count)
            model = simulate(
                Piece("native", rows, dim, count, piece),
                Cluster(shards, shards_a_node=shards, cores_a_node=min(cores, shards), replicas=1),
                UNTROUBLED,
                seed=seed,
            )
            figures = {
                f"p{100 * at:g}_{name}": round(value, 3)
                for at in (0.5, 0.95)
                for name, value in (
                    ("alone_ms", float(np.quantile(piece, at))),
                    ("real_ms", float(np.quantile(real, at))),
                    ("simulated_ms", model.quantile(at)),
                )
            }
            yield {
                "kind": "small end",
                "shards": shards,
                "cores": cores,
                "rows": rows,
                "dim": dim,
                "seed": seed,
                "admissible": count,
                "n": questions,
                **figures,
            }


@contextmanager
def _processes(count: int, rows: int, dim: int, seed: int) -> Iterator[list[Connection]]:
    """Start shards, each with rows of its own, and wait until all can be asked."""
    context = multiprocessing.get_context("spawn")
    ours: list[Connection] = []
    started = []
    for number in range(count):
        near, far = context.Pipe()
        process = context.Process(target=_serve, args=(far, rows, dim, seed + number), daemon=True)
        process.start()
        started.append(process)
        ours.append(near)
    for one in ours:
        assert one.recv() == "ready"
    try:
        yield ours
    finally:
        for one in ours:
            one.send(None)
        for process in started:
            process.join()


def _serve(connection: Connection, rows: int, dim: int, seed: int) -> None:
    """Answer questions about one shard until there are no more."""
    with new_shard(rows, dim, seed) as index:
        policies = masks(rows)
        connection.send("ready")
        while (question := connection.recv()) is not None:
            query, count = question
            found = index.search(query, K, policies[count], plan="certified", threads=1)
            connection.send((found.keys[0], found.similarities[0], found.stats.admissible))


def _taken(shards: list[Connection], asked: NDArray[np.float32], count: int) -> NDArray[np.float64]:
    """Return the milliseconds of each question, from before it is sent to after the lists are merged."""
    ms = []
    for query in asked:
        start = time.perf_counter()
        for shard in shards:
            shard.send((query, count))
        answers = [shard.recv() for shard in shards]
        best = _merged(answers)
        ms.append(1000 * (time.perf_counter() - start))
        assert len(best) == min(K, sum(admissible for *_, admissible in answers))
    return np.array(ms[_WARM:])


def _merged(answers: list[tuple[NDArray[np.int64], NDArray[np.float32], int]]) -> list[tuple[int, int]]:
    """Return shard and key of the best rows of all: the greatest similarity first, ties by shard and key."""
    listed = [
        (-float(similar), shard, int(key))
        for shard, (keys, similarities, _) in enumerate(answers)
        for key, similar in zip(keys, similarities, strict=True)
        if key >= 0
    ]
    return [(shard, key) for _, shard, key in sorted(listed)[:K]]
