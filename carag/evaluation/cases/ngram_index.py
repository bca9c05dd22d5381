"""Index chunks by their word 8-grams, to trace a text back to the hidden chunks it was taken from."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NGRAM_SIZE", "NgramIndex"]

NGRAM_SIZE: Final = 8
"""Words of an n-gram."""
_WORD: Final = re.compile(r"\w+")
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: an odd multiplier that spreads hashes (Knuth, TAOCP 3, section 6.4)."""


class NgramIndex:
    """The 8-grams of texts, hashed to 64 bits.

    Parameters
    ----------
    texts : sequence of str

    Examples
    --------
    >>> index = NgramIndex(["a b c d e f g h i", "x b c d e f g h i", "other words"])
    >>> hidden = np.array([False, True, False])
    >>> index.hidden_share("a b c d e f g h", ~hidden), index.hidden_share("x b c d e f g h i", ~hidden)
    (0.0, 0.5)
    """

    def __init__(self, texts: Sequence[str]) -> None:
        found = [_hashes(text) for text in texts]
        owners = np.repeat(np.arange(len(texts), dtype=np.int32), [len(one) for one in found])
        hashes = np.concatenate(found) if found else np.empty(0, np.uint64)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], owners[order]

    def hidden_share(self, said: str, admissible: NDArray[np.bool_], *, known: str = "") -> float:
        """Return the share of a text's 8-grams that inadmissible chunks hold, and no admissible one does.

        Parameters
        ----------
        said : str
        admissible : (n,) bool
        known : str
            What the model answers with an empty context; its 8-grams disclose nothing.
        """
        spoken = np.unique(_hashes(said))
        if not spoken.size:
            return 0.0
        elsewhere = set(_hashes(known).tolist())
        first = np.searchsorted(self._hashes, spoken, "left")
        last = np.searchsorted(self._hashes, spoken, "right")
        hidden = sum(
            1
            for gram, low, high in zip(spoken.tolist(), first, last, strict=True)
            if low < high and gram not in elsewhere and not admissible[self._owners[low:high]].any()
        )
        return hidden / spoken.size


def _hashes(text: str) -> NDArray[np.uint64]:
    words = np.array([zlib.crc32(word.encode()) for word in _WORD.findall(text.lower())], np.uint64)
    count = len(words) - NGRAM_SIZE + 1
    if count <= 0:
        return np.empty(0, np.uint64)
    total = np.zeros(count, np.uint64)
    for at in range(NGRAM_SIZE):  # 64-bit arithmetic wraps, as a hash may
        total = total * _MULTIPLIER + words[at : at + count] + np.uint64(1)
    return total ^ (total >> np.uint64(29))
