"""Measure a file of rows into a `Report`: counts, figures of each set of models, goals, and label noise."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.report import strata
from carag.evaluation.report.goals import GOALS, GoalResult, Measured, judge_goal
from carag.evaluation.report.label_noise import NoisePoint, noise_sweep
from carag.evaluation.row import read_rows, rows_sha256
from carag.evaluation.run_metadata import RunMetadata
from carag.evaluation.statistics.latency import Percentile, latencies
from carag.policy import Policy, PolicyTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from carag.evaluation.report.strata import ModelNames, Slice, SliceName
    from carag.evaluation.row import Row
    from carag.evaluation.statistics.estimate import NotMeasured

__all__ = ["Counts", "Report", "Section", "report", "report_from"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the rows.

    Attributes
    ----------
    rows, pairs, questions, filers : int
    real_pairs : int
        Number of distinct (question, session) pairs of real questions, in both splits.
    splits, kinds : mapping of str to int
        Rows of each split and kind.
    sha256 : str
        SHA-256 of the rows in canonical lines and order.
    """

    rows: int
    pairs: int
    questions: int
    filers: int
    real_pairs: int
    splits: Mapping[str, int]
    kinds: Mapping[str, int]
    sha256: str


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one set of models.

    Attributes
    ----------
    models : ModelNames
    slices : mapping of SliceName to Slice
    latency : mapping
        Percentiles by system, stage and name, over real and built questions of the reported split.
    results : tuple of GoalResult
    """

    models: ModelNames
    slices: Mapping[SliceName, Slice]
    latency: Mapping[str, Mapping[str, Mapping[str, Percentile | NotMeasured]]]
    results: tuple[GoalResult, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run's rows.

    Attributes
    ----------
    counts : Counts
    metadata : RunMetadata or None
    sections : tuple of Section
    noise : tuple of NoisePoint
        Empty if no words were given.
    """

    counts: Counts
    metadata: RunMetadata | None
    sections: tuple[Section, ...]
    noise: tuple[NoisePoint, ...]

    @property
    def is_own(self) -> bool:
        """Whether a store of the user's own was measured."""
        return self.metadata is not None and self.metadata.own


def report(
    rows: Sequence[Row], *, metadata: RunMetadata | None = None, words: Mapping[str, int] | None = None
) -> Report:
    """Measure rows.

    Parameters
    ----------
    rows : sequence of Row
        In any order.
    metadata : RunMetadata, optional
        Without it some goals cannot be judged.
    words : mapping of str to int, optional
        The true word of each chunk, for the sweep of label noise.

    Raises
    ------
    InvalidArgument
        If there is no row, or rows contradict each other.
    """
    if not rows:
        raise InvalidArgument("there is no row; run the benchmark first")
    parted = strata.by_models(rows)
    counts = _counts(rows)
    sections = tuple(_section(models, some, metadata, counts.real_pairs) for models, some in parted.items())
    noise: tuple[NoisePoint, ...] = ()
    if words is not None:
        most = max(parted.values(), key=lambda some: sum(row.system == "vanilla" for row in some))
        noise = tuple(noise_sweep(filter(_reported, most), words, _policy_of))
    return Report(counts, metadata, sections, noise)


def report_from(path: Path) -> Report:
    """Measure a file of rows, with ``run.json`` and ``words.json`` (or ``.gz``) in the same directory if they exist.

    Raises
    ------
    CorruptFile
        If a file is malformed, or ``run.json`` belongs to other rows.
    """
    rows = read_rows(path)
    metadata = words = None
    if (described := path.with_name("run.json")).exists():
        metadata = RunMetadata.from_json(described.read_bytes())
        if metadata.rows_sha256 not in ("", found := rows_sha256(rows)):
            raise CorruptFile(
                f"{described} is of rows {metadata.rows_sha256}, not of {found}; take both from one run"
            )
    for name in ("words.json", "words.json.gz"):
        if (given := path.with_name(name)).exists():
            words = _read_words(given)
    return report(rows, metadata=metadata, words=words)


def _read_words(path: Path) -> dict[str, int]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            words = json.load(file)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise CorruptFile(f"{path}: {error}; copy the file again") from error
    if not isinstance(words, dict) or any(type(w) is not int or not 0 <= w < 1 << 32 for w in words.values()):
        raise CorruptFile(f"{path}: want one object of chunk ids and 32-bit words; copy the file again")
    return words


def _reported(row: Row) -> bool:
    return row.split == "reported" and row.kind in ("real", "built")


def _section(models: ModelNames, rows: Sequence[Row], metadata: RunMetadata | None, pairs: int) -> Section:
    made = {part.name: part for part in strata.slices(rows)}
    times = latencies(filter(_reported, rows))
    facts = Measured(made, times, metadata, pairs)
    goals = () if metadata is not None and metadata.own else GOALS  # they were set for EDGAR's run
    return Section(models, made, times, tuple(judge_goal(goal, facts) for goal in goals))


def _counts(rows: Sequence[Row]) -> Counts:
    return Counts(
        rows=len(rows),
        pairs=len({_asked(row) for row in rows}),
        questions=len({row.question_id for row in rows}),
        filers=len({row.filer for row in rows}),
        real_pairs=len({_asked(row) for row in rows if row.kind == "real"}),
        splits=dict(sorted(Counter(row.split for row in rows).items())),
        kinds=dict(sorted(Counter(row.kind for row in rows).items())),
        sha256=rows_sha256(rows),
    )


def _asked(row: Row) -> tuple[str, ...]:
    """Return the part of the pair that does not depend on models."""
    return row.pair[:5]


@cache
def _table() -> PolicyTable:
    return PolicyTable.shipped()


def _policy_of(row: Row) -> Policy:
    cell = _table().get(row.role, row.purpose)
    return Policy() if cell is None else cell.policy  # a policy without masks admits nothing
