"""The report: every figure made from the rows, and the same rows always make the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation import cells as cells_
from carag.evaluation.about import About
from carag.evaluation.document import Figure, as_html, as_markdown
from carag.evaluation.latency import Percentile, latencies
from carag.evaluation.measures import MEASURES, NOT_MEASURED
from carag.evaluation.noise import NoisePoint, noise_sweep
from carag.evaluation.pages import TITLE, page
from carag.evaluation.paper import CLAIMED_QUERIES, SOURCE, TABLE_2, common_count
from carag.evaluation.row import read_rows
from carag.evaluation.targets import TARGETS, Facts, Verdict, judge
from carag.policy import Policy, PolicyTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from carag.evaluation.cells import Cell, CellName, Models
    from carag.evaluation.estimate import NotMeasured
    from carag.evaluation.row import Row

__all__ = ["Counts", "Report", "Section", "report", "report_from", "rows_sha256"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What the rows are.

    Attributes
    ----------
    rows, pairs, questions, filers : int
    real_pairs : int
        Distinct (question, session) pairs of real questions, both splits.
    splits, kinds : mapping of str to int
        Rows of each.
    sha256 : str
        Of the rows, in canonical lines and order.
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
    models : Models
    cells : mapping of CellName to Cell
    latency : mapping
        By system, stage and percentile, over real and built questions of the reported split.
    verdicts : tuple of Verdict
    """

    models: Models
    cells: Mapping[CellName, Cell]
    latency: Mapping[str, Mapping[str, Mapping[str, Percentile | NotMeasured]]]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of some rows.

    Attributes
    ----------
    counts : Counts
    about : About or None
    sections : tuple of Section
    noise : tuple of NoisePoint
        Empty if no words were given.
    """

    counts: Counts
    about: About | None
    sections: tuple[Section, ...]
    noise: tuple[NoisePoint, ...]

    def to_json(self) -> str:
        """Write ``report.json``."""
        return json.dumps(_plain(self), sort_keys=True, indent=1, allow_nan=False) + "\n"

    def files(self) -> dict[str, bytes]:
        """Return the files of the report by name: JSON, Markdown, HTML, and the pictures Markdown shows."""
        blocks = page(self)
        texts = {
            "report.json": self.to_json(),
            "report.md": as_markdown(blocks),
            "report.html": as_html(blocks, title=TITLE),
            **{block.file: block.svg for block in blocks if isinstance(block, Figure)},
        }
        return {name: text.encode() for name, text in texts.items()}


def report(
    rows: Sequence[Row], *, about: About | None = None, words: Mapping[str, int] | None = None
) -> Report:
    """Measure everything.

    Parameters
    ----------
    rows : sequence of Row
        In any order.
    about : About, optional
        What the run was of; without it some goals cannot be judged.
    words : mapping of str to int, optional
        The true word of each chunk, for the sweep of label noise.

    Raises
    ------
    InvalidArgument
        If there is no row, or rows contradict each other.
    """
    if not rows:
        raise InvalidArgument("there is no row; run the benchmark first")
    parted = cells_.models(rows)
    counts = _counts(rows)
    sections = tuple(_section(models, some, about, counts.real_pairs) for models, some in parted.items())
    noise: tuple[NoisePoint, ...] = ()
    if words is not None:
        most = max(parted.values(), key=lambda some: sum(row.system == "vanilla" for row in some))
        noise = tuple(noise_sweep(filter(_reported, most), words, _policy_of))
    return Report(counts, about, sections, noise)


def report_from(path: Path) -> Report:
    """Measure a file of rows, with ``run.json`` and ``words.json`` (or ``.gz``) beside it where they are.

    Raises
    ------
    CorruptFile
        If a file is not what its name says, or ``run.json`` is of other rows.
    """
    rows = read_rows(path)
    about = words = None
    if (beside := path.with_name("run.json")).exists():
        about = About.from_json(beside.read_bytes())
        if about.rows_sha256 not in ("", found := rows_sha256(rows)):
            raise CorruptFile(
                f"{beside} is of rows {about.rows_sha256}, not of {found}; take both from one run"
            )
    for name in ("words.json", "words.json.gz"):
        if (beside := path.with_name(name)).exists():
            words = _read_words(beside)
    return report(rows, about=about, words=words)


def rows_sha256(rows: Sequence[Row]) -> str:
    """Hash rows in their canonical lines and order: the hash of the file that `write_rows` makes, unpacked."""
    digest = hashlib.sha256()
    for line in sorted(row.to_json() for row in rows):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


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


def _section(models: Models, rows: Sequence[Row], about: About | None, pairs: int) -> Section:
    made = {cell.name: cell for cell in cells_.cells(rows)}
    times = latencies(filter(_reported, rows))
    facts = Facts(made, times, about, pairs)
    return Section(models, made, times, tuple(judge(target, facts) for target in TARGETS))


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
    """Name what was asked, whatever models answered."""
    return row.pair[:5]


@cache
def _table() -> PolicyTable:
    return PolicyTable.shipped()


def _policy_of(row: Row) -> Policy:
    cell = _table().get(row.role, row.purpose)
    return Policy() if cell is None else cell.policy  # without a cell nothing is admitted


# --- report.json -------------------------------------------------------------------------------------------

FORMAT: Final = "carag edgar report 1"


def _plain(whole: Report) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "rows": {name: getattr(whole.counts, name) for name in Counts.__slots__},
        "run": None if whole.about is None else json.loads(whole.about.to_json()),
        "measures": {
            measure.name: {
                "title": measure.title,
                "numerator": measure.over,
                "denominator": measure.under,
                "better": measure.better,
            }
            for measure in MEASURES
        },
        "not_measured": NOT_MEASURED,
        "models": [_plain_section(section) for section in whole.sections],
        "label_noise": [point.to_json() for point in whole.noise],
        "paper": {
            "source": SOURCE,
            "claimed_queries": CLAIMED_QUERIES,
            "queries_its_rates_fit": common_count(),
            "table_2": [{name: getattr(row, name) for name in row.__slots__} for row in TABLE_2],
        },
    }


def _plain_section(section: Section) -> dict[str, Any]:
    return {
        "embedder": section.models.embedder,
        "generator": section.models.generator,
        "targets": [verdict.to_json() for verdict in section.verdicts],
        "latency_ms": {
            system: {stage: {name: p.to_json() for name, p in at.items()} for stage, at in stages.items()}
            for system, stages in section.latency.items()
        },
        "cells": [_plain_cell(cell) for cell in section.cells.values()],
    }


def _plain_cell(cell: Cell) -> dict[str, Any]:
    return {
        **cell.name._asdict(),
        "pairs": cell.pairs,
        "questions": cell.questions,
        "filers": cell.filers,
        "rows": dict(cell.rows),
        "not_measured": cell.too_small or None,
        "systems": {
            system: {name: figure.to_json() for name, figure in figures.items()}
            for system, figures in cell.systems.items()
        },
        "paired": [
            {
                "system": pair.system,
                "other": pair.other,
                "measure": pair.measure,
                "differing_pairs": pair.differing,
                "difference": pair.difference.to_json(),
            }
            for pair in cell.paired
        ],
    }
