"""Tell by fixed lists of English words whether a question leans on an earlier one, and on which word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading.names import words_listed
from carag.retrieval.reading.patterns import pattern

if TYPE_CHECKING:
    from carag.retrieval.reading.patterns import Place


VERBS: Final = words_listed("auxiliary_verbs.txt")
QUESTION_WORDS: Final = frozenset(["what", "which", "who", "whom", "whose", "when", "where", "why", "how"])
# Words that say something about an amount or a rule that was asked about, so that these are taken over with them.
AMOUNT: Final = words_listed("amount_words.txt")
_FUNCTION: Final = VERBS | QUESTION_WORDS | words_listed("function_words.txt")
_WORD: Final = re.compile(r"[^\W_](?:[\w'’&-]*\w)?")
# Words before "that" after which it is a pronoun, and not the beginning of a clause.
_BEFORE: Final = _FUNCTION - frozenset(["same", "such", "given", "only", "other", "so", "not"])


def is_thanks(text: str) -> bool:
    """Tell whether a text asks nothing."""
    return bool(pattern("THANKS").match(text))


def content(text: str) -> tuple[str, ...]:
    """Return the words of a text that say something, as written.

    Examples
    --------
    >>> content("How much did it pay in dividends?")
    ('pay', 'dividends')
    """
    return tuple(one for one in _WORD.findall(text) if one.casefold() not in _FUNCTION)


def topic(text: str) -> str:
    """Return what a text is about, in its own words, without the words around it; names in the text are NUL.

    Examples
    --------
    >>> topic("How much did it pay in dividends?")
    'pay in dividends'
    """
    found = []
    for piece in re.split(r"\0+|[?;,]|\s\(|\)$", text):
        words = piece.split()
        telling = [number for number, word in enumerate(words) if content(word)]
        if telling:
            said = words[telling[0] : telling[-1] + 1]
            found.append(" ".join(word for word in said if word.casefold() not in VERBS))
    return " ".join(found)


def pronoun(text: str) -> Place | None:
    """Return the place of the first word that stands for something in an earlier question; names in the text are NUL.

    A word that may stand for something named earlier in the same question does not count.

    Examples
    --------
    >>> pronoun("Who signed it?"), pronoun("Can a bank close its branch?"), pronoun("Is it allowed to lend?")
    ((11, 13), None, None)
    """
    for found in pattern("LEANING").finditer(text):
        before, word = text[: found.start()], found[0].casefold()
        last = _WORD.findall(before)[-1:]
        if word.partition(" ")[0] in ("that", "this", "these", "those"):
            is_own = bool(last) and last[0].casefold() not in _BEFORE
        else:
            is_of = "\0" not in before and re.search(r"\b(?:of|for|under|in|by|with)\s$", before)
            is_own = not is_of and bool(pattern("SEVERAL" if word[:3] == "the" else "ONE").search(before))
        if not is_own and not (word == "it" and pattern("EMPTY_IT").search(text)):
            return found.span()
    return None
