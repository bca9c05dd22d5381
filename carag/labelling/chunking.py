"""Split a document into passages at its own boundaries: sections, headings, paragraphs, clauses, sentences.

A passage that stops inside a clause separates a condition from its exception.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import IntEnum
from heapq import merge
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.labelling.abbreviations import abbreviates
from carag.labelling.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Iterator


CHUNKER_VERSION: Final = "clause-2"
"""This must change whenever the same text may be split differently; it is part of a filing's content hash."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: ``text == document[start:end]``, with no whitespace at either end."""

    start: int
    end: int
    text: str


class Boundary(IntEnum):
    """Kinds of place where a document may be split; a smaller number is a better place."""

    SECTION = 1
    """Before ``Item 7.``, ``PART II``, ``Note 3.`` and similar headings."""
    TITLE = 2
    """Before a line in capitals or title case, or a table row's label on a line of its own."""
    PARAGRAPH = 3
    """At a blank line, and at every line of text that is not wrapped."""
    CLAUSE = 4
    """Before ``(a)``, ``1.``, ``(iv)`` or a bullet."""
    SENTENCE = 5
    SUBCLAUSE = 6
    """Inside a sentence, after a semicolon or before an ``(a)``."""
    ROW = 7
    """At a line end: a table row, or wrapped text."""
    DETACHED = 8
    """At a line end below a heading: worse than any split that keeps heading and text together, better than a broken
    line."""
    SPACE = 9


def chunk(text: str, *, target: int = 1000, limit: int = 1500) -> list[Chunk]:
    r"""Split a document into passages.

    From each start, the best kind of boundary within reach is chosen, and of that kind the one nearest to `target`.
    A boundary is within reach from half of `target` to `limit` after the start, unless less than half of `target` would
    remain after it, so that the last passage is not very short.
    """
    if not 1 <= target <= limit:
        raise InvalidArgument(
            f"target is {target} and limit {limit}; want 1 <= target <= limit, in characters"
        )
    marks = list(boundaries(text)) if len(text) > limit else []  # a short document is one passage
    positions = [position for position, _ in marks]
    reach = max(1, target // 2)
    start, end = _skip_space(text, 0), len(text.rstrip())
    chunks: list[Chunk] = []
    while start < end:
        cut = end
        if end - start > limit:
            low, high = start + reach, min(start + limit, end - reach)
            inside = marks[bisect_left(positions, low) : bisect_right(positions, high)]
            cut = _best(inside, start + target) or _weak_cut(text, low, high, start + target)
        passage = text[start:cut].rstrip()
        chunks.append(Chunk(start, start + len(passage), passage))
        start = _skip_space(text, cut)
    return chunks


def boundaries(text: str) -> Iterator[tuple[int, Boundary]]:
    r"""Find every boundary better than a space, in order, at the position where the later passage would begin."""
    above = ""
    heads = blank = False
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if not line:
            blank = True
            continue
        start = _skip_space(text, match.start())
        heading = heading_of(line)
        if heading and (_goes_on(above, blank=blank) or _torn(text, match.end())):
            heading = None
        if above:
            yield start, Boundary.DETACHED if heads else heading or _between(above, line, blank=blank)
        if heading is None:
            yield from _within(text, start, match.end())
        if not _PAGE_BREAK.fullmatch(line):
            above, blank = line, False
            heads = heading is not None or _CLAUSE.fullmatch(line + " ") is not None


_LINE: Final = re.compile(r"[^\n]+|\n(?=\n)")
_SPACE: Final = re.compile(r"\s")
_SOLID: Final = re.compile(r"\S")

_WRAP: Final = 160
"""Greatest width of wrapped text in characters; a longer line is a paragraph of its own."""
_SHORTEST_HEADING: Final = 4
"""Smallest number of characters of a heading."""
_LONGEST_HEADING: Final = 120
"""Greatest number of characters of a heading."""


def _skip_space(text: str, at: int) -> int:
    solid = _SOLID.search(text, at)
    return solid.start() if solid else len(text)


# --- headings ---------------------------------------------------------------------------------------------

_SECTION: Final = re.compile(
    r"""(?:item|part|section|article|note|chapter|annex|appendix|exhibit|schedule)
        \s+ (?:\d{1,3}(?:\.\d+)*[a-z]?|[ivxl]{1,6}|[a-z]) (?:-\d+)?
        (?: \s*[.:|–—-] | \s{2,} | \s*$ | \s+(?-i:[A-Z]) )""",
    re.IGNORECASE | re.VERBOSE,
)
_CAPITALS: Final = re.compile(r"[^a-z|$%]*[A-Z]{3}[^a-z|$%]*(?<![.;,])")
_TITLE_CASE: Final = re.compile(
    r"""(?:[A-Z][\w'’&/().-]*[,:]?) (?:[ ](?:[A-Z(][\w'’&/().-]*[,:]?|[–—-]|&
        |of|and|the|in|to|for|on|by|with|from|as|a|an|or|at|its|our))* (?<![.;,])""",
    re.VERBOSE,
)
_PAGE_NUMBER: Final = re.compile(r"[\s.]\d{1,3}$")
_PAGE_BREAK: Final = re.compile(
    r"[-–—\s]*(?:(?:page\s)?[A-Z]?[ -]?\d{1,3}(?:\sof\s\d{1,3})?|<page>|table of contents)[-–—\s]*",
    re.IGNORECASE,
)
"""Page numbers and running heads, which may interrupt a sentence."""


def heading_of(line: str) -> Boundary | None:
    """Return the kind of heading that a line is, or None, as for a line of a table of contents with its page number."""
    if not _SHORTEST_HEADING <= len(line) <= _LONGEST_HEADING or line[0].islower():
        return None
    if _PAGE_BREAK.fullmatch(line):
        return None
    if _SECTION.match(line):
        return None if _PAGE_NUMBER.search(line, 10) else Boundary.SECTION
    if _CAPITALS.fullmatch(line) or _TITLE_CASE.fullmatch(line):
        return None if _PAGE_NUMBER.search(line) else Boundary.TITLE
    return None


def _goes_on(above: str, *, blank: bool) -> bool:
    """Tell whether wrapped text continues below this line; ``Item 7`` there is a reference, not a heading."""
    return not blank and 40 < len(above) <= _WRAP and (above[-1].islower() or above[-1] in ",-–—")


def _torn(text: str, end: int) -> bool:
    """Tell whether the line that ends here continues in lower case, which makes it a broken sentence, not a heading."""
    below = _skip_space(text, end)
    return text[below : below + 1].islower()


# --- lines, clauses and sentences -------------------------------------------------------------------------

_CLAUSE: Final = re.compile(
    r"(?:\((?:[A-Za-z]|[ivxlIVXL]{1,5}|\d{1,2})\)|(?:\d{1,2}(?:\.\d{1,2})*|[A-Za-z]|[ivx]{1,4})[.)]|[•●▪■○·*–-])\s"
)
_CLAUSE_MAY_FOLLOW: Final = re.compile(r"(?:[.:;,!?)]|\b(?:and|or))$")
_SUBCLAUSE: Final = re.compile(r"(?<=;)\s+|(?<=[,:])\s+(?=\([A-Za-z0-9]{1,4}\)\s)")
"""Where a clause ends inside a sentence, or an enumerated clause begins."""
_CLOSING: Final = "'\"”’)]」』）"


def _between(above: str, below: str, *, blank: bool) -> Boundary:
    ended = _ends_sentence(above, below)
    apart = blank or len(above) > _WRAP or len(below) > _WRAP
    if apart and (ended or not (below[0].islower() or _PAGE_BREAK.fullmatch(below))):
        return Boundary.PARAGRAPH
    if _CLAUSE.match(below) and _CLAUSE_MAY_FOLLOW.search(above):
        return Boundary.CLAUSE
    return Boundary.SENTENCE if ended else Boundary.ROW


def _within(text: str, start: int, end: int) -> Iterator[tuple[int, Boundary]]:
    inside = ((one.end(), Boundary.SUBCLAUSE) for one in _SUBCLAUSE.finditer(text, start, end))
    ends = (
        (at, Boundary.CLAUSE if _CLAUSE.match(text, at) else Boundary.SENTENCE)
        for at in sentence_ends(text, start, end)
    )
    yield from (one for one in merge(ends, inside) if one[0] < end)


def _ends_sentence(above: str, below: str) -> bool:
    stop = above.rstrip(_CLOSING)
    if stop[-1:] == ".":
        return not abbreviates(f"{above} {below}", len(stop))
    return stop[-1:] in tuple("!?:;。！？")


# --- the choice -------------------------------------------------------------------------------------------


def _best(marks: list[tuple[int, Boundary]], ideal: int) -> int | None:
    if not marks:
        return None
    return min(marks, key=lambda mark: (mark[1], abs(mark[0] - ideal)))[0]


def _weak_cut(text: str, low: int, high: int, ideal: int) -> int:
    """Split at a space, or else anywhere between two characters as a reader sees them."""
    spaces = [(match.end(), Boundary.SPACE) for match in _SPACE.finditer(text, low - 1, high)]
    return _best(spaces, ideal) or _whole_character(text, low, min(ideal, high))


def _whole_character(text: str, low: int, cut: int) -> int:
    """Move a split before the character it would break: an accented letter, an emoji sequence, a surrogate pair."""
    for at in range(cut, max(low, cut - 32), -1):
        if not _joined(text[at - 1], text[at]):
            return at
    return cut


def _joined(left: str, right: str) -> bool:
    zero_width_joiner = "\u200d"
    return (
        unicodedata.category(right)[0] == "M"
        or zero_width_joiner in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")
    )
