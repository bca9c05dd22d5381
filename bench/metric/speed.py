"""Time everything of the metric but its models: ``python -m bench.metric.speed``.

The embedder, the reranker and the judge look their answer up, and what that takes is subtracted. The turns are dealt
into rounds, each measured with every variant in turn; the report gives the median of the rounds.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import statistics
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.harness import commit, parser
from bench.metric.__main__ import HERE, write
from carag.evaluation.regulatory import (
    Batch,
    CorpusConnector,
    Regulatory,
    RegulatoryDocument,
    Settings,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


TARGET: Final = 5.0
"""Milliseconds a turn that everything but the models may take."""
DIM: Final = 384
"""Length of the vectors, that of the default embedder."""
_THREADS: Final = "OPENBLAS_NUM_THREADS"
"""Read when numpy is loaded."""
_SESSION: Final = 10
"""Turns of a session."""
_SEARCHED: Final = 500
"""Turns whose searches are timed alone, a round."""
_WORDS: Final = (
    *("provider", "system", "log", "record", "risk", "data", "deployer", "authority", "market", "human"),
    *("oversight", "notice", "period", "month", "measure", "training", "accuracy", "shall", "keep", "report"),
)


class Fake:
    """Embedder, reranker and judge in one: what it gives is a hash of the text, and ``seconds`` is what that took."""

    name = "fake"
    dim = DIM
    fingerprint = "fake-1"
    remote = False

    def __init__(self) -> None:
        self.seconds = 0.0
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._rows = np.random.default_rng(11).dirichlet((1, 1, 1), 1 << 12)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit row for each text, near to all others: every passage is above the least cosine."""
        began = time.perf_counter()
        rows = np.stack([self._vector(text) for text in texts])
        self.seconds += time.perf_counter() - began
        return rows

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the row of a question."""
        began = time.perf_counter()
        row = self._vector(text)
        self.seconds += time.perf_counter() - began
        return row

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score in [0, 1] for each text."""
        began = time.perf_counter()
        asked = zlib.crc32(question.encode())
        scores = [zlib.crc32(text.encode(), asked) % 1000 / 1000 for text in texts]
        self.seconds += time.perf_counter() - began
        return scores

    def judge(self, claim: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Return three probabilities for each passage."""
        began = time.perf_counter()
        asked = zlib.crc32(claim.encode())
        rows: NDArray[np.float64] = self._rows[
            [zlib.crc32(text.encode(), asked) % len(self._rows) for text in passages]
        ]
        self.seconds += time.perf_counter() - began
        return rows

    def _vector(self, text: str) -> NDArray[np.float32]:
        if (found := self._vectors.get(text)) is None:
            digest = hashlib.shake_128(text.encode()).digest(DIM)
            found = np.frombuffer(digest, np.int8).astype(np.float32) + 100
            found /= np.linalg.norm(found)
            self._vectors[text] = found
        return found


class Drawn(CorpusConnector):
    """Documents of drawn words that make a given number of chunks."""

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks

    def load_documents(self) -> list[RegulatoryDocument]:
        """Return documents of a hundred chunks each, and one with the rest."""
        draw = random.Random(5)  # noqa: S311 - a corpus, not a secret
        step = Settings().chunk_size - Settings().chunk_overlap
        counts = [100] * (self._chunks // 100) + [self._chunks % 100] * (self._chunks % 100 > 0)
        found = []
        for at, count in enumerate(counts):
            size = step * count  # the last window begins one step before, and is the first to reach the end
            text = " ".join(draw.choices(_WORDS, k=size // 3))[: size - 1] + "."
            found.append(RegulatoryDocument(text, f"document {at}"))
        return found


def main() -> None:
    """Measure, and write into what ``python -m bench.metric`` wrote."""
    arguments = parser("bench.metric.speed", __doc__)
    arguments.add_argument("--interactions", type=int, default=10_000)
    arguments.add_argument("--chunks", type=int, default=5_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    if _THREADS not in os.environ:
        # Two threads that wait for each other beside other work took 18 ms for a product that one makes in 0.3.
        os.execve(  # noqa: S606 - itself
            sys.executable,
            [sys.executable, "-m", "bench.metric.speed", *sys.argv[1:]],
            {**os.environ, _THREADS: "1"},
        )
    found = measured(given.interactions, given.chunks, given.rounds)
    print(json.dumps(found, indent=1))
    path = given.out / "results.json"
    if not path.exists():
        sys.exit(
            f"{path} is missing: there is no report to put these figures into; run python -m bench.metric first"
        )
    write({**json.loads(path.read_text(encoding="utf-8")), "speed": found}, given.out)


def measured(interactions: int, chunks: int, rounds: int) -> dict[str, Any]:
    """Return milliseconds a turn of each variant, round by round."""
    turns = _turns(interactions)
    load = os.getloadavg()[0]
    made = {}
    for variant in Variant:
        fake = Fake()
        metric = Regulatory(Drawn(chunks), fake, fake, Settings(variant=variant))
        made[variant.value] = fake, metric, metric.load()
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in made}
    for at in range(rounds):
        for name, (fake, metric, _) in made.items():
            rows[name].append(_round(fake, metric, turns[at::rounds]))
            print(f"round {at + 1}: {name}: {rows[name][-1]}", file=sys.stderr, flush=True)
    variants: dict[str, dict[str, Any]] = {
        name: {
            "ms": [one["ms"] for one in some],
            **{f"median {what}": statistics.median(one[what] for one in some) for what in some[0]},
        }
        for name, some in rows.items()
    }
    return {
        "interactions": interactions,
        "chunks": {count for *_, count in made.values()}.pop(),
        "dim": DIM,
        "rounds": rounds,
        "target": TARGET,
        "variants": variants,
        "commit": commit(),
        "load": load,
    }


def _turns(count: int) -> list[Batch]:
    """Make turns of a question and four sentences."""
    draw = random.Random(7)  # noqa: S311 - a corpus, not a secret
    return [
        Batch(
            qa_id=str(at),
            query=f"{' '.join(draw.choices(_WORDS, k=9))}?",
            assistant=" ".join(f"{' '.join(draw.choices(_WORDS, k=14)).capitalize()}." for _ in range(4)),
        )
        for at in range(count)
    ]


def _round(fake: Fake, metric: Regulatory, turns: Sequence[Batch]) -> dict[str, float]:
    """Return milliseconds a turn, by the clock and of the processor, and passages a turn."""
    fake.seconds, passages, began, cpu = 0.0, 0, time.perf_counter(), time.process_time()
    for start in range(0, len(turns), _SESSION):
        some = turns[start : start + _SESSION]
        passages += sum(len(one.retrieved_chunks) for one in metric.batch(str(start), "fake", some))
        metric.result(str(start))
    whole, spent, models = time.perf_counter() - began, time.process_time() - cpu, fake.seconds
    began, fake.seconds = time.perf_counter(), 0.0
    retriever = metric._retriever  # noqa: SLF001 - the part that is timed alone
    for one in turns[:_SEARCHED]:
        retriever.retrieve_merged(one.query, one.assistant)
    search = time.perf_counter() - began - fake.seconds
    a_turn = 1e3 / len(turns)
    return {
        "ms": (whole - models) * a_turn,
        "CPU ms": spent * a_turn,
        "search ms": search * 1e3 / len(turns[:_SEARCHED]),
        "model ms": models * a_turn,
        "passages": passages / len(turns),
    }


if __name__ == "__main__":
    main()
