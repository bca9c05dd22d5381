"""Reduce texts to the words by which a question and a passage are compared."""

from __future__ import annotations

import re
from typing import Final

_TERM: Final = re.compile(r"\d[\d,.]*\d|\d|[^\W\d_]+")
_STOP_WORDS: Final = frozenset(
    _TERM.findall(
        "a about above all an and any are as at be been by can could did do does each for from fy give had "
        "has have how if in into is it its many may me much now of on or our please question shall should show "
        "such than that the their them there these they this those to was we were what when where which who "
        "whom whose why will with would you your"
    )
)
_LAST: Final = "sgd"
"""Last letters of the endings that are stripped."""


def terms(text: str) -> frozenset[str]:
    """Reduce a text to its words without endings, and its numbers without separators.

    Examples
    --------
    >>> sorted(terms("The companies acquired 1,577 of these"))
    ['1577', 'acquir', 'company']
    """
    return frozenset(map(_stem, {*_TERM.findall(text.lower())} - _STOP_WORDS))


class Stems(dict[str, str]):
    """What the words and numbers in lower case reduce to, each found once; a stop word reduces to nothing.

    It lives no longer than one request: what one session's passages left in it, another would notice by time.
    """

    def __missing__(self, word: str) -> str:
        stem = self[word] = "" if word in _STOP_WORDS else _stem(word)
        return stem

    def among(self, terms: frozenset[str], text: str) -> frozenset[str]:
        """Return those of some terms that a text has."""
        return terms.intersection(map(self.__getitem__, _TERM.findall(text.lower())))


def _stem(term: str) -> str:
    """Strip an English ending, by a few rules that are the same for question and passage."""
    if term[-1] not in _LAST:
        return term.replace(",", "") if term[0].isdigit() else term
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if term.endswith(ending) and not term.endswith("ss") and len(term) > len(ending) + 3:
            return term.removesuffix(ending) + instead
    return term
