"""Tune generators on the development questions, given the oracle's passages: ``python -m bench.edgar.generator``.

No question of the reported split is asked or printed.
"""

from __future__ import annotations

import os
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness import parser
from carag.evaluation.cases.corpus import SIZES, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.pairs import cross
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.report.measures import MEASURES, NOTICED
from carag.evaluation.row import ORACLE
from carag.evaluation.run import NOW
from carag.evaluation.statistics.estimate import Estimate, Sums, estimates
from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.systems import Systems
from carag.generation import Extractive, generator_by_name
from carag.retrieval import ConfidenceGate, embedder_by_name, threshold_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.evaluation.cases.corpus import BuiltCorpus
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.row import Row
    from carag.generation import Generator

_COVERAGES: Final = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35)
"""Values of the extractive generator's least coverage that are compared."""
_SHOWN: Final = (*NOTICED, "under_refusal", "f1_answerable", "f1_answered")


def main() -> int:
    """Ask, and print a table."""
    arguments = parser("bench.edgar.generator", __doc__)
    arguments.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    arguments.add_argument(
        "--cache", type=Path, required=True, help="where carag bench edgar keeps its corpora"
    )
    arguments.add_argument("--size", choices=SIZES, default="paper")
    arguments.add_argument("--embedder", default="minilm")
    arguments.add_argument("--pairs", type=int, default=2_400, help="of both splits")
    arguments.add_argument("--model", help="instead of the extractive generator: local, local:PATH")
    arguments.add_argument("--model-pairs", type=int, default=20)
    arguments.add_argument("--show", action="store_true", help="print what the model says")
    given = arguments.parse_args()

    embedder = TimedEmbedder(embedder_by_name(given.embedder))
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data)
    truth = GroundTruth.open(built.store, now=NOW)
    try:
        pairs = development_pairs(truth, built, embedder, given.pairs)
        generators: dict[str, Generator]
        if given.model:
            generators = {given.model: generator_by_name(given.model)}
            pairs = random.Random(0).sample(pairs, min(given.model_pairs, len(pairs)))  # noqa: S311
        else:
            generators = {f"coverage {least}": Extractive(least_coverage=least) for least in _COVERAGES}
        rows = {
            name: _ask(truth, built.store, pairs, embedder, generator, show=given.show)
            for name, generator in generators.items()
        }
    finally:
        truth.store.close()
    print(
        f"{given.size}, {given.embedder}: {len(pairs)} pairs, {len({one.question.id for one in pairs})} questions"
    )
    print("\n".join(_table(rows)))
    return 0


def development_pairs(
    truth: GroundTruth, built: BuiltCorpus, embedder: TimedEmbedder, count: int
) -> list[Pair]:
    """Return the development pairs among those that the benchmark asks; ``count`` covers both splits."""
    for question in built.questions:
        embedder.embed_query(question.text)
    crossed = cross(truth, built.questions, built.gold, embedder.vectors, count=count, seed=0)
    return [pair for pair in crossed if pair.split == "dev"]


def _ask(
    truth: GroundTruth,
    store: Path,
    pairs: list[Pair],
    embedder: TimedEmbedder,
    generator: Generator,
    *,
    show: bool,
) -> list[Row]:
    models = Models(embedder, generator, ConfidenceGate(threshold_for(embedder.name)))
    rows = []
    with Systems(store, truth, models, seed=0, names=(ORACLE,)) as systems:
        for pair in pairs:
            said = systems.ask(ORACLE, pair)
            if show:
                print(
                    f"{pair.question.text}\n  > {said.text!r}, {said.latency_ms['generate']} ms", flush=True
                )
            row = row_of(
                *(truth, pair, ORACLE, said, said), embedder=embedder.name, generator=generator.name, seed=0
            )
            rows.append(row)
    return rows


def _table(rows: Mapping[str, list[Row]]) -> list[str]:
    measures = [measure for measure in MEASURES if measure.name in _SHOWN]
    lines = ["| | " + " | ".join(one.title for one in measures) + " | tokens | s an answer |"]
    lines.append("|---" * (len(measures) + 3) + "|")
    found = {}
    for measure in measures:
        columns: dict[str, dict[tuple[int, str], Sums]] = {name: defaultdict(Sums) for name in rows}
        for name, of_name in rows.items():
            for row in of_name:
                columns[name][row.filer, row.question_id] += measure.sums(row, None)
        found[measure.name] = estimates(columns, value_range=measure.value_range)
    for name, of_name in rows.items():
        answered = [row for row in of_name if row.prompt_chunks]
        taken = [row.latency_ms["generate"] or 0.0 for row in answered]
        tokens = [row.answer_tokens for row in answered if row.outcome == "answer"]
        cells = [_cell(found[measure.name][name]) for measure in measures]
        cells += [f"{sum(tokens) / max(len(tokens), 1):.0f}", f"{sum(taken) / max(len(taken), 1) / 1000:.3f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _cell(figure: object) -> str:
    if not isinstance(figure, Estimate):
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f} (n {figure.denominator})"
    return f"{figure.value:.3f} ({figure.low:.3f} .. {figure.high:.3f}; n {figure.denominator})"


if __name__ == "__main__":
    sys.exit(main())
