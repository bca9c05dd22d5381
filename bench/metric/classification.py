"""Measure rerankers: whether, over evidence that is given, what they say is SUPPORTS or CONTRADICTS.

The threshold is never chosen on what is reported: on the development part where a set has one, and otherwise on all
clusters but the one that is judged.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.metric.measures import (
    Interval,
    accuracy,
    area,
    average_precision,
    best_threshold,
    confusion,
    interval,
    macro_f1,
)
from bench.metric.models import progress
from carag.labelling.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.metric.corpora import Excerpt
    from carag.evaluation.regulatory import Reranker


PAPER: Final = 0.6
"""The paper's contradiction threshold."""
SLOW_TURNS: Final = 2
"""Turns of an excerpt that a slow model reads."""


class Judged(NamedTuple):
    """What a response says, piece by piece, the passages that it is held against, and the truth."""

    id: str
    cluster: int
    """Items of one contract, or of one use, are no independent ones."""
    claims: tuple[str, ...]
    passages: tuple[str, ...]
    contradicts: bool
    is_dev: bool = False


def of_excerpts(found: Sequence[Excerpt], passages: dict[str, tuple[str, ...]]) -> list[Judged]:
    """Return excerpts against the chunks of their own article; those that the experts leave undecided are left out."""
    return [
        Judged(one.id, one.use, one.turns, passages[one.article], not one.is_compliant)
        for one in found
        if one.is_compliant is not None
    ]


def scored(reranker: Reranker, items: Sequence[Judged]) -> list[float]:
    """Return a score for each item: of each claim that of the passage that supports it most, and of these the mean."""
    said = progress(f"{reranker.name} scores")
    found = []
    for at, one in enumerate(items, start=1):
        claims = _drawn(one) if getattr(reranker, "is_slow", False) else one.claims
        found.append(float(np.mean([max(reranker.score(claim, [*one.passages])) for claim in claims])))
        said(at, len(items))
    return found


def classification(
    name: str, each: str, items: Sequence[Judged], rerankers: Sequence[Reranker]
) -> dict[str, Any]:
    """Return the figures of each reranker over one set, and the paired differences of each two.

    Parameters
    ----------
    name, each : str
        What the set is called, and what its clusters are.
    items : sequence of Judged
    rerankers : sequence of Reranker
    """
    ordered = sorted(items, key=lambda one: one.cluster)
    dev, test = [[one for one in ordered if one.is_dev is is_dev] for is_dev in (True, False)]
    clusters, truth = [one.cluster for one in test], [one.contradicts for one in test]
    verdicts: dict[str, list[bool]] = {}
    figures: dict[str, Any] = {}
    for reranker in rerankers:
        marks = scored(reranker, test)
        if dev:
            chosen = best_threshold(scored(reranker, dev), [one.contradicts for one in dev])
            limits = [chosen] * len(test)
        else:
            limits = cross_validated(marks, truth, clusters)
        verdicts[reranker.name] = [mark < limit for mark, limit in zip(marks, limits, strict=True)]
        figures[reranker.name] = {
            "thresholds": sorted({*limits}),
            **_with_intervals(marks, truth, clusters, verdicts[reranker.name]),
        }
    constant = _f1(truth, [sum(truth) * 2 > len(truth)] * len(truth), clusters)
    return {
        "set": name,
        "each": each,
        "n": len(test),
        "contradictions": sum(truth),
        "clusters": len({*clusters}),
        "development": len(dev),
        "figures": figures,
        "majority": constant,
        "differences": {
            f"{one} - {other}": _difference(truth, verdicts[one], verdicts[other], clusters)
            for one, other in combinations(verdicts, 2)
        },
    }


def cross_validated(marks: Sequence[float], truth: Sequence[bool], clusters: Sequence[int]) -> list[float]:
    """Return for each item the threshold that is best on all other clusters."""
    found: dict[int, float] = {}
    for left_out in {*clusters}:
        kept = [at for at, cluster in enumerate(clusters) if cluster != left_out]
        found[left_out] = best_threshold([marks[at] for at in kept], [truth[at] for at in kept])
    return [found[cluster] for cluster in clusters]


def _drawn(one: Judged) -> list[str]:
    """Return what a slow model reads of a response: of the first turns, which are drawn, the longest sentence."""
    if len(one.claims) == 1:
        return [*one.claims]
    return [
        max((text[start:end] for start, end in sentences(text)), key=len, default=text)
        for text in one.claims[:SLOW_TURNS]
    ]


def _with_intervals(
    marks: list[float], truth: list[bool], clusters: list[int], said: list[bool]
) -> dict[str, Interval]:
    return {
        "macro-F1": _f1(truth, said, clusters),
        "macro-F1 at 0.6": _f1(truth, [mark < PAPER for mark in marks], clusters),
        "accuracy": interval(lambda w: accuracy(confusion(truth, said, w)), clusters),
        "AUC": interval(lambda w: area(marks, truth, w), clusters),
        "average precision": interval(lambda w: average_precision(marks, truth, w), clusters),
    }


def _f1(truth: list[bool], said: list[bool], clusters: list[int]) -> Interval:
    return interval(lambda w: macro_f1(confusion(truth, said, w)), clusters)


def _difference(truth: list[bool], one: list[bool], other: list[bool], clusters: list[int]) -> Interval:
    return interval(
        lambda w: macro_f1(confusion(truth, one, w)) - macro_f1(confusion(truth, other, w)), clusters
    )
