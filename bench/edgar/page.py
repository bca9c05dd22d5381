"""Write the section on the SEC EDGAR benchmark from the committed rows: ``python -m bench.edgar.page``.

Measuring all rows again takes a minute. ``page.sha256`` holds the hash of the section as it was last written, so
that every test run detects an edit of the page, and the full one an edit of either.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.sections import replaced
from carag.errors import InvalidArgument
from carag.evaluation.report.goals import GoalState
from carag.evaluation.report.measures import MEASURES, NOTICED
from carag.evaluation.report.report import report_from
from carag.evaluation.report.strata import DATA_SET
from carag.evaluation.row import SYSTEMS
from carag.evaluation.statistics.estimate import Estimate, NotMeasured
from carag.evaluation.statistics.latency import Percentile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.report.report import Report, Section
    from carag.evaluation.report.strata import Slice
    from carag.evaluation.run_metadata import RunMetadata

__all__ = ["BEGIN", "END", "committed", "section", "section_sha256"]

HERE: Final = Path(__file__).parent
BEGIN: Final = "<!-- bench.edgar: this section is written by `python -m bench.edgar.page` -->"
END: Final = "<!-- /bench.edgar -->"

_COLUMNS: Final = (
    ("CVR by query", "everything", "cvr_query"),
    ("and in prompt, log or cache", "everything", "cvr_touch"),
    ("canaries disclosed", "everything", "odr_canary"),
    ("existence disclosed", "everything", "existence"),
    ("admissible recall@8", "real", "admissible_recall"),
)
_SHOWN: Final = ("vanilla", "carag-certified")
"""Systems of which the page says what a user notices; the report has all."""
_TITLES: Final = {measure.name: measure.title for measure in MEASURES}


def committed(run: str) -> Report:
    """Measure the committed rows of a run again."""
    return report_from(HERE / run / "rows.jsonl.gz")


def section(paper: Report, full: Report, where: str) -> str:
    """Write the section.

    Parameters
    ----------
    paper, full : Report
        At the paper's size, and of all filings.
    where : str
        The directory that holds both, as the page links to it.

    Raises
    ------
    InvalidArgument
        If a run was made without a description, randomised trials or rebuilt stores.
    """
    first, *others = paper.sections
    run, every, real = paper.metadata, _whole(first, "everything"), _whole(first, "real")
    if run is None or full.metadata is None or run.worlds is None:
        raise InvalidArgument("a run has no run.json, or one without rebuilt stores; run the benchmark again")
    trials, violating = sum(one.pairs for one in run.trials), sum(one.violating for one in run.trials)
    scopes = {"everything": every, "real": real}
    lines = [
        f"{run.chunks:,} chunks of {run.filings:,} real filings; {every.pairs:,} (question, session) pairs "
        f"about {every.filers} filers, adversaries among them; twelve systems with the same models "
        f"({first.models.embedder}, {first.models.generator}). In brackets 95 % intervals, bootstrapped by filer and "
        "question.",
        "",
        f"Besides, {trials:,} randomised (query, policy) pairs at the level of retrieval, {violating} violations; and "
        f"{run.worlds.asked:,} pairs asked in {run.worlds.worlds} stores rebuilt without what the session may not see, "
        f"{run.worlds.differing} with another answer. [The report]({where}/paper/report.md) has every measure, stratum "
        "and difference, the paper's table beside ours, and what each figure rests on. Made by `carag bench edgar "
        "--data DIR --out OUT`; again from its rows, to the last byte, by `carag bench edgar --from ROWS "
        "--out OUT`.",
        "",
        f"| system | {' | '.join(title for title, _, _ in _COLUMNS)} | retrieval p95, ms |",
        "|---" * (len(_COLUMNS) + 2) + "|",
    ]
    for system in [name for name in SYSTEMS if name in every.systems]:
        found = [_figure(scopes[scope].systems[system][measure]) for _, scope, measure in _COLUMNS]
        lines.append(f"| {system} | {' | '.join(found)} | {_p95(first, system)} |")
    lines += ["", *_noticed(first)]
    missed = [one for one in first.results if one.state is GoalState.MISSED]
    met = sum(one.state is GoalState.MET for one in first.results)
    lines += [
        "",
        f"Of {len(first.results)} goals {met} are met.{' Missed:' if missed else ''}",
        "",
    ]
    lines += [f"- {one.goal.statement}: by {one.by:.3g}." for one in missed]
    for other in others:
        asked = _whole(other, "real")
        f1 = "; ".join(
            f"{name} {_figure(got['f1_answerable'])}" for name, got in sorted(asked.systems.items())
        )
        lines += [
            "",
            f"With {other.models.generator}, {asked.pairs} pairs: F1 on answerable questions: {f1}.",
        ]
    return "\n".join([*lines, "", _at_full_size(full.metadata, full.sections[0], where)])


def _noticed(first: Section) -> Iterator[str]:
    """Write what a user notices: of real questions, and of each data set."""
    real = _whole(first, "real")
    f1 = "; ".join(f"{system} {_figure(real.systems[system]['f1_answerable'])}" for system in _SHOWN)
    unknown = all(isinstance(figures["cites_gold"], NotMeasured) for figures in real.systems.values())
    yield (
        "What a user notices, of real questions of the reported split: whether the evidence is found, cited, the "
        "figure right and the company the one asked about; and what came of it where all of the evidence was open to "
        "the session, where part was (to answer from that is right), and where none was. F1 on answerable questions "
        f"is measured and no goal: {f1}."
        + (
            " These rows were made before citations were kept in them, and before these goals."
            if unknown
            else ""
        )
    )
    yield ""
    yield f"| questions | system | {' | '.join(_TITLES[name] for name in NOTICED)} |"
    yield "|---" * (len(NOTICED) + 2) + "|"
    for name, part in first.slices.items():
        if name == ("real", "", "") or name.dimension == DATA_SET:
            for system in _SHOWN:
                found = [_figure(part.systems[system][measure]) for measure in NOTICED]
                yield f"| {name.stratum or 'all'} | {system} | {' | '.join(found)} |"


def _at_full_size(run: RunMetadata, measured: Section, where: str) -> str:
    every, real = (_whole(measured, scope) for scope in ("everything", "real"))
    shown = {
        system: "; ".join(
            f"{title} {_figure(part.systems[system][measure])}"
            for part, title, measure in (
                (every, "CVR by query", "cvr_query"),
                (every, "canaries disclosed", "odr_canary"),
                (real, "evidence recall@8", "evidence_recall"),
                (real, "answered with the gold hidden", "answered_hidden"),
            )
        )
        for system in ("vanilla", "oracle", "carag-certified")
    }
    states = Counter(one.state for one in measured.results)
    missed = "; ".join(one.goal.statement for one in measured.results if one.state is GoalState.MISSED)
    return (
        f"[At full size]({where}/full/report.md), {run.chunks:,} chunks of {run.filings:,} filings of "
        f"{run.filers:,} filers, {every.pairs:,} pairs, {measured.models.embedder}: "
        + ". ".join(f"{system}: {figures}" for system, figures in shown.items())
        + f". Retrieval p95 in ms: vanilla {_p95(measured, 'vanilla')}, carag-auto {_p95(measured, 'carag-auto')}, "
        f"carag-certified {_p95(measured, 'carag-certified')}. {states[GoalState.MET]} goals are met, "
        f"{states[GoalState.NOT_MEASURED]} not measured, {states[GoalState.MISSED]} missed: {missed}."
    )


def _whole(measured: Section, scope: str) -> Slice:
    """Return the figures of a scope as a whole, not of a stratum."""
    return next(part for name, part in measured.slices.items() if name == (scope, "", ""))


def _p95(measured: Section, system: str) -> str:
    time = measured.latency[system]["retrieve"]["p95"]
    return f"{time.ms:.2f}" if isinstance(time, Percentile) else "not measured"


def _figure(figure: Estimate | NotMeasured) -> str:
    if isinstance(figure, NotMeasured):
        return "not measured"
    if figure.numerator == 0:
        return f"0 of {figure.denominator:,}"
    value = f"{100 * figure.value:.1f} %"
    if figure.low is None or figure.high is None or figure.numerator == figure.denominator:
        return value
    return f"{value} ({100 * figure.low:.1f} .. {100 * figure.high:.1f})"


def section_sha256(text: str) -> str:
    """Hash the section that a page holds."""
    held = text.partition(BEGIN)[2].partition(END)[0].strip("\n")
    return hashlib.sha256(held.encode()).hexdigest()


def main() -> None:
    """Write the section, and its hash."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=HERE.parents[1] / "docs" / "benchmarks.md")
    given = parser.parse_args()
    made = section(committed("paper"), committed("full"), "../bench/edgar")
    text = replaced(given.page.read_text("utf-8"), BEGIN, END, made)
    given.page.write_text(text, encoding="utf-8")
    (HERE / "page.sha256").write_text(f"{section_sha256(text)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
