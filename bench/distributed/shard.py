"""Make one shard of the native index, and measure what it takes: the pieces of the simulation.

The vectors have no structure, so that as many rows as possible are nearly as near as the best: the dearest case of
an exact plan, which scores codes of 8 bits first and what they cannot tell apart by all of a vector. The graph is
not used, and is built with two links a row.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.index import Index
from carag.policy import Mask, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["ADMISSIBLE", "K", "masks", "measured", "new_shard", "queries_of"]

K: Final = 10
ADMISSIBLE: Final = (1_000_000, 100_000, 10_000, 1_000, 100)
"""Rows of a shard that a policy admits; each is a bit of the words."""
_AT_ONCE: Final = 50_000
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def masks(rows: int) -> dict[int, Mask]:
    """Return a policy for every number of admissible rows that a shard of so many can have."""
    return {count: Mask(1 << bit) for bit, count in enumerate(ADMISSIBLE) if count <= rows}


def queries_of(dim: int, count: int, seed: int) -> NDArray[np.float32]:
    """Draw queries of the same kind as the rows."""
    return np.random.default_rng([seed, 1]).standard_normal((count, dim), dtype=np.float32)


def new_shard(rows: int, dim: int, seed: int) -> Index:
    """Draw rows, with scattered words, and index them."""
    rng = np.random.default_rng([seed, 0])
    bits, place = np.zeros(rows, np.int64), rng.permutation(rows)
    for bit, count in enumerate(ADMISSIBLE):
        bits[place[:count]] |= 1 << bit
    words = policy_word(bits)
    index = Index(dim, M=2, ef_construction=1, seed=seed)
    index.reserve(rows)
    for start in range(0, rows, _AT_ONCE):
        some = words[start : start + _AT_ONCE]
        index.add(rng.standard_normal((len(some), dim), dtype=np.float32), some, threads=1)
    return index


def measured(rows: int, dim: int, questions: int, seed: int, scratch: Path) -> Iterator[dict[str, Any]]:
    """Measure searches of every policy, one thread, then what the file takes and how it opens."""
    before, started = _resident(), time.perf_counter()
    with new_shard(rows, dim, seed) as index:
        built = time.perf_counter() - started
        asked = queries_of(dim, questions, seed)
        for count, mask in masks(rows).items():
            index.search(asked[:1], K, mask, plan="certified")
            yield {
                "kind": "piece",
                "place": "native",
                "rows": rows,
                "dim": dim,
                "seed": seed,
                "admissible": count,
                "plan": "certified",
                "n": questions,
                # Of this thread alone, which does nothing but search: other work on the core is not in it.
                "ms": [_search(index, one, mask, time.thread_time) for one in asked],
            }
        resident = _resident() - before
        path = scratch / "shard.carag"
        index.save(path)
    yield {
        "kind": "shard",
        "place": "native",
        "rows": rows,
        "dim": dim,
        "seed": seed,
        "build_seconds": round(built, 1),
        "bytes_a_row": round(resident / rows),
        "file_bytes_a_row": round(path.stat().st_size / rows),
        **_opened(path, asked, masks(rows)),
    }
    path.unlink()


def _search(index: Index, query: NDArray[np.float32], mask: Mask, clock: Callable[[], float]) -> float:
    start = clock()
    found = index.search(query, K, mask, plan="certified", threads=1)
    taken = 1000 * (clock() - start)
    assert found.counts[0] == min(K, found.stats.admissible)
    return round(taken, 4)


def _opened(path: Path, asked: NDArray[np.float32], policies: dict[int, Mask]) -> dict[str, Any]:
    """Open the mapped file with none of it in the page cache, and ask each policy its first question."""
    cold = {}
    for count, mask in policies.items():
        _forget(path)
        start = time.perf_counter()
        with Index.load(path, mmap=True) as index:
            opened = time.perf_counter() - start
            cold[str(count)] = _search(index, asked[0], mask, time.perf_counter)
    return {"open_ms": round(1000 * opened, 1), "first_cold_ms": cold}


def _forget(path: Path) -> None:
    """Ask the system to drop a file's pages from its cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
