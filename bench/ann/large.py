"""More rows than are held at once: built from a stream, saved, mapped, and asked the questions of every cell.

The build runs in a process of its own, whose peak of resident memory is the figure. It is given the rows in three
batches, each as large as all before it, since such a batch is linked by building the whole graph and a smaller one row
by row; room for all of them is reserved, so that none is copied. Truth is found by exact scans of the file that the
rows stand in, a few questions at a time.
"""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.datasets import batches
from bench.ann.engine import Build, graph_degree
from bench.ann.ours import Carag
from bench.ann.run import Entry, measure_cell
from carag.errors import InvalidArgument
from carag.index import Index, Plan, _core
from carag.policy import policy_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.ann.engine import Rows, Store
    from bench.ann.policies import Cell
    from bench.ann.run import Field, Settings
    from bench.ann.truth import Bars


_KEPT: Final = (
    *(
        "set",
        "rows",
        "dim",
        "variant",
        "share",
        "correlation",
        "admissible",
        "engine",
        "n",
        "qps",
        "p50_us",
        "p95_us",
    ),
    *("p99_us", "recall", "recall_p1", "recall_zero", "short", "violations", "plans", "seed", "commit"),
)
"""What a record has of a row of the results."""


class _Mapped(Carag):
    """``auto`` over a mapped file, whose codes and links are copied into memory first if that is asked for."""

    def __init__(self, path: Path, dtype: str, *, preload: bool) -> None:
        super().__init__(Plan.AUTO, dtype=dtype)
        self.name += " preloaded" if preload else " mapped"
        self._path, self._preload = path, preload

    def build(self, rows: Rows, store: Store) -> Build:
        raise NotImplementedError("it is built by build_large")

    def open(self) -> None:
        """Map the file."""
        self._plain = self._session = Index.load(self._path, mmap=True)
        if self._preload:
            self._plain.preload()


def sizes(rows: int) -> tuple[int, ...]:
    """Cut a number of rows into three batches, each at least as large as all before it."""
    half, quarter = rows // 2, rows // 4
    return quarter, half - quarter, rows - half


def build_large(
    about: Field, vectors: Path, home: Path, *, dtype: str, threads: int
) -> tuple[dict[str, Any], Path]:
    """Build an index of the rows in a file, or find the one that this very core built; return what it took, and where.

    Raises
    ------
    InvalidArgument
        If it is to know instants and entities.
    """
    if about.rows.sessions:
        raise InvalidArgument("a large index is built of words alone; ask for --variants word")
    core = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:12]
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"large-{core}-{dtype}-{threads}-{about.rows.digest}-{about.name}"
    known, words = path.with_suffix(".json"), path.with_suffix(".words.npy")
    if not (known.exists() and path.exists()):
        np.save(words, about.rows.words)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            took = alone.submit(_build, vectors, words, path, dtype, threads).result()
        record = {"set": about.name, **took, "seed": about.seed, "commit": about.commit}
        known.write_text(json.dumps(record), encoding="utf-8")
    return json.loads(known.read_text(encoding="utf-8")), path


def measure_large(
    about: Field, cells: list[Cell], truth: list[Bars], path: Path, dtype: str, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Map the index and measure ``auto`` in every cell, and once more with codes and links in memory."""
    for preload in (False, True):
        engine = _Mapped(path, dtype, preload=preload)
        engine.open()
        entry = Entry(engine, Build(0.0, 0, 0.0), always=True)
        for cell, bars in zip(cells, truth, strict=True):
            for row in measure_cell([entry], cell, bars, about, settings):
                if row.phase == "rounds":
                    yield {name: value for name, value in asdict(row).items() if name in _KEPT}


# ---------------------------------------------------------------- the process that builds


def _build(vectors: Path, words: Path, path: Path, dtype: str, threads: int) -> dict[str, Any]:
    labels = policy_word(np.load(words))
    rows = len(labels)
    before, begin, spent = _memory("VmRSS"), time.perf_counter(), time.process_time()
    index, done, adding = None, 0, 0.0
    for batch in batches(vectors, sizes(rows)):
        if index is None:
            index = Index(batch.shape[1], M=graph_degree(rows), dtype=dtype)
            index.reserve(rows)
        from_here = time.perf_counter()
        index.add(batch, labels[done : done + len(batch)], threads=threads)
        adding += time.perf_counter() - from_here
        done += len(batch)
        del batch  # before the next one is read
        print(f"{done:,} rows, peak {_memory('VmHWM') / 1e9:.2f} GB", flush=True)
    if index is None:
        raise InvalidArgument(f"{vectors} holds no rows; want some")
    resident = _memory("VmRSS")
    saving = time.perf_counter()
    index.save(path)
    return {
        "rows": done,
        "dtype": dtype,
        "threads": threads,
        "batches": list(sizes(rows)),
        "seconds": round(time.perf_counter() - begin, 1),
        "seconds_adding": round(adding, 1),
        "seconds_saving": round(time.perf_counter() - saving, 1),
        "seconds_processor": round(time.process_time() - spent, 1),
        "peak_bytes": _memory("VmHWM"),
        "bytes_per_row_resident": round((resident - before) / done, 1),
        "bytes_per_row": round(path.stat().st_size / done, 1),
    }


def _memory(name: str) -> int:
    """Bytes that the process has resident now (``VmRSS``), or had at most (``VmHWM``)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise InvalidArgument(f"/proc/self/status has no {name}; this measurement needs Linux")
