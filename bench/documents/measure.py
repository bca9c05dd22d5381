"""Measure one run of adding or of opening, in a process of its own that prints one JSON object.

``python -m bench.documents.measure add DIR DOCUMENTS A_CALL SEED`` or ``... open DIR SEED``.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.documents.corpus import Hashed, documents
from bench.harness import forget
from carag import Engine, Index, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


SESSION: Final = Session(role="employee", purpose="work")
_BUILDING: Final = ("add", "relabel", "delete", "consolidate")
"""What the index does itself; writing its file counts as the rest."""


class _Timed:
    """The seconds spent in methods of the index, those of each apart, and the CPU time of all threads meanwhile."""

    def __init__(self, *names: str) -> None:
        self.seconds, self.cpu = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for name in names:
            setattr(Index, name, self._timed(name, getattr(Index, name)))

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def timed(*arguments: Any, **options: Any) -> Any:
            began, cpu = time.perf_counter(), time.process_time()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds[name] += time.perf_counter() - began
                self.cpu[name] += time.process_time() - cpu

        return timed


def add(home: Path, count: int, a_call: int, seed: int) -> dict[str, float]:
    """Add documents to a new store and return seconds: in all, making the documents, embedder, index, saving it."""
    index, embedder = _Timed(*_BUILDING, "save"), Hashed()
    making = total = cpu = 0.0
    with Engine.open(home, profile="generic", embedder=embedder) as engine:
        for first in range(0, count, a_call):
            began = time.perf_counter()
            batch = list(documents(first, min(a_call, count - first), seed=seed))
            making += time.perf_counter() - began
            began, cpu_began = time.perf_counter(), time.process_time()
            report = engine.add(batch)
            total += time.perf_counter() - began
            cpu += time.process_time() - cpu_began
            assert report.added == len(batch), report
    building, building_cpu = (sum(of[name] for name in _BUILDING) for of in (index.seconds, index.cpu))
    return {
        "total_s": total,
        "making_s": making,
        "embedder_s": embedder.seconds,
        "index_s": building,
        "saving_s": index.seconds["save"],
        "rest_us": 1e6 * (total - embedder.seconds - building) / count,
        "rest_cpu_us": 1e6 * (cpu - embedder.cpu - building_cpu) / count,
        "bytes_a_document": sum(one.stat().st_size for one in home.rglob("*") if one.is_file()) / count,
    }


def first_answer(home: Path, seed: int, *, cold: bool) -> dict[str, float]:
    """Open a store and ask once; return seconds until it is open and until the answer is there, and peak memory."""
    if cold:
        forget(home)
    timed = _Timed("load")
    question = next(documents(0, 1, seed=seed)).text
    began = time.perf_counter()
    with Engine.open(home, embedder=Hashed(), create=False) as engine:
        opened = time.perf_counter() - began
        found = engine.retrieve(question, SESSION)
        answered = time.perf_counter() - began
        assert len(found.passages) == 8, found
    return {
        "open_s": opened,
        "index_load_s": timed.seconds["load"],
        "answer_s": answered,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(arguments: Sequence[str]) -> None:
    """Run one step and print what it took."""
    step, home, *numbers = arguments
    if step == "add":
        print(json.dumps(add(Path(home), *map(int, numbers))))
    else:
        print(json.dumps(first_answer(Path(home), *map(int, numbers), cold=step == "open-cold")))


if __name__ == "__main__":
    main(sys.argv[1:])
