"""Index chunks by their word 8-grams, to trace a text back to the hidden chunks it was taken from."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


NGRAM_SIZE: Final = 8
"""Words in an n-gram."""
_WORD: Final = re.compile(r"\w+")
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: an odd multiplier that spreads hashes (Knuth, TAOCP 3, section 6.4)."""


class NgramIndex:
    """The 8-grams of texts, hashed to 64 bits."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = [_hashes(text) for text in texts]
        owners = np.repeat(np.arange(len(texts), dtype=np.int32), [len(one) for one in found])
        hashes = np.concatenate(found) if found else np.empty(0, np.uint64)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], owners[order]

    def hidden_share(
        self, said: str | Sequence[str], admissible: NDArray[np.bool_], *, known: str = ""
    ) -> float:
        """Return the share of a text's 8-grams that occur in inadmissible chunks and in no admissible one."""
        quotations = [_words(one) for one in ([said] if isinstance(said, str) else said)]
        grams = _grams(np.concatenate(quotations) if quotations else np.empty(0, np.uint64))
        if not grams.size:
            return 0.0
        is_held, is_open = self._held(grams, admissible)
        ends = np.cumsum([0, *map(len, quotations)])
        counts = is_held & ~is_open & ~np.isin(grams, _hashes(known))
        for before, end, after in zip(ends, ends[1:-1], ends[2:], strict=False):
            is_long = end - before >= NGRAM_SIZE <= after - end
            if is_long and is_open[end - NGRAM_SIZE] and is_open[end]:
                counts[end - NGRAM_SIZE + 1 : end] = False
        return len(np.unique(grams[counts])) / len(np.unique(grams))

    def _held(
        self, grams: NDArray[np.uint64], admissible: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        first = np.searchsorted(self._hashes, grams, "left")
        last = np.searchsorted(self._hashes, grams, "right")
        is_open = [admissible[self._owners[low:high]].any() for low, high in zip(first, last, strict=True)]
        return first < last, np.array(is_open, np.bool_)


def _hashes(text: str) -> NDArray[np.uint64]:
    return _grams(_words(text))


def _words(text: str) -> NDArray[np.uint64]:
    return np.array([zlib.crc32(word.encode()) for word in _WORD.findall(text.lower())], np.uint64)


def _grams(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    count = len(words) - NGRAM_SIZE + 1
    if count <= 0:
        return np.empty(0, np.uint64)
    total = np.zeros(count, np.uint64)
    for at in range(NGRAM_SIZE):  # 64-bit arithmetic wraps, as a hash may
        total = total * _MULTIPLIER + words[at : at + count] + np.uint64(1)
    return total ^ (total >> np.uint64(29))
