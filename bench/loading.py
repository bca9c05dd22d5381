"""Measure how many rows a second stream into a backend, and the memory that this process takes for it.

``python -m bench.loading --url URL --rows 10000000 --out FILE`` loads rows that it makes on the way into an empty
collection, all at one epoch, then reads them all back for their state root, and writes what both took as JSON. Killed,
it goes on by the same command. The collection, and its server, stay as they are afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.commit import commit
from carag.backends import Rows, StateRoot, backend_by_url, load_rows, state_root
from carag.policy import NEVER, policy_word

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main", "measured", "stream"]

_BATCH: Final = "bench"
_WORDS: Final = 300
"""Distinct words, of which few rows have most, as in a store."""
_CLOUDS: Final = 64
"""Directions around which vectors lie."""


def stream(rows: int, dim: int, block: int) -> Iterator[Rows]:
    """Yield rows in blocks; of the same numbers they are the same again."""
    clouds = np.random.default_rng(0).standard_normal((_CLOUDS, dim))
    for begin in range(0, rows, block):
        keys = np.arange(begin, min(begin + block, rows), dtype=np.int64)
        rng = np.random.default_rng(begin)
        vectors = clouds[keys % _CLOUDS] + rng.standard_normal((len(keys), dim))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        words = policy_word(np.minimum(rng.geometric(0.02, len(keys)), _WORDS))
        yield Rows(
            keys,
            vectors.astype(np.float32),
            words.astype(np.uint32),
            np.zeros(len(keys), np.uint32),
            np.full(len(keys), NEVER, np.uint32),
            (keys // 100).astype(np.uint32),
        )


def measured(url: str, rows: int, dim: int, block: int) -> dict[str, Any]:
    """Load a stream and read it back.

    Raises
    ------
    SystemExit
        If what was read back is not what was written.
    """
    before = _peak_megabytes()
    backend = backend_by_url(url)
    made = 0.0
    root = StateRoot()

    def timed() -> Iterator[Rows]:
        nonlocal made
        blocks, began = stream(rows, dim, block), time.perf_counter()
        for rows_ in blocks:
            root.add(rows_)
            made += time.perf_counter() - began
            yield rows_
            began = time.perf_counter()

    began = time.perf_counter()
    state = load_rows(backend, timed(), batch=_BATCH, progress=_told)
    took = time.perf_counter() - began - made
    loading = _peak_megabytes()
    began = time.perf_counter()
    read = state_root(backend, np.arange(rows, dtype=np.int64))
    reading = time.perf_counter() - began
    backend.close()
    if root.hex() != read:
        raise SystemExit("what was read back is not what was written")
    return {
        "backend": state.backend,
        "rows": rows,
        "dim": dim,
        "block": block,
        "seconds": took,
        "rows_s": rows / took,
        "making_seconds": made,
        "reading_rows_s": rows / reading,
        "peak_megabytes": {"before": before, "loaded": loading, "read": _peak_megabytes()},
        "state_root": read,
        "commit": commit(),
        "cores": len(os.sched_getaffinity(0)),
    }


def _peak_megabytes() -> float:
    """Return the greatest memory that this process has had so far (getrusage(2): kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _told(stage: str, done: int, total: int) -> None:
    del total
    print(f"\r{stage} {done:,} rows", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.loading", description=__doc__)
    parser.add_argument("--url", required=True, help="an empty collection of a backend that takes loads")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--block", type=int, default=20_000, help="rows of a block")
    parser.add_argument("--out", type=Path, help="a file for the figures")
    arguments = parser.parse_args()
    found = measured(arguments.url, arguments.rows, arguments.dim, arguments.block)
    text = json.dumps(found, indent=2) + "\n"
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
