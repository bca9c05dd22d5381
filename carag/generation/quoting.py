"""Cut a passage into pieces that can be quoted alone: a sentence with what makes it understandable, or a table row.

A list item comes with its lead-in, an answer with its question, a rule with its proviso, a figure with the following
sentence that changes it, and a table row with the row of years above it. Titles, questions, lead-ins without their
items, and sentences that only refer to another document are not quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.generation.words import terms
from carag.labelling.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_Span = tuple[int, int]
_Marker = tuple[str, str]
"""How the number of a paragraph is written, and the number: ``("(letter)", "b")``; both empty if it has none."""

_CELL: Final = " | "
"""Separator of the cells of a table row, where the source kept them apart."""
_FIGURE: Final = re.compile(r"[($]*[\d,]*\d(?:\.\d+)?[)%]*|[$(—–-]")
_ROW_FIGURES: Final = 2
"""Figures at the end of a line that make it a table row without separators."""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_CLOSING: Final = """]"'”’)"""
_WHOLE: Final = re.compile(
    rf"(?:(?:[!?;:]|(?<!\d)\.)[{_CLOSING}]*\d{{0,2}}|[.;:]\s*[-–—]?|[;,]\s*(?:and|or))[{_CLOSING}]*\Z"
)
"""How a sentence or an item ends, with or without the number of a footnote."""
_TAIL: Final = 80
"""Characters at the end of a text in which its ending is looked for; no ending is longer, footnotes included."""
_KINDS: Final = ("roman", "letter", "capital", "number")
_MARKER: Final = re.compile(
    r"""\s*(?: (?P<opens>\(?)
               (?:(?P<roman>[ivx]+)|(?P<letter>[a-z])|(?P<capital>[A-Z])|(?P<number>\d{1,3}(?:\.\d{1,3})*))
               (?P<closes>[.)])
             | (?P<section>\d{1,3}(?:\.\d{1,3})+) | (?P<bullet>[•▪●*§–—-]))\s""",
    re.VERBOSE,
)
"""The number or letter of an item or a paragraph."""
_GOES_ON: Final = re.compile(
    r"(?:[,(/&-]|\b(?:a|an|and|annex|article|at|by|chapter|clause|dated|for|form|from|in|is|are|item|no|nos|of|on|or"
    r"|paras?|paragraphs?|regulation|rs|rule|schedule|sections?|than|the|to|under|with)\.?)\Z",
    re.IGNORECASE,
)
"""How a line ends if it continues in the next."""
_LAST_WORD: Final = len("paragraphs.")
"""Characters of the longest such ending."""
_PARAGRAPH: Final = 160
"""Characters. A longer line is a paragraph, not one of the lines that a paragraph was broken into."""
_SHORT: Final = 0.65
"""Share of the passage's longest line: a shorter line was not broken for lack of room."""
_INK: Final = re.compile(r"\S")
_WORDS: Final = re.compile(r"[^\W\d_]{2,}[\W\d_].*?[^\W\d_]{2}", re.DOTALL)
"""Two words, as the shortest sentence has; an item may have fewer."""
_LITTLE: Final = 3
"""Letters of a word that a heading may write without a capital."""
_REFERS: Final = re.compile(
    r".{0,60}?(?:\b(?:please|kindly) (?:also )?refer to|\breference is (?:also )?(?:drawn|invited|made) to"
    r"|\battention\b.{0,200}?\b(?:is|are) (?:also )?(?:drawn|invited) to)\b",
    re.IGNORECASE | re.DOTALL,
)
_QUALIFIES: Final = re.compile(
    r"(?:provided|however|except(?:ion)?s?|explanation|subject to|unless|nevertheless)\b", re.IGNORECASE
)
"""How a sentence begins if it belongs to the preceding rule."""
_CHANGES: Final = re.compile(
    r"\b(?=[abdhins])(?:now|hereby|stands?|been|being|is|are|shall be|decided to)\s+(?:\w+\s+)?(?:amend|enhance|extend"
    r"|increase|modif|raise|reduce|replace|revise|substitute)(?:y|d|ed|ied)?\b",
    re.IGNORECASE,
)
"""Few alternatives are tried, because the class of their first letters is looked at first."""
_POINTS_BACK: Final = re.compile(r"(?:this|these|it|the same|the said|such)\b", re.IGNORECASE)
_RECALLS: Final = re.compile(
    r"\b(?=[aehipw])(?:was|were|had|existing|extant|earlier|hitherto|previously|(?:at )?present(?:ly)?|as per"
    r"|in terms of)\b",
    re.IGNORECASE,
)


class Quotable(NamedTuple):
    """What can be quoted alone."""

    position: int
    """The position of its passage, from 0."""
    text: str
    """The text of the whole passage."""
    spans: tuple[_Span, ...]
    """What is shown, as offsets in the passage; the last is the piece itself, the others are what it needs."""
    is_row: bool

    @property
    def said(self) -> str:
        """The piece itself."""
        return self.text[slice(*self.spans[-1])]

    @property
    def terms(self) -> frozenset[str]:
        """The words of everything that is shown."""
        return terms("\n".join(self.text[start:end] for start, end in self.spans))

    @property
    def changes(self) -> bool:
        """Whether the piece says that a figure or a rule changes."""
        return _CHANGES.search(self.text, *self.spans[-1]) is not None

    @property
    def length(self) -> int:
        """In characters."""
        return sum(end - start for start, end in self.spans)


@dataclass(slots=True)
class _List:
    """A lead-in, the marker of its own paragraph, and that of its last item so far."""

    marker: _Marker
    span: _Span
    last: _Marker | None = None


def quotables(position: int, text: str, source: str = "") -> Iterator[Quotable]:
    r"""Yield what can be quoted from the passage at a position, in order; ``source`` names its document.

    Examples
    --------
    >>> text = "Fees\nThe fee is Rs. 5. However, a student pays none.\nPlease refer to our letter of May."
    >>> [text[slice(*one.spans[-1])] for one in quotables(0, text)]
    ['The fee is Rs. 5. However, a student pays none.']
    """
    width = max(map(len, text.splitlines()), default=0)
    at = 0
    header: _Span | None = None
    prose: list[str] = []
    found: list[tuple[_Span, ...]] = []
    for line in text.splitlines(keepends=True):
        if _is_row(line):
            if prose:
                found += _prose(text, at, prose, width, source)
            row = _trim(text, at, at + len(line))
            found.append((header, row) if header else (row,))
            if _YEAR.search(text, *row):
                header = row
            prose = []
        else:
            prose.append(line)
            header = header if line.isspace() else None
        at += len(line)
    for spans in (*found, *_prose(text, at, prose, width, source)):
        yield Quotable(position, text, spans, _is_row(text[slice(*spans[-1])]))


def _prose(text: str, end: int, lines: Sequence[str], width: int, source: str) -> list[tuple[_Span, ...]]:
    """Return the sentences of the lines up to an end that can be quoted, each after what makes it understandable."""
    found: list[tuple[_Span, ...]] = []
    lists: list[_List] = []
    question: tuple[_Span, ...] = ()
    joins = False
    for paragraph in _paragraphs(text, end, lines, width):
        marker = _marker(text, paragraph)
        _enter(lists, marker)
        for span in pairwise([paragraph[0], *sentence_ends(text, *paragraph), paragraph[1]]):
            span = _trim(text, *span)
            said = text[slice(*span)]
            if joins and _belongs(said, text[slice(*found[-1][-1])]):
                *needs, (begins, _) = found.pop()
                if not _leads_in(said):
                    found.append((*needs, (begins, span[1])))
                    continue
                # The items say what changes, so what the lead-in recalls is not quoted without the items.
            joins = False
            if said[-_TAIL:].rstrip(_CLOSING).endswith(("?", "？")):
                question, lists = (span,), []
            elif _leads_in(said):
                lists.append(_List(marker, span))
            elif _is_sentence(said, source) and (lists or _WORDS.search(said)):
                joins = not any(_REFERS.match(text, *one.span) for one in lists)
                if joins:
                    found.append((*question, *(one.span for one in lists[-2:]), span))
    return found


def _is_sentence(said: str, source: str) -> bool:
    """Tell a sentence from a title, a reference, and a fragment that the start or end of the passage cuts off."""
    if not _is_whole(said) or (said[:1].islower() and not _MARKER.match(said)):
        return False
    return not _REFERS.match(said) and " ".join(said.split()).rstrip(".") not in source


def _belongs(said: str, before: str) -> bool:
    """Tell whether a sentence belongs to the one before: as its proviso, or as a change of what it recalls."""
    if not _is_whole(said):
        return False
    changes = _CHANGES.search(said) and (_POINTS_BACK.match(said) or _RECALLS.search(before))
    return bool(changes) or (_QUALIFIES.match(said) is not None and not _leads_in(said))


def _enter(lists: list[_List], marker: _Marker) -> None:
    """Close the lists of which a paragraph with this marker is not an item."""
    while lists:
        if _is_item(marker, lists[-1]):
            lists[-1].last = marker
            return
        lists.pop()


def _is_item(marker: _Marker, of: _List) -> bool:
    """Tell whether an item can begin a list, or follow its last one; ``i`` is a letter only after ``h``."""
    if of.last is None:
        return not marker[0] or marker[0] != of.marker[0]
    if marker[0] == of.last[0]:
        return bool(marker[0])
    alike = marker[0].replace("roman", "letter") == of.last[0].replace("roman", "letter")
    return alike and len(marker[1]) == len(of.last[1]) == 1 and ord(marker[1]) == ord(of.last[1]) + 1


def _marker(text: str, paragraph: _Span) -> _Marker:
    found = _MARKER.match(text, *paragraph)
    if not found:
        return "", ""
    kind = next((one for one in _KINDS if found[one]), found.lastgroup or "")
    return f"{found['opens'] or ''}{kind}{found[kind].count('.') or ''}{found['closes'] or ''}", found[kind]


def _paragraphs(text: str, end: int, lines: Sequence[str], width: int) -> Iterator[_Span]:
    """Cut where no sentence continues: before items, after lead-ins and headings, and at most blank lines."""
    at = first = end - sum(map(len, lines))
    begins = True
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        at += len(line)
        if not (said := line.strip()):
            continue
        after = _INK.search(text, at, end)
        is_heading = begins and after is not None and after[0].isupper() and _is_heading(line)
        if after is None or is_heading or _ends(said, after, width, is_blank=not below.strip()):
            yield first, at
            first = at
        begins = first == at


def _is_heading(line: str) -> bool:
    """Tell a numbered line that is all in capitals from the first line of a paragraph; a capital comes after it."""
    number = _MARKER.match(line)
    words = [word for word in line[number.end() :].split() if len(word) > _LITTLE] if number else []
    return bool(words) and all(not word[0].islower() for word in words)


def _ends(line: str, after: re.Match[str], width: int, *, is_blank: bool) -> bool:
    """Tell whether a paragraph ends with a line; ``after`` begins what follows, after a blank line or not."""
    if _leads_in(line):
        return True
    if _GOES_ON.search(line, max(0, len(line) - _LAST_WORD)) and not (is_blank and line.endswith(",")):
        return False
    if _MARKER.match(after.string, after.start(), after.endpos):
        return True
    is_last = is_blank or len(line) < _SHORT * width or len(line) > _PARAGRAPH
    return is_last and (not after[0].islower() or (is_blank and _is_whole(line)))


def _leads_in(text: str) -> bool:
    """Tell whether a text ends in a colon, perhaps with dashes and closing marks after it."""
    return text[-_TAIL:].rstrip(_CLOSING).rstrip("-–—").rstrip().endswith(":")


def _is_whole(text: str) -> bool:
    return (
        text.endswith((".", ";", ":", "!", "?")) or _WHOLE.search(text, max(0, len(text) - _TAIL)) is not None
    )


def _is_row(line: str) -> bool:
    """Tell a line with cells, or with figures at its end; the last, which decides most, is looked at first."""
    words = line.rsplit(None, _ROW_FIGURES)[: -_ROW_FIGURES - 1 : -1]
    return _CELL in line or (len(words) == _ROW_FIGURES and all(map(_FIGURE.fullmatch, words)))


def _trim(text: str, start: int, end: int) -> _Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
