"""Measure the variant stance apart from all that is slow: ``python -m bench.metric.answers --data DIR``.

On stated answers about the AI Act: ``pairs/stated.jsonl`` was written before the rule that decides, and the rule was
made with it; ``pairs/blind.jsonl`` was written at the same time and measured when the rule was done. On ContractNLI and
AIReg-Bench as in the whole run, each beside the majority and a regression over TF-IDF. Puts its figures into
``results.json``, and writes ``RESULTS.md`` from all of them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness import parser, wilson
from bench.metric.contracts import read_contracts
from bench.metric.corpora import ActCorpus, act, excerpts
from bench.metric.joint import joint
from bench.metric.kept import Kept
from bench.metric.measures import accuracy, confusion, interval, kappa
from bench.metric.models import embedders
from bench.metric.report import report
from bench.metric.three_way import by_metric, figure
from carag.evaluation.regulatory import Batch, Regulatory, SessionVerdict, Settings, StanceHead, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.metric.corpora import Excerpt
    from bench.metric.models import KeptEmbedder


HERE: Final = Path(__file__).parent
SETS: Final = ("stated", "blind")
_DECIDED: Final = (SessionVerdict.COMPLIANT, SessionVerdict.NON_COMPLIANT)


def main() -> None:
    """Measure, and write the page."""
    arguments = parser("bench.metric.answers", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, help="directory that keeps vectors between runs")
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    vectors, _ = embedders(Kept(given.cache))
    articles, documentation = act(given.data), excerpts(given.data)
    metric = Regulatory(ActCorpus(articles), vectors[0], StanceHead(), Settings(variant=Variant.STANCE))
    found: dict[str, Any] = {name: measured(metric, pairs(name)) for name in SETS}
    found["contracts"] = contracts(given.data, vectors[0])
    found["documentation"] = joint(documentation, articles, vectors[:1], [], [StanceHead()])["excerpts"]
    found["documentation"]["TF-IDF regression"] = regression(documentation)
    kept = json.loads((given.out / "results.json").read_text(encoding="utf-8"))
    kept["stance"] = json.loads(json.dumps(found, default=asdict))
    (given.out / "results.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    (given.out / "RESULTS.md").write_text(report(kept), encoding="utf-8")


def contracts(data: Path, embedder: KeptEmbedder) -> dict[str, Any]:
    """Return the macro-F1 of stance over the contracts of the test part, with requirements learnt and without."""
    test = read_contracts(data / "legal", "test")
    truth = [pair.label for one in test for pair in one.pairs]
    clusters = [at for at, one in enumerate(test) for _ in one.pairs]
    made = {}
    for name, head in (
        ("stance", StanceHead()),
        ("stance, requirements not learnt", StanceHead(knows_requirements=False)),
    ):
        said = by_metric(test, Variant.STANCE, embedder, head)
        made[name] = {
            "macro-F1": figure(truth, said, clusters, None, binary=False),
            "binary macro-F1": figure(truth, said, clusters, None, binary=True),
        }
    return made


def regression(found: Sequence[Excerpt]) -> dict[str, Any]:
    """Return the agreement of a logistic regression over TF-IDF, each use judged by what the others taught."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    decided = [one for one in found if one.is_compliant is not None]
    texts = [" ".join(sorted(one.turns)) for one in decided]  # turns are drawn; their order tells nothing
    truth = [one.is_compliant for one in decided]
    said: list[bool] = [False] * len(decided)
    for use in {one.use for one in decided}:
        others = [at for at, one in enumerate(decided) if one.use != use]
        words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit([texts[at] for at in others])
        model = LogisticRegression(C=10.0, max_iter=1000)
        model.fit(words.transform([texts[at] for at in others]), [truth[at] for at in others])
        for at in (at for at, one in enumerate(decided) if one.use == use):
            said[at] = bool(model.predict(words.transform([texts[at]]))[0])
    uses = [one.use for one in decided]
    return {
        "accuracy": interval(lambda weights: accuracy(confusion(truth, said, weights)), uses),
        "kappa": interval(lambda weights: kappa(confusion(truth, said, weights)), uses),
    }


def pairs(name: str) -> list[dict[str, Any]]:
    """Return the answers of one set, each with the verdict it deserves."""
    lines = (HERE / "pairs" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def measured(metric: Regulatory, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the metric says of each answer, and what that comes to."""
    said: dict[str, SessionVerdict] = {}
    for row in rows:
        turn = Batch(qa_id=row["id"], query=row["query"], assistant=row["answer"])
        (found,) = metric.batch(row["id"], "stated", [turn])
        said[row["id"]] = found.verdict
    decided = [row for row in rows if said[row["id"]] in _DECIDED]
    right = sum(said[row["id"]] == row["verdict"] for row in decided)
    violations = [row for row in rows if row["verdict"] == SessionVerdict.NON_COMPLIANT]
    passed = sum(said[row["id"]] is SessionVerdict.COMPLIANT for row in violations)
    return {
        "n": len(rows),
        "decided": [len(decided), *wilson(len(decided), len(rows))],
        "right of decided": [right, *wilson(right, len(decided))],
        "violations called COMPLIANT": [passed, *wilson(passed, len(violations))],
        "said": {name: verdict.value for name, verdict in said.items()},
    }


if __name__ == "__main__":
    main()
