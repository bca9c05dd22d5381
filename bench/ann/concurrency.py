"""Searching while others write: what the account of any moment says of an answer given at that moment.

There are three kinds of rows. *Steady* rows stay open throughout; *flickering* ones are opened and closed all the
time, by key and by policy; *doomed* ones are open until a writer closes them for good, by relabelling or by deleting.
Then

- a doomed row whose closing had returned before a search began is in no answer of that search;
- a row that was never open is in no answer;
- a steady row that fewer than k rows of any kind could precede is in every answer of an exact plan;
- an answer is complete as far as the steady rows go, and without repetition.

Beside that, hidden rows are added and deleted, and the index is consolidated.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index import Index, Plan
from carag.policy import Mask, Policy, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


_DIM: Final = 16
_ROWS: Final = 1_200
_OPEN, _DOOMED, _HIDDEN = (int(policy_word(bits)) for bits in (1, 3, 4))
_POLICY: Final = Policy(Mask(required=1, forbidden=4), deny_entities=[7])


@dataclass(slots=True)
class Outcome:
    """What a run found."""

    searches: int = 0
    plans: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    first: str = ""

    def blame(self, what: str, where: str) -> None:
        """Record one violation."""
        self.violations[what] += 1
        self.first = self.first or f"{where}: {what}"


class _Stage:
    """An index, who is who in it, and how far the play has come."""

    def __init__(self, searches: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.searches, self.seed = searches, seed
        self.vectors = rng.standard_normal((_ROWS, _DIM)).astype(np.float32)
        kinds = rng.permutation(_ROWS) % 4
        self.steady, self.flickering, self.doomed, self.hidden = (
            np.flatnonzero(kinds == i) for i in range(4)
        )
        words = np.array([_OPEN, _OPEN, _DOOMED, _HIDDEN], dtype=np.uint32)[kinds]
        entities = np.where(kinds == 3, rng.choice([7, 8], _ROWS), 9)
        self.index = Index(_DIM, M=6, ef_construction=30)
        self.index.add(self.vectors, words, entities=entities)
        self.closed: list[int] = []
        """Doomed rows, appended once their closing has returned."""
        self.outcome = Outcome()
        self._progress = threading.Condition()
        self._is_stopped = False

    def is_over(self) -> bool:
        return self._is_stopped or self.outcome.searches >= self.searches or bool(self.outcome.first)

    def stop(self) -> None:
        """End the play early, so that an error in one part ends the others too."""
        with self._progress:
            self._is_stopped = True
            self._progress.notify_all()

    def wait_for(self, share: float) -> None:
        """Return when this share of the searches is done, or all is over."""
        with self._progress:
            self._progress.wait_for(lambda: self.outcome.searches >= share * self.searches or self.is_over())

    def count(self, what: str) -> None:
        with self._progress:
            self.outcome.writes[what] += 1

    def report(self, plan: Plan, faults: list[str]) -> None:
        with self._progress:
            self.outcome.searches += 1
            self.outcome.plans[plan.value] += 1
            for fault in faults:
                self.outcome.blame(fault, f"seed {self.seed}, {plan}")
            self._progress.notify_all()


# ---------------------------------------------------------------- writers


def _flicker_by_key(stage: _Stage) -> None:
    rng = np.random.default_rng([stage.seed, 1])
    while not stage.is_over():
        some = stage.flickering[rng.random(stage.flickering.size) < rng.choice([0.01, 0.3, 1.0])]
        stage.index.relabel(some, rng.choice([_OPEN, _HIDDEN, int(policy_word(9))], some.size))
        stage.count("relabel")


def _flicker_by_policy(stage: _Stage) -> None:
    """Give every open row another word that is open, too: bit 4 tells nothing to the policy that searches."""
    while not stage.is_over():
        stage.index.relabel_where(_POLICY, set=16)
        stage.index.relabel_where(Mask(required=16), clear=16)
        stage.count("relabel_where")


def _doom(stage: _Stage) -> None:
    """Close rows for good, one after another, over the whole time."""
    doomed = np.random.default_rng([stage.seed, 2]).permutation(stage.doomed).tolist()
    for i, key in enumerate(doomed):
        stage.wait_for(i / len(doomed))
        if i % 2:
            stage.index.delete([key])
        else:
            stage.index.relabel([key], [_HIDDEN])
        stage.closed.append(key)
        stage.count("closed for good")


def _come_and_go(stage: _Stage) -> None:
    """Add hidden rows and delete them; now and then consolidate."""
    rng = np.random.default_rng([stage.seed, 3])
    while not stage.is_over():
        n = int(rng.choice([1, 5, 200]))
        keys = stage.index.add(rng.standard_normal((n, _DIM)), [_HIDDEN] * n, threads=1)
        stage.index.delete(keys)
        stage.count("add and delete")
        if rng.random() < 0.2:
            stage.index.consolidate(threads=1)
            stage.count("consolidate")


# ---------------------------------------------------------------- searchers


def _search(stage: _Stage, *, searcher: int) -> None:
    rng = np.random.default_rng([stage.seed, 10 + searcher])
    steady, hidden = set(stage.steady.tolist()), set(stage.hidden.tolist())
    while not stage.is_over():
        query = rng.standard_normal(_DIM).astype(np.float32)
        plan, k = rng.choice(list(Plan)), int(rng.choice([1, 10, 400, _ROWS]))
        gone = set(stage.closed)
        found = stage.index.search(query, k, _POLICY, plan=plan, threads=1)
        got = found.keys[0][: found.counts[0]].tolist()
        faults = []
        if gone.intersection(got):
            faults.append("a row closed for good before the search began")
        if hidden.intersection(got) or max(got, default=0) >= _ROWS:
            faults.append("a row that was never open")
        if len(set(got)) != len(got):
            faults.append("a row twice")
        if len(got) < min(k, len(steady)):
            faults.append("fewer rows than were open all along")
        is_exact = found.stats.plans[0] in (Plan.EXACT, Plan.CERTIFIED)
        if is_exact and not _sure(stage, query, k, gone).issubset(got):
            faults.append("a steady row among the nearest is missing")
        stage.report(found.stats.plans[0], faults)


def _sure(stage: _Stage, query: NDArray[np.float32], k: int, gone: set[int]) -> set[int]:
    """Find the steady rows that belong to the k nearest, whichever others are open at the moment."""
    similarities = stage.vectors @ query / np.linalg.norm(stage.vectors, axis=1)
    could = np.setdiff1d(np.concatenate([stage.steady, stage.flickering, stage.doomed]), list(gone))
    nearest = could[np.argsort(-similarities[could])[:k]]
    clearly = (
        similarities[nearest] > similarities[nearest[-1]] + 1e-5
        if could.size > k
        else np.ones(nearest.size, bool)
    )
    return set(np.intersect1d(nearest[clearly], stage.steady).tolist())


def _play(part: Callable[[_Stage], None], stage: _Stage) -> None:
    try:
        part(stage)
    except BaseException:
        stage.stop()
        raise


def run(*, searches: int, seed: int) -> Outcome:
    """Search so often, and write all the while."""
    stage = _Stage(searches, seed)
    parts: tuple[Callable[[_Stage], None], ...] = (
        _flicker_by_key,
        _flicker_by_policy,
        _doom,
        _come_and_go,
        *(partial(_search, searcher=i) for i in range(2)),
    )
    with ThreadPoolExecutor(len(parts)) as pool:
        for job in [pool.submit(_play, part, stage) for part in parts]:
            job.result()
    for fault in stage.index.check():
        stage.outcome.blame(fault, f"seed {seed}, at the end")
    return stage.outcome
