"""Write the benchmark's figures as a Markdown page; a pure function of ``results.json``."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.commit import commit
from bench.metric.advice import advice, opening
from bench.metric.classification import SLOW_TURNS
from bench.metric.corpora import SEED
from bench.metric.report_stance import stance
from bench.metric.retrieval import DECIDES, KS
from carag.evaluation.run_metadata import processor_name
from carag.evaluation.statistics.bootstrap import REPLICATES
from carag.evaluation.statistics.bootstrap import SEED as DRAW
from carag.index import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["about", "report"]

_PAGE: Final = """\
# The Regulatory Compliance Metric, measured

Written by `python -m bench.metric`; do not edit.

{opening}

{advice}

Brackets are 95 % intervals by the percentiles of a cluster bootstrap ({replicates:,} replicates, seed {draw}):
clusters with replacement, then items within each. A difference is *shown* only where the interval of the paired
difference excludes 0. No interval is widened for the number of comparisons: of twenty true zeros, one is shown as a
difference.
{absent}
{stance}{three_way}
{retrieval}
{classification}
{joint}
{speed}
## Settings

- Seeds: {seed} for what is drawn, {draw} for the bootstrap; each chosen once, before any figure was seen.
- The metric is `carag.evaluation.regulatory` with its defaults, the paper's: windows of 1,000 characters that share
  100, 10 passages a turn, least cosine 0.3, contradiction below 0.6, compliant from 0.5. Corpus of the joint part: the
  articles and annexes of the AI Act; recitals bind nobody, and are left out.
- {processor}, {processors} processors, kernel {kernel}; load {load:.1f} at the start; Python {python}, numpy {numpy}.
- {date}, commit {commit}; {seconds:,.0f} s in all, {cpu:,.0f} of a processor; {computed:,} vectors and
  scores computed, the others kept from before.
{quick}"""

_THREE_WAY: Final = """\
## 1. Whole contracts, three ways

ContractNLI's test part: {contracts} contracts, each asked for the same seventeen requirements, {pairs:,} pairs; of them
{truth[Entailment]} are supported, {truth[Contradiction]} contradicted and {truth[NotMentioned]} not mentioned. A
contract is the corpus, a requirement the response, and the variants run with their defaults over `minilm`; `paper` and
`reference` with `{reranker}`. `stance` learnt these requirements from the development part, as the regression did;
*requirements not learnt* is the same head for a claim that it never saw. `nli` is untrained, and has thresholds of the
development part. Binary: pairs that are not mentioned left out, neutral counted as a miss. Everything was chosen by
folds of the development part. The test labels were read twice: once with an earlier head, which did not beat the
regression, and once with this one.
"""
_RETRIEVAL: Final = """\
## 2. Embedders: does a question find what answers it

Chunks are ranked by cosine, and an article or passage stands where its best chunk does. *EU AI Act*: articles and
annexes in windows, each document headed by its number and title. *ObliQA*: a passage is one chunk; drawn questions,
all their gold, and drawn passages beside it, the same for every embedder: easier than the whole rulebooks, so the
figures rank embedders and promise nothing of a store. Relevance is 0 or 1 in both sets, so nDCG has no grades.
"""
_CLASSIFICATION: Final = """\
## 3. Rerankers: do they tell support from contradiction

The evidence is given, so retrieval plays no part. Below the threshold is CONTRADICTS, the positive class of average
precision and of the curves. *ContractNLI*: a statement against the spans of a contract that experts marked; those that
it does not mention are left out; the threshold is that of the greatest macro-F1 on the development part.
*AIReg-Bench*: an excerpt against the chunks of its article: of each turn the greatest score, of these the mean; the
threshold is cross-validated, each use by that of the seven others. `bm25` is a share of the greatest score that the
words of a response can reach. `stance-head` learnt the seventeen statements of ContractNLI from its development part,
and they are those of the test part too. `nli` is slow, and reads of each excerpt the longest
sentence of {slow} drawn turns.
"""
_JOINT: Final = """\
## 4. Together: the metric's verdict beside the experts'

AIReg-Bench: documentation written by a language model, judged by three experts each. An excerpt is cut at empty lines
into turns, a block of fewer than 20 words joined to the one below: a turn is what says one thing. {read} ({turns:,} in
all). The query of each is the article's number and title. A median of 4 or 5 is compliant, 1 or 2 is not, 3 is
undecided and counted apart. A session is the documentation of one use in one scenario; each of its excerpts weighs the
same; it is compliant if at least half of its decided excerpts are. IRRELEVANT is counted as a wrong verdict. Clusters
are the 8 uses. *Threshold cross-validated*: `paper` with the contradiction threshold of the greatest accuracy on the
excerpts of the other seven uses.

The ceiling: Cohen's kappa of two experts' own verdicts, on excerpts that both decide.
"""
_SPEED: Final = """\
## 5. Speed: everything but the models

{interactions:,} turns, of a question and four sentences, over {chunks:,} chunks of {dim} dimensions, with models that
look their answer up; what they take is subtracted. One thread of linear algebra. Median of n = {rounds} rounds, which
share the turns, and, in brackets, the least and the greatest. Target: below {target:g} ms a turn. The time of the
processor, models included, leaves out what other processes take.
"""
_QUICK: Final = (
    "- **Measured with `--quick`: small draws, which show that the benchmark runs, and nothing of models.**\n"
)


def about(*, quick: bool) -> dict[str, Any]:
    """Describe a run that begins: its seeds, machine and commit."""
    return {
        "quick": quick,
        "seed": SEED,
        "draw": DRAW,
        "replicates": REPLICATES,
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "kernel": kernels.active(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit(),
    }


def report(found: dict[str, Any]) -> str:
    """Lay the page out; parts that were not measured are left out, and said to be."""
    missing = "".join(f"\n- Not measured: {name}: {why}." for name, why in found["absent"].items())
    return _PAGE.format(
        **found["about"] | {"quick": _QUICK if found["about"]["quick"] else ""},
        opening=opening(found),
        advice=advice(found),
        absent=f"{missing}\n" if missing else "",
        stance=stance(found),
        three_way=_three_way(found["three-way"]),
        retrieval=_retrieval(found["retrieval"]),
        classification=_classification(found["classification"]),
        joint=_joint(found["joint"], found["about"]["turns"]),
        speed=_speed(found.get("speed")),
        seconds=found["seconds"],
        cpu=found["CPU seconds"],
        computed=found["computed"],
    )


def _three_way(part: dict[str, Any]) -> str:
    lines = [
        _THREE_WAY.format(**part),
        *_table(
            ["system", "macro-F1", "`stance` leads by", "binary macro-F1", "`stance` leads by", "form"],
            (
                [
                    name,
                    _shown(one["macro-F1"]),
                    _shown(lead["macro-F1"]) if (lead := part["differences"].get(name)) else "",
                    _shown(one["binary macro-F1"]),
                    _shown(lead["binary macro-F1"]) if lead else "",
                    part["chosen"].get(name, ""),
                ]
                for name, one in part["figures"].items()
            ),
        ),
        "",
        "Confusion (rows true, columns said, in the order supported, contradicted, not mentioned):",
        "",
        *_table(
            ["system", "supported", "contradicted", "not mentioned"],
            (
                [name, *(" / ".join(f"{cell:.0f}" for cell in row) for row in one["confusion"])]
                for name, one in part["figures"].items()
            ),
        ),
    ]
    return "\n".join([*lines, ""])


def _retrieval(parts: Sequence[dict[str, Any]]) -> str:
    lines = [_RETRIEVAL.rstrip()]
    names = [*(f"recall@{k}" for k in KS), "MRR", *(f"nDCG@{k}" for k in KS[1:])]
    for part in parts:
        lines += [
            "",
            f"### {part['corpus']}: n = {part['questions']} questions, {part['chunks']:,} chunks of {part['owners']:,} "
            "articles or passages",
            "",
            *_table(
                ["embedder", *names],
                (
                    [f"`{name}`", *(_shown(of_one[one]) for one in names)]
                    for name, of_one in part["figures"].items()
                ),
            ),
            "",
            *_differences(f"difference in {DECIDES}", part["differences"]),
        ]
        if part["unanswerable"]:
            lines += [
                "",
                f"Of the {part['unanswerable']} questions that the corpus does not answer there is no gold; their top "
                "similarity, beside that of the others:",
                "",
                *_table(
                    ["embedder", "n", "least", "median", "greatest"],
                    (
                        [
                            name,
                            str(one["n"]),
                            *(f"{one[what]:.2f}" for what in ("least", "median", "greatest")),
                        ]
                        for name, one in part["top similarity"].items()
                    ),
                ),
            ]
    return "\n".join([*lines, ""])


def _classification(parts: Sequence[dict[str, Any]]) -> str:
    lines = [_CLASSIFICATION.format(slow=SLOW_TURNS).rstrip()]
    names = ("macro-F1", "macro-F1 at 0.6", "accuracy", "AUC", "average precision")
    for part in parts:
        prevalence = part["contradictions"] / part["n"]
        lines += [
            "",
            f"### {part['set']}: n = {part['n']:,}, of which {part['contradictions']} contradict, "
            f"in {part['clusters']} {part['each']}"
            + (f"; {part['development']} for the threshold" if part["development"] else ""),
            "",
            *_table(
                ["reranker", "threshold", *names],
                [
                    *(
                        [f"`{name}`", _range(one["thresholds"]), *(_shown(one[figure]) for figure in names)]
                        for name, one in part["figures"].items()
                    ),
                    [
                        "*always the majority*",
                        "",
                        _shown(part["majority"]),
                        "",
                        "",
                        "0.500",
                        f"{prevalence:.3f}",
                    ],
                ],
            ),
            "",
            *_differences("difference in macro-F1", part["differences"]),
            "",
            *(f"![{name}](plots/{name}.svg)" for name in part["plots"]),
        ]
    return "\n".join([*lines, ""])


def _joint(part: dict[str, Any], most: int | None) -> str:
    read = f"**Of each excerpt {most} drawn turns are read**, in part 3 too" if most else "All turns are read"
    lines = [
        _JOINT.format(**part, read=read),
        *_table(
            ["experts", "n", "kappa"],
            ([name, str(one["n"]), _shown(one)] for name, one in part["experts"].items()),
        ),
    ]
    for what in ("excerpts", "sessions"):
        one = part[what]
        lines += [
            "",
            f"### By {what}: n = {one['n']}, of which {one['compliant']} compliant",
            "",
            *_table(
                [
                    "embedder",
                    "reranker or judge",
                    "variant",
                    "accuracy",
                    "kappa",
                    "compliant / not / irrelevant",
                ],
                [
                    *(
                        _row([f"`{row['embedder']}`", f"`{row['reranker']}`", row["variant"]], row)
                        for row in one["figures"].values()
                    ),
                    *(
                        _row([f"*{name}*", "", ""], one[name])
                        for name in ("always compliant", "never compliant")
                    ),
                ],
            ),
            "",
            f"![kappa by {what}](plots/kappa-{what}.svg)",
            "",
            "Paired differences in kappa between variants, same embedder and same model:",
            "",
            *_differences("difference in kappa", one["differences of variants"]),
        ]
    undecided = part["undecided"]
    lines += [
        "",
        f"Of the {undecided['n']} excerpts that the experts leave undecided, the share that is said to be compliant "
        f"goes from {min(undecided['share compliant'].values(), default=0):.2f} to "
        f"{max(undecided['share compliant'].values(), default=0):.2f} by combination.",
    ]
    return "\n".join([*lines, ""])


def _speed(part: dict[str, Any] | None) -> str:
    if part is None:
        return "## 5. Speed\n\nNot measured; run `python -m bench.metric.speed`.\n"
    lines = [
        _SPEED.format(**part),
        *_table(
            [
                "variant",
                "ms a turn",
                "its CPU ms",
                "of that, two searches",
                "models' ms",
                "passages a turn",
                "target",
            ],
            (
                [
                    name,
                    _spread(one["ms"]),
                    *(f"{one[f'median {what}']:.2f}" for what in ("CPU ms", "search ms", "model ms")),
                    f"{one['median passages']:.1f}",
                    "met" if one["median ms"] < part["target"] else "**missed**",
                ]
                for name, one in part["variants"].items()
            ),
        ),
        "",
        f"Measured at commit {part['commit']}, load {part['load']:.1f} at the start.",
    ]
    for name, rows in part.get("profile", {}).items():
        lines += [
            "",
            f"Where the time of `{name}` goes, by the deterministic profiler over {part['profiled']:,} turns:",
            "",
        ]
        lines += _table(["calls a turn", "own µs a turn", "function"], ([*map(str, row)] for row in rows))
    return "\n".join([*lines, ""])


def _row(names: list[str], row: dict[str, Any]) -> list[str]:
    return [
        *names,
        _shown(row["accuracy"]),
        _shown(row["kappa"]),
        " / ".join(str(one) for one in row["said"].values()),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def _differences(name: str, found: dict[str, dict[str, Any]]) -> list[str]:
    rows = (
        [what, _shown(one), "yes" if one["low"] > 0 or one["high"] < 0 else "no"]
        for what, one in found.items()
    )
    return _table(["pair", name, "shown"], rows)


def _shown(one: dict[str, Any]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


def _range(limits: Sequence[float]) -> str:
    return f"{limits[0]:.2f}" if limits[0] == limits[-1] else f"{limits[0]:.2f} to {limits[-1]:.2f}"


def _spread(values: Sequence[float]) -> str:
    return f"{np.median(values):.2f} [{min(values):.2f}, {max(values):.2f}]"
