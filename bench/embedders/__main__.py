"""Compare the offline embedders on real questions: ``python -m bench.embedders``.

Prints a report and writes it to ``RESULTS.md`` beside
this file. Takes about as long as the slowest embedder needs for the pool; ``--cache DIR`` keeps its vectors.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.embedders.measure import calibrate, ingest_seconds, quality, query_latency
from bench.embedders.pool import Pool, out_of_scope_questions, read_pool
from bench.embedders.report import SMALL_CORPUS, Row, report
from bench.harness import parser, write
from carag.retrieval.minilm import MiniLm
from carag.retrieval.wordllama import StaticWordLlama

if TYPE_CHECKING:
    from numpy.typing import NDArray


def main() -> int:
    """Measure, print, write."""
    options = parser("bench.embedders", __doc__, data=True)
    options.add_argument("--cache", type=Path, help="directory that keeps the pool's vectors between runs")
    options.add_argument("--out", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    arguments = options.parse_args()
    data: Path = arguments.data
    pool, strangers = read_pool(data), out_of_scope_questions(data)
    rows = [
        _measure(embedder, pool, strangers, arguments.cache) for embedder in (MiniLm(), StaticWordLlama())
    ]
    write(report(rows, pool, strangers), arguments.out)
    return 0


def _measure(
    embedder: MiniLm | StaticWordLlama, pool: Pool, strangers: dict[str, list[str]], cache: Path | None
) -> Row:
    latency = query_latency(embedder, pool.questions)
    ingest = ingest_seconds(embedder, [chunk.embedded for chunk in pool.chunks[:SMALL_CORPUS]])
    vectors = _vectors(embedder, pool, cache)
    found = quality(embedder, vectors, pool.questions)
    tops = [
        np.array([(vectors @ embedder.embed_query(question)).max() for question in asked], dtype=np.float32)
        for asked in strangers.values()
    ]
    return Row(
        name=embedder.name,
        dim=embedder.dim,
        megabytes=sum(file.locate().stat().st_size for file in embedder.files) / 1e6,
        licence="; ".join(dict.fromkeys(_licence(file.requirement) for file in embedder.files)),
        quality=found,
        latency=latency,
        ingest=ingest,
        gate=calibrate(found.top, tops),
    )


def _vectors(embedder: MiniLm | StaticWordLlama, pool: Pool, cache: Path | None) -> NDArray[np.float32]:
    """Embed the pool, or read what an earlier run kept of the same model and the same texts."""
    texts = [chunk.embedded for chunk in pool.chunks]
    digest = hashlib.sha256(embedder.fingerprint.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    kept = cache / f"{embedder.name}-{digest.hexdigest()[:16]}.npy" if cache else None
    if kept and kept.exists():
        return np.asarray(np.load(kept), dtype=np.float32)
    vectors = embedder.embed_documents(texts)
    if kept:
        np.save(kept, vectors)
    return vectors


def _licence(requirement: str) -> str:
    name = requirement.partition("==")[0]
    about = metadata(name)
    field = next(field for field in ("License-Expression", "License") if field in about)
    return f"{about[field].splitlines()[0]} (`{requirement}`)"


if __name__ == "__main__":
    sys.exit(main())
