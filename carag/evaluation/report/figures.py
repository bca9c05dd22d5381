"""Format figures for tables, and draw them as pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.evaluation.report.svg import Dot, dots, lines
from carag.evaluation.row import K
from carag.evaluation.statistics.estimate import Estimate, NotMeasured, formatted
from carag.evaluation.statistics.latency import Percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from carag.evaluation.report.label_noise import NoisePoint
    from carag.evaluation.report.report import Section
    from carag.evaluation.report.strata import Slice


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, in its own file that Markdown links to."""

    name: str
    svg: str
    caption: str

    @property
    def file(self) -> str:
        """Name of the file, without characters of model names that some file systems reject."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name)}.svg"


def figure_text(figure: Estimate | NotMeasured) -> str:
    """Format a figure for a table, as a percentage with interval, counts and effective n."""
    if isinstance(figure, NotMeasured):
        return "not measured"
    value, interval = formatted(figure, scale=100)
    if figure.bound_if_independent is not None:
        interval += f", independent {100 * figure.bound_if_independent:.2g}"
    return f"{value} % ({interval}; {_counted(figure)}; n {figure.effective:,})"


def share_text(figure: Estimate | NotMeasured) -> str:
    """Format a figure for the first page, as a percentage with its interval."""
    if isinstance(figure, NotMeasured):
        return "not measured"
    value, interval = formatted(figure, scale=100)
    return f"{value} % ({interval})"


def _counted(figure: Estimate) -> str:
    many = figure.numerator
    return (
        f"{many:,.0f}/{figure.denominator:,}"
        if many == round(many)
        else f"{many:,.1f}/{figure.denominator:,}"
    )


def percentile_text(percentile: Percentile | NotMeasured) -> str:
    """Format a percentile in milliseconds with its interval."""
    if isinstance(percentile, NotMeasured):
        return "not measured"
    low, high = ("–" if bound is None else f"{bound:.3g}" for bound in (percentile.low, percentile.high))
    return f"{percentile.ms:.3g} ({low} .. {high})"


def safety_picture(part: Slice, slug: str) -> Picture:
    """Draw the CVR by query of each system."""
    caption = "Questions that retrieved a closed passage (CVR by query), per cent of all asked"
    marks = [
        _mark(system, figure, _counted(figure).replace("/", " of ") if isinstance(figure, Estimate) else "")
        for system, figures in part.systems.items()
        for figure in [figures["cvr_query"]]
    ]
    return Picture(f"violations-{slug}", dots(caption, marks, unit="%"), caption)


def strata_picture(strata: Iterable[Slice], slug: str) -> Picture:
    """Draw the difference in evidence found, by stratum."""
    caption = f"Evidence recall@{K}, CARAG minus another system on the same pairs, points"
    marks = [
        _mark(f"{part.name.scope} {part.name.stratum}: {pair.system} - {pair.other}", pair.difference)
        for part in strata
        for pair in part.paired
        if pair.measure == "evidence_recall" and isinstance(pair.difference, Estimate)
    ]
    return Picture(f"paired-{slug}", dots(caption, marks, unit="points"), caption)


def latency_picture(section: Section, slug: str) -> Picture:
    """Draw the latency of retrieval."""
    caption = "Retrieval without generation, milliseconds"
    marks = [
        Dot(f"{system} {key}", p.ms, p.low, p.high)
        if isinstance(p := stages["retrieve"][key], Percentile)
        else Dot(f"{system} {key}", None)
        for system, stages in section.latency.items()
        for key in ("p50", "p95")
    ]
    return Picture(f"latency-{slug}", dots(caption, marks, unit="ms", log=True), caption)


def noise_picture(points: Sequence[NoisePoint]) -> Picture:
    """Draw true violations over the rate of flipped bits."""
    caption = "What a filter passes and holds back when bits of the labels are flipped, per cent"
    named = (
        ("true CVR by query", [point.cvr_query for point in points]),
        ("true CVR by chunk", [point.cvr_chunk for point in points]),
        ("admissible held back", [point.hidden for point in points]),
    )
    series = [
        (
            title,
            [
                (100 * point.rate, 100 * figure.value)
                for point, figure in zip(points, of, strict=True)
                if isinstance(figure, Estimate)
            ],
        )
        for title, of in named
    ]
    return Picture("label-noise", lines(caption, series, across="bits flipped, %", up="%"), caption)


def _mark(label: str, figure: Estimate | NotMeasured, note: str = "") -> Dot:
    if isinstance(figure, NotMeasured):
        return Dot(label, None)
    low, high = (None if bound is None else 100 * bound for bound in (figure.low, figure.high))
    return Dot(label, 100 * figure.value, low, high, note)
