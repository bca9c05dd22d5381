"""Measure whether the CPU time of an explanation tells a hidden passage from an absent one, as an attacker would.

Interleaved pairs: one id of a hidden passage, one that no passage has, in a random order each time, by a role that
may not know of either. Compared is the CPU time of the whole process, so that waiting for the disk and other work on
the machine count little. A planted delay shows that a difference would be seen.

    python -m bench.explain --pairs 10000
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.auc import area_under_curve
from carag import Engine, Outcome, Session
from carag.policy import QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION: Final = Session(role="public", purpose="public_qa")
DELAY: Final = 1_000_000
"""Nanoseconds planted before explaining a hidden passage, to show that such a difference would be seen."""
WARM_UP: Final = 200
"""Pairs at the start whose times are thrown away."""


def cpu_times(
    explain: Callable[[str], object], hidden: list[str], absent: list[str], *, pairs: int, seed: int
) -> tuple[list[int], list[int]]:
    """Return nanoseconds of CPU time by hidden and absent ids."""
    draw = random.Random(seed)  # noqa: S311
    times: dict[bool, list[int]] = {True: [], False: []}
    for n in range(pairs + WARM_UP):
        for is_hidden in draw.sample((True, False), 2):
            chunk = draw.choice(hidden if is_hidden else absent)
            before = time.process_time_ns()
            explain(chunk)
            if n >= WARM_UP:
                times[is_hidden].append(time.process_time_ns() - before)
    return times[True], times[False]


def spin(nanoseconds: int) -> None:
    """Keep the processor busy for a time."""
    end = time.process_time_ns() + nanoseconds
    while time.process_time_ns() < end:
        pass


def main() -> None:
    """Print both areas with their intervals; exit 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "data" / "corpus")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Engine.open(home, embedder="wordllama") as engine:
        engine.ingest(given.corpus)
        shown = {one.chunk_id for one in engine.retrieve("What was reported?", SESSION, 400).passages}
        rows = engine._collection.store.snapshot_rows()  # noqa: SLF001 - the attacker is told which ids are real: his best case
        hidden = [chunk for chunk, _, word, *_ in rows if chunk not in shown and not word & QUARANTINE]
        # Ids of the same filings, between those there are: only what stands there differs.
        absent = [f"{chunk[:-1]}{chunk[-1]}a" for chunk in hidden]
        for chunk in (hidden[0], absent[0]):
            assert engine.explain(chunk, SESSION).outcome is Outcome.DECLINE

        def explain(chunk: str) -> object:
            return engine.explain(chunk, SESSION)

        def delayed(chunk: str) -> object:
            spin(DELAY if chunk in planted else 0)
            return explain(chunk)

        planted = set(hidden)
        area = area_under_curve(*cpu_times(explain, hidden, absent, pairs=given.pairs, seed=given.seed))
        seen = area_under_curve(*cpu_times(delayed, hidden, absent, pairs=given.pairs // 10, seed=given.seed))
    print(f"{given.pairs} pairs of {len(hidden)} hidden ids, seed {given.seed}")
    print(
        f"hidden above absent by CPU time: {area}; max(area, 1 - area) at most {area.at_most:.4f}, want < 0.55"
    )
    print(f"with {DELAY // 1_000_000} ms planted: {seen}; want > 0.7")
    raise SystemExit(area.at_most >= 0.55 or seen.low <= 0.7)


if __name__ == "__main__":
    main()
