"""Measure the metric on 300 answers about the AI Act, labelled twice: ``python -m bench.metric.advised --data DIR``.

``pairs/advised.jsonl`` holds half of the sessions, ``pairs/advised.sealed.jsonl.xz`` the other half, packed so that it
is not read by accident; ``--sealed`` measures that half too, and adds a line to ``pairs/advised.readings``. An answer
on which the labellers differ counts in the figures of their agreement alone. Writes ``ADVISED.md``.
"""

from __future__ import annotations

import json
import lzma
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.harness import about, described, parser, table
from bench.metric.advice import recommended
from bench.metric.classification import Judged, classification, scored
from bench.metric.corpora import Asked, Excerpt, Searched, act
from bench.metric.joint import joint
from bench.metric.kept import Kept
from bench.metric.measures import confusion, f1_by_threshold, interval, kappa
from bench.metric.models import Bm25, embedders, judges, rerankers
from bench.metric.retrieval import DECIDES, KS, retrieval
from carag.evaluation.regulatory import ChunkerConfig, SessionVerdict, Variant
from carag.evaluation.regulatory.chunks import paper_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.metric.measures import Interval

HERE: Final = Path(__file__).parent
OPEN, SEALED, READINGS = (
    HERE / "pairs" / f"advised.{one}" for one in ("jsonl", "sealed.jsonl.xz", "readings")
)
_SCORES: Final = {
    SessionVerdict.COMPLIANT.value: 5,
    SessionVerdict.NON_COMPLIANT.value: 1,
    SessionVerdict.IRRELEVANT.value: 3,
}
"""Verdicts as scores of AIReg-Bench, whose 3 is undecided."""
_RECALLS: Final = (0.25, 0.5, 0.75, 0.9)
"""Shares of the contradictions that are found, of which the precision is stated."""


class Labels(NamedTuple):
    """What one labeller says of a pair."""

    articles: dict[str, str]
    """SUPPORTS or CONTRADICTS, by article or annex."""
    verdict: str


class Pair(NamedTuple):
    """A question, what an assistant answered, and what two labellers say of it."""

    id: str
    session: int
    query: str
    response: str
    labels: tuple[Labels, Labels]

    @property
    def verdict(self) -> str:
        """What both say; where they differ, IRRELEVANT, which no figure counts."""
        first, second = (one.verdict for one in self.labels)
        return first if first == second else SessionVerdict.IRRELEVANT.value

    @property
    def articles(self) -> dict[str, str]:
        """Articles that both name with the same verdict."""
        first, second = (one.articles for one in self.labels)
        return {name: verdict for name, verdict in first.items() if second.get(name) == verdict}


def main() -> None:
    """Measure, and write the page."""
    arguments = parser("bench.metric.advised", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, help="directory that keeps vectors and scores between runs")
    arguments.add_argument("--sealed", action="store_true", help="measure the sealed half too, on record")
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    run, articles = about(), act(given.data)
    every = read(OPEN)
    halves = {"open": every}
    if given.sealed:
        halves["sealed"] = read(SEALED)
        with READINGS.open("a", encoding="utf-8") as file:
            file.write(f"{run['date']} {run['commit']}\n")
    models = Models(Kept(given.cache), articles)
    parts = {name: measured(name, pairs, articles, models) for name, pairs in halves.items()}
    whole = _in_order(pair for pairs in halves.values() for pair in pairs)
    (given.out / "ADVISED.md").write_text(page(parts, whole, models.absent, run), encoding="utf-8")


class Models:
    """The embedders, rerankers and judges at hand."""

    def __init__(self, kept: Kept, articles: dict[str, str]) -> None:
        self.chunks = {
            name: tuple(one.text for one in paper_chunks(text, name, ChunkerConfig()))
            for name, text in articles.items()
        }
        self.embedders, absent = embedders(kept)
        self.judges, without = judges()
        found, missing = rerankers(self.embedders, self.judges, kept, None)
        self.absent = absent | without | missing
        """Why a model was not measured, by its name."""
        self.rerankers = [Bm25(one for some in self.chunks.values() for one in some), *found]


def read(path: Path) -> list[Pair]:
    """Return the pairs of a file, in the order of their sessions."""
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    found = []
    for row in map(json.loads, text.splitlines()):
        labels = Labels(**row["first"]), Labels(**row["second"])
        found.append(Pair(row["id"], int(row["session"][1:]), row["query"], row["response"], labels))
    return _in_order(found)


def _in_order(pairs: Iterable[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda one: (one.session, one.id))


def agreement(pairs: Sequence[Pair]) -> dict[str, Interval]:
    """Return the kappa of both labellings: of the verdict, and of the articles that both name."""
    sessions = [one.session for one in pairs]
    verdicts = [[one.labels[at].verdict for one in pairs] for at in (0, 1)]
    both = [
        (one.session, one.labels[0].articles[name], one.labels[1].articles[name])
        for one in pairs
        for name in sorted({*one.labels[0].articles} & {*one.labels[1].articles})
    ]
    return {
        "verdict, of three": interval(partial(_kappa, *verdicts), sessions),
        "SUPPORTS or CONTRADICTS, of articles that both name": interval(
            partial(_kappa, [one for _, one, _ in both], [one for *_, one in both]), [one for one, *_ in both]
        ),
    }


def overlap(pairs: Iterable[Pair]) -> float:
    """Return the mean share of the articles that either labeller names and both do (Jaccard)."""
    named = [tuple({*one.articles} for one in pair.labels) for pair in pairs]
    return float(np.mean([len(one & other) / len(one | other) for one, other in named if one | other]))


def measured(name: str, pairs: Sequence[Pair], articles: dict[str, str], models: Models) -> dict[str, Any]:
    """Return what retrieval, rerankers and combinations of both come to on one half."""
    cut = [(text, owner) for owner, some in models.chunks.items() for text in some]
    asked = [
        Asked(one.id, f"{one.query}\n{one.response}", frozenset(one.articles))
        for one in pairs
        if one.articles
    ]
    texts, owners = (list(some) for some in zip(*cut, strict=True))
    items = [
        Judged(
            f"{one.id}/{article}", one.session, (one.response,), models.chunks[article], said == "CONTRADICTS"
        )
        for one in pairs
        for article, said in one.articles.items()
    ]
    marks = {one.name: scored(one, items) for one in models.rerankers}
    truth = [one.contradicts for one in items]
    return {
        "pairs": len(pairs),
        "retrieval": retrieval(Searched(name, texts, owners, asked, []), models.embedders),
        "classification": classification(name, "sessions", items, models.rerankers),
        "curves": {of: f1_by_threshold(some, truth)[::10] for of, some in marks.items()},
        "precision": {of: precisions(some, truth) for of, some in marks.items()},
        "joint": joint(
            [_excerpt(one) for one in pairs], articles, models.embedders, models.rerankers, models.judges
        )["excerpts"],
    }


def _excerpt(one: Pair) -> Excerpt:
    scores = tuple(_SCORES[labels.verdict] for labels in one.labels)
    return Excerpt(
        f"use{one.session}-{one.id}",
        one.session,
        "",
        "",
        one.query,
        (one.response,),
        scores,
        _SCORES[one.verdict],
    )


def precisions(marks: Sequence[float], contradicts: Sequence[bool]) -> list[float]:
    """Return the precision of contradiction where each of some shares of all contradictions is found.

    Examples
    --------
    >>> precisions([0.1, 0.2, 0.3, 0.9], [True, False, True, False])
    [1.0, 1.0, 0.6666666666666666, 0.6666666666666666]
    """
    order = np.argsort(marks, kind="stable")
    found = np.asarray(contradicts)[order].cumsum()
    precision = found / np.arange(1, len(found) + 1)
    return [float(precision[found >= share * found[-1]].max()) for share in _RECALLS]


def _kappa(one: Sequence[str], other: Sequence[str], weights: Any) -> Any:
    return kappa(confusion(one, other, weights))


# ---------------------------------------------------------------- the page

_PAGE: Final = """\
# Advised answers about the AI Act

Written by `python -m bench.metric.advised --data DIR --sealed`; do not edit. 300 answers in 60 sessions of five turns,
each with the articles or annexes that bear on it and a verdict. **One language model wrote and labelled them, and a
second one labelled them from question, answer and the articles alone, without sight of the first labels; no person has
reviewed them.** Half of the sessions are sealed, and {readings}. Nothing in the package was chosen by either half.
Right answers share more words with the law than wrong ones do, which helps `bm25` and the like.{absent}

{agreement}

The mean share of articles that both name, of those that either names: {overlap:.2f}. Where the verdicts differ
({differing} answers), an answer is in no figure below; articles count where both name them with the same label. Equal
verdicts of two language models show that the labels follow from the text as such models read it, and not that experts
would agree. Brackets are 95 % intervals by a bootstrap of sessions, as in [the other figures](RESULTS.md).

{parts}
## What the intervals carry

{advice}

{described}
"""


def page(parts: dict[str, Any], whole: Sequence[Pair], absent: dict[str, str], run: dict[str, Any]) -> str:
    """Lay the page out."""
    times = len(READINGS.read_text("utf-8").splitlines()) if READINGS.exists() else 0
    return _PAGE.format(
        readings={0: "have not been measured", 1: "were measured once"}.get(
            times, f"were measured {times} times"
        ),
        absent="".join(f" Not measured: {name}: {why}." for name, why in absent.items()),
        agreement=table(
            ["what both labellings say", "n", "kappa"],
            ([name, one.n, _shown(one)] for name, one in agreement(whole).items()),
        ),
        overlap=overlap(whole),
        differing=sum(one.verdict != other.verdict for one, other in (pair.labels for pair in whole)),
        parts="\n".join(_part(name, one) for name, one in parts.items()),
        advice="\n".join(_advice(name, one) for name, one in parts.items()),
        described=described(run),
    )


def _part(name: str, part: dict[str, Any]) -> str:
    searched, judged, both = part["retrieval"], part["classification"], part["joint"]
    figures = [*(f"recall@{k}" for k in KS), "MRR", *(f"nDCG@{k}" for k in KS[1:])]
    best = sorted(both["figures"].items(), key=lambda one: -one[1]["kappa"].value)[:8]
    stance = [(of, one) for of, one in both["figures"].items() if one["variant"] == Variant.STANCE]
    constant = [(f"*{one}*", both[one]) for one in ("always compliant", "never compliant")]
    tables = [
        f"## The {name} half: {part['pairs']} answers",
        f"Embedders: question and answer find the articles (n = {searched['questions']}).",
        table(
            ["embedder", *figures],
            ([f"`{of}`", *(_shown(one[at]) for at in figures)] for of, one in searched["figures"].items()),
        ),
        f"Rerankers: the answer against an article's passages, n = {judged['n']}, of which "
        f"{judged['contradictions']} contradict; threshold by the other sessions.",
        table(
            [
                "reranker",
                "macro-F1",
                "macro-F1 at 0.6",
                "AUC",
                *(f"precision at {share:g}" for share in _RECALLS),
            ],
            (
                [
                    f"`{of}`",
                    *(_shown(one[at]) for at in ("macro-F1", "macro-F1 at 0.6", "AUC")),
                    *(f"{at:.2f}" for at in part["precision"][of]),
                ]
                for of, one in judged["figures"].items()
            ),
        ),
        "Macro-F1 by threshold:",
        table(
            ["reranker", *(f"{at / 10:g}" for at in range(11))],
            ([f"`{of}`", *(f"{at:.2f}" for at in some)] for of, some in part["curves"].items()),
        ),
        f"Together: the verdict on each answer, n = {both['n']}, of which {both['compliant']} are compliant; the eight "
        f"greatest of {len(both['figures'])} combinations, `stance`, and constant answers.",
        table(
            ["combination", "accuracy", "kappa", "compliant / not / irrelevant / no verdict"],
            (
                [
                    of,
                    _shown(one["accuracy"]),
                    _shown(one["kappa"]),
                    " / ".join(map(str, one["said"].values())),
                ]
                for of, one in [*best, *stance, *constant]
            ),
        ),
    ]
    return "\n\n".join(tables) + "\n"


def _advice(name: str, part: dict[str, Any]) -> str:
    def said(found: dict[str, Any], by: str) -> str:
        values = {of: one[by].value for of, one in found["figures"].items()}
        differences = {of: {"low": one.low, "high": one.high} for of, one in found["differences"].items()}
        return recommended(values, differences)

    both = part["joint"]
    above = sum(one["kappa"].low > 0 for one in both["figures"].values())
    return (
        f"- {name}: embedder ({DECIDES}): {said(part['retrieval'], DECIDES)}. Reranker (macro-F1): "
        f"{said(part['classification'], 'macro-F1')}. Above chance: {above} of {len(both['figures'])} combinations."
    )


def _shown(one: Interval) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


if __name__ == "__main__":
    main()
