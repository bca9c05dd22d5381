"""Measure a file of rows into a `Report`: counts, figures for each set of models, goals, and label noise."""

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


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the rows."""

    rows: int
    pairs: int
    questions: int
    filers: int
    real_pairs: int  # distinct (question, session) pairs of real questions, in both splits
    splits: Mapping[str, int]  # rows by split
    kinds: Mapping[str, int]  # rows by kind
    sha256: str  # of the rows in canonical lines and order


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one set of models; ``latency`` covers real and built questions of the reported split."""

    models: ModelNames
    slices: Mapping[SliceName, Slice]
    latency: Mapping[str, Mapping[str, Mapping[str, Percentile | NotMeasured]]]
    results: tuple[GoalResult, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run's rows; ``noise`` is empty if no words were given."""

    counts: Counts
    metadata: RunMetadata | None
    sections: tuple[Section, ...]
    noise: tuple[NoisePoint, ...]

    @property
    def is_own(self) -> bool:
        """Whether a store of your own was measured."""
        return self.metadata is not None and self.metadata.own


def report(
    rows: Sequence[Row], *, metadata: RunMetadata | None = None, words: Mapping[str, int] | None = None
) -> Report:
    """Measure rows, in any order; InvalidArgument if there is no row, or rows contradict each other.

    Without ``metadata`` some goals cannot be judged; ``words``, the true word of each chunk, are for the sweep of label
    noise.
    """
    if not rows:
        raise InvalidArgument("the file contains no rows; run the benchmark first")
    parted = strata.by_models(rows)
    counts = _counts(rows)
    sections = tuple(_section(models, some, metadata, counts.real_pairs) for models, some in parted.items())
    noise: tuple[NoisePoint, ...] = ()
    if words is not None:
        most = max(parted.values(), key=lambda some: sum(row.system == "vanilla" for row in some))
        noise = tuple(noise_sweep(filter(_reported, most), words, _policy_of))
    return Report(counts, metadata, sections, noise)


def report_from(path: Path) -> Report:
    """Measure a file of rows, with ``run.json`` and ``words.json`` (or ``.gz``) from the same directory if they exist.

    Raise CorruptFile if a file is malformed, or ``run.json`` belongs to other rows.
    """
    rows = read_rows(path)
    metadata = words = None
    if (described := path.with_name("run.json")).exists():
        metadata = RunMetadata.from_json(described.read_bytes())
        if metadata.rows_sha256 not in ("", found := rows_sha256(rows)):
            raise CorruptFile(
                f"{described} belongs to rows with the SHA-256 {metadata.rows_sha256}, not {found}; take both files "
                "from one run"
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
        raise CorruptFile(
            f"{path} must contain one JSON object of chunk ids and 32-bit words; copy the file again"
        )
    return words


def _reported(row: Row) -> bool:
    return row.split == "reported" and row.kind in ("real", "built")


def _section(models: ModelNames, rows: Sequence[Row], metadata: RunMetadata | None, pairs: int) -> Section:
    made = {part.name: part for part in strata.slices(rows)}
    times = latencies(filter(_reported, rows))
    facts = Measured(made, times, metadata, pairs)
    goals = () if metadata is not None and metadata.own else GOALS  # they were set for the EDGAR run
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
