"""Recognise the forms of questions about documents themselves: acts on them, comparisons, and parts of them.

What is not certain to have such a form is not recognised, and asks what documents say.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.question import SECTION, plain, read_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.reading.question import Reading, Section


_MOST_WAYS: Final = 6
"""Places at which the words for a part and those for its document may be divided."""


def one_line(question: str) -> str:
    """Return a question on one line, without what makes it polite, and without the mark at its end."""
    text = pattern("polite").sub("", plain(question).replace("\n", " "), count=1).strip(" ?.!")
    return pattern("tail").sub("", text)


def acts_of(match: re.Match[str]) -> frozenset[ActKind]:
    """Return the acts that a form names, or all of them."""
    return frozenset(kind for kind in ActKind if match[kind.value]) or frozenset(ActKind)


class Acted(NamedTuple):
    """A question about what was done to a document, or what it has done to others."""

    said: str
    """The document in the question's words."""
    kind: ActKind
    is_by_it: bool
    """Whether it asks what the document has done."""


def read_acted(question: str) -> Acted | None:
    """Read such a question; None if it is not one.

    Examples
    --------
    >>> read_acted("What has replaced the Travel Policy?").said
    'Travel Policy'
    """
    text = one_line(question)
    for name in ("done_to", "was_done", "done_by", "has_been"):
        if match := pattern(name).fullmatch(text):
            [kind] = acts_of(match)
            return Acted(match["it"].strip("\"'“”‘’"), kind, name == "done_by")
    return None


def read_compared(question: str, reading: Reading) -> dict[str, str]:
    """Return, by name, the question about each of several names; empty if nothing is compared.

    Examples
    --------
    >>> from carag.retrieval.reading import Names, read_question
    >>> asked = "Compare the tax rate of Amcor and Delta in 2022."
    >>> reading = read_question(asked, names=Names([("Amcor", [], 7), ("Delta", [], 8)]))
    >>> read_compared(asked, reading)["Delta"]
    'What is the tax rate of Delta in 2022?'
    """
    text = one_line(question)
    names = list(dict.fromkeys(one.text for one in reading.entities or reading.titles))
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?:['’]s?)?(?!\w)", "\1", text)
    for match in (pattern(one).fullmatch(text) for one in ("compare_of", "compare_on", "how_compare")):
        if match:
            return {name: f"What is the {match['what']} of {name}{match['tail'] or ''}?" for name in names}
    return {}


class Part(NamedTuple):
    """A part of a document that is asked for: a section, the outline, or else a table."""

    ways: Sequence[tuple[str, str]]
    """Ways to understand the question: words that head the part, perhaps none, and those that name the document."""
    section: Section | None = None
    is_outline: bool = False
    is_summary: bool = False
    """Whether a summary is asked for, which only a model can write."""

    @property
    def is_table(self) -> bool:
        """Whether a table is asked for."""
        return self.section is None and not self.is_outline


def read_part(question: str) -> Part | None:
    """Read such a question; None if it is not certain to be one.

    Examples
    --------
    >>> part = read_part("What does section 4.2 of the Travel Policy say?")
    >>> part.section.number, part.ways
    ('4.2', [('', 'the Travel Policy')])
    """
    text = one_line(question)
    place = SECTION.search(text)
    after = pattern("of").fullmatch(text, place.end()) if place else None
    if place and after:
        sections = read_question(text).sections
        is_summary = pattern("sums").fullmatch(text, 0, place.start()) is not None
        if len(sections) == 1 and (is_summary or pattern("whole").fullmatch(text, 0, place.start())):
            return Part([("", after["document"])], sections[0], is_summary=is_summary)
    tables = (pattern(name).fullmatch(text) for name in ("table", "table_of", "table_from"))
    match = next((one for one in tables if one), None)
    outline = pattern("outline").fullmatch(text) or pattern("outline_has").fullmatch(text)
    if found := match or outline:
        what = found["what"]
        parts = [
            (what[: one.start()], one[0], what[one.end() :])
            for one in islice(pattern("split").finditer(what), _MOST_WAYS)
        ]
        ways = [(after, before) if by[0] in "'’" else (before, after) for before, by, after in parts]
        if match:
            return Part([*ways, (what, "")])
        return Part([("", what), *ways], is_outline=True, is_summary=bool(found["sums"]))
    return None
