"""Measure the fused ranker beside similarity: ``python -m bench.ranking --data DIR --cache DIR`` writes RESULTS.md.

Both answer the same questions of the same sessions through :meth:`carag.Engine.retrieve`, audit record included, in
turn: the order changes with each question, and the least of three times counts. Development questions alone are asked.
At paper size every plan is the certified one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.edgar.generator import development_pairs
from bench.harness import about, described, in_turn, p50_p95, parser, write
from bench.ranking.dense import TIMES, stages
from carag.engine import Engine
from carag.evaluation.cases.corpus import build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.run import NOW
from carag.retrieval import RANKERS, embedder_by_name, ranker_by_name
from carag.retrieval.words import KeptWords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.cases.pairs import Pair

_TIMES: Final = 3
"""How often each is asked; the least counts."""
_PAGE: Final = """\
# What the fused ranker costs

Written by `python -m bench.ranking --size {size} --embedder {embedder}`; do not edit. {described} {chunks:,} chunks,
{pairs} pairs of development questions and sessions, k 8, seed 0; the least of {times} times each, alternating. The
question is embedded before; what that takes is stated below.

| `Engine.retrieve`, ms | p50 | p95 |
|---|---|---|
{rows}
| ratio | {half:.2f} | {most:.2f} |

Embedding a question: p50 {embedding:.1f} ms. With it the ratio is {with_embedding:.2f} at p95.

## Beside hnswlib

What `fused-1` and `dense` ask of the index, under `plan="auto"`, beside hnswlib over all rows without a policy (M 32,
efConstruction 200, ef 64); and `Engine.retrieve`, fused, beside the same with hnswlib in the index's place, which
reads and fuses as ours does. Ours in milliseconds, theirs (*of*), and the ratio; the least of {dense_times} times
each, in turn. Recall compares `auto`, and hnswlib, with the exact answer to what each is asked.

| role | n | search p50 | of | ratio | p95 | of | ratio | retrieve p50 | of | ratio | p95 | of | ratio | recall | of |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{stages}

## Ingest

The words of {passages:,} passages, read from the store and indexed by one process: {words:.1f} s, {each:.2f} ms a
passage.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one ranker, a pair each."""

    ranker: str
    taken: list[float]

    def cells(self) -> str:
        """Write the row of the table."""
        return f"| `{self.ranker}` | {' | '.join(p50_p95(self.taken))} |"


def main() -> int:
    """Measure, print and write the page."""
    arguments = parser("bench.ranking", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--size", default="paper")
    arguments.add_argument("--embedder", default="minilm")
    arguments.add_argument("--pairs", type=int, default=300)
    given, run = arguments.parse_args(), about()
    embedder = TimedEmbedder(embedder_by_name(given.embedder))
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data)
    truth = GroundTruth.open(built.store, now=NOW)
    pairs = development_pairs(truth, built, embedder, 2_400)[: given.pairs]
    passages, keys = len(truth), truth.store.labels.open()
    _, vectors = truth.store.labels.rows(keys)
    truth.store.close()
    with Engine.open(built.store, create=False, embedder=embedder, clock=lambda: NOW) as engine:
        asked = list(_open(engine, pairs))
        rows = measured(engine, asked)
        searched = stages(engine, asked, keys, vectors)
    words = words_of(built.store)
    slow, fast = ({row.ranker: row for row in rows}[name].taken for name in RANKERS)
    embedding = statistics.median(embedder.milliseconds[pair.question.text] for pair in pairs)
    page = _PAGE.format(
        size=given.size,
        embedder=given.embedder,
        described=described(run),
        chunks=passages,
        pairs=len(slow),
        times=_TIMES,
        dense_times=TIMES,
        stages="\n".join(one.cells() for one in searched),
        rows="\n".join(row.cells() for row in rows),
        half=statistics.median(slow) / statistics.median(fast),
        most=np.quantile(slow, 0.95) / np.quantile(fast, 0.95),
        embedding=embedding,
        with_embedding=(np.quantile(slow, 0.95) + embedding) / (np.quantile(fast, 0.95) + embedding),
        passages=passages,
        words=words,
        each=1000 * words / passages,
    )
    write(page, Path(__file__).with_name("RESULTS.md"))
    return 0


def measured(engine: Engine, pairs: list[Pair]) -> list[Row]:
    """Ask both rankers in turn."""
    collection, retriever = engine._collection, engine.requests.retriever  # noqa: SLF001 - one engine may hold a store
    rankers = {name: ranker_by_name(name, collection.catalogue) for name in RANKERS}
    taken: dict[str, list[float]] = {name: [] for name in RANKERS}

    def ask(name: str, pair: Pair) -> None:
        retriever.ranker = rankers[name]
        engine.retrieve(pair.question.text, pair.session)

    for number, pair in enumerate(pairs):
        works = [partial(ask, name, pair) for name in RANKERS]
        for name, milliseconds in zip(RANKERS, in_turn(works, _TIMES, number), strict=True):
            taken[name].append(milliseconds)
    return [Row(name, taken[name]) for name in RANKERS]


def _open(engine: Engine, pairs: list[Pair]) -> Iterator[Pair]:
    """Yield the pairs that are not refused."""
    for pair in pairs:
        if engine.retrieve(pair.question.text, pair.session).outcome.value != "refuse":
            yield pair


def words_of(store: Path) -> float:
    """Return how many seconds it takes to index the words of a store's passages."""
    from carag.engine.corpus import settle_profile
    from carag.store.store import CorpusStore

    with (
        tempfile.TemporaryDirectory() as scratch,
        CorpusStore.open(store / "corpus.db", create=False) as corpus,
    ):
        heading = settle_profile(corpus, None).vocabulary.heading
        notes = {name: corpus.meta_get(name) for name in ("words_header", "words_known", "words_made_of")}
        start = time.perf_counter()
        with closing(KeptWords(corpus, Path(scratch, "index.words"), heading)) as words:
            words.switch(words.prepare(lambda *_: None), corpus.known())
        took = time.perf_counter() - start
        corpus.meta_update({name: value for name, value in notes.items() if value is not None})
    return took


if __name__ == "__main__":
    raise SystemExit(main())
