"""List the goals, each set before the rows of its version were made, and judge each: met, missed or not measured."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.evaluation.report.measures import MEASURES
from carag.evaluation.report.strata import DATA_SET, DIMENSIONS
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.estimate import Estimate, NotMeasured, formatted, rounded
from carag.evaluation.statistics.latency import Percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from carag.evaluation.report.strata import Slice, SliceName
    from carag.evaluation.run_metadata import RunMetadata


class Criterion(StrEnum):
    """The condition under which a goal is met; the values are printed in the report."""

    AT_MOST = "at most the limit"
    AT_LEAST = "at least the limit"
    WITHIN = "no farther than the limit from the other system, on the same pairs"
    NOT_BELOW = "the paired interval against the other system does not lie below 0"
    P95_AT_MOST = "p95 of the stage at most the limit"
    P95_NOT_ABOVE = "p95 of the stage not above the other system's in the same run"
    TRIALS = "no violation in at least this many randomised pairs"
    WORLDS = "the same, to the last bit, as a store rebuilt without what the session may not see"
    PAIRS = "at least this many (question, session) pairs"
    PRESENT = "measured, with an interval"


class GoalState(StrEnum):
    """Whether a goal was met; the values are printed in the report."""

    MET = "met"
    MISSED = "missed"
    NEEDS_FULL_RUN = "not measured at this size"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Goal:
    """A condition on one figure of a run."""

    name: str  # key in ``report.json``, which does not change
    criterion: Criterion
    system: str = ""
    measure: str = ""  # name of a measure, or of a stage of latency
    limit: float = 0.0
    other: str = ""  # system to compare with; empty if none
    scope: str = "real"  # of the slice; ``everything`` includes adversaries and the development split
    strata: bool = False  # whether every measured stratum is judged, instead of the whole scope
    size: str = ""  # the corpus that it was set for, ``paper`` or ``full``; empty for any
    data_set: str = ""  # the data set of the scope that is judged, instead of the whole scope
    stretch: float = 0.0  # what would be better than the limit, named but not judged; 0 for none

    @property
    def statement(self) -> str:
        """The goal in words."""
        title = _TITLES.get(self.measure, self.measure)
        where = "every measured stratum" if self.strata else self.scope
        against = f" against {self.other}" if self.other else ""
        limit = (
            ""
            if self.criterion
            in (Criterion.NOT_BELOW, Criterion.P95_NOT_ABOVE, Criterion.PRESENT, Criterion.WORLDS)
            else f" ({self.limit:,.10g}; better {self.stretch:g})"
            if self.stretch
            else f" ({self.limit:,.10g})"
        )
        size = f"{self.size} size" if self.size else ""
        parts = (self.system, title, f"{self.criterion}{limit}{against}", where, self.data_set, size)
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class GoalResult:
    """Result of judging a goal under one set of models."""

    goal: Goal
    state: GoalState
    by: float | None  # how far a missed goal was missed, in the measure's own unit
    why: str  # the figure judged, with its interval, or why there is no figure


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one set of models and the run's metadata, by which goals are judged."""

    slices: Mapping[SliceName, Slice]
    latency: Mapping[str, Mapping[str, Mapping[str, Percentile | NotMeasured]]]
    metadata: RunMetadata | None
    pairs: int  # distinct (question, session) pairs of real questions, in both splits


_TITLES: Final = {measure.name: measure.title for measure in MEASURES}
_OURS: Final = ("carag-auto", "carag-certified")
_FILTERS: Final = ("postfilter-1", "postfilter-4", "postfilter-16")
_EVERYTHING: Final = "everything"


def _safe() -> Iterator[Goal]:
    for system in _OURS:
        for measure in ("cvr_query", "cvr_chunk", "cvr_touch", "odr_canary"):
            yield Goal(f"{system}:{measure}=0", Criterion.AT_MOST, system, measure, scope=_EVERYTHING)
        yield Goal(f"{system}:trials", Criterion.TRIALS, system, limit=1_000_000, scope="")
    yield Goal("carag-certified:worlds", Criterion.WORLDS, "carag-certified", scope="")
    yield Goal(
        "carag-certified:noninterference",
        *(Criterion.AT_LEAST, "carag-certified", "noninterference", 1.0),
        scope=_EVERYTHING,
    )


def _useful() -> Iterator[Goal]:
    yield Goal("pairs", Criterion.PAIRS, limit=2_000)
    for ablation in ("carag-withheld-text", "carag-no-gate", "carag-no-refusal"):
        yield Goal(f"ablation:{ablation}", Criterion.PRESENT, ablation, "over_refusal")
    for system in _OURS:
        for measure, limit in (("over_refusal", 0.01), ("under_refusal", 0.01)):
            yield Goal(f"{system}:{measure}~oracle", Criterion.WITHIN, system, measure, limit, other="oracle")
        for other in _FILTERS:
            yield Goal(
                f"{system}:evidence>={other}",
                *(Criterion.NOT_BELOW, system, "evidence_recall"),
                other=other,
                strata=True,
            )
        yield Goal(f"{system}:recall", Criterion.AT_LEAST, system, "admissible_recall", 0.995, strata=True)
    yield Goal(
        "carag-auto:p95",
        *(Criterion.P95_NOT_ABOVE, "carag-auto", "retrieve"),
        other="vanilla",
        scope="",
        size="paper",
    )
    yield Goal(
        "carag-certified:p95",
        *(Criterion.P95_AT_MOST, "carag-certified", "retrieve", 5.0),
        scope="",
        size="paper",
    )


def _noticed() -> Iterator[Goal]:
    """Yield the goals for what a user notices, set from the development split."""
    ours = "carag-certified"
    for measure, criterion, limit in (
        ("cites_gold", Criterion.AT_LEAST, 0.33),
        ("answered_hidden", Criterion.AT_MOST, 0.25),
        ("under_refusal", Criterion.AT_MOST, 0.65),
        ("over_refusal", Criterion.AT_MOST, 0.10),
    ):
        yield Goal(f"{ours}:{measure}", criterion, ours, measure, limit, size="paper")
    yield Goal(f"{ours}:wrong_company=0", Criterion.AT_MOST, ours, "wrong_company")
    found = (Criterion.AT_LEAST, ours, "evidence_recall")
    yield Goal(f"{ours}:evidence", *found, 0.43, size="paper", stretch=0.50)
    yield Goal(f"{ours}:evidence-full", *found, 0.33, size="full")
    yield Goal(
        "vanilla:financebench",
        *(Criterion.AT_LEAST, "vanilla", "evidence_unmasked", 0.55),
        size="paper",
        data_set="FinanceBench",
    )


GOALS: Final = (*_safe(), *_useful(), *_noticed())


def counted_states(results: Sequence[GoalResult]) -> str:
    """Write how many goals are in each state."""
    states = Counter(one.state for one in results)
    return ", ".join(f"{state.value}: {states[state]}" for state in GoalState)


def judge_goal(goal: Goal, facts: Measured) -> GoalResult:
    """Judge one goal. Limits of shares are fractions: 0.005 is half a percentage point."""
    if goal.size and not (facts.metadata is not None and facts.metadata.is_of_size(goal.size)):
        return (_short if _small(facts) else _missing)(goal, f"the run was not at {goal.size} size")
    return _JUDGES[goal.criterion](goal, facts)


def _missing(goal: Goal, why: str) -> GoalResult:
    return GoalResult(goal, GoalState.NOT_MEASURED, None, why)


def _short(goal: Goal, why: str) -> GoalResult:
    return GoalResult(goal, GoalState.NEEDS_FULL_RUN, None, why)


def _small(facts: Measured) -> bool:
    return facts.metadata is not None and facts.metadata.small


def _said(goal: Goal, beyond: float, why: str) -> GoalResult:
    """Judge by how far a figure is beyond its limit."""
    missed = beyond > 0
    return GoalResult(
        goal, GoalState.MISSED if missed else GoalState.MET, rounded(beyond) if missed else None, why
    )


def _figures(goal: Goal, facts: Measured) -> Iterator[tuple[SliceName, Estimate | NotMeasured]]:
    """Find the slices that a goal is about, each with its figure, or its difference if the criterion compares pairs."""
    for name, part in facts.slices.items():
        if goal.strata:
            if name.dimension not in DIMENSIONS or part.too_small:
                continue
        elif name != (goal.scope, DATA_SET if goal.data_set else "", goal.data_set):
            continue
        if goal.criterion in (Criterion.WITHIN, Criterion.NOT_BELOW):
            for pair in part.paired:
                if (pair.system, pair.other, pair.measure) == (goal.system, goal.other, goal.measure):
                    yield name, pair.difference
        elif goal.system in part.systems:
            yield name, part.systems[goal.system][goal.measure]


def _unasked(goal: Goal, facts: Measured) -> tuple[str, str]:
    """Return which pairs a goal about everything was not asked about, because those may have leaked."""
    if goal.scope != _EVERYTHING:
        return "", ""
    without = []
    for name, part in facts.slices.items():
        if name.dimension or name.scope == _EVERYTHING:
            continue
        rows = part.rows.get(goal.system, 0)
        if not rows:
            without.append(name.scope)
        elif rows < part.pairs:
            return f"{goal.system} was asked {rows} of {part.pairs} pairs of {name.scope} only", ""
    return "", f"; not asked: {', '.join(without)}" if without else ""


def _by_figures(
    beyond: Callable[[Goal, Estimate], float | None],
) -> Callable[[Goal, Measured], GoalResult]:
    def judged(goal: Goal, facts: Measured) -> GoalResult:
        why, without = _unasked(goal, facts)
        if why:
            return _missing(goal, why)
        found = [
            (name, figure, far)
            for name, figure in _figures(goal, facts)
            if isinstance(figure, Estimate) and (far := beyond(goal, figure)) is not None
        ]
        if not found:
            return _unfound(goal, facts)
        name, figure, far = max(found, key=lambda one: (one[2], one[0]))
        where = f"; the worst of {len(found)} strata: {name.scope}, {name.dimension} {name.stratum}"
        wide = goal.criterion is Criterion.WITHIN and _reach(figure) > goal.limit
        notes = "; judged by the value, although the interval reaches farther" if wide else ""
        return _said(goal, far, show(figure) + notes + (where if goal.strata else without))

    return judged


def _reach(figure: Estimate) -> float:
    """Return how far from 0 the interval reaches; infinity without an interval."""
    if figure.low is None or figure.high is None:
        return math.inf
    return max(abs(figure.low), abs(figure.high))


def _unfound(goal: Goal, facts: Measured) -> GoalResult:
    why = {figure.why for _, figure in _figures(goal, facts) if isinstance(figure, NotMeasured)}
    if why:
        return _missing(goal, "; ".join(sorted(why)))
    named = [name for name in (goal.system, goal.other) if name]
    ran = all(any(part.rows.get(name) for part in facts.slices.values()) for name in named)
    too_few = _short if ran and _small(facts) else _missing
    if any(isinstance(figure, Estimate) for _, figure in _figures(goal, facts)):
        return too_few(goal, "too few questions for an interval")
    if goal.strata:
        return too_few(goal, "no stratum with these systems has 100 questions and 20 filers")
    return _missing(goal, f"no rows from {' and '.join(named)} in {goal.scope}")


def show(figure: Estimate) -> str:
    """Format a figure with its interval, counts and effective n."""
    value, interval = formatted(figure, places=2)
    bound = figure.bound_if_independent
    independent = "" if bound is None else f"; {bound:.2g} if rows were independent"
    return (
        f"{value} ({interval}{independent}; {figure.numerator:,.4g} of {figure.denominator:,}, "
        f"effective n {figure.effective})"
    )


def _trials(goal: Goal, facts: Measured) -> GoalResult:
    found = [one for one in (facts.metadata.trials if facts.metadata else ()) if one.system == goal.system]
    pairs, violating = sum(one.pairs for one in found), sum(one.violating for one in found)
    if not pairs:
        return _missing(goal, "the run made no randomised trials")
    if violating:
        return _said(goal, violating / pairs, f"{violating} of {pairs} pairs violate")
    why = f"0 of {pairs:,} pairs, at most {clopper_pearson(0, pairs)[1]:.2g}"
    return _short(goal, why) if pairs < goal.limit else _said(goal, 0, why)


def _worlds(goal: Goal, facts: Measured) -> GoalResult:
    found = facts.metadata.worlds if facts.metadata else None
    if found is None or not found.asked:
        return _missing(goal, "no store was rebuilt")
    same = f"{found.asked - found.differing} of {found.asked} pairs in {found.worlds} stores rebuilt"
    bound = "" if found.differing else f"; at most {clopper_pearson(0, found.asked)[1]:.2g} differ"
    return _said(goal, found.differing / found.asked, same + bound)


def _pairs(goal: Goal, facts: Measured) -> GoalResult:
    why = f"{facts.pairs:,} pairs of real questions, both splits"
    return _short(goal, why) if facts.pairs < goal.limit else _said(goal, 0, why)


def _p95(facts: Measured, system: str, stage: str) -> Percentile | None:
    figure = facts.latency.get(system, {}).get(stage, {}).get("p95")
    return figure if isinstance(figure, Percentile) else None


def _latency(goal: Goal, facts: Measured) -> GoalResult:
    ours, theirs = (_p95(facts, system, goal.measure) for system in (goal.system, goal.other))
    if ours is None or (goal.other and theirs is None):
        return _missing(goal, f"no times for {' and '.join(filter(None, (goal.system, goal.other)))}")
    limit = theirs.ms if theirs else goal.limit
    return _said(goal, ours.ms - limit, f"{ours.ms:g} ms over {ours.rows} rows; want at most {limit:g}")


_JUDGES: Final[Mapping[Criterion, Callable[[Goal, Measured], GoalResult]]] = {
    Criterion.AT_MOST: _by_figures(lambda goal, figure: figure.value - goal.limit),
    Criterion.AT_LEAST: _by_figures(lambda goal, figure: goal.limit - figure.value),
    Criterion.WITHIN: _by_figures(lambda goal, figure: abs(figure.value) - goal.limit),
    Criterion.NOT_BELOW: _by_figures(lambda _, figure: None if figure.high is None else -figure.high),
    Criterion.PRESENT: _by_figures(lambda _, figure: None if figure.low is None else 0.0),
    Criterion.P95_AT_MOST: _latency,
    Criterion.P95_NOT_ABOVE: _latency,
    Criterion.TRIALS: _trials,
    Criterion.WORLDS: _worlds,
    Criterion.PAIRS: _pairs,
}
"""How each criterion is judged; a function given to `_by_figures` returns by how much a figure exceeds its limit."""
