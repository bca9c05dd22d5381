"""Reduce texts to the words by which a question and a passage are compared."""

from __future__ import annotations

import re
from typing import Final

_TERM: Final = re.compile(r"[^\W\d_]+|\d(?:[\d,.]*\d)?")
_PLAIN: Final = re.compile(r"[a-z]+|[0-9](?:[0-9,.]*[0-9])?")
"""The same pattern for lower-case ASCII, which most texts are; its classes are faster."""
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
    return frozenset(map(_stem, {*_words(text)} - _STOP_WORDS))


class Asked:
    """Words and numbers, as :func:`terms` reduces them, to be found in texts without reducing all their words."""

    def __init__(self, terms: frozenset[str]) -> None:
        self._numbers = frozenset(term for term in terms if term[0].isdigit())
        self._forms = {
            form: term
            for term in terms
            for form in (term, *(term + one for one in ("s", "ed", "ing")), term[:-1] + "ies")
            if _stem(form) == term and form not in _STOP_WORDS
        }

    def among(self, text: str) -> frozenset[str]:
        """Return those words that a text has: the ones that ``terms(text)`` has as well."""
        words = [] if text.isspace() else _words(text)
        found = frozenset(map(self._forms.__getitem__, self._forms.keys() & words))
        if self._numbers and "," in text:
            found |= self._numbers.intersection([one.replace(",", "") for one in words])
        return found


def _words(text: str) -> list[str]:
    return (_PLAIN if text.isascii() else _TERM).findall(text.lower())


def _stem(term: str) -> str:
    """Strip an English ending, by a few rules that are the same for question and passage."""
    if term[-1] not in _LAST:
        return term.replace(",", "") if term[0].isdigit() else term
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if term.endswith(ending) and not term.endswith("ss") and len(term) > len(ending) + 3:
            return term.removesuffix(ending) + instead
    return term
