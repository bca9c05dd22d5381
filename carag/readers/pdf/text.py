"""Write the lines of PDF pages as text: raised marks, hyphenated words and columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.readers.pdf.lines import NEAR, Line, Run
from carag.readers.raised import LONGEST, bare, lowered, raised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


SMALLER: Final = 0.88
"""Greatest size of a raised mark, relative to its line."""
RAISED: Final = (0.08, 0.8)
"""Least and greatest distance of a mark from the baseline, in font sizes; at least 0.2 for a mark of full size."""
CENTRED: Final = 0.4
"""Height of the line's middle for text smaller by one size: text that is centred on a line is an entry, not a mark."""
BAND: Final = 128.0
"""Height of a band of the page: marks are compared only with lines in the same band or the next."""
_WORDS: Final = re.compile(r"[^\W\d_]++(?:-[^\W\d_]++)*+")
_BROKEN: Final = re.compile(rf"(?<![^\W\d_])(?<![^\W\d_]-)({_WORDS.pattern})[-\u2010\u00ad]$")
_LONGEST: Final = 200
"""Greatest number of characters in a hyphenated word."""
_LEFT_OPEN: Final = frozenset({"and", "or", "to", "und", "oder", "bzw", "et", "ou"})
"""Words that may follow a hyphen that stands for the rest of a later word: ``short- and long-term``."""


class Piece(NamedTuple):
    """Text of a line that is raised (1), lowered (-1) or neither (0)."""

    level: int
    text: str


def settled(lines: list[Line]) -> list[Line]:
    """Move marks that are drawn separately into the lines where they are seen."""
    marks = [line for line in lines if len(line) == 1 and len(line[0].text) <= LONGEST]
    if not marks:
        return lines
    near: dict[int, list[Line]] = {}
    for line in lines:
        near.setdefault(int(line[0].height // BAND), []).append(line)
    placed = set()
    for mark in marks:
        band = int(mark[0].height // BAND)
        for line in (one for by in (0, -1, 1) for one in near.get(band + by, ())):
            at = _place(mark, line) if line is not mark and id(line) not in placed else None
            if at is not None:
                line.insert(at, mark[0]._replace(spaced=False))
                placed.add(id(mark))
                break
    return [line for line in lines if id(line) not in placed]


def _place(mark: Line, line: Line) -> int | None:
    run = mark[0]
    if mark.turned != line.turned:
        return None
    for at, other in enumerate(line):
        if _level(run, other) and run.size < SMALLER * other.size:
            if -0.2 * other.size <= run.start - other.end <= 0.5 * other.size:
                return at + 1
            if not at and 0 <= other.start - run.end <= 3 * other.size:
                return 0
    return None


def _level(run: Run, base: Run) -> int:
    """Return 1 for a raised run, -1 for a lowered one, else 0."""
    ratio = run.size / base.size if base.size else 0.0
    if not 0 < ratio <= 1.05:
        return 0
    above = (run.height - base.height) / base.size
    if ratio > SMALLER:
        least = 0.2 if len(run.text) <= 3 else 1.0
    else:
        least = max(RAISED[0], CENTRED * (1 - ratio)) if above > 0 else RAISED[0]
    return 0 if not least <= abs(above) <= RAISED[1] else 1 if above > 0 else -1


def pieces_of(line: Line) -> list[Piece]:
    """Split a line's text into raised, lowered and plain pieces."""
    pieces: list[Piece] = []
    base: Run | None = None
    for at, run in enumerate(line):
        if base is None:
            level = _level(run, line[1]) if len(line) > 1 and run.size <= SMALLER * line[1].size else 0
        else:
            level = _level(run, base) if run.start - line[at - 1].end <= NEAR * base.size else 0
        if not level:
            base = run
        text = " " * run.spaced + run.text
        if pieces and pieces[-1].level == level:
            pieces[-1] = Piece(level, pieces[-1].text + text)
        else:
            pieces.append(Piece(level, text))
    return pieces


def noted(lines: Iterable[list[Piece]]) -> set[str]:
    """Return the marks at the beginning of notes."""
    return {bare(line[0].text) for line in lines if line and line[0].level > 0}


def written(line: list[Piece], marks: Collection[str]) -> str:
    """Return a line as text."""
    text = ""
    for at, (level, piece) in enumerate(line):
        if not level:
            text += piece.lstrip() if not text or text[-1] == " " else piece
        elif level > 0:
            after = line[at + 1].text if at + 1 < len(line) else ""
            text = text.rstrip()
            text += raised(text, piece, noted=marks, after=after)
        else:
            text = text.rstrip()
            text += lowered(text, piece)
    return text.strip()


def words(lines: Iterable[str]) -> set[str]:
    """Return the lower-case words of lines, with and without hyphens."""
    return {word for line in lines for word in _WORDS.findall(line.lower())}


def joined_words(lines: list[str], known: Collection[str]) -> list[str]:
    """Join words hyphenated at the end of a line; the rest of the word moves up.

    A word that occurs with its hyphen in ``known``, the ``words`` of the document, keeps it.
    """
    found: list[str] = []
    for line in lines:
        broken = _BROKEN.search(found[-1], max(0, len(found[-1]) - _LONGEST)) if found else None
        rest = _WORDS.match(line)
        if broken is None or rest is None or rest.group().lower() in _LEFT_OPEN:
            found.append(line)
            continue
        word, more = broken.group(1), rest.group()
        kept = _keeps_hyphen(word, more, known) and found[-1][-1] != "\u00ad"
        moved, _, left = line.partition(" ")
        found[-1] = found[-1][:-1] + "-" * kept + moved
        if left:
            found.append(left)
    return [line.replace("\u00ad", "") for line in found]


def _keeps_hyphen(word: str, more: str, known: Collection[str]) -> bool:
    if more[0].isupper() and word[-1].islower():
        return True
    return f"{word}-{more}".lower() in known and f"{word}{more}".lower() not in known
