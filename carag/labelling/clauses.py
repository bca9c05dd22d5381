"""Split a document of rules at its clauses, and name the clause of each passage.

A clause stays whole with its items, provisos, explanations and tables, even if it is longer than passages usually are;
a clause that is too long for that is split between the clauses inside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.labelling.chunking import Boundary, Chunk, boundaries, chunk
from carag.labelling.clause_path import NOWHERE, Path, between
from carag.labelling.furniture import furniture
from carag.labelling.numbering import Numbering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


CLAUSES_VERSION: Final = "clauses-3"
"""This must change whenever the same text may be split or named differently; it is part of a document's content
hash."""


@dataclass(frozen=True, slots=True)
class ClauseChunk(Chunk):
    """A passage with the clauses it holds."""

    part: str
    """For example ``Annex II, clauses 4(a)-(c)``; empty where the text has no numbers."""


def chunk_by_clauses(
    text: str, *, target: int = 1000, limit: int = 1500, whole: int | None = None, overlap: int = 0
) -> list[ClauseChunk]:
    r"""Split a document into passages that hold whole clauses.

    ``whole`` is the greatest length of a clause or table that stays whole, and ``overlap`` is how much its parts may
    repeat if it is longer.
    """
    if not 1 <= target <= limit:
        raise InvalidArgument(
            f"target is {target} and limit {limit}; want 1 <= target <= limit, in characters"
        )
    if not 0 <= overlap < target:
        raise InvalidArgument(
            f"overlap is {overlap} and target {target}; want 0 <= overlap < target, in characters"
        )
    longest = limit if whole is None else whole
    if longest < limit:
        raise InvalidArgument(f"whole is {whole} and limit {limit}; want limit <= whole, in characters")
    running = furniture(text)
    units = _units(text, _pieces(text, running), running, limit, longest)
    chunks: list[ClauseChunk] = []
    for group in _grouped(units, target, limit, longest):
        start, end = group[0].start, group[-1].end
        if not group[0].is_cut:
            chunks.append(ClauseChunk(start, end, text[start:end], _named(group)))
        else:
            part = str(group[0].path)
            cuts = _cut(text, start, end, target, limit, overlap)
            chunks += [ClauseChunk(*one, text[slice(*one)], part) for one in cuts]
    return chunks


class _Piece(NamedTuple):
    """Either a clause's own words, from its number to the next piece, or a paragraph, table or heading."""

    start: int
    depth: int
    path: Path
    is_numbered: bool = True
    is_heading: bool = False
    is_table: bool = False


class _Unit(NamedTuple):
    """The content of one passage: a clause with everything inside it, or, where that is too long, its own words."""

    start: int
    end: int
    path: Path
    parent: int
    """The number of the piece that contains it."""
    heads: int | None
    """Its own number, if other units are inside it."""
    leads: bool
    """Whether it says nothing without what follows, as a title does, or words that end in a colon."""
    is_cut: bool


# --- the pieces of a text ---------------------------------------------------------------------------------

_LINE: Final = re.compile(r"[^\n]+")
_PAGE_BREAK: Final = re.compile(
    r"[-–—\s]*(?:(?:page\s)?[A-Z]?[ -]?\d{1,3}(?:\s(?:of|/)\s\d{1,3})?|<page>)[-–—\s]*", re.IGNORECASE
)
_KEPT: Final = re.compile(
    r"\W*(?:provided|proviso|explanations?|notes?|notwithstanding|except(?:ions?)?|illustrations?|footnotes?)\b",
    re.IGNORECASE,
)
"""The words that begin text belonging to the clause above."""
_LISTED_NOTES: Final = re.compile(r"notes?\s*[:：–—-]*", re.IGNORECASE)
"""A line below which notes are a list of their own."""
_ROW: Final = re.compile(r"[^|]*\|.*|[^\t]*\t+[^\t]+\t+[^\t].*")
_ENDED: Final = re.compile(r"[.!?。！？][\d\s'\"”’)\]」』）]*$")
_UNFINISHED: Final = re.compile(
    r"(?:,|\b(?:an?|and|as|at|by|for|from|in|of|on|or|shall|than|that|the|to|under|which|with))$",
    re.IGNORECASE,
)
"""The end of a line that a title cannot follow."""
_WORD: Final = re.compile(r"(?<=\s)\S")
_BARE: Final = re.compile(r"[\W\d]*[\w.]{1,12}\W*")
"""A number on a line of its own, as PDF files give marginal numbers."""
_TITLE: Final = 160
"""Greatest length in characters of a line of a title."""
_TITLE_LINES: Final = 2
_CARRIED: Final = 3
"""Greatest number of titles kept with the text below them; more are a table of contents."""
_ALONE: Final = re.compile(r"\W*(?:\d[\d.]*|[A-Za-z]{1,4})\W*")
"""A number or letter without a word."""
_LONGEST_BARE: Final = 20


def _pieces(text: str, running: frozenset[str]) -> list[_Piece]:
    """Divide a text at its headings, clauses, paragraphs and tables."""
    kinds = {at: kind for at, kind in boundaries(text) if kind <= Boundary.PARAGRAPH}
    numbering = Numbering(text)
    pieces: list[_Piece] = []
    above, path, last = "", NOWHERE, 0
    blank, bare, in_table = True, False, False
    title: int | None = None  # the start of a title that belongs to the text below
    for match in _LINE.finditer(text):
        line, start, end = match[0].strip(), match.end() - len(match[0].lstrip()), match.end()
        blank = blank or match.start() > last + 1
        last = end
        if not line or line in running or _PAGE_BREAK.fullmatch(line):
            blank = True
            continue
        is_row, kind = _ROW.fullmatch(line) is not None, kinds.get(start)
        is_note = _LISTED_NOTES.fullmatch(line) is not None
        is_kept = not is_row and not is_note and _KEPT.match(line) is not None
        torn = not is_row and line[0].islower()  # continues after a page's footnotes
        ended = _ENDED.search(above) is not None or in_table != is_row
        if not is_row and numbering.heading(line, above, start, blank=blank):
            found = [_Piece(start, numbering.depth, numbering.path, is_heading=True)]
        elif is_row:
            found = []
        else:
            found = [
                _Piece(at, numbering.depth, numbering.path, is_heading=numbering.in_heading)
                for at in numbering.clauses(start, end, above, blank=blank)
            ]
        if found:
            path = found[-1].path
            pieces += [found[0]._replace(start=start if title is None else title), *found[1:]]
            title = None
        elif bare:
            pass  # a number stood on a line of its own, and this line is what it numbers
        elif (
            kind in (Boundary.TITLE, Boundary.SECTION)
            and not (is_row or is_kept or _UNFINISHED.search(above))
            and line[-1] != ":"
        ):
            title = start if title is None else title
        elif title is not None:
            path = Path(path.headings)
            pieces.append(_Piece(title, numbering.paragraph(), path, is_numbered=False))
            title = None
        elif (
            ended and not (is_kept or torn) and (kind == Boundary.PARAGRAPH or in_table != is_row or is_note)
        ):
            pieces.append(_Piece(start, numbering.paragraph(), path, is_numbered=False, is_table=is_row))
        bare = bool(found) and len(line) <= _LONGEST_BARE and _BARE.fullmatch(line) is not None
        # A heading ends where its line does, however long.
        above, blank, in_table = line, title == start or (bool(found) and numbering.in_heading), is_row
    if title is not None:
        pieces.append(_Piece(title, numbering.paragraph(), Path(path.headings), is_numbered=False))
    first = len(text) - len(text.lstrip())
    if first < len(text) and (not pieces or pieces[0].start > first):
        pieces.insert(0, _Piece(first, 0, NOWHERE, is_numbered=False))
    return pieces


# --- from pieces to passages ------------------------------------------------------------------------------


def _units(
    text: str, pieces: list[_Piece], running: frozenset[str], limit: int, longest: int
) -> Iterator[_Unit]:
    """Yield the largest clauses that fit, and, for those that do not fit, the clause's own words."""
    starts = [one.start for one in pieces]
    ends = [a + len(text[a:b].rstrip()) for a, b in pairwise([*starts, len(text)])]
    after, parents = _tree([one.depth for one in pieces])
    at = 0
    while at < len(pieces):
        piece, start = pieces[at], starts[at]
        for following, is_lead_in in _prefixes(pieces, after, parents, at):
            end, heads = ends[following - 1], at if is_lead_in else None
            is_cut = end - start > limit and (end - start > longest or not _is_one(pieces[at:following]))
            if not is_cut:
                break
        leads = heads is not None or _leads(text, piece, end, running, alone=following == at + 1)
        yield _Unit(start, end, piece.path, parents[at], heads, leads, is_cut)
        at = following


def _prefixes(
    pieces: list[_Piece], after: list[int], parents: list[int], at: int
) -> Iterator[tuple[int, bool]]:
    """Yield where a unit that begins at a piece may end, farthest first, and whether clauses inside are left out."""
    end: int | None = after[at]
    while (
        end is not None
    ):  # paragraphs after the last item, such as notes and footnotes, are left out one at a time
        yield end, False
        inner, end = end - 1, None
        while inner > at:
            end = end if pieces[inner].is_numbered else inner
            inner = parents[inner]
    own = at + 1
    while own < after[at] and not pieces[own].is_numbered and after[own] == own + 1:
        own += 1
    yield own, own < after[at]
    yield at + 1, after[at] > at + 1


def _is_one(pieces: list[_Piece]) -> bool:
    """Tell whether pieces are one clause with its items, or a table, and not text or clauses under a heading."""
    if any(one.is_heading for one in pieces):
        return False
    path = pieces[0].path
    if any(one.is_numbered and one.path != path and "." in "".join(one.path.labels[-1:]) for one in pieces):
        return False  # 4.1 and 4.2 each say something
    return all(one.is_table for one in pieces) or any(one.path.labels for one in pieces)


def _leads(text: str, piece: _Piece, end: int, running: frozenset[str], *, alone: bool) -> bool:
    """Tell whether a unit ends in a colon, or is a title or number that stands alone."""
    lines: list[str] = []
    while end > piece.start and len(lines) < _TITLE_LINES + 1:
        begin = max(text.rfind("\n", piece.start, end) + 1, piece.start)
        line = text[begin:end].strip()
        if line and line not in running and not _PAGE_BREAK.fullmatch(line):
            if line[-1] in ":：" and not lines:
                return True
            lines.append(line)
        end = begin - 1
    is_item = piece.is_numbered and piece.path.labels and piece.path.labels[-1][0] == "("
    return (
        alone
        and len(lines) <= _TITLE_LINES
        and not is_item
        and not piece.is_table
        and all(
            len(line) <= _TITLE and (line[-1] not in ".;,!?。；，！？" or _ALONE.fullmatch(line))
            for line in lines
        )
    )


def _tree(depths: list[int]) -> tuple[list[int], list[int]]:
    """For every piece, return the first piece that is not inside it, and its parent or -1."""
    after, parents = [len(depths)] * len(depths), [-1] * len(depths)
    open_: list[int] = []
    for at, depth in enumerate(depths):
        while open_ and depths[open_[-1]] >= depth:
            after[open_.pop()] = at
        if open_:
            parents[at] = open_[-1]
        open_.append(at)
    return after, parents


def _grouped(units: Iterable[_Unit], target: int, limit: int, longest: int) -> Iterator[list[_Unit]]:
    """Join neighbours that have one parent, and join a title to the text below it."""
    group: list[_Unit] = []
    for unit in units:
        if group and not _joins(group, unit, target, limit, longest):
            kept = len(group)
            while kept and group[kept - 1].leads and len(group) - kept <= _CARRIED:
                kept -= 1
            carries = kept > 0 and len(group) - kept <= _CARRIED
            if not carries or not _joins(group[kept:], unit, target, limit, longest):
                kept = len(group)
            yield group[:kept]
            group = group[kept:]
        group.append(unit)
    if group:
        yield group


def _joins(group: list[_Unit], unit: _Unit, target: int, limit: int, longest: int) -> bool:
    if not group or unit.is_cut or group[-1].is_cut:
        return False
    first, last, length = group[0], group[-1], unit.end - group[0].start
    held = last.end - first.start
    if last.leads and len(group) == 1:
        return length <= (longest if held <= _TITLE else limit)
    if unit.heads is not None and not last.leads:
        return False
    if last.leads or last.parent == unit.parent:
        return length <= (limit if held < target // 2 else target)
    return False


def _named(group: list[_Unit]) -> str:
    inner = group
    while len(inner) > 1 and inner[0].heads == inner[1].parent:
        inner = inner[1:]
    return between(inner[0].path, inner[-1].path)


def _cut(text: str, start: int, end: int, target: int, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Split text that is too long to stay whole, and let each part after the first begin inside the one before."""
    earliest = start
    for one in chunk(text[start:end], target=target - overlap, limit=limit - overlap):
        at = start + one.start
        words = _WORD.search(text, max(earliest + 1, at - overlap), at) if at > earliest else None
        yield (words.start() if words else at), start + one.end
        earliest = at
