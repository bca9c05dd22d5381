"""The measurement: one query at a time, one thread, one core, engines taking turns.

What is timed is a whole call, from the request in its plainest terms to the ids: making the policy in the engine's
own terms (``Policy(Mask(...))``, a bitmap, a filter, a list of words or entities), the search, and whatever an engine
does after it. What may be ready before is made of the rows alone, once, when the index is built. Judging is off the
clock. `Settings.policy_inside` switched off leaves the policy's own value, which holds nothing of the rows, out of it.

A cell is measured in two phases. The *scout* tries every engine over its efforts with a few queries, to find where
each stands; where those say that recall is enough, more are asked before the sweep ends, since a few flatter. In the
*rounds*, CARAG, the native hnswlib and every engine near the front are measured again at the efforts around the
recalls that are quoted, taking turns in an order drawn for each round, and the medians over rounds are what counts.
An engine that is left behind in the scout keeps its scout rows, with the reason.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.curves import Point, qps_at
from bench.ann.truth import Bars, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from bench.ann.engine import Build, Engine, Request, Rows
    from bench.ann.policies import Cell


K: Final = 10
QUOTED: Final = (0.95, 0.99)
"""Recalls at which throughput is read off."""
ENOUGH: Final = 0.995
"""Mean recall at which a sweep over efforts ends."""
NEAR: Final = 2.0
"""An engine within this factor of the best peer, at either recall, is in the rounds."""
HOPELESS: Final = 20.0
"""Queries a second below which a sweep ends, whatever its recall."""
_SCOUTED: Final = 100
_LEAST: Final = 0.02
"""Share of a cell's time that a point may have however fast it is, so that its rounds outlast a hiccup."""
_MARGIN: Final = 0.01
"""How far below a quoted recall the scout's last effort may lie and the effort still be measured again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to measure."""

    seconds: float = 8.0
    """Of the rounds of a cell, shared among its points."""
    scout_seconds: float = 0.06
    """Of one point of the scout."""
    rounds: int = 9
    queries: int = 1_000
    """At most, a cell."""
    fewest: int = 200
    """Questions that a point of the rounds is asked, and the effort that ends a sweep, however long they take; all of
    a cell that has no more. A point under 20 queries/s is asked as many as its share of the time allows."""
    policy_inside: bool = True
    """Whether the policy's value is made inside every timed call, or once a session."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An engine that is ready."""

    engine: Engine
    build: Build
    always: bool
    """Whether it is measured in the rounds of every cell, however slow."""


@dataclass(frozen=True, slots=True)
class Row:
    """One engine at one effort in one cell, as it goes into the results file."""

    set: str
    rows: int
    dim: int
    variant: str
    share: float
    """Asked for."""
    admissible: float
    """Mean number of admissible rows over the questions."""
    correlation: str
    engine: str
    is_peer: bool
    bits: int
    effort: int
    phase: str
    """``scout`` or ``rounds``."""
    n: int
    """Distinct questions."""
    calls: int
    qps: float
    """Median over rounds of calls a second."""
    qps_rounds: tuple[float, ...]
    p50_us: float
    p95_us: float
    p99_us: float
    recall: float
    recall_p1: float
    """First percentile over questions."""
    recall_zero: int
    """Questions of which nothing was found."""
    short: int
    violations: int
    policy_us: float
    """Median microseconds to make the policy's value, measured apart: the calls include it, unless settings say no."""
    build_seconds: float
    build_threads: int
    bytes_per_row: float
    plans: dict[str, int] | None
    """Questions by the plan that answered."""
    fallbacks: int | None
    distances: float | None
    """Mean vectors scored."""
    stopped: str
    """Why no larger effort was tried, where that was not for having found enough."""
    seed: int
    commit: str


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What every row of a data set shares."""

    name: str
    rows: Rows
    queries: NDArray[np.float32]
    seed: int
    commit: str


@dataclass(slots=True, eq=False)
class _Trial:
    """One engine at one effort, and what has been seen of it in a cell."""

    entry: Entry
    effort: int
    seconds: list[list[float]] = field(default_factory=list)
    """Of every call, by round."""
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    """By question."""
    plans: dict[int, str] = field(default_factory=dict)
    fallbacks: dict[int, bool] = field(default_factory=dict)
    distances: dict[int, int] = field(default_factory=dict)
    policy_us: float = 0.0
    stopped: str = ""
    next: int = 0
    """The question to go on with."""

    @property
    def calls(self) -> int:
        return sum(len(some) for some in self.seconds)

    @property
    def qps(self) -> float:
        return float(np.median([len(some) / sum(some) for some in self.seconds]))

    @property
    def pace(self) -> float:
        """Calls a second by the median call: what the scout decides by, since it outlives a disturbance."""
        return 1 / float(np.median(np.concatenate([np.array(some) for some in self.seconds])))

    @property
    def recall(self) -> float:
        return float(np.mean([verdict.recall for verdict in self.verdicts.values()]))

    @property
    def point(self) -> Point:
        return Point(self.effort, self.recall, self.pace)


def measure_cell(
    entries: list[Entry], cell: Cell, bars: Bars, about: Field, settings: Settings
) -> Iterator[Row]:
    """Measure every engine in one cell; rows come when they are done, scout first."""
    asker = _Asker(cell, bars, about, settings)
    swept: list[list[_Trial]] = []
    for entry in entries:
        swept.append(_scout(entry, asker, _best_peer(swept), settings))
    for trials in swept:
        yield from (_row(trial, "scout", cell, bars, about) for trial in trials)
    scouted = [trial for trials in _contenders(swept) for trial in trials]
    again = [_Trial(trial.entry, trial.effort) for trial in scouted]
    budgets = _budgets([settings.queries / trial.pace for trial in scouted], settings.seconds)
    fewest = [min(settings.fewest, settings.queries) if trial.pace >= HOPELESS else 1 for trial in scouted]
    rng = np.random.default_rng(about.seed)
    for _ in range(settings.rounds):
        for turn in rng.permutation(
            len(again)
        ):  # who follows a plan on the same index finds its rows in the cache
            trial, total = again[turn], budgets[turn]
            if sum(map(sum, trial.seconds)) < 2 * total or len(trial.verdicts) < fewest[turn]:
                least = math.ceil(fewest[turn] / settings.rounds)
                asker.ask(trial, budget=total / settings.rounds, least=least)
    yield from (_row(trial, "rounds", cell, bars, about) for trial in again)


class _Asker:
    """Asks the questions of a cell and judges the answers, off the clock."""

    def __init__(self, cell: Cell, bars: Bars, about: Field, settings: Settings) -> None:
        chosen = np.linspace(0, len(cell.asked) - 1, min(settings.queries, len(cell.asked))).astype(np.int64)
        self._questions = chosen.tolist()
        self._cell, self._bars, self._about = cell, bars, about
        self._queries = np.ascontiguousarray(about.queries[cell.asked[chosen, 0]])
        self._masks = cell.asked[chosen, 1].tolist()
        self._policies: dict[str, tuple[dict[int, Any], float]] = {}
        self._policy_inside = settings.policy_inside

    def ask(self, trial: _Trial, *, budget: float, least: int = 1, most: int | None = None) -> None:
        """Ask on from where this trial's last round ended: `least`, then until the budget or the questions run out.

        Answers are judged, and the statistics of those engines that have any are read, when all are asked: read between
        two calls, they took a quarter of the rate of calls of 25 microseconds, and of CARAG's alone.
        """
        engine, effort = trial.entry.engine, trial.effort
        policies, trial.policy_us = self._policies_of(engine)
        count = len(self._questions)
        start = trial.next
        if not trial.seconds:
            engine.search(self._queries[start], K, policies[self._masks[start]], effort)  # warm
        clock, search, seconds, answers = time.perf_counter, engine.search, [], []
        if self._policy_inside:
            policies, search = dict(enumerate(self._cell.requests)), _making(engine)
        spent = 0.0
        for step in range(min(most or count, count)):
            at = (start + step) % count
            query, policy = self._queries[at], policies[self._masks[at]]
            begin = clock()
            ids = search(query, K, policy, effort)
            took = clock() - begin
            seconds.append(took)
            answers.append((at, ids, None if at in trial.verdicts else engine.last))
            spent += took
            if spent > budget and len(seconds) >= least:
                break
        trial.seconds.append(seconds)
        trial.next = (start + len(seconds)) % count
        for at, ids, answer in answers:
            if at in trial.verdicts:
                continue
            trial.verdicts[at] = self._judged(at, ids)
            if work := engine.work(answer):
                trial.plans[at], trial.fallbacks[at], trial.distances[at] = (
                    work.plan,
                    work.fallback,
                    work.distances,
                )

    def _policies_of(self, engine: Engine) -> tuple[dict[int, Any], float]:
        """Make each policy's value once, as a session does, and time that."""
        if engine.name not in self._policies:
            made, took = {}, []
            for mask in sorted(set(self._masks)):
                begin = time.perf_counter()
                made[mask] = engine.policy(self._cell.requests[mask])
                took.append(time.perf_counter() - begin)
            self._policies[engine.name] = made, 1e6 * float(np.median(took))
        return self._policies[engine.name]

    def _judged(self, at: int, ids: NDArray[np.int64]) -> Verdict:
        question = self._questions[at]
        return judge(
            ids,
            self._queries[at],
            self._cell.requests[self._masks[at]],
            self._about.rows,
            int(self._bars.wanted[question]),
            float(self._bars.similarity[question]),
        )


def _making(engine: Engine) -> Callable[..., NDArray[np.int64]]:
    """Return a search that makes the policy's value first."""

    def search(query: NDArray[np.float32], k: int, request: Request, effort: int) -> NDArray[np.int64]:
        return engine.search(query, k, engine.policy(request), effort)

    return search


def _scout(entry: Entry, asker: _Asker, best: float, settings: Settings) -> list[_Trial]:
    """Sweep an engine's efforts upward until recall is enough or it cannot win any more."""
    trials: list[_Trial] = []
    for effort in entry.engine.efforts:
        trial = _Trial(entry, effort)
        asker.ask(trial, budget=settings.scout_seconds, most=_SCOUTED)
        trials.append(trial)
        slow = ""
        if trial.pace < HOPELESS:
            slow = f"under {HOPELESS:g} queries/s"
        elif not entry.always and trial.pace < best / (2 * NEAR):
            slow = f"under 1/{2 * NEAR:g} of the best peer at recall {QUOTED[-1]}"
        if trial.recall >= ENOUGH and effort and not slow:
            asker.ask(trial, budget=math.inf, most=settings.fewest)
        if trial.recall >= ENOUGH and effort:
            break
        if slow:
            trial.stopped = slow
            break
    return trials


def _budgets(wanted: list[float], seconds: float) -> list[float]:
    """Share seconds so that what is cheap gets all it wants, and the rest shares what is left evenly."""
    given = [0.0] * len(wanted)
    left = seconds
    for rank, at in enumerate(sorted(range(len(wanted)), key=lambda at: wanted[at])):
        given[at] = min(max(wanted[at], seconds * _LEAST), left / (len(wanted) - rank))
        left -= given[at]
    return given


def _best_peer(swept: list[list[_Trial]], recall: float = QUOTED[-1]) -> float:
    found = [
        qps_at([trial.point for trial in trials], recall)
        for trials in swept
        if trials and trials[0].entry.engine.is_peer
    ]
    return max((qps for qps in found if qps), default=0.0)


def _contenders(swept: list[list[_Trial]]) -> list[list[_Trial]]:
    """Keep engines that are near the best peer, and of each the efforts around the quoted recalls."""
    kept = []
    for trials in swept:
        near = trials[0].entry.always or any(
            (qps_at([trial.point for trial in trials], recall) or 0.0) * NEAR >= _best_peer(swept, recall) > 0
            for recall in QUOTED
        )
        if near:
            kept.append(_around(trials))
    return kept


def _around(trials: list[_Trial]) -> list[_Trial]:
    """Keep the efforts from the last below the least quoted recall to the first with enough of it."""
    own = [trial for trial in trials if not trial.effort]  # the engine's own choice has no place in the order
    sweep = [trial for trial in trials if trial.effort]
    first, last = 0, len(sweep)
    for at, trial in enumerate(sweep):
        if trial.recall < QUOTED[0] - _MARGIN:
            first = at
    for at, trial in enumerate(sweep[first:], start=first + 1):
        if trial.recall >= ENOUGH:
            last = at
            break
    return [*own, *sweep[first:last]]


def _row(trial: _Trial, phase: str, cell: Cell, bars: Bars, about: Field) -> Row:
    engine, build = trial.entry.engine, trial.entry.build
    micros = 1e6 * np.concatenate([np.array(some) for some in trial.seconds])
    recalls = np.array([verdict.recall for verdict in trial.verdicts.values()])
    plans: dict[str, int] = {}
    for plan in trial.plans.values():
        plans[plan] = plans.get(plan, 0) + 1
    rows, dim = about.rows.vectors.shape
    return Row(
        set=about.name,
        rows=rows,
        dim=dim,
        variant=cell.variant.value,
        share=cell.share,
        admissible=round(float(bars.admissible.mean()), 1),
        correlation=cell.correlation.value,
        engine=engine.name,
        is_peer=engine.is_peer,
        bits=engine.bits,
        effort=trial.effort,
        phase=phase,
        n=len(trial.verdicts),
        calls=trial.calls,
        qps=_digits(trial.qps),
        qps_rounds=tuple(_digits(len(some) / sum(some)) for some in trial.seconds),
        p50_us=_digits(float(np.quantile(micros, 0.5))),
        p95_us=_digits(float(np.quantile(micros, 0.95))),
        p99_us=_digits(float(np.quantile(micros, 0.99))),
        recall=round(float(recalls.mean()), 5),
        recall_p1=round(float(np.quantile(recalls, 0.01, method="lower")), 3),
        recall_zero=int(np.count_nonzero(recalls == 0)),
        short=sum(verdict.short for verdict in trial.verdicts.values()),
        violations=sum(verdict.violations for verdict in trial.verdicts.values()),
        policy_us=_digits(trial.policy_us),
        build_seconds=_digits(build.seconds),
        build_threads=build.threads,
        bytes_per_row=round(build.bytes_per_row, 1),
        plans=plans or None,
        fallbacks=sum(trial.fallbacks.values()) if plans else None,
        distances=_digits(float(np.mean(list(trial.distances.values())))) if plans else None,
        stopped=trial.stopped,
        seed=about.seed,
        commit=about.commit,
    )


def _digits(value: float) -> float:
    """Keep four significant digits: more is noise."""
    return float(f"{value:.4g}")
