"""Find the chunks of a filing that contain the text which a question set calls its evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


NGRAM_SIZE: Final = 5
"""Words in an n-gram."""
OVERLAP: Final = 0.5
"""A chunk holds a piece of evidence if at least this share of the shorter text's 5-grams occurs in the longer."""

_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"\d[\d,.]*\d|\d")
_STOP_YEAR: Final = re.compile(r"(?:19|20)\d\d|\d")
"""Numbers that do not locate an answer, because years and single digits occur everywhere."""


def ngrams(text: str, n: int = NGRAM_SIZE) -> frozenset[tuple[str, ...]]:
    """Cut a text into its word n-grams, in lower case."""
    words = _WORD.findall(text.lower())
    return frozenset(zip(*(words[start:] for start in range(n)), strict=False))


def holders(evidence: str, chunks: Sequence[frozenset[tuple[str, ...]]]) -> list[int]:
    """Return the positions of the chunks, given as their n-grams, that hold a piece of evidence."""
    sought = ngrams(evidence)
    return [
        at
        for at, held in enumerate(chunks)
        if (shorter := min(len(sought), len(held))) and len(sought & held) >= OVERLAP * shorter
    ]


def likely_holders(answer: str, texts: Sequence[str]) -> list[int]:
    """Return the chunk of a filing most likely to hold an answer, or none; for question sets that name only the filing.

    That chunk has the most of the answer's numbers, then the most of its words; ties go to the first chunk.
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
