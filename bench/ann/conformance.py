"""Random searches by every plan, judged by an oracle outside the core.

::

    python -m bench.ann.conformance --full --out bench/ann/results/conformance.json
    python -m bench.ann.conformance --certified --out bench/ann/results/certified.json
    python -m bench.ann.conformance --concurrent 200000

Three runs. The first asks random worlds (``bench.ann.worlds``) random questions, after every change to them: each
plan must be complete, admissible and true, exact plans must find the nearest, and no kernel, thread count or batch
may change a byte. The second builds each world twice, the second time with its inadmissible rows removed, replaced or
permuted: a certified answer must be the same, byte for byte. The third (``bench.ann.concurrency``) searches while
others write.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann import concurrency
from bench.ann.oracle import VIOLATIONS, Rows, admits, judge, truth
from bench.ann.worlds import AS_OF, World, draw_columns, draw_policy, draw_queries, draw_vectors
from bench.harness import parser
from carag.errors import UnlabelledWarning
from carag.evaluation.run_metadata import processor_name
from carag.index import DType, Index, Plan, kernels

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from carag.index import SearchResult
    from carag.policy import Policy


FULL_WORLDS: Final = 21_000
"""Enough for 10^5 pairs of (index, policy) and 10^7 searches."""
LARGE_SHARE: Final = 50
"""One world in fifty has 4,500 rows or more: enough for a scan to go by cells."""
CERTIFIED_WORLDS: Final = 100_000

_QUERIES: Final = 20
_EXACT: Final = (Plan.EXACT, Plan.CERTIFIED)
_MAY_BECOME: Final = {
    Plan.AUTO: {Plan.EXACT, Plan.SCAN, Plan.GRAPH},
    Plan.EXACT: {Plan.EXACT},
    Plan.SCAN: {Plan.SCAN, Plan.EXACT},
    Plan.GRAPH: {Plan.GRAPH, Plan.SCAN, Plan.EXACT},
    Plan.CERTIFIED: {Plan.CERTIFIED},
}


@dataclass(slots=True)
class Outcome:
    """What a run found."""

    worlds: int = 0
    pairs: int = 0
    """Distinct (state of an index, policy) asked about."""
    searches: int = 0
    violations: Counter[str] = field(default_factory=Counter)
    plans: Counter[str] = field(default_factory=Counter)
    """Searches by the plan that made the answer."""
    changes: Counter[str] = field(default_factory=Counter)
    fallbacks: int = 0
    by_cells: int = 0
    """Scans that looked at some of the admissible rows only."""
    empty: int = 0
    """Searches that admitted nothing."""
    first: str = ""
    """The first violation, with what repeats it; empty if nothing was violated."""

    def blame(self, what: str, where: str) -> None:
        """Record one violation."""
        self.violations[what] += 1
        self.first = self.first or f"{where}: {what}"


# ---------------------------------------------------------------- every plan against the oracle


def run(*, worlds: int, seed: int, progress: bool = False) -> Outcome:
    """Ask ``worlds`` random worlds, one in fifty of them with 4,500 rows or more."""
    outcome = Outcome()
    for number in range(worlds):
        rng = np.random.default_rng([seed, number])
        world = _draw_world(rng, number)
        here = f"world {number} of seed {seed}"
        for _ in range(int(rng.integers(1, 5))):
            for _ in range(2):
                _ask(rng, world, outcome, here)
            outcome.changes[world.change()] += 1
        for fault in world.faults + list(world.index.check()):
            outcome.blame(fault, here)
        outcome.worlds += 1
        if progress and outcome.worlds % 1_000 == 0:
            _tell(outcome)
    return outcome


def _draw_world(rng: Generator, number: int) -> World:
    is_large = number % LARGE_SHARE == LARGE_SHARE - 1
    share = rng.random()
    sizes = (
        (4_500, 8_000) if is_large else (0, 80) if share < 0.6 else (80, 300) if share < 0.95 else (300, 800)
    )
    dim = int(rng.integers(1, rng.choice([9, 33, 131])))
    dtype = DType(rng.choice([DType.FLOAT32, DType.FLOAT32, DType.FLOAT16, DType.INT8]))
    M = int(rng.choice([8, 16] if is_large else [2, 3, 4, 8, 16]))  # noqa: N806 - the paper's name
    ef_construction = int(rng.choice([20, 40] if is_large else [1, 5, 20]))
    return World(rng, sizes, dim, M=M, ef_construction=ef_construction, seed=number, dtype=dtype)


def _ask(rng: Generator, world: World, outcome: Outcome, here: str) -> None:
    """Put some queries under one policy to every plan."""
    index, rows = world.index, world.rows
    n = rows.keys.size
    policy, as_of = draw_policy(rng, rows.words), int(rng.choice(AS_OF))
    queries = draw_queries(rng, rows, index.dim, _QUERIES)
    k = int(
        rng.choice([1, 1, 2, 5, 10, 10, 20, 100] if rng.random() < 0.9 or n > 1_000 else [max(n, 1), n + 3])
    )
    width = None if rng.random() < 0.3 else int(rng.choice([1, 4, 16, 64]))
    expected = truth(rows, queries, policy, as_of)
    admissible = expected.best.shape[1]
    kernel = str(rng.choice(kernels.available()))
    also = rng.random() < 0.1
    outcome.pairs += 1
    outcome.empty += (admissible == 0) * _QUERIES * len(Plan)
    if index.count(policy, as_of=as_of) != admissible:
        outcome.blame("count() is wrong", here)
    for plan in Plan:

        def search(some: NDArray[np.float64] = queries, plan: Plan = plan, threads: int = 1) -> SearchResult:
            return index.search(some, k, policy, plan=plan, ef_search=width, as_of=as_of, threads=threads)

        with kernels.use(kernel):
            got = search()
        what = f"{here}, {outcome.pairs} pairs in, {plan}, k={k}, ef_search={width}, as_of={as_of}, {kernel}"
        for verdict in judge(rows, expected, got, np.isin(got.stats.plans, _EXACT)).tolist():
            if verdict:
                outcome.blame(VIOLATIONS[verdict - 1], what)
        if got.stats.admissible != admissible or got.stats.rows != n:
            outcome.blame("statistics are wrong", what)
        if not _MAY_BECOME[plan].issuperset(got.stats.plans):
            outcome.blame("a plan that was not asked for", what)
        if also and not _agree(search, got, queries):
            outcome.blame("kernels, threads or batches differ", what)
        outcome.searches += _QUERIES
        outcome.plans.update(map(str, got.stats.plans))
        outcome.fallbacks += int(got.stats.fallbacks.sum())
        outcome.by_cells += sum(
            ran is Plan.SCAN and int(seen) < admissible
            for ran, seen in zip(got.stats.plans, got.stats.estimates, strict=True)
        )


def _agree(search: Any, first: SearchResult, queries: NDArray[np.float64]) -> bool:
    """Ask again with every kernel, with two threads, and one by one."""
    results = [search(threads=2)]
    for kernel in kernels.available():
        with kernels.use(kernel):
            results.append(search())
    alone = [search(query) for query in queries]
    return all(_answer(first) == _answer(result) for result in results) and all(
        np.array_equal(first.keys[q], one.keys[0])
        and np.array_equal(first.similarities[q], one.similarities[0])
        for q, one in enumerate(alone)
    )


def _answer(result: SearchResult) -> tuple[bytes, bytes, bytes]:
    return result.keys.tobytes(), result.similarities.tobytes(), result.counts.tobytes()


# ---------------------------------------------------------------- certified worlds


def run_certified(*, worlds: int, seed: int, progress: bool = False) -> Outcome:
    """Build each world twice, alike in its admissible rows only, and compare certified answers byte for byte."""
    outcome = Outcome()
    for number in range(worlds):
        rng = np.random.default_rng([seed, number])
        n = int(rng.integers(0, 60) if rng.random() < 0.6 else rng.integers(60, 240))
        dim = int(rng.integers(1, rng.choice([9, 65])))
        dtype = DType(rng.choice(list(DType)))
        given = _draw_rows(rng, n, dim, np.arange(n) * 3)
        policy, as_of = draw_policy(rng, given.words), int(rng.choice(AS_OF))
        how, other = _altered(rng, given, policy, as_of)
        queries = draw_queries(rng, given, dim, 4)
        k = int(rng.choice([1, 2, 10, n + 3]))
        answers = []
        for rows in (given, other):
            index = _built(rng, rows, dim, dtype)
            with kernels.use(str(rng.choice(kernels.available()))):
                answers.append(index.search(queries, k, policy, plan=Plan.CERTIFIED, as_of=as_of, threads=1))
        one, two = answers
        outcome.worlds += 1
        outcome.pairs += 1
        outcome.searches += 2 * len(queries)
        outcome.changes[how] += 1
        outcome.plans.update(map(str, one.stats.plans + two.stats.plans))
        outcome.empty += (one.stats.admissible == 0) * len(queries)
        if _answer(one) != _answer(two) or one.stats.plans != two.stats.plans:
            outcome.blame(
                "a certified answer depends on inadmissible rows", f"world {number} of seed {seed}, {how}"
            )
        if progress and outcome.worlds % 10_000 == 0:
            _tell(outcome)
    return outcome


def _draw_rows(rng: Generator, n: int, dim: int, keys: NDArray[np.int64]) -> Rows:
    columns: dict[str, Any] = draw_columns(rng, n)
    return Rows(draw_vectors(rng, n, dim), **columns, keys=keys)


def _altered(rng: Generator, given: Rows, policy: Policy, as_of: int) -> tuple[str, Rows]:
    """Remove, replace or permute the inadmissible rows."""
    is_open = admits(given, policy, as_of)
    kept, hidden = given.where(is_open), given.where(~is_open)
    how = str(rng.choice(["removed", "replaced", "permuted"]))
    if how == "removed":
        hidden = hidden.where(rng.random(hidden.keys.size) < rng.choice([0.0, 0.5]))
    elif how == "replaced":
        n = 2 * given.keys.size
        drawn = _draw_rows(rng, n, given.vectors.shape[1], np.arange(n) * 3 + 1)
        hidden = drawn.where(~admits(drawn, policy, as_of))
    else:
        columns = [getattr(hidden, name) for name in Rows.__slots__]
        order = rng.permutation(hidden.keys.size)
        hidden = Rows(columns[0][order], *columns[1:])
    both = Rows(
        *(np.concatenate([getattr(part, name) for part in (kept, hidden)]) for name in Rows.__slots__)
    )
    return how, both.where(rng.permutation(both.keys.size))


def _built(rng: Generator, rows: Rows, dim: int, dtype: DType) -> Index:
    index = Index(dim, M=2, ef_construction=1, seed=int(rng.integers(100)), dtype=dtype)
    for part in np.array_split(np.arange(rows.keys.size), int(rng.integers(1, 4))):
        some = rows.where(part)
        index.add(
            some.vectors,
            some.words,
            some.keys,
            public_at=some.public_at,
            expires_at=some.expires_at,
            entities=some.entities,
            audiences=some.audiences,
            allow_quarantine=True,
            threads=1,
        )
    return index


# ---------------------------------------------------------------- the command


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.worlds:,} worlds, {outcome.pairs:,} pairs, {outcome.searches:,} searches, "
        f"{outcome.violations.total()} violations",
        flush=True,
    )


def main() -> None:
    """Make the run the command line asks for and write what was found."""
    arguments = parser("bench.ann.conformance", __doc__)
    arguments.add_argument("--worlds", type=int, help="how many; by default a hundredth of the full count")
    arguments.add_argument("--full", action="store_true", help="the full count of worlds")
    arguments.add_argument(
        "--certified", action="store_true", help="certified answers, each world built twice"
    )
    arguments.add_argument(
        "--concurrent", type=float, metavar="SECONDS", help="search beside writers for so long"
    )
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path)
    options = arguments.parse_args()
    warnings.simplefilter("ignore", UnlabelledWarning)  # every world has rows without a label
    begin = time.perf_counter()
    most = CERTIFIED_WORLDS if options.certified else FULL_WORLDS
    worlds = options.worlds or (most if options.full else most // 100)
    found: Outcome | concurrency.Outcome
    if options.concurrent:
        found = concurrency.run(searches=options.concurrent, seed=options.seed)
    elif options.certified:
        found = run_certified(worlds=worlds, seed=options.seed, progress=True)
    else:
        found = run(worlds=worlds, seed=options.seed, progress=True)
    report = {
        "seed": options.seed,
        **{name: getattr(found, name) for name in found.__slots__},
        "kernels": kernels.available(),
        "cpu": processor_name(),
        "seconds": round(time.perf_counter() - begin),
    }
    print(json.dumps(report, indent=2))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if found.first:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
