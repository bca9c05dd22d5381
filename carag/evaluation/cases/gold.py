"""Evidence to chunks: which passages of a filing hold the text that a question set calls its evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NGRAM_SIZE", "OVERLAP", "holders", "likely_holders", "ngrams"]

NGRAM_SIZE: Final = 5
OVERLAP: Final = 0.5
"""A chunk holds a piece of evidence if half of the shorter one's word 5-grams occur in the other."""

_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"\d[\d,.]*\d|\d")
_STOP_YEAR: Final = re.compile(r"(?:19|20)\d\d|\d")
"""Years and single digits are everywhere: a number of an answer that says where it comes from is longer."""


def ngrams(text: str, n: int = NGRAM_SIZE) -> frozenset[tuple[str, ...]]:
    """Cut a text into its word n-grams, in lower case.

    Examples
    --------
    >>> sorted(grams("Net sales rose by 5 %.", 4))
    [('net', 'sales', 'rose', 'by'), ('sales', 'rose', 'by', '5')]
    """
    words = _WORD.findall(text.lower())
    return frozenset(zip(*(words[start:] for start in range(n)), strict=False))


def holders(evidence: str, chunks: Sequence[frozenset[tuple[str, ...]]]) -> list[int]:
    """Return the positions of the chunks, given as their n-grams, that hold a piece of evidence.

    Examples
    --------
    >>> holders("one two three four five six", [grams("one two three four five"), grams("a b c d e f")])
    [0]
    """
    sought = ngrams(evidence)
    return [
        at
        for at, held in enumerate(chunks)
        if (shorter := min(len(sought), len(held))) and len(sought & held) >= OVERLAP * shorter
    ]


def likely_holders(answer: str, texts: Sequence[str]) -> list[int]:
    """Return the chunk of a filing likeliest to hold an answer whose set names the filing only; or none.

    It is the one with most of the answer's numbers, and among those with most of its words; the first of several.

    Examples
    --------
    >>> likely_holders("Sales were $82,959 million.", ["Sales rose.", "Total | 82,959 | 81,434", "Other"])
    [1]
    """
    numbers = {number for number in _NUMBER.findall(answer) if not _STOP_YEAR.fullmatch(number)}
    words = {word for word in _WORD.findall(answer.lower()) if len(word) > 3}
    best, where = (0, 0), -1
    for at, text in enumerate(texts):
        found = len(numbers & set(_NUMBER.findall(text)))
        if numbers and not found:
            continue
        score = found, len(words & set(_WORD.findall(text.lower())))
        if score > best:
            best, where = score, at
    return [] if where < 0 else [where]
