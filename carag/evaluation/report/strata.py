"""Measure slices of the rows (everything, each kind of question, each stratum), and compare systems pair by pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.evaluation.report.measures import MEASURES, NOTICED, SAFETY, Measure
from carag.evaluation.row import DATA_SETS, ORACLE, SHARES, data_set_of, system_order
from carag.evaluation.statistics.bootstrap import bootstrap_weights
from carag.evaluation.statistics.estimate import NotMeasured, Question, Sums, ValueRange, estimates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from carag.evaluation.row import PairKey, Row
    from carag.evaluation.statistics.estimate import Estimate


EVERYTHING: Final = "everything"
"""Scope of all rows, whatever their kind and split."""
DIMENSIONS: Final = ("share", "selectivity", "correlation")
"""Fields of `carag.evaluation.row.Stratum` by which rows are stratified."""
DATA_SET: Final = "data set"
"""Dimension of the data sets that real questions come from: not a stratum, and measured however small."""
BAND: Final = "selectivity, correlation"
"""Dimension of both at once, as VecBench varies them: of all rows, and measured however small."""
IN_BANDS: Final = ("admissible_recall", "cvr_query")
"""Names of the measures of each band."""
MIN_QUESTIONS: Final = 100
"""The number of questions below which a stratum is not measured."""
MIN_FILERS: Final = 20
"""The number of filers below which a stratum is not measured."""


class ModelNames(NamedTuple):
    """Names of the models that rows were made with; systems are compared only with the same models."""

    embedder: str
    generator: str


class SliceName(NamedTuple):
    """Name of a slice: a scope, and a stratum within it or all of it."""

    scope: str
    """`EVERYTHING`, ``real``, ``built`` or ``adversary:NAME``."""
    dimension: str = ""
    stratum: str = ""


@dataclass(frozen=True, slots=True)
class Paired:
    """Difference of a measure between two systems, over the pairs that both answered."""

    system: str
    other: str
    measure: str
    difference: Estimate | NotMeasured
    differing: int  # pairs in which the two systems differ


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of one slice of the rows."""

    name: SliceName
    pairs: int  # distinct (question, session) pairs
    questions: int
    filers: int
    sessions: int  # distinct roles, purposes and days
    rows: Mapping[str, int]  # by system; fewer than `pairs` if a system was not asked everything
    outcomes: Mapping[str, Counter[str]]  # the same by outcome
    systems: Mapping[str, Mapping[str, Estimate | NotMeasured]]  # figures by system and measure
    paired: tuple[Paired, ...]

    @property
    def failed(self) -> dict[str, int]:
        """Number of rows with an error, by system."""
        return {system: found["error"] for system, found in self.outcomes.items()}

    @property
    def too_small(self) -> str:
        """Return why a stratum is not measured; empty if it is measured, or if this is not a stratum."""
        if self.name.dimension not in DIMENSIONS or (
            self.questions >= MIN_QUESTIONS and self.filers >= MIN_FILERS
        ):
            return ""
        return f"{self.questions} questions of {self.filers} filers; want {MIN_QUESTIONS} and {MIN_FILERS}"


class Tally(NamedTuple):
    """What a row adds to each measure, computed once for all its slices."""

    row: Row
    pair: PairKey
    question: Question
    sums: Mapping[str, Sums]


OURS: Final = ("carag-auto", "carag-certified")
"""Systems whose differences from others are measured."""
AGAINST: Final = (ORACLE, "postfilter-1", "postfilter-4", "postfilter-16")
"""Systems that the above are compared with."""


def by_models(rows: Sequence[Row]) -> dict[ModelNames, list[Row]]:
    """Group rows by their models, in a fixed order, after checking their consistency.

    Raise InvalidArgument if a system answered a pair twice, or rows of one pair, or of one question, contradict each
    other.
    """
    seen: dict[tuple[str, PairKey], Row] = {}
    facts: dict[PairKey, Row] = {}
    filers: dict[str, int] = {}
    parted: dict[ModelNames, list[Row]] = defaultdict(list)
    for row in rows:
        if seen.setdefault((row.system, row.pair), row) is not row:
            raise InvalidArgument(
                f"{row.system} has two rows for {row.pair}; keep the rows of one run and remove the other's"
            )
        if filers.setdefault(row.question_id, row.filer) != row.filer:
            raise InvalidArgument(
                f"question {row.question_id!r} belongs to two filers; give it one filer, or two ids"
            )
        first = facts.setdefault(row.pair, row)
        for name in _SAME_FOR_PAIR:
            if getattr(first, name) != getattr(row, name):
                raise InvalidArgument(
                    f"{name} of {row.pair} differs between {first.system} and {row.system}, although it depends on the "
                    "pair alone; make both from the same corpus"
                )
        parted[ModelNames(row.embedder, row.generator)].append(row)
    return {key: sorted(parted[key], key=_order) for key in sorted(parted)}


_IN_BANDS: Final = tuple(measure for measure in MEASURES if measure.name in IN_BANDS)
_NOTICED: Final = tuple(measure for measure in MEASURES if measure.name in NOTICED)
_SAME_FOR_PAIR: Final = ("split", "gold", "gold_admissible", "gold_answer_sha256", "answerable", "stratum")


def _order(row: Row) -> tuple[PairKey, tuple[int, str]]:
    return row.pair, system_order(row.system)


def slices(rows: Sequence[Row]) -> Iterator[Slice]:
    """Measure all slices of the rows of one set of models.

    First everything, by the measures of safety alone, and its bands of selectivity and correlation; then real questions
    of the reported split, built ones and each adversary. Real and built questions are followed by their strata; those
    of real questions by their data sets, if there are several, by what a user notices.
    """
    oracles = {row.pair: row for row in rows if row.system == ORACLE}
    tallies = [_tally(row, oracles.get(row.pair)) for row in rows]
    yield _measured(SliceName(EVERYTHING), tallies, SAFETY)
    yield from _by_band(tallies)
    for scope in _scopes(rows):
        within = [
            one
            for one in tallies
            if one.row.kind == scope and (one.row.split == "reported" or scope.startswith("adversary"))
        ]
        if not within:
            continue
        yield _measured(SliceName(scope), within, MEASURES)
        if scope.startswith("adversary"):
            continue
        for dimension in DIMENSIONS:
            parted: dict[str, list[Tally]] = defaultdict(list)
            for one in within:
                parted[getattr(one.row.stratum, dimension)].append(one)
            for stratum in sorted(
                parted, key=lambda name: (SHARES.index(name) if name in SHARES else 0, name)
            ):
                yield _measured(SliceName(scope, dimension, stratum), parted[stratum], MEASURES)
        if scope == "real":
            yield from _by_data_set(within)


def _by_band(tallies: Sequence[Tally]) -> Iterator[Slice]:
    parted: dict[str, list[Tally]] = defaultdict(list)
    for one in tallies:
        parted[f"{one.row.stratum.selectivity}, {one.row.stratum.correlation}"].append(one)
    for name in sorted(parted):
        yield _measured(SliceName(EVERYTHING, BAND, name), parted[name], _IN_BANDS)


def _by_data_set(tallies: Sequence[Tally]) -> Iterator[Slice]:
    parted: dict[str, list[Tally]] = defaultdict(list)
    for one in tallies:
        parted[data_set_of(one.row.question_id)].append(one)
    for name in DATA_SETS if len(parted) > 1 else ():
        if name in parted:
            yield _measured(SliceName("real", DATA_SET, name), parted[name], _NOTICED)


def _tally(row: Row, oracle: Row | None) -> Tally:
    sums = {measure.name: measure.sums(row, oracle) for measure in MEASURES}
    return Tally(row, row.pair, (row.filer, row.question_id), sums)


def _scopes(rows: Iterable[Row]) -> list[str]:
    kinds = {row.kind for row in rows}
    return [*(kind for kind in ("real", "built") if kind in kinds), *sorted(kinds - {"real", "built"})]


def _measured(name: SliceName, tallies: Sequence[Tally], measures: Sequence[Measure]) -> Slice:
    """Measure one slice; a stratum that is too small has no figures."""
    asked = sorted({one.question for one in tallies})
    by_system: dict[str, list[Tally]] = defaultdict(list)
    for one in tallies:
        by_system[one.row.system].append(one)
    part = Slice(
        name=name,
        pairs=len({one.pair for one in tallies}),
        questions=len(asked),
        filers=len({filer for filer, _ in asked}),
        sessions=len({(one.pair.role, one.pair.purpose, one.pair.as_of) for one in tallies}),
        rows={system: len(by_system[system]) for system in sorted(by_system, key=system_order)},
        outcomes={system: Counter(one.row.outcome for one in by_system[system]) for system in by_system},
        systems={},
        paired=(),
    )
    if part.too_small:
        return part
    drawn = bootstrap_weights([filer for filer, _ in asked])
    found: dict[str, dict[str, Estimate | NotMeasured]] = {}
    for value_range in ValueRange:
        some = [measure for measure in measures if measure.value_range is value_range]
        columns = {
            f"{system}\t{measure.name}": _filled(asked, measure, of)
            for system, of in by_system.items()
            for measure in some
        }
        for key, estimate in (
            estimates(columns, value_range=value_range, drawn=drawn).items() if columns else ()
        ):
            system, measure_name = key.split("\t")
            found.setdefault(system, {})[measure_name] = estimate
    return replace(
        part,
        systems={
            system: {measure.name: found[system][measure.name] for measure in measures}
            for system in part.rows
        },
        paired=tuple(_paired(asked, by_system, [m.name for m in measures if m.paired], drawn)),
    )


def _filled(asked: Sequence[Question], measure: Measure, tallies: Iterable[Tally]) -> dict[Question, Sums]:
    """Sum up by question; questions that add nothing are included, because all columns are resampled alike."""
    sums = dict.fromkeys(asked, Sums())
    for one in tallies:
        if not (measure.once and sums[one.question].count):
            sums[one.question] += one.sums[measure.name]
    return sums


def _paired(
    asked: Sequence[Question],
    by_system: Mapping[str, Sequence[Tally]],
    measures: Sequence[str],
    drawn: NDArray[np.float64],
) -> Iterator[Paired]:
    columns: dict[str, dict[Question, Sums]] = {}
    for system in OURS:
        mine = {one.pair: one for one in by_system.get(system, ())}
        for other in AGAINST:
            theirs = [one for one in by_system.get(other, ()) if one.pair in mine]
            for measure in measures if mine and other in by_system else ():
                sums = dict.fromkeys(asked, Sums())
                for one in theirs:
                    # Whether a paired measure takes a value from a row depends on the pair alone.
                    if one.sums[measure].count:
                        difference = mine[one.pair].sums[measure].values - one.sums[measure].values
                        sums[one.question] += Sums.of(difference)
                columns[f"{system}\t{other}\t{measure}"] = sums
    if not columns:
        return
    made = estimates(columns, value_range=ValueRange.DIFFERENCE, drawn=drawn)
    for key, sums in columns.items():
        system, other, name = key.split("\t")
        yield Paired(system, other, name, made[key], sum(one.nonzero for one in sums.values()))
