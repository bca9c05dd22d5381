"""Rank by the fused score under random policies, and count violations: ``python -m bench.edgar.trials``.

It is the part of ``carag bench edgar`` that takes longest for many pairs, so that large counts are run by it. Each
process has seeds of its own and takes a share of the pairs.
"""

from __future__ import annotations

import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import parser
from carag.evaluation.cases.corpus import SIZES, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.run import NOW
from carag.evaluation.safety.trials import run_fused_trials
from carag.index import Index, TextIndex
from carag.retrieval import Catalogue, embedder_by_name

if TYPE_CHECKING:
    from carag.evaluation.cases.corpus import BuiltCorpus
    from carag.evaluation.run_metadata import Trials


def main() -> int:
    """Ask, and print what was found."""
    arguments = parser("bench.edgar.trials", __doc__)
    arguments.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    arguments.add_argument(
        "--cache", type=Path, required=True, help="where carag bench edgar keeps its corpora"
    )
    arguments.add_argument("--size", choices=SIZES, default="paper")
    arguments.add_argument("--embedder", default="minilm")
    arguments.add_argument("--count", type=int, default=1_000_000)
    arguments.add_argument("--seeds", type=int, default=4, help="0 to this, of which each takes its share")
    arguments.add_argument("--processes", type=int, default=os.cpu_count())
    given = arguments.parse_args()

    embedder = TimedEmbedder(embedder_by_name(given.embedder))
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data)
    each = -(-given.count // given.seeds)
    with ProcessPoolExecutor(given.processes) as pool:
        found = list(pool.map(_ask, [built] * given.seeds, [each] * given.seeds, range(given.seeds)))
    print(
        f"{given.size}, {given.embedder}, {platform.processor() or platform.machine()}: "
        f"{sum(one.pairs for one in found):,} pairs of seeds 0 to {given.seeds - 1}, "
        f"{sum(one.chunks for one in found):,} chunks, {sum(one.violating for one in found)} violations"
    )
    return 1 if any(one.violating for one in found) else 0


def _ask(built: BuiltCorpus, count: int, seed: int) -> Trials:
    truth = GroundTruth.open(built.store, now=NOW)
    try:
        with (
            Index.load(built.store / "index.carag") as index,
            TextIndex.load(built.store / "index.words") as text,
        ):
            catalogue = Catalogue(truth.store, truth.profile)
            asked = [question.text for question in built.questions]
            return run_fused_trials(index, text, catalogue, truth.store, asked, count=count, seed=seed)
    finally:
        truth.store.close()


if __name__ == "__main__":
    sys.exit(main())
