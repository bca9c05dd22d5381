"""Measure models and variants of the Regulatory Compliance Metric: ``python -m bench.metric --data DIR``.

Writes ``RESULTS.md`` and ``results.json`` beside this file, or under ``--out``. ``--cache DIR`` keeps
vectors and scores, so that a second run asks no model. Of what is read only ids and numbers are written.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness import about, parser
from bench.metric.classification import classification, of_excerpts
from bench.metric.contract_pairs import contract_pairs
from bench.metric.corpora import SEED, act, ai_act, excerpts, obliqa
from bench.metric.joint import joint
from bench.metric.kept import Kept
from bench.metric.measures import Interval
from bench.metric.models import Bm25, embedders, judges, rerankers
from bench.metric.report import report
from bench.metric.retrieval import retrieval
from bench.metric.three_way import three_way
from carag.evaluation.regulatory import ChunkerConfig
from carag.evaluation.regulatory.chunks import paper_chunks
from carag.evaluation.statistics.bootstrap import REPLICATES
from carag.evaluation.statistics.bootstrap import SEED as DRAW

if TYPE_CHECKING:
    from argparse import Namespace

HERE: Final = Path(__file__).parent
QUESTIONS, PASSAGES = 60, 500
"""Drawn of ObliQA."""
_SLOW: Final = (
    "it reads every sentence of a turn with every window of a passage, and would not keep to the time"
)
_QUICK: Final = 10
"""With ``--quick`` one item in ten is measured."""


def main() -> None:
    """Measure, print, write."""
    arguments = parser("bench.metric", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, help="directory that keeps vectors and scores between runs")
    arguments.add_argument("--out", type=Path, default=HERE)
    arguments.add_argument("--nli", type=Path, help="folder of an NLI model: model.onnx and tokenizer.json")
    arguments.add_argument(
        "--nli-conflict", type=int, default=1, help="column of conflict in its logits (default 1)"
    )
    arguments.add_argument(
        "--turns", type=int, help="turns read of each excerpt of AIReg-Bench, drawn; all by default"
    )
    arguments.add_argument("--quick", action="store_true", help="small draws, to see that it runs")
    given = arguments.parse_args()
    found = _measured(given)
    write(found, given.out)
    print((given.out / "RESULTS.md").read_text(encoding="utf-8"))


def write(found: dict[str, Any], home: Path) -> None:
    """Write figures and page."""
    home.mkdir(parents=True, exist_ok=True)
    found = json.loads(json.dumps(found, default=_plain))
    (home / "results.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (home / "RESULTS.md").write_text(report(found), encoding="utf-8")


def _measured(given: Namespace) -> dict[str, Any]:
    began, cpu = time.monotonic(), time.process_time()
    described = about(quick=given.quick, seed=SEED, draw=DRAW, replicates=REPLICATES)
    part = _QUICK if given.quick else 1
    kept = Kept(given.cache)
    vectors, absent = embedders(kept)
    stances, none = judges()
    nli = None if given.nli is None else (given.nli, given.nli_conflict)
    models, missing = rerankers(vectors, stances, kept, nli)
    articles, documentation = act(given.data), excerpts(given.data, given.turns)[::part]
    chunks = {
        name: tuple(one.text for one in paper_chunks(text, name, ChunkerConfig()))
        for name, text in articles.items()
    }
    every = [one for some in chunks.values() for one in some]
    found: dict[str, Any] = {
        "about": described,
        "absent": absent | none | missing,
        "retrieval": [
            retrieval(ai_act(given.data), vectors),
            retrieval(obliqa(given.data, questions=QUESTIONS // part, passages=PASSAGES // part), vectors),
        ],
    }
    tokens = next(one for one in models if one.name == "maxsim")
    found["three-way"] = three_way(given.data, vectors[0], tokens, kept, nli, part)
    contracts = contract_pairs(given.data)[::part]
    found["classification"] = [
        classification(name, each, items, [Bm25(corpus), *models])
        for name, each, items, corpus in (
            ("ContractNLI", "contracts", contracts, [one.passages[0] for one in contracts if one.is_dev]),
            ("AIReg-Bench", "uses", of_excerpts(documentation, chunks), every),
        )
    ]
    fast = [one for one in models if not getattr(one, "is_slow", False)]
    for slow in (one.name for one in models if one not in fast):
        found["absent"][f"{slow} in the joint part"] = _SLOW
    described["turns"] = given.turns
    found["joint"] = joint(documentation, articles, vectors, [Bm25(every), *fast], stances)
    spent = {"seconds": time.monotonic() - began, "CPU seconds": time.process_time() - cpu}
    return found | spent | {"computed": kept.computed}


def _plain(one: object) -> object:
    if isinstance(one, Interval):
        return asdict(one)
    raise TypeError(type(one).__name__)


if __name__ == "__main__":
    main()
