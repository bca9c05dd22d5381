"""Measure embedder, reranker and variant together: the metric's verdict on documentation, beside that of three experts.

An excerpt of AIReg-Bench is one response of several turns (:func:`bench.metric.corpora.turns`), each asked for by the
article's number and title.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.corpora import ActCorpus
from bench.metric.measures import THRESHOLDS, Interval, accuracy, confusion, interval, kappa
from bench.metric.models import Bm25
from carag.evaluation.regulatory import Batch, MeasuredSession, Regulatory, SessionVerdict, Settings, Variant

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from bench.metric.corpora import Excerpt
    from bench.metric.models import KeptEmbedder
    from carag.evaluation.regulatory import DocumentRetriever, RegulatoryInteraction, Reranker, RetrievedChunk


CROSS_VALIDATED: Final = "paper, threshold cross-validated"
"""The variant ``paper`` with the contradiction threshold that is best on all other uses."""
_YES, _NO = SessionVerdict.COMPLIANT.value, SessionVerdict.NON_COMPLIANT.value
_HALF: Final = 0.5
"""The paper's compliance threshold."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What the experts say of one excerpt."""

    id: str
    use: int
    is_compliant: bool


@dataclass(slots=True)
class Cell:
    """One combination: its verdicts by id."""

    embedder: str
    reranker: str
    variant: str
    verdicts: dict[str, str] = field(default_factory=dict)
    marks: dict[str, list[tuple[float, list[float]]]] = field(default_factory=dict)
    """Weight and reranker's scores of each turn; of the variant ``paper``."""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.embedder} × {self.reranker}, {self.variant}"


def sessions_of(found: Sequence[Excerpt]) -> list[MeasuredSession]:
    """Return the documentation of each use and scenario as a session, each of its excerpts with the same weight."""
    by_use: dict[str, list[Excerpt]] = defaultdict(list)
    for one in found:
        by_use[f"use{one.use}-{one.scenario}"].append(one)
    return [MeasuredSession(name, "aireg-bench", list(_turns(some))) for name, some in by_use.items()]


def truths(found: Sequence[Excerpt]) -> list[Truth]:
    """Return the truth of the excerpts; those that the median expert leaves undecided are left out."""
    return [Truth(one.id, one.use, one.is_compliant) for one in found if one.is_compliant is not None]


def experts(found: Sequence[Excerpt]) -> dict[str, Any]:
    """Return the kappa of each two experts where both decide, with how many excerpts that are."""
    made: dict[str, Any] = {}
    for one, other in combinations(range(min(len(item.scores) for item in found)), 2):
        both = [item for item in found if item.scores[one] != 3 and item.scores[other] != 3]
        left, right = ([item.scores[at] > 3 for item in both] for at in (one, other))
        made[f"{one + 1} and {other + 1}"] = interval(
            partial(_kappa, left, right), [item.use for item in both]
        )
    return made


def joint(
    found: Sequence[Excerpt],
    articles: dict[str, str],
    embedders: Sequence[KeptEmbedder],
    rerankers: Sequence[Reranker],
    judges: Sequence[Any],
) -> dict[str, Any]:
    """Run every combination, and return its agreement with the experts."""
    cells: list[Cell] = []
    whole = sessions_of(found)
    for embedder in embedders:
        searched = _searched(embedder, articles)
        for model, variants in [
            *((one, (Variant.PAPER, Variant.REFERENCE)) for one in rerankers),
            *((one, (Variant.STANCE,)) for one in judges),
        ]:
            for variant in variants:
                cells.append(_measured(embedder, model, variant, searched, whole))
                one = cells[-1]
                print(f"joint: {one.name}: {one.seconds:.0f} s", file=sys.stderr, flush=True)
    cells += [cross_validated(one, truths(found)) for one in cells if one.variant == Variant.PAPER]
    return {
        "excerpts": _agreement(cells, truths(found)),
        "undecided": _undecided(cells, [one.id for one in found if one.is_compliant is None]),
        "experts": experts(found),
        "turns": sum(len(one.turns) for one in found),
        "seconds": {one.name: one.seconds for one in cells if one.seconds},
    }


def cross_validated(cell: Cell, decided: Sequence[Truth]) -> Cell:
    """Judge again what a cell scored, each use by the threshold of the greatest accuracy on excerpts of the others."""
    made = Cell(cell.embedder, cell.reranker, CROSS_VALIDATED)
    uses = {one: int(one.removeprefix("use").partition("-")[0]) for one in cell.marks}
    right = {
        limit: {one.id: (_verdict(cell.marks[one.id], limit) == _YES) is one.is_compliant for one in decided}
        for limit in THRESHOLDS
    }
    for use in {*uses.values()}:
        others = [one.id for one in decided if one.use != use]
        counted = {limit: sum(some[name] for name in others) for limit, some in right.items()}
        best = [limit for limit, count in counted.items() if count == max(counted.values())]
        limit = best[len(best) // 2]
        made.verdicts |= {
            name: _verdict(cell.marks[name], limit) for name, of_use in uses.items() if of_use == use
        }
    return made


def _turns(some: Sequence[Excerpt]) -> Iterator[Batch]:
    for one in some:
        for at, text in enumerate(one.turns):
            weight = 1 / (len(some) * len(one.turns))
            yield Batch(qa_id=f"{one.id}/{at}", query=one.query, assistant=text, weight=weight)


class _Found:
    """The passages of every turn, searched once and judged by every model: they do not depend on it."""

    def __init__(self, retriever: DocumentRetriever) -> None:
        self._retriever = retriever
        self._kept: dict[tuple[str, str], list[RetrievedChunk]] = {}

    def __len__(self) -> int:
        return len(self._retriever)

    def retrieve_merged(self, query: str, response: str) -> list[RetrievedChunk]:
        if (query, response) not in self._kept:
            self._kept[query, response] = self._retriever.retrieve_merged(query, response)
        return self._kept[query, response]


def _searched(embedder: KeptEmbedder, articles: dict[str, str]) -> dict[bool, _Found]:
    """Return the passages as the package cuts and finds them, and as the paper does."""
    found = {}
    for variant in (Variant.PAPER, Variant.REFERENCE):
        metric = Regulatory(ActCorpus(articles), embedder, Bm25(()), Settings(variant=variant))
        metric.load()
        found[variant.is_package] = _Found(metric._retriever)  # noqa: SLF001 - so that each turn is searched once
    return found


def _measured(
    embedder: KeptEmbedder,
    model: Any,
    variant: Variant,
    searched: dict[bool, _Found],
    whole: Sequence[MeasuredSession],
) -> Cell:
    began = time.monotonic()
    cell = Cell(embedder.name, model.name, variant.value)
    metric = Regulatory(ActCorpus({}), embedder, model, Settings(variant=variant))
    metric._retriever = searched[variant.is_package]  # type: ignore[assignment]  # noqa: SLF001
    for session in whole:
        judged = metric.batch(session.session_id, session.assistant_id, session.turns)
        parts: dict[str, list[int]] = defaultdict(list)
        for at, turn in enumerate(session.turns):
            parts[turn.qa_id.partition("/")[0]].append(at)
        for name, places in parts.items():
            # What result() would say of these turns alone, with equal weights; they are judged already.
            of_part, weights = [judged[at] for at in places], [1 / len(places)] * len(places)
            alone = metric._aggregated(name, session.assistant_id, of_part, weights)  # noqa: SLF001
            cell.verdicts[name] = alone.verdict.value
            if variant is Variant.PAPER:
                cell.marks[name] = _marks(weights, of_part)
    cell.seconds = time.monotonic() - began
    return cell


def _marks(
    weights: Sequence[float], judged: Sequence[RegulatoryInteraction]
) -> list[tuple[float, list[float]]]:
    return [
        (weight, [chunk.reranker_score for chunk in one.retrieved_chunks])
        for weight, one in zip(weights, judged, strict=True)
    ]


def _verdict(marks: Sequence[tuple[float, list[float]]], limit: float) -> str:
    """Return the paper's verdict on a session at another contradiction threshold."""
    covered = [(Fraction(weight), scores) for weight, scores in marks if scores]
    if not covered:
        return SessionVerdict.IRRELEVANT.value
    whole = sum(weight for weight, _ in covered)
    got = sum(
        weight * Fraction(sum(one >= limit for one in scores), len(scores)) for weight, scores in covered
    )
    # As the metric does, the exact mean is rounded once before it is compared.
    return _YES if float(got / whole) >= _HALF else _NO


def _agreement(cells: Sequence[Cell], truth: Sequence[Truth]) -> dict[str, Any]:
    ordered = sorted(truth, key=lambda one: (one.use, one.id))
    uses = [one.use for one in ordered]
    real = [_YES if one.is_compliant else _NO for one in ordered]
    said = {cell.name: [cell.verdicts[one.id] for one in ordered] for cell in cells}

    def of(verdicts: list[str]) -> dict[str, Any]:
        return {
            "accuracy": interval(lambda w: accuracy(confusion(real, verdicts, w)), uses),
            "kappa": interval(partial(_kappa, real, verdicts), uses),
            "said": {name.value: verdicts.count(name.value) for name in SessionVerdict},
        }

    def differ(one: str, other: str) -> Interval:
        return interval(lambda w: _kappa(real, said[one], w) - _kappa(real, said[other], w), uses)

    figures = {
        cell.name: {
            "embedder": cell.embedder,
            "reranker": cell.reranker,
            "variant": cell.variant,
            **of(said[cell.name]),
        }
        for cell in cells
    }
    best = max(figures, key=lambda name: figures[name]["kappa"].value)
    return {
        "n": len(ordered),
        "compliant": real.count(_YES),
        "figures": figures,
        "always compliant": of([_YES] * len(real)),
        "never compliant": of([_NO] * len(real)),
        "best": best,
        "differences from the best": {
            f"{best} - {name}": differ(best, name) for name in figures if name != best
        },
    }


def _kappa(one: Sequence[Hashable], other: Sequence[Hashable], weights: NDArray[np.float64]) -> Any:
    return kappa(confusion(one, other, weights))


def _undecided(cells: Sequence[Cell], ids: Sequence[str]) -> dict[str, Any]:
    return {
        "n": len(ids),
        "share compliant": {
            cell.name: float(np.mean([cell.verdicts[one] == _YES for one in ids])) for cell in cells
        }
        if ids
        else {},
    }
