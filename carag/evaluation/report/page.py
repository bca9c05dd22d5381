"""Write a report as Markdown, from the templates beside this module: a plain summary, contents, all figures."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from carag.evaluation.report import figures
from carag.evaluation.report.goals import counted_states
from carag.evaluation.report.measures import MEASURES, NOT_MEASURED, NOTICED
from carag.evaluation.report.paper import CLAIMED_QUERIES, SOURCE, TABLE_2, common_count
from carag.evaluation.report.strata import BAND, DIMENSIONS, EVERYTHING, IN_BANDS, SliceName
from carag.evaluation.row import ORACLE, OUTCOMES, K, is_own
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.estimate import Estimate
from carag.extras import require
from carag.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jinja2 import Environment

    from carag.evaluation.report.figures import Picture
    from carag.evaluation.report.report import Report
    from carag.evaluation.report.strata import Slice


IN_WORDS: Final = {
    "oracle": "the yardstick: an index that never held a closed passage, searched exactly",
    "vanilla": "ordinary retrieval-augmented generation (RAG): the nearest passages, no matter who asks",
    "postfilter-1": "ordinary search for 8 passages, closed ones thrown away afterwards",
    "postfilter-4": "the same with 32 passages, of which 8 are kept",
    "postfilter-16": "the same with 128 passages, of which 8 are kept",
    "prefilter-rbac": "an index for each role, which knows nothing of purposes, dates and lists",
    "hnswlib-callback": "a common vector index that asks a Python function about every passage",
    "carag-auto": "CARAG, by the fastest way that finds nearly all",
    "carag-certified": "CARAG as it runs by default: exact, and reading open passages only",
    "carag-withheld-text": "CARAG, if the model were shown the closed text and told not to use it",
    "carag-no-gate": "CARAG without the test whether the passages suffice",
    "carag-no-refusal": "CARAG made to answer always",
}
"""One line about each system of the benchmark."""
_LEAKS: Final = ("cvr_query", "cvr_touch", "odr_canary")
"""Measures in which a single row is a leak."""
_WHOLE: Final = SliceName(EVERYTHING)
_REAL: Final = SliceName("real")
_OURS: Final = ("carag-auto", "carag-certified")
_GROUPS: Final = {
    "confidential": (
        *("cvr_query", "cvr_chunk", "unusable", "cvr_touch", "odr_canary", "odr_ngram", "existence"),
        "noninterference",
    ),
    "found": ("admissible_recall", "evidence_recall", "arecall", "ndcg"),
    "right": ("cites_gold", "figure_right", "wrong_company"),
    "answered": ("f1_raw", "f1_all", "f1_answerable", "f1_answered"),
    "refused": (
        *("refusal", "over_refusal", "answered_partly", "answered_hidden"),
        *("under_refusal", "error", "cost"),
    ),
    # Of adversaries and strata, whose tables are short.
    "in_strata": ("cvr_query", "admissible_recall", "evidence_recall", "over_refusal", "under_refusal"),
    "in_bands": IN_BANDS,
    "noticed": NOTICED,
    # The yardstick, ordinary retrieval, and CARAG as it runs by default.
    "by_data_set": (ORACLE, "vanilla", "carag-certified"),
}
"""Measures of a table, and systems shown for each data set."""


class Verdict(StrEnum):
    """What a run says about one system, worst first; the values are printed in the report."""

    LEAKS = "leaks"
    UNPROVED = "not shown: it failed, or was not asked everything"
    WORDS = "not shown: its answers hold closed words"
    BETRAYS = "no leak seen, but betrays that something is hidden"
    NO_LEAK_SEEN = "no leak seen"


def verdict(part: Slice, system: str) -> Verdict:
    """Judge one system by all rows; a row that failed or was not asked may have leaked, so it is not a success."""
    if any(_seen(part, system, name) for name in _LEAKS):
        return Verdict.LEAKS
    if part.failed[system] or part.rows[system] < part.pairs:
        return Verdict.UNPROVED
    if is_own(system) and _seen(part, system, "odr_ngram") > _seen(part, ORACLE, "odr_ngram"):
        return Verdict.WORDS
    if _seen(part, system, "existence"):
        return Verdict.BETRAYS
    return Verdict.NO_LEAK_SEEN


def as_page(report: Report) -> tuple[str, list[Picture]]:
    """Write the page, and draw the pictures that it shows."""
    section = max(report.sections, key=lambda one: one.slices[_WHOLE].pairs)
    part = section.slices[_WHOLE]
    pictures: list[Picture] = []

    def shown(picture: Picture) -> str:
        pictures.append(picture)
        return f"![{picture.caption}]({picture.file})"

    values = {
        "report": report,
        "run": report.metadata,
        "section": section,
        "part": part,
        "real": section.slices.get(_REAL),
        "leaked": _leaked_by(part),
        "closest": _leaked(part, *_OURS),
        "safety_picture": lambda *given: shown(figures.safety_picture(*given)),
        "strata_picture": lambda *given: shown(figures.strata_picture(*given)),
        "latency_picture": lambda *given: shown(figures.latency_picture(*given)),
        "noise_picture": lambda *given: shown(figures.noise_picture(*given)),
    }
    first = _environment().get_template("summary.md.j2").render(values)
    rest = _environment().get_template("store.md.j2" if report.is_own else "edgar.md.j2").render(values)
    links = [f"- [{title}](#{anchor(title)})" for title in re.findall(r"^## (.*)$", rest, re.MULTILINE)]
    whole = "\n\n".join([first, "## Contents", "\n".join(links), rest])
    return re.sub(r"\n{3,}", "\n\n", visible(whole)).strip() + "\n", pictures


def figures_in_words(report: Report) -> list[list[str]]:
    """Return a table for the terminal: headings, then the figures of each system."""
    section = report.sections[0]
    part, real = section.slices[_WHOLE], section.slices.get(_REAL)
    rows = [
        [
            system,
            *(_count(part, system, name) for name in ("cvr_query", "odr_canary", "odr_ngram")),
            _rate(real, system, "evidence_recall"),
            " / ".join(f"{part.outcomes[system][outcome]:,}" for outcome in OUTCOMES),
        ]
        for system in part.systems
    ]
    return [["system", "CVR", "ODR by canary", "ODR by 8-gram", "evidence", " / ".join(OUTCOMES)], *rows]


def anchor(heading: str) -> str:
    """Return the target of a link to a heading, as GitHub forms it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def cells(first: Iterable[object], *more: Iterable[object]) -> str:
    """Write a line of a table; no text can end a cell or the line."""
    every = [visible_line(str(one)).replace("|", "\\|") for group in (first, *more) for one in group]
    return f"| {' | '.join(every)} |"


def _seen(part: Slice, system: str, measure: str) -> int:
    """Count the rows in which something was seen; 0 if the measure applies to none."""
    figure = part.systems.get(system, {}).get(measure)
    return round(figure.numerator) if isinstance(figure, Estimate) else 0


def _leaked(part: Slice, *systems: str) -> Estimate | None:
    """Return the figure of the system that leaked most often, among those given."""
    found = (part.systems[system]["cvr_query"] for system in systems if system in part.systems)
    known = [figure for figure in found if isinstance(figure, Estimate)]
    return max(known, key=lambda figure: figure.value, default=None)


def _leaked_by(part: Slice) -> list[tuple[str, Estimate, int]]:
    """Return what the headline names: who leaked, in how many questions, and how many failed."""
    named = {"CARAG": _OURS, "ordinary retrieval-augmented generation": ("vanilla",)}
    named |= {system: (system,) for system in part.systems if is_own(system)}
    return [
        (name, figure, max(part.failed.get(system, 0) for system in systems))
        for name, systems in named.items()
        if (figure := _leaked(part, *systems)) is not None
    ]


def _count(part: Slice, system: str, measure: str) -> str:
    figure = part.systems[system][measure]
    if not isinstance(figure, Estimate):
        return "not measured"
    counted = f"{figure.numerator:,.0f} of {figure.denominator:,}"
    if figure.value:
        counted += f" ({_percent(figure.value)})"
    failed = part.failed[system] if figure.denominator == part.rows[system] else 0
    return f"{counted}; {failed:,} failed" if failed else counted


def _rate(part: Slice | None, system: str, measure: str) -> str:
    figure = part.systems.get(system, {}).get(measure) if part else None
    return _percent(figure.value) if isinstance(figure, Estimate) else "not measured"


def _times(figure: Any) -> str:
    return f" ({figure.denominator:,} times)" if isinstance(figure, Estimate) else ""


def _percent(value: float) -> str:
    """Write a share with two digits."""
    return f"{100 * value:.0f} %" if value >= 0.995 else f"{100 * value:.2g} %"


@cache
def _environment() -> Environment:
    require("a report", "bench")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(  # noqa: S701 - Markdown: `cells` and `visible` keep foreign text in its place
        loader=PackageLoader("carag.evaluation.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["own"] = is_own
    made.filters |= _FILTERS
    made.globals |= _VALUES
    return made


_FILTERS: Final[dict[str, Callable[..., str]]] = {
    "cells": cells,
    "figure": figures.figure_text,
    "line": visible_line,
    "number": "{:,}".format,
    "of": lambda name, values: values[name],
    "percent": _percent,
    "percentile": figures.percentile_text,
    "share": figures.share_text,
    "states": counted_states,
    "times": _times,
    "title_of": {measure.name: measure.title for measure in MEASURES}.__getitem__,
}
_VALUES: Final[dict[str, object]] = {
    **_GROUPS,
    "band": BAND,
    "claimed": CLAIMED_QUERIES,
    "counted": _count,
    "dimensions": DIMENSIONS,
    "fitting": common_count(),
    "in_words": IN_WORDS,
    "k": K,
    "measures": MEASURES,
    "most": lambda pairs: clopper_pearson(0, pairs)[1],
    "not_measured": NOT_MEASURED,
    "outcomes": OUTCOMES,
    "rate": _rate,
    "rule": lambda columns: "|" + "---|" * columns,
    "seen": _seen,
    "source": SOURCE,
    "table_2": TABLE_2,
    "verdict_of": verdict,
}
