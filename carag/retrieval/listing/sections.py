"""Find a numbered section, or the headings, in a text; what is ambiguous is not found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.chunking import Boundary, boundaries
from carag.labelling.sentences import sentences
from carag.retrieval.reading.question import NUMBERED

if TYPE_CHECKING:
    from carag.retrieval.reading import Section


_BARE: Final = frozenset({"section", "clause", "paragraph", "rule", "regulation"})
"""Kinds whose number may stand alone at the beginning of a line."""
_LINES: Final = re.IGNORECASE | re.MULTILINE
_HIGHER: Final = (
    rf"(?:{'|'.join(NUMBERED[kind] for kind in ('part', 'chapter', 'annex', 'appendix', 'schedule'))})"
    r"\s+(?-i:\d+|[IVX]+|[A-Z])\b"
)
"""A line before which every section, clause or article ends."""
_FIGURES: Final = re.compile(r"\d+[a-z]?(?:\.\d+)*")
_PAGE: Final = re.compile(r"(?:\.{3,}|\s)\s*\d{1,3}\s*$")
"""The end of a line of a table of contents."""
_MARKED: Final = re.compile(r"^#{1,6}[ \t]+\S[^\n]*", re.MULTILINE)
"""A heading in Markdown."""
_ITEM: Final = re.compile(r"^[ \t]*\d{1,3}(?:\.\d{1,3})*[.)]?[ \t]+(?=[^\W\d_a-z])", re.MULTILINE)
"""The number of a paragraph or of a heading, such as "4.2 Hotels"."""
_SEVERAL: Final = 2
_TITLED: Final = 120
"""Characters in the longest heading."""


class Heading(NamedTuple):
    """A heading, the first sentence below it, and where the text under it ends."""

    start: int
    end: int
    """Where the next heading of the same or a higher rank begins."""
    text: str
    sentence: str
    """Empty if another heading follows."""


def section_span(text: str, section: Section) -> tuple[int, int] | None:
    r"""Return start and end of a numbered section; None if there is none, or if it is not certain where it ends.

    Examples
    --------
    >>> from carag.retrieval.reading import Section
    >>> text = "4.1 Flights\nEconomy.\n4.2 Hotels\nUp to 90 euro.\n1. In cities 120.\n5 Meals\nNone."
    >>> text[slice(*section_span(text, Section("section", "4.2")))]
    '4.2 Hotels\nUp to 90 euro.\n1. In cities 120.\n'
    """
    own, word = section.number, NUMBERED[section.kind]
    is_bare = section.kind in _BARE
    if is_bare and not _FIGURES.fullmatch(own):
        return None
    prefix = rf"(?:(?:{word})\s*)?" if is_bare else rf"(?:{word})\s*"
    begins = re.compile(rf"^[ \t]*{prefix}{re.escape(own)}(?![\w(]|\.\d)[^\n]*", _LINES)
    spans = []
    for begin in begins.finditer(text):
        if _PAGE.search(begin[0]):
            continue
        end = _end(text, begin.end(), own, prefix) if is_bare else _worded_end(text, begin.end(), own, word)
        if end is None:
            return None
        spans.append((begin.start(), end))
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _worded_end(text: str, start: int, own: str, word: str) -> int:
    """Return where a part ends whose number follows a word, as in "Article 12"."""
    line = re.compile(rf"^[ \t]*(?:{_HIGHER}|(?:{word})\s*(?!{re.escape(own)}\b)[\dA-Z])", _LINES)
    match = line.search(text, start)
    return match.start() if match else len(text)


def _end(text: str, start: int, own: str, prefix: str) -> int | None:
    """Return where a section ends; None if a number may be the next section's, or go on in a list inside it."""
    line = re.compile(
        rf"^[ \t]*(?:(?P<higher>{_HIGHER})|{prefix}(?P<number>\d+[a-z]?(?:\.\d+)*)[.):]?(?=\s|$))", _LINES
    )
    listed = 0
    for match in line.finditer(text, start):
        if match["higher"]:
            return match.start()
        number = match["number"].casefold()
        goes_on = number == str(listed + 1)
        if _follows(number, own):
            return None if goes_on and listed else match.start()
        listed += goes_on
    return len(text)


def _follows(number: str, own: str) -> bool:
    """Tell whether a number is that of the section after another, such as 4.3 or 5 after 4.2."""
    parts, owns = _values(number), _values(own)
    if len(parts) > len(owns):
        return False
    place = len(parts) - 1
    (value, letter), (own_value, own_letter) = parts[place], owns[place]
    is_next = value == own_value + 1 or (value == own_value and letter > own_letter)
    return parts[:place] == owns[:place] and is_next


def _values(number: str) -> list[tuple[int, str]]:
    found = (re.fullmatch(r"(\d+)([a-z]?)", part) for part in number.split("."))
    return [(int(one[1]), one[2]) for one in found if one is not None]


def headings_of(text: str) -> list[Heading]:
    """Return the headings of a text; of a text without several, its numbered paragraphs."""
    lines = [(one.start(), len(one[0].split()[0]), one[0]) for one in _MARKED.finditer(text)]
    if len(lines) < _SEVERAL:
        starts = [(at, kind) for at, kind in boundaries(text) if kind <= Boundary.TITLE]
        lines = [(at, int(kind), text[at:].split("\n", 1)[0]) for at, kind in starts]
    if len(lines) < _SEVERAL:
        lines = [(one.start(), one[0].count("."), one[0].strip()) for one in _ITEM.finditer(text)]
    found = []
    for place, (at, kind, line) in enumerate(lines):
        below = [other for other, rank, _ in lines[place + 1 :] if rank <= kind]
        following = lines[place + 1][0] if place + 1 < len(lines) else len(text)
        first = next(iter(sentences(text, at + len(line), following)), None)
        said = "" if first is None else " ".join(text[slice(*first)].split())
        end = below[0] if below else len(text)
        found.append(Heading(at, end, line.strip("# \t")[:_TITLED], said))
    return found
