"""The policy tax: throughput under a policy over that of an unfiltered index of the admissible rows alone.

Once as an index comes, and once with a materialised view of the policy. Making the policy is timed with every search,
on all sides.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.ann.engine import Request, Rows, Store
from bench.ann.ours import Carag
from bench.ann.policies import one_policy_cells
from bench.ann.run import K
from bench.ann.truth import bars, judge
from carag.errors import InvalidArgument
from carag.index import Plan
from carag.index.views import QUERIES_BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bench.ann.policies import Cell
    from bench.ann.run import Field, Settings


FEWEST: Final = 1_000
"""Admissible rows below which the call itself is the cost, and no tax is quoted."""
WIDE: Final = 0.1
"""Share of admissible rows from which the first of the two goals holds."""
GOALS: Final = (0.55, 0.75)
"""Of the throughput of the rows alone: from that share up, and below."""
VIEW_GOAL: Final = 0.9
"""The same with a view."""
_VIEW_BYTES: Final = 4 << 30
_PATIENCE: Final = 600.0
"""Seconds that making a view may take."""


def tax_goal(share: float) -> float:
    """Return the part of the throughput of the rows alone that is wanted under a policy."""
    return GOALS[share < WIDE]


def measure_tax(
    about: Field, cells: list[Cell], store: Store, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Measure the first policy of every neutral word cell with at least 1,000 admissible rows."""
    whole, viewed = Carag(Plan.AUTO), Carag(Plan.AUTO, views=_VIEW_BYTES)
    for engine in (whole, viewed):
        engine.build(replace(about.rows, sessions=False), store)
    chosen = one_policy_cells(cells, settings.queries)
    for cell, bar in zip(chosen, bars(about.rows, about.queries, chosen, K), strict=True):
        if bar.admissible[0] < FEWEST or cell.share == 1.0:
            continue
        request = cell.requests[0]
        kept = np.flatnonzero(request.admissible(about.rows))
        alone = Carag(Plan.AUTO)
        part = Store(store.path, f"{store.keep}-{cell.share:g}-{request.required:x}-{request.forbidden:x}")
        alone.build(_part(about.rows, kept), part)
        asked = np.ascontiguousarray(about.queries[cell.asked[:, 0]])
        ways = {
            "policy": (whole, request, np.arange(len(about.rows.words))),
            "alone": (alone, Request(), kept),
            "view": (viewed, request, np.arange(len(about.rows.words))),
        }
        _materialise(viewed, request, asked)
        qps: dict[str, list[float]] = {name: [] for name in ways}
        recall, plan = {}, {}
        for _ in range(settings.rounds):
            for name, (engine, posed, keys) in ways.items():
                seconds, ids = _ask(engine, posed, asked)
                qps[name].append(len(asked) / seconds)
                verdicts = [
                    judge(
                        keys[found],
                        query,
                        request,
                        about.rows,
                        int(bar.wanted[at]),
                        float(bar.similarity[at]),
                    )
                    for at, (query, found) in enumerate(zip(asked, ids, strict=True))
                ]
                recall[name] = float(np.mean([verdict.recall for verdict in verdicts]))
                work = engine.work(engine.last)
                plan[name] = work.plan if work else ""
        under, without, view = (float(np.median(qps[name])) for name in ways)
        yield {
            "set": about.name,
            "share": cell.share,
            "admissible": int(bar.admissible[0]),
            "n": len(asked),
            "qps_under_policy": round(under, 1),
            "recall_under_policy": round(recall["policy"], 4),
            "plan": plan["policy"],
            "qps_rows_alone": round(without, 1),
            "recall_rows_alone": round(recall["alone"], 4),
            "plan_alone": plan["alone"],
            "ratio": round(under / without, 3),
            "qps_with_view": round(view, 1),
            "recall_with_view": round(recall["view"], 4),
            "ratio_with_view": round(view / without, 3),
            "seed": about.seed,
            "commit": about.commit,
        }


def _part(rows: Rows, kept: NDArray[np.int64]) -> Rows:
    """Take some rows; every word passes now."""
    return Rows(
        np.ascontiguousarray(rows.vectors[kept]),
        rows.words[kept],
        rows.public_at[kept],
        rows.entities[kept],
        rows.entity_count,
        rows.digest,
        sessions=False,
    )


def _materialise(engine: Carag, request: Request, queries: NDArray[np.float32]) -> None:
    """Ask until a view answers."""
    for at in range(QUERIES_BEFORE):
        engine.search(queries[at % len(queries)], K, engine.policy(request), 0)
    before, begin = engine.stats().view_hits, time.monotonic()
    while engine.stats().view_hits == before:
        if (error := engine.stats().view_error) or time.monotonic() - begin > _PATIENCE:
            raise InvalidArgument(f"no view was made: {error or 'it takes too long'}; want one to measure")
        time.sleep(0.1)
        engine.search(queries[0], K, engine.policy(request), 0)


def _ask(
    engine: Carag, request: Request, queries: NDArray[np.float32]
) -> tuple[float, list[NDArray[np.int64]]]:
    engine.search(queries[0], K, engine.policy(request), 0)  # warm
    spent, answers = 0.0, []
    for query in queries:
        begin = time.perf_counter()
        ids = engine.search(query, K, engine.policy(request), 0)
        spent += time.perf_counter() - begin
        answers.append(ids[ids >= 0])
    return spent, answers
