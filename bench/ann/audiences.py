"""Rows that are shared with groups: who may see a row is a list, and a session has hundreds of groups.

There are 10,000 lists of 1 to 30 of 10,000 groups, and each occurs with five words, so that an index has up to 50,000
classes. The session of a share has 300 groups, and that share of the lists names one of them. A bit of the words marks
the same rows, so that the same question can be asked of words alone.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Request, Rows
from bench.ann.policies import Cell, Correlation, Variant
from carag.errors import InvalidArgument
from carag.index import Index
from carag.policy import Mask, Policy, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from bench.ann.datasets import Dataset


SHARES: Final = (0.5, 0.05, 0.005)
AUDIENCES: Final = 10_000
GROUPS: Final = 10_000
MOST: Final = 30
"""Groups of a list."""
HELD: Final = 300
"""Groups of a session."""
CLASSES: Final = (10_000, 50_000, 100_000, 1_000_000)
"""Of the indexes whose pass over classes is timed."""
_WORDS: Final = 400
_EACH: Final = 5
"""Words that an audience occurs with."""
_FREE: Final = 18
"""Bits of a word that tell words apart; the others mark the rows of a session."""
_DIM: Final = 8
_K: Final = 10


def share(data: Dataset, shares: tuple[float, ...], queries: int) -> tuple[Rows, list[Cell]]:
    """Give every row a word and an audience, and draw a session for each share, whom ``queries`` ask.

    Raises
    ------
    InvalidArgument
        If there are more shares than bits to mark their rows by.
    """
    if len(shares) > 27 - _FREE:
        raise InvalidArgument(f"{len(shares)} shares are too many; want at most {27 - _FREE}")
    rng = np.random.default_rng([data.seed, 12])
    held, others = np.split(rng.permutation(np.arange(1, GROUPS + 1)), [HELD * len(shares)])
    sessions = held.reshape(len(shares), HELD)
    shared = np.array([rng.permutation(AUDIENCES) < round(part * AUDIENCES) for part in shares])
    lists = _lists(sessions, others, shared, rng)
    shared = np.pad(shared, ((0, 0), (1, 0)))  # no row has the audience 0
    rows = len(data.vectors)
    audiences = rng.integers(1, AUDIENCES + 1, rows, np.uint32)
    distinct = rng.choice(1 << _FREE, _WORDS, replace=False).astype(np.uint32)
    words = distinct[(_EACH * audiences + rng.integers(0, _EACH, rows)) % _WORDS]
    for at, some in enumerate(shared):
        words |= some[audiences].astype(np.uint32) << np.uint32(_FREE + at)
    zeros = np.zeros(rows, np.uint32)
    digest = hashlib.sha256(np.stack([words, audiences]).tobytes()).hexdigest()[:8]
    made = Rows(
        data.vectors, words, zeros, zeros, 1, digest, sessions=False, audiences=audiences, lists=lists
    )
    asked = np.zeros((min(queries, len(data.queries)), 2), np.int64)
    asked[:, 0] = np.arange(len(asked))
    return made, [
        Cell(
            Variant.AUDIENCES,
            part,
            Correlation.NEUTRAL,
            (Request(groups=tuple(sorted(own.tolist())), shared=some, twin=1 << _FREE + at),),
            asked,
        )
        for at, (part, own, some) in enumerate(zip(shares, sessions, shared, strict=True))
    ]


def _lists(sessions: Any, others: Any, shared: Any, rng: Generator) -> tuple[tuple[int, ...], ...]:
    """Draw distinct lists, each with a group of every session that it is shared with."""
    found: dict[tuple[int, ...], None] = {(): None}
    for session in shared.T:
        own = [int(rng.choice(sessions[at])) for at in np.flatnonzero(session)]
        while True:
            more = max(0, int(rng.integers(1, MOST + 1)) - len(own))
            one = tuple(sorted([*own, *rng.choice(others, more, replace=False).tolist()]))
            if one not in found:
                break
        found[one] = None
    return tuple(found)


# ---------------------------------------------------------------- the pass over classes


def measure_classes(classes: int, calls: int) -> dict[str, Any]:
    """Time counts and searches in an index with this many classes, one row each; a policy admits one in 200.

    The policy is one that the index has not met, or one that is kept; both are made before they are timed.
    """
    rng = np.random.default_rng(classes)
    index = Index(_DIM, M=2, ef_construction=1)
    numbers = rng.permutation(np.arange(1, classes + 1))
    index.add(
        rng.standard_normal((classes, _DIM)), policy_word(np.ones(classes, np.int64)), audiences=numbers
    )
    query, draws = rng.standard_normal(_DIM), count()
    admitted = classes // 200

    def fresh() -> Policy:
        first = next(draws) * 7 % (classes - admitted)
        return Policy(Mask(), audiences=np.sort(numbers[first : first + admitted]).tolist())

    kept = fresh()
    ways: dict[str, tuple[Callable[[], Policy], Callable[[Policy], object]]] = {
        f"{what}_us_{name}": (policy, work)
        for what, work in (
            ("count", index.count),
            ("search", lambda policy: index.search(query, _K, policy, threads=1)),
        )
        for name, policy in (("fresh", fresh), ("kept", lambda: kept))
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(calls):
        for name, (make, work) in ways.items():
            policy = make()
            begin = time.perf_counter()
            work(policy)
            taken[name].append(1e6 * (time.perf_counter() - begin))
    medians = {name: round(statistics.median(some), 1) for name, some in taken.items()}
    return {"classes": classes, "admitted": admitted, "calls": calls, **medians}
