"""Make the inputs on which the variant ``reference`` and the package gaussia must agree, each from its number alone.

Nothing here needs CARAG or gaussia. Every random number comes from :meth:`random.Random.random`, whose stream is
promised, and from sums, products and square roots, which are rounded alike everywhere.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

CASES = 240
"""Number of cases, of seven turns each on average, in the file of golden outputs."""
DIM = 8
EXACT = ("lattice32", "lattice64", "float64")
"""Kinds of vectors whose rounded products are the same on every machine; those of ``float32`` are not."""

_TEXT = (
    "the provider shall keep logs for six months and report each serious incident without delay to authority "
    "Straße naïve ﬁling 規則 מידע отчёт 🙂 e\u0301tat Art.5(1)(a) § 12% risk-based"
)
_WORDS = _TEXT.split()
_SPACES = (
    " ",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\n\n\n",
    "\n\n\n\n\n",
    " \n\n\n ",
    "\u00a0",
    "\r\n",
    "\u2003",
)


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation."""

    qa_id: str
    query: str
    assistant: str
    weight: float | None


@dataclass(frozen=True)
class Case:
    """A corpus, sessions, and settings under the names that both sides give them."""

    settings: dict[str, Any]
    documents: list[tuple[str, str]]
    """Source and text."""
    sessions: list[tuple[str, list[Turn]]]
    vectors: str
    """Kind of vectors."""
    has_steps: bool
    """Whether rerankers give one of few scores, which often are a threshold itself."""
    mc_samples: int
    """0 for the weighted mean."""
    rng_seed: int

    def embedded(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each text."""
        kind = np.float32 if self.vectors.endswith("32") else np.float64
        return np.array([_vector(self.vectors, text) for text in texts], dtype=kind).reshape(-1, DIM)

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return a reranker's score for each document."""
        drawn = [random.Random(f"{query}\0{one}").random() for one in documents]  # noqa: S311 - a hash
        return [math.floor(one * 21) / 20 for one in drawn] if self.has_steps else drawn


def case(seed: int, *, is_live: bool = False) -> Case:
    """Return the case of a number; a live one may have vectors whose products depend on the machine."""
    draw = _Draw(seed)
    size = draw.whole(8, 90)
    sources = [f"act-{number}.md" for number in range(draw.whole(1, 4))]
    documents = [(source, draw.text(60)) for source in sources]
    if not any(text.strip() for _, text in documents):
        documents[0] = (sources[0], "Providers shall keep logs.")
    return Case(
        settings={
            "chunk_size": size,
            "chunk_overlap": draw.one_of((0, 1, size // 10, size // 3, size - 1 if size < 20 else 0)),
            "top_k": draw.one_of((1, 2, 3, 5, 10)),
            "similarity_threshold": draw.one_of((0.0, 0.25, 0.3, 0.3125, 0.5, 0.8, 1.0)),
            "contradiction_threshold": draw.one_of((0.0, 0.25, 0.5, 0.6, 0.6, 0.9, 1.0)),
            "compliance_threshold": draw.one_of((0.0, 0.3, 0.5, 0.5, 0.6, 0.7, 1.0)),
        },
        documents=documents,
        sessions=[(f"s{number}", _turns(draw)) for number in range(draw.whole(1, 3))],
        vectors=draw.one_of((*EXACT, "float32") if is_live else EXACT),
        has_steps=draw.one_of((True, False)),
        mc_samples=draw.one_of((0, 0, 200, 5_000)),
        rng_seed=draw.whole(0, 99),
    )


class _Draw:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - inputs of a test

    def whole(self, least: int, greatest: int) -> int:
        return least + math.floor(self._random() * (greatest - least + 1))

    def one_of(self, several: Sequence[Any]) -> Any:
        return several[self.whole(0, len(several) - 1)]

    def share(self) -> float:
        return self._random()

    def text(self, words: int) -> str:
        if (kind := self.whole(0, 19)) < 3:
            return ("", " \n\n\n \t", "\n\n\n\n")[kind]
        return "".join(self.one_of(_WORDS) + self.one_of(_SPACES) for _ in range(self.whole(1, words)))


def _turns(draw: _Draw) -> list[Turn]:
    count = draw.one_of((1, 1, 2, 2, 3, 4, 6, 10))
    weights = _weights(draw, count)
    return [Turn(f"q{n}", draw.text(6), draw.text(12), weights[n]) for n in range(count)]


def _weights(draw: _Draw, count: int) -> list[float | None]:
    """Return weights of one of the kinds that either side treats differently."""
    parts = [draw.share() for _ in range(count)]
    shares = [one / sum(parts) for one in parts]
    kind = draw.whole(0, 9)
    if kind == 0:
        return [0.0] * count
    if kind == 1:
        return [10 * one for one in parts]  # any sum
    if kind == 2:
        return [one * (1 + 5e-7) for one in shares]  # 1, as nearly as the package wants
    if kind == 3:
        return [one * (1 + 2e-6) for one in shares]  # not quite
    if kind == 4:
        return [1.0] + [0.0] * (count - 1)
    if kind == 5:
        return shares
    if kind < 8:  # some are missing, and those stated leave something or nothing
        share = 0.5 if kind == 6 else 4.0
        return [one * share if draw.whole(0, 1) else None for one in shares]
    return [None] * count


@cache
def _vector(kind: str, text: str) -> tuple[float, ...]:
    draw = _Draw(random.Random(f"{kind[:3]}:{text}").getrandbits(48))  # noqa: S311 - a hash
    if kind.startswith("float"):
        drawn = [2 * draw.share() - 1 for _ in range(DIM)]
        return tuple(one / math.sqrt(math.fsum(x * x for x in drawn)) for one in drawn)
    # Of length 1, with whole entries over `unit`: every product is a multiple of 1 / unit**2, and exact in 32 bits.
    # Those of the coarse kind often are equal, or a threshold itself.
    unit = 32 if kind == "lattice32" else 8
    most = unit * 3 // 8
    first = [draw.whole(-most, most) for _ in range(DIM - 4)]
    rest = [one * draw.one_of((-1, 1)) for one in _four_squares(unit**2 - sum(one * one for one in first))]
    entries = [*first, *rest]
    turned = draw.whole(0, DIM - 1)
    return tuple(one / unit for one in entries[turned:] + entries[:turned])


@cache
def _four_squares(total: int) -> tuple[int, int, int, int]:
    """Return four whole numbers whose squares have that sum, as Lagrange promises for every sum."""
    for a in range(math.isqrt(total), -1, -1):
        for b in range(math.isqrt(total - a * a), -1, -1):
            left = total - a * a - b * b
            for c in range(math.isqrt(left), -1, -1):
                d = math.isqrt(left - c * c)
                if d * d == left - c * c:
                    return a, b, c, d
    raise AssertionError
