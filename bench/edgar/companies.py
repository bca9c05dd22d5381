"""Ask one pair about each company of the corpus, and bound the share that leaks: ``python -m bench.edgar.companies``.

Questions about one company are alike, so the company is the unit: with 0 of n the bound is about 3.7 / n. Ordinary
retrieval is asked the same, which shows how many companies a search without a policy would leak of.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import carag
from bench.harness import parser
from carag.evaluation.cases.corpus import SIZES, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.manifest import manifest_bytes, manifest_sha256, with_chunks
from carag.evaluation.cases.synthetic import company_pairs
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.row import ORACLE
from carag.evaluation.run import NOW
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.systems.systems import Systems
from carag.generation import Extractive
from carag.retrieval import ConfidenceGate, embedder_by_name, threshold_for

if TYPE_CHECKING:
    from carag.evaluation.cases.pairs import Pair

_SYSTEMS: Final = (ORACLE, "vanilla", "carag-certified")


def main() -> int:
    """Ask, and write what was found, with the manifest of the corpus."""
    arguments = parser("bench.edgar.companies", __doc__, data=True)
    arguments.add_argument(
        "--cache", type=Path, required=True, help="where carag bench edgar keeps its corpora"
    )
    arguments.add_argument("--size", choices=SIZES, default="paper")
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, required=True, help="directory of the result")
    given = arguments.parse_args()

    embedder = TimedEmbedder(embedder_by_name(given.embedder))
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data, seed=given.seed)
    truth = GroundTruth.open(built.store, now=NOW)
    with truth.store:
        models = Models(embedder, Extractive(), ConfidenceGate(threshold_for(embedder.name)))
        pairs = company_pairs(truth, embedder, seed=given.seed)
        with Systems(built.store, truth, models, seed=given.seed, names=_SYSTEMS) as systems:
            leaked = {name: leaking(truth, systems, name, pairs) for name in _SYSTEMS}
        manifest = with_chunks(built.filings, truth.row_at)
        result = {
            "size": given.size,
            "embedder": given.embedder,
            "seed": given.seed,
            "version": carag.__version__,
            "chunks": len(truth),
            "filers": len(set(truth.filers) - {0}),
            "companies": len(pairs),
            "roles": Counter(pair.session.role for pair in pairs),
            "manifest_sha256": manifest_sha256(manifest),
            "systems": {
                name: {"leaked": many, "interval": clopper_pearson(many, len(pairs))}
                for name, many in leaked.items()
            },
        }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "companies.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", "utf-8")
    (given.out / "manifest.jsonl.gz").write_bytes(gzip.compress(manifest_bytes(manifest), mtime=0))
    print(json.dumps(result))
    return 1 if leaked["carag-certified"] else 0


def leaking(truth: GroundTruth, systems: Systems, name: str, pairs: list[Pair]) -> int:
    """Count the pairs for which a system retrieved a passage that the session may not use, or failed."""
    many = 0
    for pair in pairs:
        open_here = truth.admissible(pair.session, pair.question.text)
        said = systems.ask(name, pair)
        leaks = any(open_here is None or not open_here[row] for row in said.retrieved)
        many += leaks or said.outcome == "error"
    return many


if __name__ == "__main__":
    sys.exit(main())
