"""What single calls of the index cost: kernels, searches by plan, counts, changes, save and load.

::

    pytest bench/micro/test_index.py --benchmark-only -o testpaths=bench
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from carag.index import Index, Plan, kernels
from carag.index._core import ffi, lib
from carag.policy import Mask, Policy, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

ROWS: Final = 10_000
DIM: Final = 256
SHARES: Final = (1.0, 0.5, 0.2, 0.05, 0.01)
DENIED: Final = range(1, 2_000, 2)
"""A thousand entities."""


@cache
def _index() -> tuple[Index, NDArray[np.float32]]:
    """Build an index whose word has bit i set with probability ``SHARES[i]``; and 256 queries."""
    rng = np.random.default_rng(0)
    centres, mixing = rng.standard_normal((50, DIM)), rng.standard_normal((30, DIM)) / np.sqrt(30)
    n = ROWS + 256
    vectors = (centres[rng.integers(0, 50, n)] + rng.standard_normal((n, 30)) @ mixing).astype(np.float32)
    bits = (rng.random((ROWS, len(SHARES))) < SHARES) @ (1 << np.arange(len(SHARES)))
    index = Index(DIM, M=16, ef_construction=100)
    entities = rng.integers(0, 20_000, ROWS // 20).repeat(20)  # twenty chunks a filing
    index.add(vectors[:ROWS], policy_word(bits.astype(np.int64)), entities=entities, public_at=5)
    return index, vectors[ROWS:]


@pytest.mark.parametrize("dim", [384, 1024])
@pytest.mark.parametrize("name", kernels.available())
def test_kernel(benchmark: Any, name: str, dim: int) -> None:
    """One dot product, the call through cffi included."""
    floats = ffi.typeof("float[]")
    a, b = np.random.default_rng(0).standard_normal((2, dim)).astype(np.float32)
    x, y, out = ffi.from_buffer(floats, a), ffi.from_buffer(floats, b), ffi.new("float *")
    with kernels.use(name):
        benchmark(lib.carag_dot, x, y, dim, out, ffi.NULL)


@cache
def _hundred() -> tuple[Index, NDArray[np.float32]]:
    """Build an index of a hundred rows, none of which has bit 3; and a query."""
    rng = np.random.default_rng(0)
    index = Index(32)
    index.add(rng.standard_normal((100, 32)), policy_word(rng.integers(0, 8, 100)))
    return index, rng.standard_normal(32).astype(np.float32)


def test_call(benchmark: Any) -> None:
    """A search of a hundred rows: mostly the call itself."""
    index, query = _hundred()
    benchmark(index.search, query, 10, Mask(required=1))


_SEEN: Final = count(1 << 4, 1 << 4)
"""Bits that are forbidden once."""


@pytest.mark.parametrize("ask", ["search", "count"])
@pytest.mark.parametrize("policy", ["kept", "made again", "never seen"])
def test_call_for_nothing(benchmark: Any, ask: str, policy: str) -> None:
    """The call alone, since no row is admissible: under one policy, under equal ones, each under one of its own."""
    index, query = _hundred()
    kept = Policy(Mask(required=8))
    make: Callable[[], Policy] = {
        "kept": lambda: kept,
        "made again": lambda: Policy(Mask(required=8)),
        "never seen": lambda: Policy(Mask(required=8, forbidden=next(_SEEN))),
    }[policy]
    if ask == "search":
        assert benchmark(lambda: index.search(query, 10, make())).counts[0] == 0
    else:
        assert benchmark(lambda: index.count(make())) == 0


def test_policy(benchmark: Any) -> None:
    """A mask and a policy of it, made."""
    benchmark(lambda: Policy(Mask(required=8, forbidden=1)))


@pytest.mark.parametrize("share", range(len(SHARES)), ids=[f"{share:.0%}" for share in SHARES])
@pytest.mark.parametrize("plan", Plan)
def test_search(benchmark: Any, plan: Plan, share: int) -> None:
    """One query, k = 10, by plan and by share of admissible rows."""
    index, queries = _index()
    result = benchmark(index.search, queries[0], 10, Mask(required=1 << share), plan=plan, as_of=5)
    assert result.counts[0] == 10


@pytest.mark.parametrize("share", range(len(SHARES)), ids=[f"{share:.0%}" for share in SHARES])
def test_search_as_a_session(benchmark: Any, share: int) -> None:
    """Word, instant and a deny list of a thousand entities, as a session asks."""
    index, queries = _index()
    policy = Policy(Mask(required=1 << share), deny_entities=DENIED)
    result = benchmark(index.search, queries[0], 10, policy, as_of=5)
    assert result.counts[0] == 10


@pytest.mark.parametrize("threads", [1, 2])
def test_search_batch(benchmark: Any, threads: int) -> None:
    """256 queries in one call."""
    index, queries = _index()
    benchmark(index.search, queries, 10, Mask(required=2), as_of=5, threads=threads)


@pytest.mark.parametrize("denied", [(), DENIED], ids=["word", "word and deny list"])
def test_count(benchmark: Any, denied: range) -> None:
    """The exact number of admissible rows."""
    index, _ = _index()
    assert benchmark(index.count, Policy(Mask(required=1), deny_entities=denied), as_of=5) > 0.9 * ROWS


def test_relabel_one(benchmark: Any) -> None:
    """One row, one new word."""
    index, _ = _index()
    benchmark(index.relabel, [5], index.words([5]))


def test_relabel_by_key(benchmark: Any) -> None:
    """Every row by its key, in random order."""
    index, _ = _index()
    keys = np.random.default_rng(1).permutation(ROWS)
    benchmark(index.relabel, keys, index.words(keys))


def test_relabel_by_policy(benchmark: Any) -> None:
    """Half the rows by their class, and back."""
    index, _ = _index()

    def there_and_back() -> None:
        index.relabel_where(Mask(required=2), set=1 << 20, as_of=5)
        index.relabel_where(Mask(required=1 << 20), clear=1 << 20, as_of=5)

    benchmark(there_and_back)


def test_add(benchmark: Any) -> None:
    """One thousand rows into an empty index."""
    vectors, words = _index()[0].vectors(np.arange(1_000)), np.full(1_000, policy_word(0))

    def build() -> None:
        Index(DIM, M=16, ef_construction=100).add(vectors, words)

    benchmark.pedantic(build, rounds=3)


def test_save(benchmark: Any, tmp_path: Path) -> None:
    """Written, synced and put in place."""
    index, _ = _index()
    benchmark.pedantic(index.save, (tmp_path / "index.carag",), rounds=5)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_load(benchmark: Any, tmp_path: Path, mmap: bool) -> None:
    """Read and checked whole, or opened to be read on demand."""
    path = tmp_path / "index.carag"
    _index()[0].save(path)
    benchmark.pedantic(Index.load, (path,), {"mmap": mmap}, rounds=5)
