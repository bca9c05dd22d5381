"""The data sets: vectors by seed, or real text embedded once; queries are never in the index.

``load(name, cache)`` makes a set or reads what an earlier run kept. A set is unit vectors, held-out queries and,
for real text, the filing of every row. A streamed set is drawn and written part by part, and stays in its file. Words
and policies are drawn in :mod:`bench.ann.policies`.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.mpnet import MpNet
from carag.errors import InvalidArgument
from carag.retrieval.minilm import MiniLm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from carag.retrieval.embedder import Embedder


SEED: Final = 7
QUERIES: Final = 1_000
TEXT_ROWS: Final = 26_595
CHUNKS_A_FILING: Final = (20, 200)
"""A filing with fewer passages is left out, one with more gives a sample of them, in reading order."""
WORDS_A_CHUNK: Final = (45, 90)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows to index and queries to ask."""

    name: str
    vectors: NDArray[np.float32]
    """(n, dim) unit rows."""
    queries: NDArray[np.float32]
    """(nq, dim) unit rows, none of them in ``vectors``."""
    filings: NDArray[np.int64] | None
    """(n,) the filing of a row of real text, or None where rows come from no document."""
    seed: int


@dataclass(frozen=True, slots=True)
class Mixture:
    """Parameters of a mixture of local subspaces, with the intrinsic dimension and difficulty of embeddings."""

    rows: int = 26_595
    dim: int = 1_024
    queries: int = 500
    seed: int = SEED
    clusters: int = 1_500
    concentration: float = 0.1
    """Of the Dirichlet draw of cluster sizes: small means a few large clusters and many tiny ones."""
    local_dim: int = 44
    spread: tuple[float, float] = (0.75, 4.0)
    """Range of the radius of a cluster, in lengths of its centre; drawn log-uniformly."""
    noise: float = 0.4
    """Length of the full-dimensional noise of a row, likewise."""


_MIXTURES: Final = {
    "mixture-26k-1024": Mixture(queries=QUERIES),
    "mixture-200k-384": Mixture(rows=200_000, dim=384, queries=QUERIES),
    "mixture-1m-128": Mixture(rows=1_000_000, dim=128, queries=QUERIES),
    "mixture-200k-128": Mixture(rows=200_000, dim=128, queries=QUERIES),
    "mixture-20k-128": Mixture(rows=20_000, dim=128, queries=QUERIES),
    "mixture-5k-64": Mixture(rows=5_000, dim=64, queries=200, clusters=100, local_dim=24),
}
_STREAMED: Final = {
    f"stream-{name}-96": Mixture(rows=rows, dim=96, queries=200)
    for name, rows in (("20k", 20_000), ("1m", 1_000_000), ("2m", 2_000_000), ("10m", 10_000_000))
}
_AT_ONCE: Final = 100_000
"""Rows of a part of a streamed set."""
_TEXTS: Final[dict[str, Callable[[], Embedder]]] = {
    "text-26k-384": lambda: MiniLm(threads=1),
    "text-26k-768": lambda: MpNet(),
}

SETS: Final = (*_MIXTURES, *_STREAMED, *_TEXTS)
"""The names :func:`load` knows; ``mixture-5k-64`` and ``stream-20k-96`` are for smoke runs."""


def default_cache() -> Path:
    """Return the directory for data, graphs and compiled helpers when none is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carag-bench"


def load(name: str, cache: Path) -> Dataset:
    """Make a data set, or read it from `cache`.

    Raises
    ------
    InvalidArgument
        If there is no such set, or it needs real data and ``CARAG_SHARED_DATA`` names none.
    ModelUnavailable
        If the model that embeds it is not installed.
    """
    if name not in SETS:
        raise InvalidArgument(f"there is no data set {name!r}; want one of {', '.join(SETS)}")
    home = cache / f"{name}-s{SEED}"
    if not (home / "done").exists():
        home.mkdir(parents=True, exist_ok=True)
        if name in _STREAMED:
            _write_stream(_STREAMED[name], home)
        else:
            rows, queries, filings = _make(name, home)
            np.save(home / "vectors.npy", rows)
            np.save(home / "queries.npy", queries)
            if filings is not None:
                np.save(home / "filings.npy", filings)
        (home / "done").touch()
    kept = home / "filings.npy"
    return Dataset(
        name=name,
        vectors=np.load(home / "vectors.npy", mmap_mode="r" if name in _STREAMED else None),
        queries=np.load(home / "queries.npy"),
        filings=np.load(kept) if kept.exists() else None,
        seed=SEED,
    )


def _make(name: str, home: Path) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64] | None]:
    if name in _MIXTURES:
        return (*mixture(_MIXTURES[name]), None)
    data = _shared_data(name)
    texts, filings = _passages(data)
    vectors = _embedded(_TEXTS[name](), texts, home)
    held_out = np.zeros(len(texts), dtype=np.bool_)
    held_out[np.random.default_rng([SEED, 1]).permutation(len(texts))[: len(texts) - TEXT_ROWS]] = True
    return vectors[~held_out], vectors[held_out], filings[~held_out]


# ---------------------------------------------------------------- drawn by seed


def mixture(of: Mixture) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw unit vectors, ``(rows, dim)``, and queries of the same kind, ``(queries, dim)``."""
    rng = np.random.default_rng(of.seed)
    total = of.rows + of.queries
    centres = rng.standard_normal((of.clusters, of.dim))
    sizes = rng.multinomial(total, rng.dirichlet(np.full(of.clusters, of.concentration)))
    radii = np.exp(rng.uniform(np.log(of.spread[0]), np.log(of.spread[1]), of.clusters))
    points = np.empty((total, of.dim))
    end = 0
    for centre, size, radius in zip(centres, sizes, radii, strict=True):
        start, end = end, end + int(size)
        local = rng.standard_normal((size, of.local_dim))
        basis = rng.standard_normal((of.local_dim, of.dim))
        points[start:end] = centre + radius * local @ basis / np.sqrt(of.local_dim)
    for rows in np.array_split(points, max(1, total // 50_000)):  # a view each: the whole is large
        rows += of.noise * rng.standard_normal(rows.shape)
    order = rng.permutation(total)
    unit = np.empty(points.shape, dtype=np.float32)
    for at in np.array_split(np.arange(total), max(1, total // 50_000)):
        unit[at] = points[order[at]]
        unit[at] /= np.linalg.norm(unit[at], axis=1, keepdims=True)
    return unit[: of.rows], unit[of.rows :]


# ---------------------------------------------------------------- streamed


def vectors_file(name: str, cache: Path) -> Path:
    """Return where the rows of a set stand once it was loaded."""
    return cache / f"{name}-s{SEED}" / "vectors.npy"


def batches(path: Path, sizes: Iterable[int]) -> Iterator[NDArray[np.float32]]:
    """Read rows from a file in batches of these sizes; only one batch is in memory at a time."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise InvalidArgument(f"{path} has format {version}; want 1.0, which np.save writes")
        (_, dim), _, dtype = np.lib.format.read_array_header_1_0(file)
        for size in sizes:
            yield np.fromfile(file, dtype=dtype, count=size * dim).reshape(size, dim)


def _write_stream(of: Mixture, home: Path) -> None:
    """Draw the queries first, then the rows; a part is written before the next is drawn."""
    parts = _drawn(of)
    np.save(home / "queries.npy", next(parts))
    with (home / "vectors.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (of.rows, of.dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            part.tofile(file)


def _drawn(of: Mixture) -> Iterator[NDArray[np.float32]]:
    """Draw unit vectors of a mixture as :func:`mixture` does, part by part, the queries first."""
    rng = np.random.default_rng(of.seed)
    float32 = np.float32
    centres = rng.standard_normal((of.clusters, of.dim), dtype=float32)
    bases = rng.standard_normal((of.clusters, of.local_dim, of.dim), dtype=float32) / np.sqrt(
        float32(of.local_dim)
    )
    shares = rng.dirichlet(np.full(of.clusters, of.concentration))
    radii = np.exp(rng.uniform(np.log(of.spread[0]), np.log(of.spread[1]), of.clusters)).astype(float32)
    for size in (
        of.queries,
        *(len(part) for part in np.array_split(range(of.rows), -(-of.rows // _AT_ONCE))),
    ):
        which = np.sort(rng.choice(of.clusters, size, p=shares))
        points = centres[which] + float32(of.noise) * rng.standard_normal((size, of.dim), dtype=float32)
        local = rng.standard_normal((size, of.local_dim), dtype=float32) * radii[which, np.newaxis]
        edges = np.searchsorted(which, np.arange(of.clusters + 1))
        for cluster in np.unique(which):
            some = slice(edges[cluster], edges[cluster + 1])
            points[some] += local[some] @ bases[cluster]
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        yield rng.permutation(points)


# ---------------------------------------------------------------- real data


def _shared_data(name: str) -> Path:
    path = os.environ.get("CARAG_SHARED_DATA")
    if not path or not Path(path).is_dir():
        raise InvalidArgument(
            f"{name} is made of real data that does not ship: set CARAG_SHARED_DATA to the directory with "
            "edgar/, or leave the set out"
        )
    return Path(path)


def _passages(data: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Cut real filings into passages of 45 to 90 words, in a seeded order of filings."""
    rng = np.random.default_rng([SEED, 0])
    wanted = TEXT_ROWS + QUERIES
    filings = list(_filings(data))
    texts: list[str] = []
    filing_of: list[int] = []
    for filing in rng.permutation(len(filings)):
        passages = _cut(filings[filing], rng)
        if len(passages) < CHUNKS_A_FILING[0]:
            continue
        most = min(len(passages), int(rng.integers(CHUNKS_A_FILING[0], CHUNKS_A_FILING[1] + 1)))
        some = np.sort(rng.choice(len(passages), most, replace=False))
        texts += [passages[at] for at in some]
        filing_of += [int(filing)] * most
        if len(texts) >= wanted:
            break
    if len(texts) < wanted:
        raise InvalidArgument(f"{data} yields {len(texts)} passages; want {wanted}: is edgar/ complete?")
    return texts[:wanted], np.array(filing_of[:wanted], dtype=np.int64)


def _filings(data: Path) -> Iterator[str]:
    for path in sorted((data / "edgar").glob("filings-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line).get("text") or ""


def _cut(text: str, rng: Generator) -> list[str]:
    words = text.split()
    passages = []
    start = 0
    while start + WORDS_A_CHUNK[0] <= len(words):
        length = int(rng.integers(WORDS_A_CHUNK[0], WORDS_A_CHUNK[1] + 1))
        passages.append(" ".join(words[start : start + length]))
        start += length
    return passages


def _embedded(embedder: Embedder, texts: list[str], home: Path) -> NDArray[np.float32]:
    """Embed in parts that survive an interruption: this takes minutes to hours."""
    parts = []
    for start in range(0, len(texts), 1_000):
        kept = home / f"part-{start:06}-{embedder.fingerprint[:12]}.npy"
        if not kept.exists():
            partial = kept.with_suffix(".partial.npy")
            np.save(partial, embedder.embed_documents(texts[start : start + 1_000]))
            partial.replace(kept)
            print(f"embedded {start + 1_000:,} of {len(texts):,} passages with {embedder.name}", flush=True)
        parts.append(np.load(kept))
    return np.vstack(parts)
