"""Write the section on the SEC EDGAR benchmark from the committed rows: ``python -m bench.edgar.page``.

Measuring all rows again takes a minute. ``page.sha256`` holds the hash of the section as it was last written, so
that every test run detects an edit of the page, and the full one an edit of either.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness import ROOT, parser, replaced
from carag.errors import InvalidArgument
from carag.evaluation.report.goals import GoalState
from carag.evaluation.report.measures import MEASURES, NOTICED
from carag.evaluation.report.report import report_from
from carag.evaluation.report.strata import DATA_SET
from carag.evaluation.row import SYSTEMS
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.estimate import Estimate, NotMeasured
from carag.evaluation.statistics.latency import Percentile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.report.report import Report, Section
    from carag.evaluation.report.strata import Slice


HERE: Final = Path(__file__).parent
COMMAND: Final = "python -m bench.edgar.page"
NAME: Final = "bench.edgar"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
_FULL: Final = "[At full size]("
"""The paragraph that begins so was written from rows that are kept at tag ``evidence-0.3`` alone; it stays as it is."""

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


def section(paper: Report, full: str, where: str) -> str:
    """Write the section.

    Parameters
    ----------
    paper : Report
        At the paper's size.
    full : str
        The paragraph about all filings.
    where : str
        The directory that holds the reports, as the page links to it.

    Raises
    ------
    InvalidArgument
        If a run was made without a description, randomised trials or rebuilt stores.
    """
    first, *others = paper.sections
    run, every, real = paper.metadata, _whole(first, "everything"), _whole(first, "real")
    if run is None or run.worlds is None:
        raise InvalidArgument(
            "the run has no run.json, or one without rebuilt stores; run the benchmark again"
        )
    trials, violating = sum(one.pairs for one in run.trials), sum(one.violating for one in run.trials)
    scopes = {"everything": every, "real": real}
    lines = [
        f"{run.chunks:,} chunks of {run.filings:,} real filings; {every.pairs:,} (question, session) pairs "
        f"about {every.filers} filers, adversaries among them; twelve systems with the same models "
        f"({first.models.embedder}, {first.models.generator}). In brackets 95 % intervals, bootstrapped by filer and "
        "question.",
        "",
        _by_company(every),
        "",
        f"In addition, {trials:,} randomised (query, policy) pairs at the level of retrieval, {violating} violations; "
        f"and {run.worlds.asked:,} pairs asked in {run.worlds.worlds} stores rebuilt without what the session may not "
        f"see, {run.worlds.differing} with another answer. [The report]({where}/paper/report.md) has every measure, "
        "stratum and difference, the paper's table beside ours, and what each figure rests on. Made by `carag bench "
        "edgar --data DIR --out OUT`; made again from its rows, to the last byte, by `carag bench edgar --from ROWS "
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
    return "\n".join([*lines, "", full])


def _by_company(every: Slice) -> str:
    """Bound leaks by company, because questions about one company are alike."""
    found = every.systems["carag-certified"]["cvr_query"]
    said = ""
    if isinstance(found, Estimate) and not found.numerator:
        said = (
            f"Counted by company, including those that the attacks invent, `carag-certified` leaked in no question "
            f"about any of {found.filers}: at most {100 * clopper_pearson(0, found.filers)[1]:.1f} % of such companies "
            "would (95 %). "
        )
    result = json.loads((HERE / "companies" / "companies.json").read_text("utf-8"))
    own, ordinary = (result["systems"][name] for name in ("carag-certified", "vanilla"))
    return (
        f"{said}In another run, with one pair about each of {result['companies']} companies of the same corpus "
        f"({result['embedder']}), `carag-certified` leaked in {own['leaked']} pairs (at most "
        f"{100 * own['interval'][1]:.1f} %) and `vanilla` in {ordinary['leaked']}: `python -m bench.edgar.companies "
        "--data DIR --cache DIR --out OUT`."
    )


def _noticed(first: Section) -> Iterator[str]:
    """Write what a user notices: of real questions, and of each data set."""
    real = _whole(first, "real")
    f1 = "; ".join(f"{system} {_figure(real.systems[system]['f1_answerable'])}" for system in _SHOWN)
    unknown = all(isinstance(figures["cites_gold"], NotMeasured) for figures in real.systems.values())
    yield (
        "What a user notices, on real questions of the reported split: whether the evidence is found and cited, "
        "whether the figure is right, and whether the company is the one asked about; and what happened where all of "
        "the evidence was open to the session, where part of it was (answering from that part is right), and where "
        f"none was. F1 on answerable questions is measured but is not a goal: {f1}."
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


def _held(text: str) -> str:
    section = text.partition(f"<!-- {NAME}:")[2].partition(f"<!-- /{NAME} -->")[0]
    return section.partition("-->\n")[2].strip("\n")


def section_sha256(text: str) -> str:
    """Hash the section that a page holds."""
    return hashlib.sha256(_held(text).encode()).hexdigest()


def full_size(text: str) -> str:
    """Return the paragraph about all filings that a page holds."""
    return next(part for part in _held(text).split("\n\n") if part.startswith(_FULL))


def main() -> None:
    """Write the section, and its hash."""
    arguments = parser("bench.edgar.page", __doc__)
    arguments.add_argument("--page", type=Path, default=PAGE)
    given = arguments.parse_args()
    text = given.page.read_text("utf-8")
    text = replaced(text, section(committed("paper"), full_size(text), "../bench/edgar"), COMMAND, NAME)
    given.page.write_text(text, encoding="utf-8")
    (HERE / "page.sha256").write_text(f"{section_sha256(text)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
