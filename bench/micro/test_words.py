"""Where the policy word of a row should lie: in an array of its own, or at the head of the row it labels.

Three ways of reading words, as the index does: all of them in order (a scan that tests every row), those of scattered
rows (the neighbours of a row in the graph), and a new word for scattered rows (relabelling). One row in four passes.

::

    pytest bench/micro/test_words.py --benchmark-only -o testpaths=bench
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numba
import numpy as np
import pytest

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS: Final = 200_000
CODE: Final = 384
"""Bytes of an eight-bit code of a MiniLM vector: what follows the word in a row header."""
MASK: Final = np.uint32(0xF800_0003)
VALUE: Final = np.uint32(0x0800_0003)


@numba.njit(cache=True)
def _count_in_order(words: Any, mask: Any, value: Any) -> int:
    count = 0
    for row in range(words.shape[0]):
        count += (words[row] & mask) == value
    return count


@numba.njit(cache=True)
def _count_scattered(words: Any, rows: Any, mask: Any, value: Any) -> int:
    count = 0
    for at in range(rows.shape[0]):
        count += (words[rows[at]] & mask) == value
    return count


@numba.njit(cache=True)
def _relabel(words: Any, rows: Any, word: Any) -> None:
    for at in range(rows.shape[0]):
        words[rows[at]] = word


@cache
def _words(layout: str) -> NDArray[np.uint32]:
    """Lay the same words out in one of the two ways; a view of one word a row."""
    words = (np.random.default_rng(0).integers(0, 4, ROWS) | (1 << 27)).astype(np.uint32)
    if layout == "array":
        return words
    records = np.zeros((ROWS, 1 + CODE // 4), dtype=np.uint32)
    records[:, 0] = words
    return records[:, 0]


@pytest.mark.parametrize("layout", ["array", "header"])
def test_words_in_order(benchmark: Any, layout: str) -> None:
    """Test the word of every row."""
    words = _words(layout)
    assert benchmark(_count_in_order, words, MASK, VALUE) > ROWS // 5


@pytest.mark.parametrize("layout", ["array", "header"])
def test_words_of_scattered_rows(benchmark: Any, layout: str) -> None:
    """Test the words of ten thousand rows anywhere."""
    words, rows = _words(layout), np.random.default_rng(1).integers(0, ROWS, 10_000)
    assert benchmark(_count_scattered, words, rows, MASK, VALUE) > 2_000


@pytest.mark.parametrize("layout", ["array", "header"])
def test_relabel_scattered_rows(benchmark: Any, layout: str) -> None:
    """Give ten thousand rows anywhere a new word."""
    words, rows = _words(layout).copy() if layout == "array" else _words(layout), np.arange(0, ROWS, 20)
    benchmark(_relabel, words, rows, VALUE)
