"""Find the places in a question that name something: names, periods and sections. No store is looked at.

Capitals, quotation marks and words such as "policy" show a name, beside a public table of names. A follow-up can
replace what is at such a place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from unicodedata import normalize

from carag.limits import check_question
from carag.retrieval.reading.languages import language_of
from carag.retrieval.reading.names import begins_sentence, words_of
from carag.retrieval.reading.numbers import Numbers
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.periods import placed
from carag.retrieval.reading.question import sections_in
from carag.retrieval.reading.unheard import is_telling, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from carag.retrieval.reading.names import Names
    from carag.retrieval.reading.patterns import Place


# An abbreviation of fewer letters is not the name of a company, unless a table has it.
_ABBREVIATION: Final = 6
# A text of fewer words, all in one name, is a name even at the beginning of a sentence.
_WHOLE: Final = 5
ENDING: Final = " \t?.!\uff1f"


@dataclass(frozen=True, slots=True)
class Slots:
    """A question without the mark at its end, and the places where it names something.

    ``rest`` is the text with NUL at all of these places.
    """

    text: str
    names: tuple[Place, ...]
    periods: tuple[Place, ...]
    sections: tuple[Place, ...]
    rest: str

    def whole(self, places: Sequence[Place]) -> Place:
        """Return the place from the first of some places to the last; without any, the empty place at the end."""
        return (places[0][0], places[-1][1]) if places else (len(self.text), len(self.text))

    @property
    def words(self) -> frozenset[str]:
        """The words of the rest, in lower case."""
        return frozenset(re.findall(r"[a-z]+", self.rest.casefold()))

    @property
    def times(self) -> tuple[Place, ...]:
        """The periods, without those that are the dates of documents unless there are no others."""
        inside = {one for one in self.periods for two in self.names if two[0] <= one[0] < two[1]}
        return tuple(one for one in self.periods if one not in inside) or self.periods

    @property
    def is_dated(self) -> bool:
        """Whether a name has its own date."""
        return any(two[0] <= one[0] < two[1] for one in self.periods for two in self.names)

    def said(self, places: Sequence[Place]) -> str:
        """Return the words at some places: in one piece if they adjoin, otherwise joined by "and"."""
        if places and self.adjoin(places):
            return self.text[slice(*self.whole(places))]
        return " and ".join(self.text[slice(*one)] for one in places)

    def adjoin(self, places: Sequence[Place]) -> bool:
        """Tell whether only words such as "and" are between places."""
        return all(pattern("BETWEEN").fullmatch(self.text[one[1] : two[0]]) for one, two in pairwise(places))

    def without(self, place: Place) -> Slots:
        """Return the slots without those that begin in a place."""
        kept = [
            tuple(one for one in places if not place[0] <= one[0] < place[1])
            for places in (self.names, self.periods, self.sections)
        ]
        return Slots(self.text, kept[0], kept[1], kept[2], blanked(self.rest, [place]))


def blanked(text: str, places: Iterable[Place]) -> str:
    """Return a text with NUL at some places."""
    for start, end in places:
        text = f"{text[:start]}{chr(0) * (end - start)}{text[end:]}"
    return text


def one_line(question: str) -> str:
    """Return a question in NFKC on one line."""
    return re.sub(r"\s+", " ", normalize("NFKC", question)).strip()


def slots_of(question: str, names: Names | None) -> Slots:
    """Find what a question of 1 to 8,192 characters names; an empty text names nothing.

    Examples
    --------
    >>> found = slots_of("How much did Acme Corp pay under section 4 in 2020?", None)
    >>> [found.said(one) for one in (found.names, found.sections, found.periods)]
    ['Acme Corp', 'section 4', '2020']
    """
    text = one_line(question).rstrip(ENDING).replace("\0", " ")
    if not text:
        return Slots("", (), (), (), "")
    check_question("question", text)
    numbered = [(one.start, one.end) for one in Numbers().find(text, lambda _: False)]
    said, left = sections_in(blanked(text, numbered))
    found, left = placed(left)
    sections, periods = (tuple(dict.fromkeys(one[:2] for one in places)) for places in (said, found))
    named = _dated({*numbered, *_names_in(left, names)}, text, periods)
    return Slots(text, tuple(named), periods, sections, blanked(left, named))


def _dated(named: set[Place], text: str, periods: Sequence[Place]) -> list[Place]:
    """Return the names, those of documents with their dates, as in "the circular of June 7, 2024"."""
    for start, end in periods:
        if found := pattern("DATED").search(text[:start]):
            before = [one for one in named if one[0] <= found.start() < one[1]]
            named -= {*before}
            named.add((before[0][0] if before else found.start(), end))
    return sorted(named)


def _names_in(text: str, names: Names | None) -> list[Place]:
    shown = ("QUOTED", "CODE", "PLAIN_DOCUMENT")
    found = [one.span(1) for name in shown for one in pattern(name).finditer(text)]
    at = 0
    for mention in names.find(text) if names is not None else ():
        if (start := text.find(mention.text, at)) >= 0:
            at = start + len(mention.text)
            found.append((start, at))
    chosen: list[Place] = []
    for start, end in sorted({*found, *_capitalised(text)}, key=lambda one: (one[0], -one[1])):
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, end))
    return chosen


def _capitalised(text: str) -> list[Place]:
    """Return the names that capitals show, those joined by "of" in one, with the word "policy" or the like after."""
    words = [word for word in words_of(text) if any(map(str.isalpha, word.written))]
    joined: list[Place] = []
    for run in runs(text, words, language_of(words)):
        start, end = run[0].start, run[-1].end
        if run[-1].stem != run[-1].folded:
            end -= 2
        end = start + len(text[start:end].partition("(")[0].rstrip())
        if hyphenated := re.compile(r"-[a-z]+").match(text, end):
            end = hyphenated.end()
        if joined and pattern("JOINING").fullmatch(text[joined[-1][1] : start]):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    found = []
    for start, end in joined:
        of_document = pattern("OF_DOCUMENT").match(text, end)
        said = [word for word in words if start <= word.start < end]
        alone = len(said) == 1
        first = begins_sentence(text, said[0]) and len(words) >= _WHOLE
        short = text[start:end].isupper() and end - start < _ABBREVIATION
        if of_document and not (alone and first):
            found.append((start, of_document.end()))
        elif any(map(is_telling, said)) and not (alone and (first or short)):
            found.append((start, end))
    return found
