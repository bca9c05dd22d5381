"""The goals, as data, set before a row was measured; each judged met, missed and by how much, or not judged.

A run too small to reach a goal has not missed it, unless what it did see violates the goal already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from carag.evaluation.report.measures import MEASURES
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.estimate import Estimate, NotMeasured, digits, written
from carag.evaluation.statistics.latency import Percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from carag.evaluation.report.strata import Cell, CellName
    from carag.evaluation.run_metadata import About

__all__ = ["TARGETS", "Facts", "Rule", "State", "Target", "Verdict", "judge", "show"]


class Rule(StrEnum):
    """How a goal is judged."""

    AT_MOST = "at most the limit"
    AT_LEAST = "at least the limit"
    ABOVE = "no part of the interval below the limit"
    WITHIN = "no farther than the limit from the other system, on the same pairs"
    NOT_BELOW = "the paired interval against the other system does not lie below 0"
    P95_AT_MOST = "p95 of the stage at most the limit"
    P95_NOT_ABOVE = "p95 of the stage not above the other system's in the same run"
    TRIALS = "no violation in at least so many randomised pairs"
    WORLDS = "the same, to the last bit, as a store rebuilt without what the session may not see"
    PAIRS = "at least so many (question, session) pairs"
    PRESENT = "measured, with an interval"


class State(StrEnum):
    """What became of a goal."""

    MET = "met"
    MISSED = "missed"
    NEEDS_FULL_RUN = "needs the full run"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """A goal.

    Attributes
    ----------
    name : str
        Stable.
    rule : Rule
    system : str
    measure : str
        A measure's name, or a stage of latency.
    limit : float
    other : str
        The system compared with.
    scope : str
        Of the cell; ``everything`` includes adversaries and the development split.
    strata : bool
        Whether every stratum that is measured is judged, instead of the whole scope.
    """

    name: str
    rule: Rule
    system: str = ""
    measure: str = ""
    limit: float = 0.0
    other: str = ""
    scope: str = "real"
    strata: bool = False

    @property
    def statement(self) -> str:
        """Say it in words."""
        title = _TITLES.get(self.measure, self.measure)
        where = "every measured stratum" if self.strata else self.scope
        against = f" against {self.other}" if self.other else ""
        limit = (
            ""
            if self.rule in (Rule.NOT_BELOW, Rule.P95_NOT_ABOVE, Rule.PRESENT, Rule.WORLDS)
            else f" ({self.limit:,.10g})"
        )
        return ", ".join(part for part in (self.system, title, f"{self.rule}{limit}{against}", where) if part)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a goal under one set of models.

    Attributes
    ----------
    target : Target
    state : State
    by : float or None
        How far a missed goal was missed, in the measure's own unit.
    why : str
        The figure judged, with its interval; or why there is none.
    """

    target: Target
    state: State
    by: float | None
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "target": self.target.name,
            "statement": self.target.statement,
            "state": self.state.value,
            "missed_by": self.by,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What goals are judged by: the figures of one set of models, and what the run was of.

    Attributes
    ----------
    cells : mapping of CellName to Cell
    latency : mapping
        As `latencies` returns it.
    about : About or None
    pairs : int
        Distinct (question, session) pairs of real questions, in both splits.
    """

    cells: Mapping[CellName, Cell]
    latency: Mapping[str, Mapping[str, Mapping[str, Percentile | NotMeasured]]]
    about: About | None
    pairs: int


_TITLES: Final = {measure.name: measure.title for measure in MEASURES}
_OURS: Final = ("carag-auto", "carag-certified")
_FILTERS: Final = ("postfilter-1", "postfilter-4", "postfilter-16")
_EVERYTHING: Final = "everything"


def _safe() -> Iterator[Target]:
    for system in _OURS:
        for measure in ("cvr_query", "cvr_chunk", "cvr_touch", "odr_canary"):
            yield Target(f"{system}:{measure}=0", Rule.AT_MOST, system, measure, scope=_EVERYTHING)
        yield Target(f"{system}:trials", Rule.TRIALS, system, limit=1_000_000, scope="")
    yield Target("carag-certified:worlds", Rule.WORLDS, "carag-certified", scope="")
    yield Target(
        "carag-certified:noninterference",
        *(Rule.AT_LEAST, "carag-certified", "noninterference", 1.0),
        scope=_EVERYTHING,
    )


def _useful() -> Iterator[Target]:
    yield Target("pairs", Rule.PAIRS, limit=2_000)
    yield Target("oracle:evidence", Rule.PRESENT, "oracle", "evidence_recall")
    yield Target("oracle:f1", Rule.ABOVE, "oracle", "f1_answerable", 0.096)
    for ablation in ("carag-withheld-text", "carag-no-gate", "carag-no-refusal"):
        yield Target(f"ablation:{ablation}", Rule.PRESENT, ablation, "f1_all")
    for system in _OURS:
        for measure, limit in (("f1_answerable", 0.005), ("over_refusal", 0.01), ("under_refusal", 0.01)):
            yield Target(f"{system}:{measure}~oracle", Rule.WITHIN, system, measure, limit, other="oracle")
        for other in _FILTERS:
            yield Target(
                f"{system}:f1>={other}",
                *(Rule.NOT_BELOW, system, "f1_answerable"),
                other=other,
                strata=True,
            )
        yield Target(f"{system}:recall", Rule.AT_LEAST, system, "admissible_recall", 0.995, strata=True)
    yield Target(
        "carag-auto:p95", Rule.P95_NOT_ABOVE, "carag-auto", "retrieve", other="vanilla", scope="paper size"
    )
    yield Target(
        "carag-certified:p95", Rule.P95_AT_MOST, "carag-certified", "retrieve", 5.0, scope="paper size"
    )


TARGETS: Final = (*_safe(), *_useful())


def judge(target: Target, facts: Facts) -> Verdict:
    """Judge one goal. Points of a share are given as such: 0.005 is half a point."""
    return _JUDGES[target.rule](target, facts)


def _missing(target: Target, why: str) -> Verdict:
    return Verdict(target, State.NOT_MEASURED, None, why)


def _short(target: Target, why: str) -> Verdict:
    return Verdict(target, State.NEEDS_FULL_RUN, None, why)


def _small(facts: Facts) -> bool:
    return facts.about is not None and facts.about.small


def _said(target: Target, beyond: float, why: str) -> Verdict:
    """Judge by how far a figure lies on the wrong side."""
    missed = beyond > 0
    return Verdict(target, State.MISSED if missed else State.MET, digits(beyond) if missed else None, why)


def _figures(target: Target, facts: Facts) -> Iterator[tuple[CellName, Estimate | NotMeasured]]:
    """Find the cells judged, with their figure; for paired rules the difference."""
    for name, cell in facts.cells.items():
        if target.strata:
            if not name.dimension or cell.too_small:
                continue
        elif name.dimension or name.scope != target.scope:
            continue
        if target.rule in (Rule.WITHIN, Rule.NOT_BELOW):
            for pair in cell.paired:
                if (pair.system, pair.other, pair.measure) == (target.system, target.other, target.measure):
                    yield name, pair.difference
        elif target.system in cell.systems:
            yield name, cell.systems[target.system][target.measure]


def _unasked(target: Target, facts: Facts) -> tuple[str, str]:
    """Say of what a goal about everything cannot be judged: what was not asked may have leaked.

    Return why it is not measured, if pairs of a kind were left out; and the kinds left out as a whole, to be named.
    """
    if target.scope != _EVERYTHING:
        return "", ""
    without = []
    for name, cell in facts.cells.items():
        if name.dimension or name.scope == _EVERYTHING:
            continue
        rows = cell.rows.get(target.system, 0)
        if not rows:
            without.append(name.scope)
        elif rows < cell.pairs:
            return f"{target.system} was asked {rows} of {cell.pairs} pairs of {name.scope} only", ""
    return "", f"; not asked: {', '.join(without)}" if without else ""


def _by_figures(
    beyond: Callable[[Target, Estimate], float | None],
) -> Callable[[Target, Facts], Verdict]:
    def judged(target: Target, facts: Facts) -> Verdict:
        why, without = _unasked(target, facts)
        if why:
            return _missing(target, why)
        found = [
            (name, figure, far)
            for name, figure in _figures(target, facts)
            if isinstance(figure, Estimate) and (far := beyond(target, figure)) is not None
        ]
        if not found:
            return _unfound(target, facts)
        name, figure, far = max(found, key=lambda one: (one[2], one[0]))
        if target.rule is Rule.ABOVE and far > 0 and figure.value >= target.limit and _small(facts):
            return _short(target, f"{show(figure)}; the interval is too wide to tell")
        where = f"; the worst of {len(found)} strata: {name.scope}, {name.dimension} {name.stratum}"
        wide = target.rule is Rule.WITHIN and _reach(figure) > target.limit
        notes = "; judged by the value, the interval reaches farther" if wide else ""
        return _said(target, far, show(figure) + notes + (where if target.strata else without))

    return judged


def _reach(figure: Estimate) -> float:
    """Return how far from 0 the interval reaches; without one, as far as can be."""
    if figure.low is None or figure.high is None:
        return math.inf
    return max(abs(figure.low), abs(figure.high))


def _unfound(target: Target, facts: Facts) -> Verdict:
    why = {figure.why for _, figure in _figures(target, facts) if isinstance(figure, NotMeasured)}
    if why:
        return _missing(target, "; ".join(sorted(why)))
    named = [name for name in (target.system, target.other) if name]
    ran = all(any(cell.rows.get(name) for cell in facts.cells.values()) for name in named)
    too_few = _short if ran and _small(facts) else _missing
    if any(isinstance(figure, Estimate) for _, figure in _figures(target, facts)):
        return too_few(target, "too few questions for an interval")
    if target.strata:
        return too_few(target, "no stratum with these systems has 100 questions and 20 filers")
    return _missing(target, f"no rows of {' and '.join(named)} in {target.scope}")


def show(figure: Estimate) -> str:
    """Write a figure with its interval and what it rests on."""
    value, interval = written(figure, places=2)
    bound = figure.bound_if_independent
    independent = "" if bound is None else f"; {bound:.2g} if rows were independent"
    return (
        f"{value} ({interval}{independent}; {figure.numerator:,.4g} of {figure.denominator:,}, "
        f"effective n {figure.effective})"
    )


def _trials(target: Target, facts: Facts) -> Verdict:
    found = [one for one in (facts.about.trials if facts.about else ()) if one.system == target.system]
    pairs, violating = sum(one.pairs for one in found), sum(one.violating for one in found)
    if not pairs:
        return _missing(target, "the run made no randomised trials")
    if violating:
        return _said(target, violating / pairs, f"{violating} of {pairs} pairs violate")
    why = f"0 of {pairs:,} pairs, at most {clopper_pearson(0, pairs)[1]:.2g}"
    return _short(target, why) if pairs < target.limit else _said(target, 0, why)


def _worlds(target: Target, facts: Facts) -> Verdict:
    found = facts.about.worlds if facts.about else None
    if found is None or not found.asked:
        return _missing(target, "no store was rebuilt")
    same = f"{found.asked - found.differing} of {found.asked} pairs in {found.worlds} stores rebuilt"
    bound = "" if found.differing else f"; at most {clopper_pearson(0, found.asked)[1]:.2g} differ"
    return _said(target, found.differing / found.asked, same + bound)


def _pairs(target: Target, facts: Facts) -> Verdict:
    why = f"{facts.pairs:,} pairs of real questions, both splits"
    return _short(target, why) if facts.pairs < target.limit else _said(target, 0, why)


def _p95(facts: Facts, system: str, stage: str) -> Percentile | None:
    figure = facts.latency.get(system, {}).get(stage, {}).get("p95")
    return figure if isinstance(figure, Percentile) else None


def _latency(target: Target, facts: Facts) -> Verdict:
    if facts.about is None or not facts.about.paper_size:
        return (_short if _small(facts) else _missing)(target, "the run was not at paper size")
    ours, theirs = (_p95(facts, system, target.measure) for system in (target.system, target.other))
    if ours is None or (target.other and theirs is None):
        return _missing(target, f"no times of {' and '.join(filter(None, (target.system, target.other)))}")
    limit = theirs.ms if theirs else target.limit
    return _said(target, ours.ms - limit, f"{ours.ms:g} ms of {ours.rows} rows; want at most {limit:g}")


_JUDGES: Final[Mapping[Rule, Callable[[Target, Facts], Verdict]]] = {
    Rule.AT_MOST: _by_figures(lambda target, figure: figure.value - target.limit),
    Rule.AT_LEAST: _by_figures(lambda target, figure: target.limit - figure.value),
    Rule.ABOVE: _by_figures(lambda target, figure: None if figure.low is None else target.limit - figure.low),
    Rule.WITHIN: _by_figures(lambda target, figure: abs(figure.value) - target.limit),
    Rule.NOT_BELOW: _by_figures(lambda _, figure: None if figure.high is None else -figure.high),
    Rule.PRESENT: _by_figures(lambda _, figure: None if figure.low is None else 0.0),
    Rule.P95_AT_MOST: _latency,
    Rule.P95_NOT_ABOVE: _latency,
    Rule.TRIALS: _trials,
    Rule.WORLDS: _worlds,
    Rule.PAIRS: _pairs,
}
"""A figure beyond its limit misses its goal by that much."""
