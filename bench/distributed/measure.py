"""Ask places the same questions in turn, and divide what they take by what the native index takes.

One question at a time. A call is timed from the policy to the ids; of a backend it is
:meth:`carag.backends.Checked.search`, so every check is in the figure. Its first question under a policy, which
counts, is asked before; sessions ask again and again under the same few. The order of the places is drawn anew for
every question. What is right is computed in double precision (:mod:`bench.ann.truth`).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.ann.datasets import load
from bench.ann.policies import Correlation, cells, label
from bench.ann.truth import bars, judge, nearest
from bench.distributed.places import NATIVE, TooSlow, fill, places
from carag.backends import Checked, GraphBackend, NativeBackend
from carag.errors import CaragError
from carag.index import Plan
from carag.policy import Mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.ann.engine import Request, Rows
    from bench.ann.policies import Cell
    from bench.ann.truth import Bars
    from carag.backends import VectorBackend

__all__ = ["SHARES", "K", "Scope", "run"]

K: Final = 10
SHARES: Final = (1.0, 0.2, 0.05, 0.01, 0.001)
_POLICIES: Final = 8
"""Of a cell, so that each is asked several times."""
_BUILD_MB: Final = 2048
"""Megabytes in which PostgreSQL may build its graph; with its default of 64 it builds most of it on disk."""
_FEWEST: Final = 3
"""Questions of a place in a cell, however long one takes."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run covers."""

    set: str
    places: tuple[str, ...]
    cache: Path
    scratch: Path
    questions: int = 60
    """At most, a place and cell."""
    seconds: float = 30.0
    """Likewise."""
    minutes: float = 10.0
    """That loading a place may take."""
    with_graph: bool = False
    """Whether PostgreSQL builds its graph, which is then measured besides."""


class _Entry(NamedTuple):
    """A way to ask that is ready."""

    name: str
    backend: str
    """Its kind and version."""
    ask: Callable[[NDArray[np.float32], Mask], tuple[NDArray[np.int64], str]]
    """Returns the keys of the best rows, and the plan that ran."""


@dataclass(slots=True)
class _Taken:
    """What was seen of one entry in a cell."""

    ms: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    short: int = 0
    violations: int = 0
    plan: str = ""
    why_not: str = ""
    """Why the place is not asked any more."""


def run(scope: Scope, about: dict[str, Any], write: Callable[[dict[str, Any]], None]) -> None:
    """Make the places ready, one after the other, and measure every share.

    A place that cannot be made ready, or fails once under questions, is written down and left out from then on.
    """
    data = load(scope.set, scope.cache)
    rows = label(data, sessions=False)
    queries = data.queries[: 4 * scope.questions]
    near = nearest(data.vectors, queries, 100)
    asked = [
        cell
        for cell in cells(rows, near, data.seed, shares=SHARES)
        if cell.correlation is Correlation.NEUTRAL
    ]
    right = bars(rows, queries, asked, K)
    shape = {"set": scope.set, "rows": len(rows.words), "dim": rows.vectors.shape[1], "seed": data.seed}
    with ExitStack() as held:
        entries: list[_Entry] = []
        for name, place in places(scope.places).items():
            try:
                made, seconds = _ready(name, scope, rows, held)
            except (TooSlow, CaragError) as error:
                why = f"{place.what}: {error}"
                print(f"{name} is left out: {why}", flush=True)
                write({"kind": "left out", **shape, "place": name, "why": why, **about})
                continue
            print(f"{name}: loaded in {seconds:,.0f} s", flush=True)
            write({"kind": "load", **shape, "place": name, "seconds": round(seconds, 1), **about})
            entries += made
        for cell, bar in zip(asked, right, strict=True):
            for record in _measured(cell, bar, rows, queries, entries, scope):
                write({"kind": "cell", **shape, **record, **about})


def _ready(name: str, scope: Scope, rows: Rows, held: ExitStack) -> tuple[list[_Entry], float]:
    """Start and fill a place; one that fails is gone at once, the others when `held` ends."""
    place = places((name,))[name]
    if place.missing:
        raise TooSlow(f"not installed: {', '.join(place.missing)}")
    home = scope.scratch / name
    home.mkdir(parents=True)
    with ExitStack() as undo:
        backend = undo.enter_context(place.open(home, rows.vectors.shape[1]))
        # Without the native index there is nothing to divide by, so it is waited for.
        seconds = fill(backend, rows, scope.minutes if name != NATIVE else float("inf"))
        entries = list(_entries(name, backend, rows, scope))
        held.push(undo.pop_all())
    return entries, seconds


class _Labels:
    """The words of all rows, as a label store knows them."""

    def __init__(self, rows: Rows) -> None:
        from carag.policy import policy_word

        self._words = policy_word(rows.words.astype(np.int64))

    def words_of(self, keys: Any) -> dict[int, int]:
        """Return the words of some keys."""
        return {int(key): int(self._words[key]) for key in keys if 0 <= key < len(self._words)}


def _entries(name: str, backend: VectorBackend, rows: Rows, scope: Scope) -> Iterator[_Entry]:
    checked = Checked(backend, _Labels(rows), rows.vectors.shape[1])
    kind = checked.state().backend
    if isinstance(backend, NativeBackend):
        index = backend._index  # noqa: SLF001 - as the engine has it, without the checks of a backend

        def native(plan: str) -> Callable[..., tuple[NDArray[np.int64], str]]:
            def ask(query: NDArray[np.float32], mask: Mask) -> tuple[NDArray[np.int64], str]:
                found = index.search(query, K, mask, plan=plan)
                return found.keys[0], found.stats.plans[0].value

            return ask

        yield _Entry(NATIVE, kind, native("certified"))
        yield _Entry(f"{NATIVE} auto", kind, native("auto"))
        yield _Entry(f"{NATIVE} checked", kind, _asking(checked, Plan.CERTIFIED))
        return
    yield _Entry(name, kind, _asking(checked, Plan.EXACT))
    if scope.with_graph and isinstance(backend, GraphBackend):
        backend.build_graph(memory_mb=_BUILD_MB)
        yield _Entry(f"{name} graph", kind, _asking(checked, Plan.GRAPH))


def _asking(checked: Checked, plan: Plan) -> Callable[..., tuple[NDArray[np.int64], str]]:
    def ask(query: NDArray[np.float32], mask: Mask) -> tuple[NDArray[np.int64], str]:
        found = checked.search(query, K, mask, plan=plan)
        return found.keys[0], found.stats.plans[0].value

    return ask


def _measured(
    cell: Cell, bar: Bars, rows: Rows, queries: NDArray[np.float32], entries: list[_Entry], scope: Scope
) -> Iterator[dict[str, Any]]:
    """Measure a share; entries that fail are taken out of the list."""
    masks = [Mask(one.required, one.forbidden) for one in cell.requests]
    places_of = np.flatnonzero(cell.asked[:, 1] < _POLICIES)[: scope.questions]
    rng = np.random.default_rng(0)
    taken = {entry.name: _Taken() for entry in entries}
    for at in _first_of_each(cell.asked[places_of, 1]):
        query, mask = cell.asked[places_of[at]]
        for entry in entries:
            _ask(entry, taken[entry.name], queries[query], masks[mask])
    for at in places_of.tolist():
        query, mask = cell.asked[at]
        for turn in rng.permutation(len(entries)):
            entry, seen = entries[turn], taken[entries[turn].name]
            if len(seen.ms) >= _FEWEST and sum(seen.ms) > 1000 * scope.seconds:
                continue
            start = time.perf_counter()
            keys = _ask(entry, seen, queries[query], masks[mask])
            if keys is not None:
                seen.ms.append(1000 * (time.perf_counter() - start))
                _judge(seen, keys, queries[query], cell.requests[mask], rows, bar, at)
    base = taken[NATIVE].ms
    for entry in list(entries):
        if why := taken[entry.name].why_not:
            entries.remove(entry)
            print(f"{entry.name} is left out: {why}", flush=True)
            yield {"kind": "left out", "place": entry.name, "why": f"{entry.backend}: {why}"}
        else:
            yield _record(entry, taken[entry.name], base, cell, float(bar.admissible[places_of].mean()))


def _ask(entry: _Entry, seen: _Taken, query: NDArray[np.float32], mask: Mask) -> NDArray[np.int64] | None:
    """Return what a place answers; one that failed is not asked again, and without the native index the run ends."""
    if seen.why_not:
        return None
    try:
        keys, seen.plan = entry.ask(query, mask)
    except CaragError as error:
        if entry.name == NATIVE:
            raise
        seen.why_not = str(error)
        return None
    return keys


def _first_of_each(policies: NDArray[np.int64]) -> list[int]:
    first: list[int] = np.unique(policies, return_index=True)[1].tolist()
    return first


def _judge(
    seen: _Taken,
    keys: NDArray[np.int64],
    query: NDArray[np.float32],
    request: Request,
    rows: Rows,
    bar: Bars,
    at: int,
) -> None:
    verdict = judge(keys, query, request, rows, int(bar.wanted[at]), float(bar.similarity[at]))
    seen.recall.append(verdict.recall)
    seen.short += verdict.short
    seen.violations += verdict.violations


def _record(entry: _Entry, seen: _Taken, base: list[float], cell: Cell, admissible: float) -> dict[str, Any]:
    half, most = (float(np.quantile(seen.ms, at)) for at in (0.5, 0.95))
    record = {
        "place": entry.name,
        "backend": entry.backend,
        "plan": seen.plan,
        "share": cell.share,
        "admissible": round(admissible, 1),
        "n": len(seen.ms),
        "p50_ms": round(half, 3),
        "p95_ms": round(most, 3),
        # Of the same questions: a place that ran out of time was asked the first of them.
        "times_native_p50": round(half / float(np.median(base[: len(seen.ms)])), 2),
        "times_native_p95": round(most / float(np.quantile(base[: len(seen.ms)], 0.95)), 2),
        "recall": round(float(np.mean(seen.recall)), 4),
        "short": seen.short,
        "violations": seen.violations,
        "ms": [round(one, 3) for one in seen.ms],
    }
    print({name: value for name, value in record.items() if name != "ms"}, flush=True)
    return record
