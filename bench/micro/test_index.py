"""Kernels by instruction set, search by plan and share of admissible rows, build.

::

    pytest bench/micro/test_index.py --benchmark-only -o testpaths=bench
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.index import Index, Plan, kernels
from carag.index._core import ffi, lib
from carag.policy import Mask, policy_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, DIM = 10_000, 256
SHARES = (1.0, 0.5, 0.2, 0.05, 0.01)


@cache
def _index() -> tuple[Index, NDArray[np.float64]]:
    """Build an index whose word has bit i set with probability ``SHARES[i]``."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((50, DIM))
    vectors = centres[rng.integers(0, 50, ROWS)] + rng.standard_normal((ROWS, 30)) @ rng.standard_normal(
        (30, DIM)
    ) / np.sqrt(30)
    bits = (rng.random((ROWS, len(SHARES))) < SHARES) @ (1 << np.arange(len(SHARES)))
    index = Index(DIM, M=16, ef_construction=100)
    index.add(vectors[1:], policy_word(bits.astype(np.int64))[1:])
    return index, vectors[0]


@pytest.mark.parametrize("dim", [384, 1024])
@pytest.mark.parametrize("name", kernels.available())
def test_kernel(benchmark: Any, name: str, dim: int) -> None:
    """One dot product, the call through cffi included."""
    a, b = np.random.default_rng(0).standard_normal((2, dim)).astype(np.float32)
    x, y, out = ffi.from_buffer("float[]", a), ffi.from_buffer("float[]", b), ffi.new("float *")
    with kernels.use(name):
        benchmark(lib.carag_dot, x, y, dim, out, ffi.NULL)


@pytest.mark.parametrize("share", range(len(SHARES)), ids=[f"{share:.0%}" for share in SHARES])
@pytest.mark.parametrize("plan", Plan)
def test_search(benchmark: Any, plan: Plan, share: int) -> None:
    """One query, k = 10, by plan and by share of admissible rows."""
    index, query = _index()
    result = benchmark(index.search, query, 10, Mask(required=1 << share), plan=plan)
    assert result.counts[0] == 10


def test_count(benchmark: Any) -> None:
    """The exact number of admissible rows."""
    index, _ = _index()
    assert benchmark(index.count, Mask(required=1)) == ROWS - 1


def test_relabel(benchmark: Any) -> None:
    """One row, one new word."""
    index, _ = _index()
    benchmark(index.relabel, [5], index.words([5]))


def test_add(benchmark: Any) -> None:
    """One thousand rows into an empty index."""
    index, _ = _index()
    vectors = index.vectors(np.arange(1_000))
    words = np.full(1_000, policy_word(0))

    def build() -> None:
        Index(DIM, M=16, ef_construction=100).add(vectors, words)

    benchmark.pedantic(build, rounds=3)
