"""Random small indexes with a history, and beside each a plain account of the rows it must hold.

World ``i`` of a seed is the same on every machine. Vectors come in clusters, as copies, at wild lengths and at the
edges of rounding; words few, Zipf, all distinct, unlabelled and quarantined ones among them; rows open, expire, never
open, are about entities, and for audiences. A history is adds large and small, relabels by key and by policy, deletes,
returns under the old key, consolidations, and files saved and opened again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.ann.oracle import Rows, admits
from carag.index import DType, Index
from carag.policy import NEVER, QUARANTINE, Mask, Policy, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray


AS_OF: Final = (0, 99, 100, 150, 1_000, NEVER - 1)
_MINUTES: Final = np.array([0, 100, 200, NEVER], dtype=np.int64)
_POLICY_BITS: Final = (1 << 27) - 1


# ---------------------------------------------------------------- rows


def draw_vectors(rng: Generator, n: int, dim: int) -> NDArray[np.float32]:
    """Draw vectors of one of several kinds."""
    kind = rng.choice(["normal", "clusters", "copies", "signs", "half steps"])
    vectors = rng.standard_normal((n, dim))
    if kind == "clusters":
        vectors = 0.1 * vectors + rng.standard_normal((5, dim))[rng.integers(0, 5, n)]
    elif kind == "copies" and n:
        vectors = vectors[rng.integers(0, max(1, n // int(rng.choice([2, 10, n]))), n)]
    elif kind == "signs":
        vectors = np.sign(vectors)
    elif kind == "half steps":  # what an eight-bit code rounds the farthest
        vectors = np.sign(vectors) * (rng.integers(0, 3, (n, dim)) + 0.501) / 127
        vectors[:, 0] = 1.0
    lengths = np.exp(rng.uniform(-5, 5, (n, 1))) if rng.random() < 0.3 else 1.0
    return (vectors * lengths).astype(np.float32)


def _draw_words(rng: Generator, n: int) -> NDArray[np.uint32]:
    kind = rng.choice(["few", "zipf", "distinct", "bits"])
    if kind == "few":
        bits = rng.integers(0, 1 << 27, 4)[rng.integers(0, 4, n)]
    elif kind == "zipf":
        bits = rng.integers(0, 1 << 27, 200)[np.minimum(rng.zipf(1.5, n), 200) - 1]
    elif kind == "distinct":
        bits = rng.permutation(1 << 13)[:n] << 7
    else:
        bits = rng.integers(0, 8, n)
    words = policy_word(bits.astype(np.int64))
    words[rng.random(n) < rng.choice([0.0, 0.1])] &= np.uint32(_POLICY_BITS)  # unlabelled
    words[rng.random(n) < rng.choice([0.0, 0.1])] |= np.uint32(QUARANTINE)
    return words


def draw_columns(rng: Generator, n: int) -> dict[str, NDArray[np.int64] | NDArray[np.uint32]]:
    """Draw words and terms, by the names that :meth:`carag.Index.add` takes."""
    has_times, has_entities, has_audiences = rng.random(3) < 0.4
    return {
        "words": _draw_words(rng, n),
        "public_at": rng.choice(_MINUTES, n, p=[0.5, 0.2, 0.2, 0.1])
        if has_times
        else np.zeros(n, dtype=np.int64),
        "expires_at": rng.choice(_MINUTES[1:], n, p=[0.2, 0.2, 0.6])
        if has_times
        else np.full(n, NEVER, dtype=np.int64),
        "entities": rng.integers(0, 12, n) if has_entities else np.zeros(n, dtype=np.int64),
        "audiences": rng.integers(0, 100, n) if has_audiences else np.zeros(n, dtype=np.int64),
    }


def is_kept(dtype: DType, kept: NDArray[np.float32], originals: NDArray[np.float32]) -> bool:
    """Tell whether ``kept`` are the directions of the originals, as nearly as the storage type allows.

    Eight-bit rows are steps of a 127th of the largest coordinate, made a unit vector again.
    """
    units = originals / np.linalg.norm(originals.astype(np.float64), axis=1, keepdims=True)
    if dtype is DType.FLOAT32:
        return bool((np.abs(kept - units) <= 1e-6).all())
    if dtype is DType.FLOAT16:
        return bool((np.abs(kept - units) <= 2.0**-11).all())
    largest = np.abs(units).max(axis=1, keepdims=True)
    steps = kept * (largest / np.abs(kept).max(axis=1, keepdims=True))
    lengths = np.linalg.norm(kept.astype(np.float64), axis=1)
    return bool((np.abs(steps - units) <= largest / 254 + 1e-6).all() and (np.abs(lengths - 1) <= 1e-5).all())


# ---------------------------------------------------------------- questions


def draw_queries(rng: Generator, rows: Rows, dim: int, nq: int) -> NDArray[np.float64]:
    """Draw queries: stored rows, some close to one, some anywhere."""
    queries = rng.standard_normal((nq, dim))
    if rows.keys.size:
        near = rng.random(nq) < 0.6
        steps = rng.choice([0.0, 0.1, 0.5], (nq, 1)) * queries
        queries[near] = rows.vectors[rng.integers(0, rows.keys.size, nq)][near] + steps[near]
    queries = queries.astype(np.float32).astype(np.float64)
    queries[~queries.any(axis=1)] = 1.0
    return queries


def draw_policy(rng: Generator, words: NDArray[np.uint32]) -> Policy:
    """Draw a policy that selects something between nothing and everything."""
    if rng.random() < 0.03:
        return Policy()
    count = 1 if rng.random() < 0.6 else int(rng.integers(2, 9))
    masks = [_draw_mask(rng, words) for _ in range(count)]
    listed = [*rng.choice(20, int(rng.integers(0, 15)), replace=False).tolist(), 10**6, 2**32 - 1]
    shared = rng.choice(120, int(rng.choice([0, 1, 10, 60, 115])), replace=False).tolist()
    rule = rng.random()
    if rule < 0.2:
        return Policy(*masks, allow_entities=listed, audiences=shared)
    if rule < 0.5:
        return Policy(*masks, deny_entities=listed, audiences=shared)
    return Policy(*masks, audiences=shared)


def _draw_mask(rng: Generator, words: NDArray[np.uint32]) -> Mask:
    """Draw a mask around the bits of a stored word."""
    word = int(words[rng.integers(words.size)]) if words.size else int(rng.integers(1 << 27))
    chosen = 0
    for bit in rng.integers(0, 27, int(rng.integers(0, 5))).tolist():
        chosen |= 1 << bit
    required, forbidden = chosen & word & _POLICY_BITS, chosen & ~word
    kind = rng.integers(7)
    if kind <= 2:
        return Mask()
    if kind == 3:
        return Mask(required=required)
    if kind == 4:
        return Mask(forbidden=forbidden)
    if kind == 5:
        return Mask(required=required | int(rng.integers(8)), forbidden=forbidden & ~7)
    return Mask(required=required, forbidden=forbidden)


# ---------------------------------------------------------------- the world


class World:
    """An index that changes, and the rows it must hold.

    Parameters
    ----------
    rng : Generator
        Draws everything.
    sizes : (low, high)
        How many rows it begins with.
    dim : int
    **parameters
        For :class:`carag.Index`.
    """

    def __init__(self, rng: Generator, sizes: tuple[int, int], dim: int, **parameters: object) -> None:
        self._rng = rng
        self.index = Index(dim, **parameters)  # type: ignore[arg-type] # M, ef_construction, seed, dtype
        none = np.empty(0, dtype=np.int64)
        self.rows = Rows(np.empty((0, dim), np.float32), none.astype(np.uint32), none, none, none, none, none)
        self.faults: list[str] = []
        """What the index did that the account does not allow; empty while all is well."""
        self._next_key = 0
        self._add(int(rng.integers(*sizes)))

    def change(self) -> str:
        """Make one random change; returns its name."""
        changes: tuple[Callable[[], None], ...] = (
            self._add_few,
            self._relabel,
            self._relabel_where,
            self._delete,
            self._return_deleted,
            self._consolidate,
            self._reopen,
        )
        change = changes[int(self._rng.integers(len(changes)))]
        change()
        self._compare(change.__name__)
        return change.__name__

    def _some_rows(self) -> NDArray[np.int64]:
        n = self.rows.keys.size
        return self._rng.permutation(n)[: int(self._rng.integers(0, n + 1) ** self._rng.choice([0.5, 1.0]))]

    def _add(self, n: int, keys: NDArray[np.int64] | None = None) -> None:
        rng, dim = self._rng, self.index.dim
        vectors, columns = draw_vectors(rng, n, dim), draw_columns(rng, n)
        if keys is None:
            keys = self._next_key + rng.permutation(n) * int(rng.choice([1, 1_000_003]))
            self._next_key = int(keys.max(initial=self._next_key)) + 1
        words = columns.pop("words")
        self.index.add(vectors, words, keys, allow_quarantine=True, threads=1, **columns)
        kept = self.index.vectors(keys)
        if not is_kept(self.index.dtype, kept, vectors):
            self.faults.append("a vector is not kept as it was given")
        fresh = Rows(kept, words.astype(np.uint32), **columns, keys=keys)  # type: ignore[arg-type]
        both = Rows(
            *(np.concatenate([getattr(part, name) for part in (self.rows, fresh)]) for name in Rows.__slots__)
        )
        self.rows = both.where(np.argsort(both.keys))

    def _add_few(self) -> None:
        self._add(int(self._rng.integers(1, 8)))

    def _relabel(self) -> None:
        some, words = self._some_rows(), self.rows.words.copy()
        words[some] = _draw_words(self._rng, some.size)
        self.index.relabel(self.rows.keys[some], words[some], allow_quarantine=True)
        self.rows = self.rows.relabelled(words)

    def _relabel_where(self) -> None:
        rng, words = self._rng, self.rows.words.copy()
        policy, as_of = draw_policy(rng, words), int(rng.choice(AS_OF))
        on, off = rng.integers(0, 8, 2).tolist()
        is_open = admits(self.rows, policy, as_of)
        if self.index.relabel_where(policy, set=on, clear=off & ~on, as_of=as_of) != is_open.sum():
            self.faults.append("relabel_where counts wrong")
        words[is_open] = words[is_open] & ~np.uint32(off & ~on) | np.uint32(on)
        self.rows = self.rows.relabelled(words)

    def _delete(self) -> None:
        some = self._some_rows()
        self.index.delete(self.rows.keys[some])
        self.rows = self.rows.where(np.setdiff1d(np.arange(self.rows.keys.size), some))

    def _return_deleted(self) -> None:
        keys = self.rows.keys[self._some_rows()]
        self.index.delete(keys)
        self.rows = self.rows.where(~np.isin(self.rows.keys, keys))
        self._add(keys.size, keys)

    def _consolidate(self) -> None:
        self.index.consolidate(threads=1)

    def _reopen(self) -> None:
        """Save, and go on with what is read from the file, or mapped."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "index.carag")
            self.index.save(path)
            self.index = Index.load(path, mmap=bool(self._rng.random() < 0.5))

    def _compare(self, change: str) -> None:
        index, rows = self.index, self.rows
        same = np.array_equal(index.keys(), rows.keys) and len(index) == rows.keys.size
        for name in ("words", "public_at", "expires_at", "entities", "audiences", "vectors"):
            same = same and np.array_equal(getattr(index, name)(rows.keys), getattr(rows, name))
        if not same:
            self.faults.append(f"after {change.strip('_')} the rows are not those of the account")
