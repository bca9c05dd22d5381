"""Find the proper names in a question that are in no table and in no passage that the session may use.

A question about a name that no passage mentions cannot be answered, whether or not the name exists. Capitals
and fixed lists decide what is a name, so nothing is found where capitals mean nothing.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading.languages import (
    function_words,
    inflected,
    language_of,
    names_in_german,
    unelided,
)
from carag.retrieval.reading.names import (
    LEGAL_FORMS,
    adjoin,
    begins_sentence,
    common_words,
    is_capital,
    words_listed,
    words_of,
)
from carag.retrieval.reading.question import unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.retrieval.reading.names import Word
    from carag.retrieval.reading.question import Reading


_FORM: Final = re.compile(r"\d[-‐‑]")
"""The beginning of a form's name, as in "10-Qs"."""
_TITLED: Final = 0.8
"""If a greater share of long words has a capital, the question is written like a heading, and capitals mean nothing."""
_GERMAN: Final = "German"
_PAIR: Final = 2
"""The least number of adjacent German nouns that may be a name."""
_LONG, _ENOUGH = 4, 6
"""Letters in a long word, which a heading writes with a capital; and the least number of long words in a heading."""


def unheard(question: str, reading: Reading, occurs: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the proper names in a question with a word that occurs nowhere, in its order, except those in the reading.

    ``occurs`` tells whether any passage that the session may use has a word, as written without the genitive's 's. It
    must not look at other passages, so that a hidden company and an unknown one look the same.

    Examples
    --------
    >>> from carag.retrieval.reading import read_question
    >>> asked = "What did Gringotts Holdings charge Fargo for storage in May 2023?"
    >>> unheard(asked, read_question(asked), {"Fargo", "Holdings"}.__contains__)
    ('Gringotts Holdings',)
    """
    text = unread(question)
    words = [unelided(word) for word in words_of(text) if any(map(str.isalpha, word.written))]
    long = [word for word in words[1:] if len(word.folded) >= _LONG]
    if len(long) >= _ENOUGH and sum(map(is_capital, long)) > _TITLED * len(long):
        return ()
    known = {word.stem for said in (*reading.said, *reading.kinds) for word in words_of(said)}
    language = language_of(words)
    found: dict[str, None] = {}
    for run in runs(text, words, language):
        alone = len(run) == 1 and run[0].stem == run[0].folded
        if alone and begins_sentence(text, run[0]):
            continue
        telling = [word for word in run if is_telling(word) and word.stem not in known]
        if language == _GERMAN:
            heard = _is_heard_in_german(run, telling, occurs)
        else:
            heard = all(occurs(_without_genitive(word)) for word in telling)
        if not heard:
            genitive = len(run[-1].written) - len(_without_genitive(run[-1]))
            found[text[run[0].start : run[-1].end - genitive]] = None
    return tuple(found)


def _is_heard_in_german(run: list[Word], telling: list[Word], occurs: Callable[[str], bool]) -> bool:
    """Tell whether a run of nouns is not an unknown name; two adjacent ones may be if neither occurs anywhere."""
    if named := names_in_german(run):
        return all(occurs(_without_genitive(word)) for word in telling if word in named)
    return len(telling) < _PAIR or any(map(occurs, chain(*(inflected(word.written) for word in telling))))


def runs(text: str, words: list[Word], language: str) -> list[list[Word]]:
    """Return the runs of adjoining words with capitals, without common words that begin a sentence."""
    found: list[list[Word]] = []
    ended: Word | None = None
    for word in words:
        upper = any(map(str.isupper, word.written)) and not any(map(str.isdigit, word.written))
        if (
            not upper
            or _FORM.match(text[max(0, word.start - 2) : word.start])
            or (word.stem in common_words() and begins_sentence(text, word))
            or (
                word.folded in function_words(language)
                and (language == _GERMAN or begins_sentence(text, word))
            )
        ):
            ended = None
        elif ended is not None and adjoin(text, [ended, word]) and "," not in text[ended.end : word.start]:
            found[-1].append(word)
            ended = word
        else:
            found.append([word])
            ended = word
    return found


def is_telling(word: Word) -> bool:
    """Tell whether a word with a capital may be a name, or part of one."""
    forms = {word.folded, word.stem, word.stem.removesuffix("s")}
    silent = common_words(), LEGAL_FORMS, words_listed("no_names.txt")
    return len(word.stem) > 1 and all(map(forms.isdisjoint, silent))


def _without_genitive(word: Word) -> str:
    return word.written if word.stem == word.folded else word.written[:-2]
