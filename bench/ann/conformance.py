"""Random cases of (index, words, masks, query), every plan, every kernel, judged by an oracle outside the core.

::

    python -m bench.ann.conformance --cases 100000 --large 1000 --out bench/ann/results/conformance.json

A case is a fresh index: its dimension, size, graph parameters, vectors (clusters, duplicates, wild lengths),
words (few classes, Zipf, all distinct; unlabelled and quarantined rows among them), release times, and a history
of relabels, deletes and returns; then one query under one policy, asked with every plan and every kernel this
machine can run, as of two instants. Case ``i`` of a seed is the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.oracle import VIOLATIONS, Rows, judge, truth
from carag.index import Index, Plan, kernels
from carag.policy import NEVER, QUARANTINE, Mask, Policy, policy_word

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

__all__ = ["Case", "Outcome", "cpu_name", "make_case", "run"]

_SMALL_ROWS: Final = (0, 80)
_MEDIUM_ROWS: Final = (200, 800)
_LARGE_ROWS: Final = (2_000, 6_000)


@dataclass(frozen=True, slots=True)
class Case:
    """One index with its history, and one question."""

    index: Index
    rows: Rows
    query: NDArray[np.float64]
    policy: Policy
    k: int
    ef_search: int | None
    as_of: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found."""

    cases: int
    large: int
    searches: int
    violations: dict[str, int]
    plans: dict[str, int]
    """Searches by the plan that made the answer."""
    fallbacks: int
    empty: int
    """Searches that admitted nothing."""
    first: str
    """The first violation, with what repeats it; empty when there is none."""


def make_case(seed: int, number: int, *, large: bool) -> Case:
    """Make case ``number`` of a seed."""
    rng = np.random.default_rng([seed, number, large])
    # One small case in ten is big enough for graph searches that end before the exact scan would.
    some = _MEDIUM_ROWS if rng.random() < 0.1 else _SMALL_ROWS
    n = int(rng.integers(*(_LARGE_ROWS if large else some)))
    dim = int(rng.integers(1, 65 if large else 131))
    index = Index(
        dim,
        M=int(rng.choice([8, 16] if large else [2, 3, 4, 8, 16, 32])),
        ef_construction=int(rng.choice([20, 40] if large else [1, 5, 20, 60])),
        seed=number,
    )
    vectors = _vectors(rng, n, dim)
    words = _words(rng, n)
    public_at = _public_at(rng, n)
    keys = rng.permutation(n) * int(rng.choice([1, 1_000_003]))
    for part in np.array_split(np.arange(n), int(rng.integers(1, 4))):
        index.add(vectors[part], words[part], keys[part], public_at=public_at[part], allow_quarantine=True)
    rows = _history(rng, index, Rows(vectors, words, public_at, keys))
    return Case(
        index=index,
        rows=rows,
        query=_query(rng, rows.vectors, dim),
        policy=_policy(rng, rows.words),
        k=int(rng.choice([1, 2, 10, max(n, 1), n + 3])) if not large else int(rng.choice([1, 2, 10, 100])),
        ef_search=rng.choice([None, 1, 4, 16, 64]),  # type: ignore[arg-type]
        as_of=int(rng.choice([1, 150, 1_000])),
    )


def _vectors(rng: Generator, n: int, dim: int) -> NDArray[np.float64]:
    shape = rng.choice(["normal", "clusters", "copies", "signs"])
    vectors = rng.standard_normal((n, dim))
    if shape == "clusters":
        vectors = 0.1 * vectors + rng.standard_normal((5, dim))[rng.integers(0, 5, n)]
    elif shape == "copies" and n:
        vectors = vectors[rng.integers(0, max(1, n // int(rng.choice([2, 10, n]))), n)]
    elif shape == "signs":
        vectors = np.sign(vectors)
    lengths = np.exp(rng.uniform(-5, 5, (n, 1))) if rng.random() < 0.3 else 1.0
    # The core sees float32, so the oracle must judge what float32 can hold.
    return (vectors * lengths).astype(np.float32).astype(np.float64)


def _words(rng: Generator, n: int) -> NDArray[np.uint32]:
    kind = rng.choice(["few", "zipf", "distinct", "bits"])
    if kind == "few":
        bits = rng.integers(0, 1 << 27, 4)[rng.integers(0, 4, n)]
    elif kind == "zipf":
        bits = rng.integers(0, 1 << 27, 200)[np.minimum(rng.zipf(1.5, n), 200) - 1]
    elif kind == "distinct":
        bits = rng.permutation(1 << 16)[:n] << 7
    else:
        bits = rng.integers(0, 8, n)
    words = policy_word(bits.astype(np.int64))
    unlabelled = rng.random(n) < rng.choice([0.0, 0.1])
    words[unlabelled] &= np.uint32((1 << 27) - 1)
    words[rng.random(n) < rng.choice([0.0, 0.1])] |= np.uint32(QUARANTINE)
    return words


def _public_at(rng: Generator, n: int) -> NDArray[np.int64]:
    if rng.random() < 0.5:
        return np.zeros(n, dtype=np.int64)
    return rng.choice(np.array([0, 100, 200, NEVER], dtype=np.int64), n)


def _history(rng: Generator, index: Index, rows: Rows) -> Rows:
    """Relabel some rows, delete some, add some of those again under their old keys."""
    n = rows.keys.size
    words, live = rows.words.copy(), np.ones(n, dtype=bool)
    if n and rng.random() < 0.5:
        changed = rng.permutation(n)[: int(rng.integers(1, n + 1))]
        words[changed] = _words(rng, changed.size)
        index.relabel(rows.keys[changed], words[changed], allow_quarantine=True)
    if n and rng.random() < 0.5:
        gone = rng.permutation(n)[: int(rng.integers(1, n + 1))]
        index.delete(rows.keys[gone])
        back = gone[: int(rng.integers(0, gone.size + 1))]
        index.add(
            rows.vectors[back],
            words[back],
            rows.keys[back],
            public_at=rows.public_at[back],
            allow_quarantine=True,
        )
        live[gone] = False
        live[back] = True
    return Rows(rows.vectors[live], words[live], rows.public_at[live], rows.keys[live])


def _query(rng: Generator, vectors: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    query = rng.standard_normal(dim)
    if len(vectors) and rng.random() < 0.5:  # a stored row, or close to one
        query = vectors[rng.integers(len(vectors))] + rng.choice([0.0, 0.1]) * query
    query = query.astype(np.float32).astype(np.float64)
    return query if query.any() else np.ones(dim)


def _policy(rng: Generator, words: NDArray[np.uint32]) -> Policy:
    if rng.random() < 0.05:
        return Policy()
    count = 1 if rng.random() < 0.6 else int(rng.integers(2, 9))
    return Policy(*(_mask(rng, words) for _ in range(count)))


def _mask(rng: Generator, words: NDArray[np.uint32]) -> Mask:
    """Draw a mask around the bits of a stored word, so that masks select something between all and nothing."""
    word = int(words[rng.integers(words.size)]) if words.size else int(rng.integers(1 << 27))
    chosen = 0
    for bit in rng.integers(0, 27, int(rng.integers(0, 5))):
        chosen |= 1 << int(bit)
    kind = rng.integers(5)
    required, forbidden = chosen & word & ((1 << 27) - 1), chosen & ~word
    if kind == 0:
        return Mask()
    if kind == 1:
        return Mask(required=required)
    if kind == 2:
        return Mask(forbidden=forbidden)
    if kind == 3:
        return Mask(required=required | int(rng.integers(8)), forbidden=forbidden & ~7)
    return Mask(required=required, forbidden=forbidden)


def run(*, cases: int, large: int, seed: int, progress: bool = False) -> Outcome:
    """Run ``cases`` cases, ``large`` of them with 2,000 rows or more."""
    violations: Counter[str] = Counter(dict.fromkeys(VIOLATIONS, 0))
    plans: Counter[str] = Counter()
    searches = fallbacks = empty = 0
    first = ""
    for number in range(cases):
        is_large = number < large
        case = make_case(seed, number, large=is_large)
        for as_of in (0, case.as_of):
            expected = truth(case.rows, case.query, case.policy, as_of)
            for kernel, plan in product(kernels.available(), Plan):
                with kernels.use(kernel):
                    got = case.index.search(
                        case.query,
                        case.k,
                        case.policy,
                        plan=plan,
                        ef_search=case.ef_search,
                        as_of=as_of,
                    )
                ran = got.stats.plans[0]
                verdict = judge(
                    case.rows,
                    expected,
                    got.keys[0],
                    got.similarities[0],
                    int(got.counts[0]),
                    exact=ran is Plan.EXACT,
                )
                searches += 1
                plans[ran.value] += 1
                fallbacks += int(got.stats.fallbacks[0])
                empty += expected.best.size == 0
                if got.stats.admissible != expected.best.size:
                    verdict = 1
                if verdict:
                    violations[VIOLATIONS[verdict - 1]] += 1
                    first = first or (
                        f"case {number} of seed {seed}, as of {as_of}, {plan.value}, {kernel}: "
                        f"{VIOLATIONS[verdict - 1]}"
                    )
        if progress and (number + 1) % 5_000 == 0:
            print(f"{number + 1:,} cases, {sum(violations.values())} violations", flush=True)
    return Outcome(cases, min(large, cases), searches, dict(violations), dict(plans), fallbacks, empty, first)


def cpu_name() -> str:
    """Name the processor, for the record of a measurement."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Run the cases the command line asks for and write what was found."""
    parser = argparse.ArgumentParser(description="Judge the index by an oracle outside the core.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=1_000, help="how many have 2,000 rows or more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    begin = time.perf_counter()
    outcome = run(cases=options.cases, large=options.large, seed=options.seed, progress=True)
    report = {
        "seed": options.seed,
        "cases": outcome.cases,
        "cases with 2,000 to 6,000 rows": outcome.large,
        "searches judged": outcome.searches,
        "violations": outcome.violations,
        "searches by plan that answered": outcome.plans,
        "graph searches that became scans": outcome.fallbacks,
        "searches that admitted nothing": outcome.empty,
        "first violation": outcome.first,
        "kernels": list(kernels.available()),
        "cpu": cpu_name(),
        "seconds": round(time.perf_counter() - begin),
    }
    print(json.dumps(report, indent=2))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if outcome.first:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
