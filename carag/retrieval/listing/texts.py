"""Join the passages of a document into the texts that they were cut from, as far as the session may use them.

Where a passage that it may not use lies between two others, the text ends: nothing shows what is missing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from carag.labelling.chunking import Boundary, boundaries, heading_of
from carag.labelling.sentences import sentences
from carag.retrieval.reading.question import NUMBERED
from carag.retrieval.tables.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from carag.retrieval.reading import Section
    from carag.store.values import StoredChunk


_LINES: Final = re.IGNORECASE | re.MULTILINE
_BARE: Final = ("section", "clause", "paragraph", "rule", "regulation")
"""Kinds whose number may stand alone at the beginning of a line."""
_ABOVE: Final = "|".join(NUMBERED[kind] for kind in ("part", "chapter", "annex", "appendix", "schedule"))
_HIGHER: Final = rf"(?:{_ABOVE})\s+(?-i:\d+|[IVX]+|[A-Z])\b"
"""The beginning of a line before which every section, clause or article ends."""
_PAGE: Final = re.compile(r"(?:\.{3,}|\s)\s*\d{1,3}\s*$")
"""The end of a line of a table of contents."""
_MARKED: Final = re.compile(r"^#{1,6}[ \t]+\S[^\n]*", re.MULTILINE)
"""A heading in Markdown."""
_ITEM: Final = re.compile(
    r"^[ \t]*\d{1,3}(?:\.\d{1,3})*[.)]?[ \t]+(?=[^\W\d_a-z])(?:[^\n]{1,80}(?<![.;:,])$)?", re.MULTILINE
)
"""The number of a paragraph, or a heading with its number, such as "4.2 Hotels"."""
_BARRED: Final = re.compile(r"[^\n]*(?:\n[^\n]*\|[^\n]*)*")
_SEVERAL: Final = 2
"""The fewest headings that make an outline."""
_TITLED: Final = 120
"""Characters in the longest heading."""
_CAPTION: Final = 80
"""Characters in the longest line above a table that names it; a longer one is prose."""
Piece: TypeAlias = "StoredChunk"
"""A passage as the store returns it."""
_GAP: Final = 200
"""The most characters between two passages that are joined: the chunker leaves out only white space."""


@dataclass(slots=True)
class Run:
    """A text without gaps, and the passages that it is from."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    """For each passage, where its own part of the text begins, after what it shares with the passage before."""
    chunks: list[Piece] = field(default_factory=list)

    def pieces(self, start: int, end: int) -> list[tuple[Piece, str]]:
        """Return the passages of a span of the text, each with its part."""
        found = []
        for at in range(max(bisect_right(self.starts, start) - 1, 0), len(self.starts)):
            if self.starts[at] >= end:
                break
            last = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.text)
            found.append((self.chunks[at], self.text[max(start, self.starts[at]) : min(end, last)]))
        return found


def runs_of(chunks: Iterable[Piece]) -> list[Run]:
    """Join the passages of one document, given in its order."""
    runs: list[Run] = []
    for one in chunks:
        last = runs[-1].chunks[-1] if runs else None
        if last is None or not last.start <= one.start <= last.end + _GAP or not _joins(last, one):
            runs.append(Run())
        run = runs[-1]
        if run.chunks and last is not None:
            shared = max(last.end - one.start, 0)
            run.text += "\n" * max(one.start - last.end, 0)
        else:
            shared = 0
        run.starts.append(len(run.text))
        run.text += one.text[shared:]
        run.chunks.append(one)
    return runs


def _joins(last: Piece, one: Piece) -> bool:
    """Tell whether a passage continues another: what both have is the same, and no other is between them."""
    shared = last.end - one.start
    return one.number == last.number + 1 and (shared <= 0 or last.text.endswith(one.text[:shared]))


class Heading(NamedTuple):
    """A heading, the first sentence below it, and where the text under it ends."""

    start: int
    end: int
    """Where the next heading of the same or a higher rank begins."""
    is_section: bool
    """Whether it is like "Item 7." or "Chapter II"."""
    text: str
    sentence: str
    """Empty if another heading follows."""


def headings_of(text: str) -> list[Heading]:
    """Return the headings of a text; of a text without several, its numbered paragraphs."""
    lines: list[tuple[int, int, str]] = [
        (one.start(), len(one[0].split()[0]), one[0]) for one in _MARKED.finditer(text)
    ]
    if len(lines) < _SEVERAL:
        titles = {at for at, kind in boundaries(text) if kind <= Boundary.TITLE}
        lines, at = [], 0
        for line in text.split("\n"):
            start, head = at + len(line) - len(line.lstrip()), heading_of(line.strip())
            if head is Boundary.SECTION or (head and start in titles):
                lines.append((start, head, line.strip()))
            at += len(line) + 1
    if len(lines) < _SEVERAL:
        lines = [(one.start(), one[0].count("."), one[0]) for one in _ITEM.finditer(text)]
    found = []
    for place, (at, kind, line) in enumerate(lines):
        end = next((other for other, rank, _ in lines[place + 1 :] if rank <= kind), len(text))
        following = lines[place + 1][0] if place + 1 < len(lines) else len(text)
        said = "".join(" ".join(text[a:b].split()) for a, b in sentences(text, at + len(line), following)[:1])
        title = line.strip("# \t")[:_TITLED]
        found.append(Heading(at, end, kind is Boundary.SECTION, title, said))
    return found if len(found) >= _SEVERAL else []


def section_span(text: str, section: Section) -> tuple[int, int] | None:
    r"""Return start and end of a numbered section; None if it is absent, or if its end is not certain.

    Examples
    --------
    >>> from carag.retrieval.reading import Section
    >>> text = "4.1 Flights\nEconomy.\n4.2 Hotels\nUp to 90 euro.\n1. In cities 120.\n5 Meals\nNone."
    >>> text[slice(*section_span(text, Section("section", "4.2")))]
    '4.2 Hotels\nUp to 90 euro.\n1. In cities 120.\n'
    """
    own, word = section.number, NUMBERED[section.kind]
    is_bare = section.kind in _BARE
    prefix = rf"^[ \t#]*(?:{word})\s*" if not is_bare else rf"^[ \t#]*(?:(?:{word})\s*)?"
    # A bare number is followed by words on its line, or it may be that of a page.
    after = r"[.):]?[ \t]+(?=[^\s\da-z])" if is_bare else r"[.):]?(?=\s|$|[–—-])"
    begins = [
        one
        for one in re.finditer(rf"{prefix}{re.escape(own)}(?-i:{after})[^\n]*", text, _LINES)
        if not _PAGE.search(one[0][-_TITLED:])
    ]
    next_ = re.compile(rf"{prefix}(?P<number>\w+(?:\.\w+)*)(?-i:{after})", _LINES)
    higher = re.compile(rf"^[ \t#]*{_HIGHER}", _LINES)
    spans = []
    for begin in begins:
        above = higher.search(text, begin.end())
        end, listed = above.start() if above else len(text), 0
        for match in next_.finditer(text, begin.end(), end):
            number = match["number"].casefold()
            goes_on = number == str(listed + 1)
            listed += goes_on
            if _follows(number, own, is_bare=is_bare):
                if goes_on and listed > 1:  # the next section, or the next item of a list
                    return None
                end = match.start()
                break
        spans.append((begin.start(), end))
    if is_bare and len(spans) > 1:  # one of them may be an item of a list
        return None
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _follows(number: str, own: str, *, is_bare: bool) -> bool:
    """Tell whether a number is that of the section after another, such as 4.3 or 5 after 4.2."""
    parts, owns = number.split("."), own.split(".")
    place = len(parts) - 1
    if len(parts) > len(owns) or parts[:place] != owns[:place] or number == own:
        return False
    value, before = (re.fullmatch(r"(\d+)([a-z]?)", one[place]) for one in (parts, owns))
    if value is None or before is None:
        return not is_bare
    is_next = int(value[1]) == int(before[1]) + 1
    return is_next or (value[1] == before[1] and value[2] > before[2])


def table_span(
    text: str, words: frozenset[str], reduced: Callable[[str], frozenset[str]]
) -> tuple[int, int] | None:
    """Return start and end of the longest table whose lines above it have some words; None without one.

    - ``reduced``: reduces a text to words in the form in which they are compared.
    """
    statement = {"income", "statement"} <= words
    ways = [words, *((words - {"income"}) | {one} for one in ("operation", "earning") if statement)]
    found = []
    for table in tables_of(text):
        short = [
            one for one in table.captions if one[1] - one[0] <= _CAPTION and text[one[1] - 1] not in ".;,"
        ]
        if any(text[slice(*row.label)].rstrip().endswith("•") for row in table.rows):  # the items of a list
            continue
        lines = [(span[0], reduced(text[slice(*span)])) for span in short]
        above = frozenset[str]().union(*(has for _, has in lines))
        words = next((one for one in ways if one <= above), frozenset())
        if words and ("comprehensive" in words or "comprehensive" not in above):
            begins = min(start for start, has in lines if has & words)
            end = table.rows[-1].cells[-1].span[1]
            more = _BARRED.match(text, end)  # rows without figures
            found.append((len(table.rows), begins, more.end() if more else end))
    return max(found)[1:] if found else None
