"""What mapping a file costs and saves against reading it: opening, cold and warm, and searches once all is in memory.

A mapped file is searched as it is, and preloaded, with codes and links in memory.
Cold means that the file's pages were dropped from the page cache, so that opening waits for the disk, as far as the
machine has one of its own. The searches take turns, a walk over the graph and a scan, each with a policy of the first
neutral cell of a share.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.ours import index_file
from bench.ann.policies import one_policy_cells
from bench.ann.run import K
from carag.index import Index, Plan
from carag.policy import Mask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.ann.engine import Store
    from bench.ann.policies import Cell
    from bench.ann.run import Field, Settings

__all__ = ["measure_opening"]

WAYS: Final = ("read", "mapped", "preloaded")
_SEARCHED: Final = ((Plan.GRAPH, 1.0), (Plan.GRAPH, 0.5), (Plan.SCAN, 0.5), (Plan.SCAN, 0.1))
"""Plans, and shares of admissible rows."""


def measure_opening(
    about: Field, cells: list[Cell], store: Store, dtype: str, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Open the index of words in both ways, and search what is open."""
    path, _ = index_file(about.rows, store, dtype=dtype, sessions=False)
    asked = about.queries[: settings.queries]
    about_all = {"set": about.name, "dtype": dtype, "megabytes": round(path.stat().st_size / 1e6)}
    origin = {"seed": about.seed, "commit": about.commit}
    for state in ("cold", "warm"):
        for way in WAYS:
            opened, first = _opened(path, asked[0], way, is_cold=state == "cold", rounds=settings.rounds)
            what = {"what": f"opened {state}", "way": way, "ms": opened, "first_answer_ms": first}
            yield about_all | what | origin
    indexes = {way: _open(path, way) for way in WAYS}
    masks = {
        cell.share: Mask(cell.requests[0].required, cell.requests[0].forbidden)
        for cell in one_policy_cells(cells, settings.queries)
    }
    for plan, share in _SEARCHED:
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(settings.rounds + 1):  # the first brings the pages in
            for way, index in indexes.items():
                median = _median_us(index, asked, masks[share], plan)
                times[way] += [median] if turn else []
        for way in WAYS:
            what = {
                "what": f"{plan.value} at {100 * share:g} %",
                "way": way,
                "us": round(float(np.median(times[way])), 1),
            }
            yield about_all | what | origin


def _open(path: Path, way: str) -> Index:
    index = Index.load(path, mmap=way != "read")
    if way == "preloaded":
        index.preload()
    return index


def _opened(
    path: Path, query: NDArray[np.float32], way: str, *, is_cold: bool, rounds: int
) -> tuple[float, float]:
    """Median milliseconds until the file is open, and until a first question is answered."""
    opened, answered = [], []
    for _ in range(rounds):
        if is_cold:
            _drop(path)
        begin = time.perf_counter()
        index = _open(path, way)
        opened.append(time.perf_counter() - begin)
        index.search(query, K, Mask())
        answered.append(time.perf_counter() - begin)
        index.close()
    return tuple(round(1e3 * float(np.median(some)), 2) for some in (opened, answered))  # type: ignore[return-value]


def _drop(path: Path) -> None:
    """Drop the file's pages, which no open mapping holds, from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _median_us(index: Index, queries: NDArray[np.float32], mask: Mask, plan: Plan) -> float:
    took = []
    for query in queries:
        begin = time.perf_counter()
        index.search(query, K, mask, plan=plan)
        took.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(took))
