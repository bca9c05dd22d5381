"""Write the benchmark's figures as a Markdown page; a pure function of ``results.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.harness import described, table
from bench.metric.advice import advice, opening
from bench.metric.classification import SLOW_TURNS
from bench.metric.retrieval import DECIDES, KS

if TYPE_CHECKING:
    from collections.abc import Sequence


_PAGE: Final = """\
# The Regulatory Compliance Metric, measured

Written by `python -m bench.metric`; do not edit. More of part 4 (whole sessions, and differences between variants), and
curves of part 3, are at tag `evidence-0.3`, as is the program that trained the stance head.

{opening}

{advice}

Brackets are 95 % intervals by the percentiles of a cluster bootstrap ({replicates:,} replicates, seed {draw}):
clusters with replacement, then items within each. A difference is *shown* only where the interval of the paired
difference excludes 0. No interval is widened for the number of comparisons: of twenty true zeros, one is shown as a
difference.
{absent}
{stance}{parts}
## Settings

- Seeds: {seed} for what is drawn, {draw} for the bootstrap; each was chosen once, before any figure was seen.
- The metric is `carag.evaluation.regulatory` with its defaults, the paper's: windows of 1,000 characters that share
  100, 10 passages a turn, least cosine 0.3, contradiction below 0.6, compliant from 0.5. The corpus of part 4 is the
  articles and annexes of the AI Act; recitals, which are not binding, are left out.
- {described}
- {seconds:,.0f} s in all, {cpu:,.0f} of them on the processor; {computed:,} vectors and scores were computed,
  the others kept from an earlier run.
{quick}"""
_STANCE: Final = """\
## 0. The variant `stance`: it judges, or abstains

Measured apart, by `python -m bench.metric.answers`, with the present rule. What parts 1, 3 and 4 say of `stance` and
`stance-head` is about the rule before it, which called compliant what nothing contradicted.

### Stated answers about the AI Act

One sentence each, half of them violations, with the verdict that each deserves, over all articles and annexes.
*Stated*: the rule was made with them. *Blind*: written before the rule as well, and measured when it was finished. The
rule was changed twice since then, to abstain more: now it supports only what the text accounts for word by word.
*Blind* was looked at when that change was made. Brackets are 95 % intervals of Wilson.

{answers}

### ContractNLI, test part, three ways (NO_VERDICT counted as not mentioned)

Brackets, here and below, as in the other parts. About a requirement that it never learnt, `stance` now says nothing
more often (before, 0.433 and 0.420): the first rule took whatever a contract mentions for support.

{contracts}

### AIReg-Bench: n = {n} excerpts that the experts decide, of which {compliant} are compliant

NO_VERDICT and IRRELEVANT are counted as wrong. The regression learns from the excerpts of the seven other uses.

{documentation}

"""
_THREE_WAY: Final = """\
## 1. Whole contracts, three ways

ContractNLI's test part: {contracts} contracts, each asked for the same seventeen requirements, {pairs:,} pairs. Of
these {truth[Entailment]} are supported, {truth[Contradiction]} contradicted and {truth[NotMentioned]} not mentioned. A
contract is the corpus, a requirement the response, and the variants run with their defaults over `minilm`; `paper` and
`reference` with `{reranker}`. `stance` learnt these requirements from the development part, as the regression did;
*requirements not learnt* is the same head for a claim that it never saw. `nli` is untrained, with thresholds from the
development part. Binary: pairs that are not mentioned are left out, and neutral counts as a miss. Everything was chosen
by folds of the development part. The test labels were read twice: once with an earlier head, which did not beat the
regression, and once with this one.

{figures}

Confusion (rows true, columns said, in the order supported, contradicted, not mentioned):

{confusion}
"""
_RETRIEVAL: Final = """\
## 2. Embedders: does a question find what answers it?

Chunks are ranked by cosine, and an article or passage stands where its best chunk does. *EU AI Act*: articles and
annexes in windows, each document headed by its number and title. *ObliQA*: a passage is one chunk; drawn questions, all
their gold, and drawn passages beside it, the same for every embedder. That is easier than the whole rulebooks, so the
figures rank embedders and promise nothing of a store. Relevance is 0 or 1 in both sets.
"""
_CLASSIFICATION: Final = """\
## 3. Rerankers: do they tell support from contradiction?

The evidence is given, so retrieval plays no part. Below the threshold is CONTRADICTS, the positive class of average
precision. *ContractNLI*: a statement against the spans of a contract that experts marked; those that it does not
mention are left out; the threshold is that of the greatest macro-F1 on the development part. *AIReg-Bench*: an
excerpt against the chunks of its article: the greatest score of each turn, and the mean of these; the threshold is
cross-validated, for each use on the seven others. `bm25` is a share of the greatest score that the words of a
response can reach. `stance-head` learnt the seventeen statements of ContractNLI from its development part, and they
are those of the test part too. `nli` is slow, and reads the longest sentence of {slow} drawn turns of each excerpt.
"""
_JOINT: Final = """\
## 4. Together: the metric's verdict beside the experts'

AIReg-Bench: documentation written by a language model, judged by three experts each. An excerpt is cut at empty lines
into turns; a block of fewer than 20 words is joined to the one below. {read} ({turns:,} in all). The query of each is
the article's number and title. A median of 4 or 5 is compliant, 1 or 2 is not, and 3 is undecided and left out.
IRRELEVANT is counted as a wrong verdict. Clusters are the 8 uses. *Threshold cross-validated*: `paper` with the
contradiction threshold of the greatest accuracy on the excerpts of the other seven uses.

The ceiling: Cohen's kappa of two experts' own verdicts, on excerpts that both decide.

{experts}

The combinations: n = {n}, of which {compliant} are compliant.

{figures}
"""
_SPEED: Final = """\
## 5. Speed: everything but the models

{interactions:,} turns, each of a question and four sentences, over {chunks:,} chunks of {dim} dimensions, with models
that look their answer up; what they take is subtracted. One thread of linear algebra. Median of n = {rounds} rounds,
which share the turns, and, in brackets, the least and the greatest. Target: below {target:g} ms a turn. The processor
time includes the models and leaves out what other processes take.

{figures}

Measured at commit {commit}, load {load:.1f} at the start.
"""
_QUICK: Final = (
    "- **Measured with `--quick`: small draws, which show that the benchmark runs and nothing else.**\n"
)


def report(found: dict[str, Any]) -> str:
    """Lay the page out; parts that were not measured are left out, and said to be."""
    run = found["about"]
    missing = "".join(f"\n- Not measured: {name}: {why}." for name, why in found["absent"].items())
    parts = [
        _three_way(found["three-way"]),
        _retrieval(found["retrieval"]),
        _classification(found["classification"]),
        _joint(found["joint"], run["turns"]),
        _speed(found.get("speed")),
    ]
    return _PAGE.format(
        **run | {"quick": _QUICK if run["quick"] else ""},
        opening=opening(found),
        advice=advice(found),
        absent=f"{missing}\n" if missing else "",
        stance=_stance(found),
        parts="\n".join(parts),
        described=described(run),
        seconds=found["seconds"],
        cpu=found["CPU seconds"],
        computed=found["computed"],
    )


def _stance(found: dict[str, Any]) -> str:
    if (part := found.get("stance")) is None:
        return ""
    known, documentation = found["three-way"]["figures"], part["documentation"]
    systems = part["contracts"] | {name: known[name] for name in ("always the majority", "TF-IDF regression")}
    (ours,) = documentation["figures"].values()
    shares = ("decided", "right of decided", "violations called COMPLIANT")
    return _STANCE.format(
        **documentation | {"documentation": _documentation(documentation, ours)},
        answers=table(
            ["set", "n", "decided", "of these right", "violations called COMPLIANT"],
            (
                [name, part[name]["n"], *(_share(part[name][one]) for one in shares)]
                for name in ("stated", "blind")
            ),
        ),
        contracts=table(
            ["system", "macro-F1", "binary macro-F1"],
            (
                [name, _shown(one["macro-F1"]), _shown(one["binary macro-F1"])]
                for name, one in systems.items()
            ),
        ),
    )


def _documentation(part: dict[str, Any], ours: dict[str, Any]) -> str:
    rows = (
        ("stance", ours, _said(ours)),
        ("always the majority", part["always compliant"], ""),
        ("TF-IDF regression", part["TF-IDF regression"], ""),
    )
    return table(
        ["system", "accuracy", "kappa", "compliant / not / irrelevant / no verdict"],
        ([name, _shown(one["accuracy"]), _shown(one["kappa"]), said] for name, one, said in rows),
    )


def _three_way(part: dict[str, Any]) -> str:
    def line(name: str, one: dict[str, Any]) -> list[str]:
        lead = part["differences"].get(name)
        cells = [name]
        for figure in ("macro-F1", "binary macro-F1"):
            cells += [_shown(one[figure]), _shown(lead[figure]) if lead else ""]
        return [*cells, part["chosen"].get(name, "")]

    head = ["system", "macro-F1", "`stance` leads by", "binary macro-F1", "`stance` leads by", "form"]
    return _THREE_WAY.format(
        **part | {"figures": table(head, (line(name, one) for name, one in part["figures"].items()))},
        confusion=table(
            ["system", "supported", "contradicted", "not mentioned"],
            (
                [name, *(" / ".join(f"{cell:.0f}" for cell in row) for row in one["confusion"])]
                for name, one in part["figures"].items()
            ),
        ),
    )


def _retrieval(parts: Sequence[dict[str, Any]]) -> str:
    lines = [_RETRIEVAL.rstrip()]
    names = [*(f"recall@{k}" for k in KS), "MRR", *(f"nDCG@{k}" for k in KS[1:])]
    for part in parts:
        lines += [
            f"### {part['corpus']}: n = {part['questions']} questions, {part['chunks']:,} chunks of "
            f"{part['owners']:,} articles or passages",
            table(
                ["embedder", *names],
                ([f"`{name}`", *(_shown(one[of]) for of in names)] for name, one in part["figures"].items()),
            ),
            _differences(f"difference in {DECIDES}", part["differences"]),
        ]
        if part["unanswerable"]:
            shown = ("least", "median", "greatest")
            lines += [
                f"{part['unanswerable']} questions are not answered by the corpus, and have no gold; their top "
                "similarity, beside that of the others:",
                table(
                    ["embedder", "n", *shown],
                    (
                        [name, one["n"], *(f"{one[what]:.2f}" for what in shown)]
                        for name, one in part["top similarity"].items()
                    ),
                ),
            ]
    return "\n\n".join(lines) + "\n"


def _classification(parts: Sequence[dict[str, Any]]) -> str:
    lines = [_CLASSIFICATION.format(slow=SLOW_TURNS).rstrip()]
    names = ("macro-F1", "macro-F1 at 0.6", "accuracy", "AUC", "average precision")
    for part in parts:
        prevalence = f"{part['contradictions'] / part['n']:.3f}"
        lines += [
            f"### {part['set']}: n = {part['n']:,}, of which {part['contradictions']} contradict, "
            f"in {part['clusters']} {part['each']}"
            + (f"; {part['development']} for the threshold" if part["development"] else ""),
            table(
                ["reranker", "threshold", *names],
                [
                    *(
                        [f"`{name}`", _range(one["thresholds"]), *(_shown(one[figure]) for figure in names)]
                        for name, one in part["figures"].items()
                    ),
                    ["*always the majority*", "", _shown(part["majority"]), "", "", "0.500", prevalence],
                ],
            ),
            _differences("difference in macro-F1", part["differences"]),
        ]
    return "\n\n".join(lines) + "\n"


def _joint(part: dict[str, Any], most: int | None) -> str:
    one = part["excerpts"]
    rows = [
        *(
            [f"`{row['embedder']}`", f"`{row['reranker']}`", row["variant"], row]
            for row in one["figures"].values()
        ),
        *([f"*{name}*", "", "", one[name]] for name in ("always compliant", "never compliant")),
    ]
    undecided = part["undecided"]["share compliant"].values()
    return _JOINT.format(
        read=f"**Of each excerpt {most} drawn turns are read**, in part 3 too"
        if most
        else "All turns are read",
        turns=part["turns"],
        n=one["n"],
        compliant=one["compliant"],
        experts=table(
            ["experts", "n", "kappa"],
            ([name, each["n"], _shown(each)] for name, each in part["experts"].items()),
        ),
        figures=table(
            ["embedder", "reranker or judge", "variant", "accuracy", "kappa", "compliant / not / irrelevant"],
            ([*names, _shown(row["accuracy"]), _shown(row["kappa"]), _said(row)] for *names, row in rows),
        ),
    ) + (
        f"\nOf the {part['undecided']['n']} excerpts that the experts leave undecided, between "
        f"{min(undecided, default=0):.2f} and {max(undecided, default=0):.2f} are called compliant, by combination.\n"
    )


def _speed(part: dict[str, Any] | None) -> str:
    if part is None:
        return "## 5. Speed\n\nNot measured; run `python -m bench.metric.speed`.\n"
    rows = (
        [
            name,
            _spread(one["ms"]),
            *(f"{one[f'median {what}']:.2f}" for what in ("CPU ms", "search ms", "model ms")),
            f"{one['median passages']:.1f}",
            "met" if one["median ms"] < part["target"] else "**missed**",
        ]
        for name, one in part["variants"].items()
    )
    head = [
        "variant",
        "ms a turn",
        "its CPU ms",
        "of that, two searches",
        "models' ms",
        "passages a turn",
        "target",
    ]
    return _SPEED.format(**part, figures=table(head, rows))


def _said(row: dict[str, Any]) -> str:
    return " / ".join(str(count) for count in row["said"].values())


def _differences(name: str, found: dict[str, dict[str, Any]]) -> str:
    rows = (
        [what, _shown(one), "yes" if one["low"] > 0 or one["high"] < 0 else "no"]
        for what, one in found.items()
    )
    return table(["pair", name, "shown"], rows)


def _shown(one: dict[str, Any]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


def _share(found: Sequence[float]) -> str:
    count, low, high = found
    return f"{count:.0f} [{low:.2f}, {high:.2f}]"


def _range(limits: Sequence[float]) -> str:
    return f"{limits[0]:.2f}" if limits[0] == limits[-1] else f"{limits[0]:.2f} to {limits[-1]:.2f}"


def _spread(values: Sequence[float]) -> str:
    return f"{np.median(values):.2f} [{min(values):.2f}, {max(values):.2f}]"
