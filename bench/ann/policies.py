"""Words and the policies asked over them: shares of admissible rows by design, and how they lie around a query.

Words are drawn once a data set: 400 distinct ones, Zipf in size, each given to runs of rows that lie close together.
Words of one family share bits and lie in one region, as the labels of one kind of filing do. A policy is a mask found
by search among random ones for the share of rows it admits. A cell names a share and a correlation; per query it asks
a mask that the correlation picks, and several where that leaves a cell fewer than 200 questions:

- *neutral*: any;
- *anti*: one that admits none of the query's 100 nearest rows (in a cell where that leaves fewer than 30 queries, at
  most a tenth of what chance would);
- *corr*: one that admits at least half of them, though its share is smaller (nine tenths where it is a half).

Sessions ask the same with an instant and a deny list.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.engine import Request, Rows

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from bench.ann.datasets import Dataset


SHARES: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0001, 0.0)
"""Admissible shares asked for; 0 is an empty policy over words that exist."""

WORDS: Final = 400
LARGEST: Final = 0.035
ZIPF: Final = 2.5
"""Exponent of the Zipf-Mandelbrot sizes; with the largest word at 3.5 %, the smallest is about 0.01 %."""
RUN: Final = (20, 200)
"""Rows of a filing, and of a run of one word."""
_GROUP: Final = 40
"""Cells or filings of one group; groups follow one another in reading order."""
_FAMILIES: Final = 16
"""Of words that lie near one another in reading order and mostly share half of their bits."""
_SETTLED: Final = 0.97
_STRAYING: Final = 0.7
"""How far, in families, a run of a word may lie from its family."""
NEAREST: Final = 100
_CHANCE: Final = 0.1
DENIED: Final = 1_000
UNIVERSE: Final = 10_000
"""Entities a deny list is drawn from; most of them have no row in a small index, as on a real list."""
PUBLIC_SHARE: Final = 0.95
_POOL: Final = 4_000
_NEUTRAL: Final = 32
_DRAWS: Final = 60_000
_ENOUGH: Final = 200
"""Questions below which a cell asks a query under several policies."""
_FEWEST: Final = 30
"""Queries below which a cell is left out."""
_MINUTES_A_FILING: Final = 1_440
_FIRST_MINUTE: Final = 15_000_000


class Correlation(StrEnum):
    """How the admissible rows lie around a query."""

    NEUTRAL = "neutral"
    ANTI = "anti"
    CORR = "corr"


class Variant(StrEnum):
    """What a policy consists of."""

    WORD = "word"
    SESSION = "session"
    """A word, an instant, and a list of 1,000 denied entities."""
    AUDIENCES = "audiences"
    """The groups of a session (:mod:`bench.ann.audiences`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Queries, each with its policy, that are measured together."""

    variant: Variant
    share: float
    """What was asked for."""
    correlation: Correlation
    requests: tuple[Request, ...]
    """The distinct policies, all of them asked."""
    asked: NDArray[np.int64]
    """(n, 2) query row, and index of its policy."""

    @property
    def name(self) -> str:
        """Name it in tables."""
        share = "empty" if not self.share else f"{100 * self.share:g}%"
        return f"{self.variant} {share} {self.correlation}"


# ---------------------------------------------------------------- words


def label(data: Dataset, *, sessions: bool = True) -> Rows:
    """Give every row a word, an entity and a time of publication, correlated with its content."""
    rng = np.random.default_rng([data.seed, 10])
    order, filings = _reading_order(data, rng)
    rows = len(order)
    entities = np.empty(rows, dtype=np.uint32)
    entities[order] = filings + 1  # 0 means that a row is about none
    bits, families = _distinct_words(rng)
    runs = np.array([(word, length) for word, size in enumerate(_sizes(rows)) for length in _cut(size, rng)])
    along = families[runs[:, 0]] + _STRAYING * rng.standard_normal(len(runs))
    which, lengths = runs[np.argsort(along)].T
    words = np.empty(rows, dtype=np.uint32)
    words[order] = bits[np.repeat(which, lengths)]
    public_at = (_FIRST_MINUTE + _MINUTES_A_FILING * entities.astype(np.int64)).astype(np.uint32)
    digest = hashlib.sha256(np.stack([words, public_at, entities]).tobytes()).hexdigest()[:8]
    return Rows(data.vectors, words, public_at, entities, int(entities.max()) + 1, digest, sessions)


def _reading_order(data: Dataset, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order rows so that near ones are near in content; return the order and the filing along it."""
    rows = len(data.vectors)
    if data.filings is not None:
        _, filing = np.unique(data.filings, return_inverse=True)
        means = np.zeros((filing.max() + 1, data.vectors.shape[1]), dtype=np.float32)
        np.add.at(means, filing, data.vectors)
        order = np.lexsort((np.arange(rows), filing, _group(means, rng)[filing]))
        return order, np.cumsum(np.diff(filing[order], prepend=filing[order[0]]) != 0)
    centres = data.vectors[rng.choice(rows, max(1, min(2_000, rows // 20)), replace=False)]
    cell = np.concatenate([np.argmax(part @ centres.T, axis=1) for part in _parts(data.vectors)])
    order = np.lexsort((cell, _group(centres, rng)[cell]))
    lengths = np.array(_cut(rows, rng))
    return order, np.repeat(np.arange(len(lengths)), lengths)


def _group(points: NDArray[np.float32], rng: Generator) -> NDArray[np.int64]:
    """Give every point the number of the nearest of a few of them."""
    chosen = rng.choice(len(points), max(1, len(points) // _GROUP), replace=False)
    unit = points[chosen] / np.linalg.norm(points[chosen], axis=1, keepdims=True)
    nearest: NDArray[np.int64] = np.argmax(points @ unit.T, axis=1)
    return nearest


def _parts(vectors: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return np.array_split(vectors, max(1, len(vectors) // 20_000))


def _cut(rows: int, rng: Generator) -> list[int]:
    """Cut a number of rows into runs of 20 to 200; the last takes what is left."""
    lengths: list[int] = []
    while rows > RUN[1]:
        lengths.append(int(rng.integers(RUN[0], RUN[1] + 1)))
        rows -= lengths[-1]
    return [*lengths, rows]


def _sizes(rows: int) -> list[int]:
    """Return the rows of every word, largest first: ``1 / (rank + shift) ** 2.5``, the largest 3.5 %."""
    ranks = np.arange(1, WORDS + 1)

    def shares(shift: float) -> NDArray[np.float64]:
        weights = (ranks + shift) ** -ZIPF
        return np.asarray(weights / weights.sum())

    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle)[0] > LARGEST else (low, middle)
    sizes = np.maximum(1, np.floor(rows * shares(low))).astype(np.int64)
    left = rows - int(sizes.sum())
    sizes[np.arange(max(0, left)) % WORDS] += 1
    sizes[0] += min(0, left)
    return [int(size) for size in sizes]


def _distinct_words(rng: Generator) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Draw 400 distinct words in 16 families, each of which settles half of its bits; return both."""
    common = rng.uniform(0.04, 0.6, 27)
    usual = np.where(rng.random((_FAMILIES, 27)) < common, _SETTLED, 1 - _SETTLED)
    chances = np.where(rng.random((_FAMILIES, 27)) < 0.5, usual, common)
    found: dict[int, int] = {}
    while len(found) < WORDS:
        family = len(found) % _FAMILIES
        found.setdefault(int((rng.random(27) < chances[family]) @ (1 << np.arange(27))), family)
    order = rng.permutation(WORDS)
    return np.array(list(found), dtype=np.uint32)[order], np.array(list(found.values()))[order]


# ---------------------------------------------------------------- policies


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Masks of one share."""

    chosen: NDArray[np.int64]
    """(masks,) which of those drawn."""
    admits: NDArray[np.float32]
    """(masks, distinct words) 1 where a mask admits a word."""
    counts: NDArray[np.int64]
    """(masks,) rows admitted."""


def cells(
    rows: Rows, nearest: NDArray[np.int64], seed: int, *, shares: tuple[float, ...] = SHARES
) -> list[Cell]:
    """Draw every cell.

    Parameters
    ----------
    nearest : (nq, 100) int64
        Each query's nearest rows under no policy.
    """
    made = []
    for variant in (Variant.WORD, Variant.SESSION)[: 1 + rows.sessions]:
        rng = np.random.default_rng([seed, 11])
        frame = _session(rows, rng) if variant is Variant.SESSION else Request()
        passing = frame.admissible(rows)
        distinct, word_of = np.unique(rows.words, return_inverse=True)
        sizes = np.bincount(word_of[passing], minlength=len(distinct))
        masks = _random_masks(rng)
        admits = (distinct[np.newaxis] & masks.sum(axis=1, keepdims=True)) == masks[:, :1]
        counts = (admits.astype(np.float32) @ sizes.astype(np.float32)).astype(np.int64)
        near = np.zeros((len(nearest), len(distinct)), dtype=np.float32)
        np.add.at(
            near,
            (np.arange(len(nearest))[:, np.newaxis], word_of[nearest]),
            passing[nearest].astype(np.float32),
        )
        for share in shares:
            pool = _pool(share, len(rows.words), admits, counts, rng)
            for correlation in _correlations(share):
                asked = _asked(correlation, share, pool, near, rng)
                if len(np.unique(asked[:, 0])) >= min(_FEWEST, len(nearest)):
                    used, asked[:, 1] = np.unique(asked[:, 1], return_inverse=True)
                    requests = tuple(frame.masked(*masks[pool.chosen[at]].tolist()) for at in used)
                    made.append(Cell(variant, share, correlation, requests, asked))
    return made


def one_policy_cells(drawn: list[Cell], queries: int) -> list[Cell]:
    """Take the first policy of every neutral word cell, and ask every query under it."""
    return [
        Cell(cell.variant, cell.share, cell.correlation, cell.requests[:1], _all_under_first(cell, queries))
        for cell in drawn
        if (cell.variant, cell.correlation) == (Variant.WORD, Correlation.NEUTRAL)
    ]


def _all_under_first(cell: Cell, queries: int) -> NDArray[np.int64]:
    asked = cell.asked[:queries].copy()
    asked[:, 1] = 0
    return asked


def _session(rows: Rows, rng: Generator) -> Request:
    """Draw the instant and the deny list that every policy of a session variant has."""
    universe = max(UNIVERSE, rows.entity_count)
    denied = (1 + rng.choice(universe, DENIED, replace=False)).astype(np.uint32)
    return Request(as_of=int(np.quantile(rows.public_at, PUBLIC_SHARE)), denied=denied)


def _random_masks(rng: Generator) -> NDArray[np.uint32]:
    """Draw (required, forbidden) pairs of a few bits each, the empty pair first."""
    sizes = rng.integers(0, (5, 9), (_DRAWS, 2))
    place = np.argsort(rng.random((_DRAWS, 27)), axis=1)
    bits = np.uint32(1) << place.astype(np.uint32)
    at = np.arange(27)
    required = (at < sizes[:, :1]) * bits
    forbidden = ((at >= sizes[:, :1]) & (at < sizes.sum(axis=1, keepdims=True))) * bits
    masks = np.stack([required.sum(axis=1), forbidden.sum(axis=1)], axis=1).astype(np.uint32)
    masks[0] = 0
    return masks


def _pool(
    share: float,
    rows: int,
    admits: NDArray[np.bool_],
    counts: NDArray[np.int64],
    rng: Generator,
) -> _Pool:
    """Choose the masks that come closest to a share, in random order."""
    if share == 1.0:
        chosen = np.array([0])
    elif share == 0.0:
        chosen = np.flatnonzero((counts == 0) & ~admits.any(axis=1))
    else:
        off = np.abs(np.log(np.maximum(counts, 1e-9) / (share * rows)))
        slack = 0.1 if share >= 0.05 else 0.25 if share >= 0.001 else 0.7
        chosen = np.flatnonzero(off <= slack)
        chosen = chosen[np.argsort(off[chosen], kind="stable")]
    chosen = rng.permutation(chosen[:_POOL])
    return _Pool(chosen, admits[chosen].astype(np.float32), counts[chosen])


def _correlations(share: float) -> tuple[Correlation, ...]:
    return tuple(Correlation) if 0.001 <= share < 1.0 else (Correlation.NEUTRAL,)


def _asked(
    correlation: Correlation, share: float, pool: _Pool, near: NDArray[np.float32], rng: Generator
) -> NDArray[np.int64]:
    """Pick for every query a mask that fits the correlation, and several where few queries have one.

    Queries without one are left out.
    """
    queries = len(near)
    if not len(pool.chosen):
        return np.empty((0, 2), dtype=np.int64)
    if correlation is Correlation.NEUTRAL:
        return np.stack([np.arange(queries), np.arange(queries) % min(_NEUTRAL, len(pool.chosen))], axis=1)
    hits = near @ pool.admits.T
    if correlation is Correlation.ANTI:
        fits = hits == 0
        if np.count_nonzero(fits.any(axis=1)) < _FEWEST:
            fits = (hits == hits.min(axis=1, keepdims=True)) & (hits <= _CHANCE * NEAREST * share)
    else:
        mostly = 0.9 * NEAREST if share >= 0.5 else 0.5 * NEAREST
        fits = hits >= np.minimum(mostly, np.maximum(1, pool.counts / 2))
    draws = rng.random(fits.shape) * fits
    choices = np.count_nonzero(fits, axis=1)
    each = 1
    while np.minimum(choices, each).sum() < min(_ENOUGH, queries) and each < choices.max():
        each += 1
    masks = np.argpartition(-draws, each - 1, axis=1)[:, :each].T.ravel()
    asked: NDArray[np.int64] = np.stack([np.tile(np.arange(queries), each), masks], axis=1)
    return np.asarray(asked[fits[asked[:, 0], asked[:, 1]]])
