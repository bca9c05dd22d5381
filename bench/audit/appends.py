"""Append durably by several clients at once, as a process that can be put on a slow disk.

``python -m bench.audit.appends carag|pymerkle DIR CLIENTS SECONDS`` prints one JSON object. Every append ends only
when its record is durable; latencies are the callers'.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.audit import AuditLog
from tests.audit.log.writers import EVENT, PASSAGES, SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_WARM_UP: Final = 0.5


def _carag(directory: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    log = AuditLog.open(directory / "log")
    return lambda: log.append(EVENT, secrets=SECRETS, passages=PASSAGES), log.close


def _pymerkle(directory: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    from pymerkle import SqliteTree

    with AuditLog.open(directory / "log") as log:  # the same bytes, ready made
        body = log.append(EVENT, secrets=SECRETS, passages=PASSAGES).record
    tree = SqliteTree(str(directory / "tree.db"))
    return lambda: tree.append_entry(body), tree.close


SUBJECTS: Final = {"carag": _carag, "pymerkle": _pymerkle}


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    subject, directory, clients, seconds = arguments
    append, close = SUBJECTS[subject](Path(directory))
    start = time.perf_counter() + _WARM_UP
    end = start + float(seconds)
    latencies: list[list[float]] = []

    counts: list[int] = []

    def work() -> None:
        mine: list[float] = []
        latencies.append(mine)
        count = 0
        while (began := time.perf_counter()) < end:
            append()
            count += 1
            if began >= start:
                mine.append(time.perf_counter() - began)
        counts.append(count)

    cpu = time.process_time()
    threads = [threading.Thread(target=work) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    close()
    every = sorted(one for mine in latencies for one in mine)
    print(
        json.dumps(
            {
                "appends_s": len(every) / took,
                "p50_ms": 1e3 * every[len(every) // 2],
                "p99_ms": 1e3 * every[min(len(every) - 1, len(every) * 99 // 100)],
                "appends": len(every),
                "cpu_us": 1e6 * cpu / sum(counts),
                "appends_with_warm_up": sum(counts),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
