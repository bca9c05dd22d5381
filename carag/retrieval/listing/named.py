"""Find the documents that some words name: by title or words of it, number, id, date, or company, form and period."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.retrieval.reading.collective import title_words
from carag.retrieval.reading.question import unread

if TYPE_CHECKING:
    from carag.retrieval.catalogue import Understood
    from carag.retrieval.reading import Declared


_NOUN: Final = re.compile(
    r"\b(?:circulars?|directions?|documents?|files?|polic(?:y|ies)|memos?|reports?|fiscal|year)\b",
    re.IGNORECASE,
)
"""Words beside a title that say what the document is."""
_NEAR: Final = 0.8
"""How well a report must fit the period that is named; see :meth:`carag.retrieval.reading.Period.fits`."""


def left_over(words: str, understood: Understood, declared: Declared) -> frozenset[str]:
    """Return the words that name no document, company, form or time."""
    reading, rest = understood.reading, words
    for one in (*reading.entities, *reading.titles, *reading.numbers):
        rest = re.sub(rf"{re.escape(one.text)}(?:['’]s?\b)?", " ", rest)
    if declared.companies and declared.kinds:
        rest = declared.kinds.without(rest)
    return title_words(_NOUN.sub("", unread(rest))) if rest.strip() else frozenset()


def documents_named(words: str, understood: Understood, declared: Declared) -> list[int]:
    """Return the numbers of the documents that some words name, read among those that may be meant."""
    records, reading = understood.records, understood.reading
    numbers, plain = records.numbers.tolist(), words.strip(" \"'“”‘’").removeprefix("the ")
    if plain in records.ids:
        return [numbers[records.ids.index(plain)]]
    asked = left_over(words, understood, declared)
    named = [int(key) for one in (*reading.numbers, *reading.titles) for key in one.keys]
    if named and not asked:
        return named
    if declared.companies:
        found = records.of_entities(map(int, reading.keys)) & (not asked)
        found &= records.of_kinds(reading.kinds) if reading.kinds else True
        if reading.periods:
            fits = [
                reading.fits(one.period, one.fiscal_year_end, one.report) if is_in else 0.0
                for one, is_in in zip(records, found, strict=True)
            ]
            found &= np.array(fits) >= max(_NEAR, *fits)
        return [number for number, is_meant in zip(numbers, found, strict=True) if is_meant]
    words_ = asked or title_words(words)
    return [
        number
        for number, title, day in zip(numbers, records.titles, records.dated.tolist(), strict=True)
        if words_
        and words_ <= title_words(title)
        and all(one.first.toordinal() <= day <= one.last.toordinal() for one in reading.periods)
    ]
