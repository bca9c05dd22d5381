"""Chunks, their words and questions: drawn from a seed, or cut from real filings.

A hundredth of the documents has all three bits, a tenth two, every one the first: a mask of one bit admits all, a tenth
or a hundredth. Every engine is given terms that are cut already.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.index.tokens import tokenize
from carag.labelling.chunking import chunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.random import Generator
    from numpy.typing import NDArray


SHARES: Final = {"100 %": 1, "10 %": 2, "1 %": 4}
"""The bit that a share of the documents has."""
CHUNKS: Final = 221_465
"""Chunks of all filings of the benchmark."""
_VOCABULARY: Final = 265_697
"""Terms that there are in those."""
_SIZE: Final = 47
"""Chunks of a document, on the mean."""
_LENGTH: Final = 103
"""Tokens of a chunk, on the mean."""


@dataclass(frozen=True)
class Texts:
    """What is indexed, and asked."""

    name: str
    tokens: list[list[str]]
    documents: NDArray[np.int64]
    headings: dict[int, list[str]]
    questions: list[list[str]]

    def bits(self) -> NDArray[np.int64]:
        """Draw the bits of each chunk, by document."""
        draw = np.random.default_rng(1).random(int(self.documents.max()) + 1)
        return (1 + 2 * (draw < 0.1) + 4 * (draw < 0.01)).astype(np.int64)[self.documents]


def drawn(chunks: int = CHUNKS, questions: int = 60) -> Texts:
    """Draw Zipf terms; two fifths of a document's tokens come from three hundred terms of its own."""
    rng = np.random.default_rng(0)
    ranks = np.cumsum(1.0 / np.arange(1, _VOCABULARY + 1) ** 1.05)
    ranks /= ranks[-1]
    documents = max(1, chunks // _SIZE)
    sizes = rng.multinomial(chunks - documents, rng.dirichlet(np.ones(documents))) + 1
    tokens: list[list[str]] = []
    for size in sizes.tolist():
        lengths = rng.poisson(_LENGTH, size)
        numbers = np.searchsorted(ranks, rng.random(int(lengths.sum())))
        own = rng.random(numbers.size) < 0.4
        numbers[own] = np.searchsorted(ranks, rng.random(300))[rng.integers(0, 300, int(own.sum()))]
        tokens += [part.tolist() for part in np.split(numbers.astype(str), np.cumsum(lengths)[:-1])]
    return Texts(
        f"{chunks:,} drawn chunks",
        tokens,
        np.repeat(np.arange(documents), sizes),
        {n: [f"h{n}", "inc", "10-k"] for n in range(documents)},
        [_question(rng, ranks, q) for q in range(questions)],
    )


def _question(rng: Generator, ranks: NDArray[np.float64], number: int) -> list[str]:
    """Six to twenty-three terms, the most frequent left out; every other question names a heading."""
    terms = np.searchsorted(ranks, rng.random(int(rng.integers(6, 24))))
    return [str(term) for term in terms if term > 10] + (["inc", f"h{number}"] if number % 2 else [])


def filings(shared: Path, limit: int) -> Texts:
    """Cut real filings into chunks until there are enough of them; the questions are the benchmark's."""
    tokens: list[list[str]] = []
    documents: list[int] = []
    headings: dict[int, list[str]] = {}
    for number, filing in enumerate(_lines(sorted((shared / "edgar").glob("filings-*.jsonl.gz")))):
        if len(tokens) >= limit:
            break
        headings[number] = tokenize(f"{filing['company']} {filing['form']} {filing['period'] or ''}")
        passages = [tokenize(passage.text) for passage in chunk(str(filing["text"]))]
        tokens += passages
        documents += [number] * len(passages)
    asked = [tokenize(str(one["question"])) for one in _lines([shared / "edgar" / "qa.jsonl.gz"])]
    name = f"{len(tokens):,} chunks of {len(headings):,} filings"
    return Texts(name, tokens, np.array(documents, np.int64), headings, asked[:100])


def _lines(paths: list[Path]) -> Iterator[dict[str, object]]:
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
