"""Cut a passage into what can be quoted alone: a sentence with what it needs to be understood, or a table row.

A list item comes with its lead-in, an answer with its question, a rule with its proviso, a figure with the following
sentence that changes it, and a table row with the row of years above it. Titles, questions, lead-ins without their
items, and sentences that only refer to another document are not quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from carag.generation.words import terms
from carag.labelling.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Iterator


_Span = tuple[int, int]
_Marker = tuple[str, str]
"""How the number of a paragraph is written, and the number: ``("(letter)", "b")``; both empty if it has none."""

_CELL: Final = " | "
"""Separator of the cells of a table row, where the source kept them apart."""
_FIGURE: Final = re.compile(r"[($]*[\d,]*\d(?:\.\d+)?[)%]*|[$(—–-]")
_ROW_FIGURES: Final = 2
"""Figures at the end of a line that make it a table row without separators."""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_CLOSING: Final = r"""["'”’)\]]*"""
_WHOLE: Final = re.compile(
    rf"(?:(?:[!?;:]|(?<!\d)\.){_CLOSING}\d{{0,2}}|[.;:]\s*[-–—]?|[;,]\s*(?:and|or)){_CLOSING}\Z"
)
"""How a sentence or an item ends, with or without the number of a footnote."""
_TAIL: Final = 80
"""Characters at the end of a text in which its ending is looked for; no ending is longer, footnotes included."""
_LEAD_IN: Final = re.compile(rf":\s*[-–—]*{_CLOSING}\Z")
_QUESTION: Final = re.compile(rf"[?？]{_CLOSING}\Z")
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
"""How a line ends that continues in the next."""
_PARAGRAPH: Final = 160
"""Characters. A longer line is a paragraph, not one of the lines that a paragraph was broken into."""
_SHORT: Final = 0.65
"""Share of the passage's longest line: a shorter line was not broken for lack of room."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_MIN_WORDS: Final = 2
"""Words in the shortest sentence; an item may have fewer."""
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
"""How a sentence begins that belongs to the preceding rule."""
_CHANGES: Final = re.compile(
    r"\b(?:now|hereby|stands?|been|being|is|are|shall be|decided to)\s+(?:\w+\s+)?(?:amend|enhance|extend|increase"
    r"|modif|raise|reduce|replace|revise|substitute)(?:y|d|ed|ied)?\b",
    re.IGNORECASE,
)
_POINTS_BACK: Final = re.compile(r"(?:this|these|it|the same|the said|such)\b", re.IGNORECASE)
_RECALLS: Final = re.compile(
    r"\b(?:was|were|had|existing|extant|earlier|hitherto|previously|(?:at )?present(?:ly)?|as per|in terms of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quotable:
    """What can be quoted alone."""

    position: int
    """Of its passage, from 0."""
    spans: tuple[_Span, ...]
    """What is shown, as offsets in the passage; the last is the piece itself, the others are what it needs."""
    terms: frozenset[str]
    """Those of all that is shown."""
    changes: bool
    """Whether it says that a figure or a rule changes."""
    is_row: bool

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
    at = prose = 0
    header: _Span | None = None
    found: list[tuple[_Span, ...]] = []
    for line in text.splitlines(keepends=True):
        if _is_row(line):
            found += _prose(text, prose, at, source)
            row = _trim(text, at, at + len(line))
            found.append((header, row) if header else (row,))
            if _YEAR.search(text, *row):
                header = row
            prose = at + len(line)
        elif line.strip():
            header = None
        at += len(line)
    for spans in (*found, *_prose(text, prose, at, source)):
        shown = "\n".join(text[start:end] for start, end in spans)
        changes = _CHANGES.search(text, *spans[-1]) is not None
        yield Quotable(position, spans, terms(shown), changes, _is_row(text[slice(*spans[-1])]))


def _prose(text: str, start: int, end: int, source: str) -> list[tuple[_Span, ...]]:
    """Return the sentences that can be quoted, each after what it needs."""
    found: list[tuple[_Span, ...]] = []
    lists: list[_List] = []
    question: tuple[_Span, ...] = ()
    joins = False
    for paragraph in _paragraphs(text, start, end):
        marker = _marker(text[slice(*paragraph)])
        _enter(lists, marker)
        for span in pairwise([paragraph[0], *sentence_ends(text, *paragraph), paragraph[1]]):
            span = _trim(text, *span)
            said = text[slice(*span)]
            if joins and _belongs(said, text[slice(*found[-1][-1])]):
                *needs, (begins, _) = found.pop()
                if not _ends_in(_LEAD_IN, said):
                    found.append((*needs, (begins, span[1])))
                    continue
                # The items say what changes, so what the lead-in recalls is not quoted without them.
            joins = False
            if _ends_in(_QUESTION, said):
                question, lists = (span,), []
            elif _ends_in(_LEAD_IN, said):
                lists.append(_List(marker, span))
            elif _is_sentence(said, source) and (lists or len(_WORD.findall(said)) >= _MIN_WORDS):
                joins = not any(_REFERS.match(text, *one.span) for one in lists)
                if joins:
                    found.append((*question, *(one.span for one in lists[-2:]), span))
    return found


def _is_sentence(said: str, source: str) -> bool:
    """Tell a sentence from a title, a reference, and what the start or end of the passage cuts off."""
    if not _ends_in(_WHOLE, said) or _REFERS.match(said) or " ".join(said.split()).rstrip(".") in source:
        return False
    return not said[:1].islower() or _MARKER.match(said) is not None


def _belongs(said: str, before: str) -> bool:
    """Tell whether a sentence belongs to the one before: as its proviso, or as a change of what it recalls."""
    if not _ends_in(_WHOLE, said):
        return False
    changes = _CHANGES.search(said) and (_POINTS_BACK.match(said) or _RECALLS.search(before))
    return bool(changes) or (_QUALIFIES.match(said) is not None and not _ends_in(_LEAD_IN, said))


def _enter(lists: list[_List], marker: _Marker) -> None:
    """Leave the lists of which a paragraph with this marker is not an item."""
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


def _marker(paragraph: str) -> _Marker:
    found = _MARKER.match(paragraph)
    if not found:
        return "", ""
    kind = next((one for one in _KINDS if found[one]), found.lastgroup or "")
    return f"{found['opens'] or ''}{kind}{found[kind].count('.') or ''}{found['closes'] or ''}", found[kind]


def _paragraphs(text: str, start: int, end: int) -> Iterator[_Span]:
    """Cut where no sentence continues: before items, after lead-ins and headings, and at most blank lines."""
    lines = text[start:end].splitlines(keepends=True)
    width = max(map(len, text.splitlines()), default=0)
    at = first = start
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        at += len(line)
        following = text[at:end].lstrip()
        if not line.strip():
            continue
        is_heading = not text[first : at - len(line)].strip() and _is_heading(line, following)
        if is_heading or _ends(line.strip(), following, width, is_blank=not after.strip()):
            yield first, at
            first = at


def _is_heading(line: str, after: str) -> bool:
    """Tell a numbered line in capitals only, before a capital, from the first line of a paragraph."""
    number = _MARKER.match(line)
    words = [word for word in line[number.end() :].split() if len(word) > _LITTLE] if number else []
    return bool(words) and all(not word[0].islower() for word in words) and after[:1].isupper()


def _ends(line: str, after: str, width: int, *, is_blank: bool) -> bool:
    """Tell whether a paragraph ends with a line; ``after`` is what follows, after a blank line or not."""
    if not after or _ends_in(_LEAD_IN, line):
        return True
    if _ends_in(_GOES_ON, line) and not (is_blank and line.endswith(",")):
        return False
    if _MARKER.match(after):
        return True
    is_last = is_blank or len(line) < _SHORT * width or len(line) > _PARAGRAPH
    return is_last and (not after[0].islower() or (is_blank and _ends_in(_WHOLE, line)))


def _ends_in(ending: re.Pattern[str], text: str) -> bool:
    """Tell whether a text has such an ending."""
    return ending.search(text, max(0, len(text) - _TAIL)) is not None


def _is_row(line: str) -> bool:
    if _CELL in line:
        return True
    words = line.split()[-_ROW_FIGURES:]
    return len(words) == _ROW_FIGURES and all(_FIGURE.fullmatch(word) for word in words)


def _trim(text: str, start: int, end: int) -> _Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
