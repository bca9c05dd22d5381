"""Find the lists of circulars that a circular repeals, replaces or compiles, and read their rows.

A list has a heading of its own, is in a part that a sentence refers to, or is the table of a compilation. A PDF's
tables come as lines: a number and its day on one line, or a column of numbers above a column of days.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.profiles.circulars.acts import LISTED, PIECE, REISSUES, is_actor, said_in
from carag.profiles.circulars.references import DATE, NUMBER, Reference, date_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Listing(NamedTuple):
    """A list's place, and what it does to the circulars in it."""

    start: int
    end: int
    kind: ActKind
    compiles: bool = False
    """Whether the list only compiles circulars, which stay in force."""


_ENDED: Final = "withdrawn|repealed|rescinded|revoked|cancelled"
_TAKEN: Final = "superseded|replaced"
_COMPILED: Final = "consolidated|compiled|incorporated"
_LABEL: Final = r"(?:(?:Annex(?:ure)?|Appendix|Schedule)[ \t]*[-–]?[ \t]*\w{0,4}[ \t]*[:–-][ \t]*)?"
_MANY: Final = r"(?:circulars?|notifications|instructions|directions|guidelines)"
_LIST: Final = re.compile(
    rf"(?:\blist\s+of\s+|^[ \t]*{_LABEL})(?:(?:(?!(?<!\b[A-Z])\.\s|\n\s*\n|\bgiven\b|:).){{0,90}}?\b{_MANY}\b"
    rf"(?:(?!(?<!\b[A-Z])\.\s|\n\s*\n|\b(?:is|are)\s+given\b).){{0,110}}?\b(?P<act>{_ENDED}|{_TAKEN}|{_COMPILED})\b"
    rf"(?:[^.\n]|\n(?!\s*\n)){{0,110}}|(?P<short>{_ENDED}|{_TAKEN}|{_COMPILED})\s+{_MANY}\b)",
    re.I | re.S | re.M,
)
_ELSEWHERE: Final = re.compile(r"\b(?:is|are)\s+(?:given|furnished|enclosed|annexed|placed|provided)\b", re.I)
_CLAUSE: Final = re.compile(
    r"\b(?:is|are|was|were|which|stands?|ha[sv]e?|been|shall|will)\b(?<!that\sstand)", re.I
)
"""A line with such a word is not a heading, unless it begins like a list."""
_CONTENTS: Final = re.compile(r"\.{4,}")
_TABLE: Final = re.compile(
    r"\n\s*(?:Annex(?:ure)?|Appendix)\b[^\n.]{0,40}\n[^.]{0,20}(?:\.\s*)?\n?\s*Circular\s+No", re.I
)
"""The heading of a compilation's table."""
_NEXT_PART: Final = re.compile(r"\n\s*(?:Annex(?:ure)?|Appendix|Chapter|Schedule)\b[^\n]{0,60}\n", re.I)
_GAP: Final = 1500
"""Greatest number of characters between two numbers of a list, such as a column of titles."""
_LINE: Final = 110
"""Characters after a number that belong to its row."""
_HEAD: Final = 60
"""Greatest number of characters before the words that make a line the heading of a list."""


def listings(text: str, sentences: Iterable[tuple[int, int]]) -> list[Listing]:
    """Find all lists in a text; of two that overlap, keep the one with a heading of its own."""
    found: list[Listing] = []
    for one in [*_headed(text), *_parts(text, sentences)]:
        if not any(one.start < other.end and one.end > other.start for other in found):
            found.append(one)
    return found


def _kind(words: str) -> tuple[ActKind, bool]:
    if re.search(_ENDED, words, re.I):
        return ActKind.WITHDRAWS, False
    return ActKind.REPLACES, not re.search(_TAKEN, words, re.I)


def _headed(text: str) -> list[Listing]:
    heads = [
        one
        for one in _LIST.finditer(text)
        if not _CONTENTS.search(text[one.start() : one.end() + 120])
        and (one["short"] or re.search(r"\blist\s+of\b", one[0], re.I) or not _CLAUSE.search(one[0]))
        and (one["short"] or not NUMBER.search(text, one.start(), one.start("act")))
        and not (one["act"] and _ELSEWHERE.search(text, one.end("act"), one.end()))
        and one.start() - text.rfind("\n", 0, one.start()) <= _HEAD
    ]
    found = []
    for one, end in zip(heads, [*(one.start() for one in heads[1:]), len(text)], strict=False):
        start = text.rfind("\n", 0, one.start() + 1) + 1
        found.append(Listing(start, _part_end(text, one.end(), end), *_kind(one[0])))
    return found


def _part_end(text: str, start: int, end: int) -> int:
    part = _NEXT_PART.search(text, start, end)
    return part.start() if part else end


def _parts(text: str, sentences: Iterable[tuple[int, int]]) -> list[Listing]:
    found = []
    if compiled := REISSUES.search(text):
        found += [
            Listing(one.end(), _part_end(text, one.end(), len(text)), ActKind.REPLACES, compiles=True)
            for one in _TABLE.finditer(text, compiled.end())
        ]
    for start, end in sentences:
        listed = LISTED.search(text, start, end)
        said = said_in(text[start:end]) if listed else None
        if listed is None or said is None or said.kind is ActKind.AMENDS:
            continue
        label = r"\s*[-–]?\s*".join(map(re.escape, re.findall(r"\w+", listed["part"] or listed["other"])))
        head = re.compile(rf"^[ \t]*{label}\b(?!\s*[-–]?\s*\.{{3}})[^\n.]{{0,80}}\n", re.I | re.M)
        if heads := list(head.finditer(text, end)):
            begin = heads[-1].end()
            found.append(Listing(begin, _part_end(text, begin, len(text)), said.kind, said.compiles))
    return found


def rows(text: str, several: Iterable[Reference], where: Listing) -> list[tuple[ActKind, Reference]]:
    """Return every number of a list and what is done to it; a row that names a paragraph only amends."""
    items = [
        one
        for one in several
        if where.start <= one.start < where.end
        and one.numbers
        and not one.word
        and not is_actor(text, one.start)
    ]
    if not where.compiles:
        gaps = (
            at for at, (one, other) in enumerate(pairwise(items), start=1) if other.start - one.end > _GAP
        )
        items = items[: next(gaps, len(items))]
    found: list[tuple[ActKind, Reference]] = []
    for one, following in zip(_with_days(text, items, where), [*items[1:], None][: len(items)], strict=True):
        line = min(following.start if following else where.end, one.end + _LINE)
        is_piece = where.kind is ActKind.WITHDRAWS and PIECE.search(text[one.start : line])
        found.append((ActKind.AMENDS if is_piece else where.kind, one))
    return found


def _with_days(text: str, items: list[Reference], where: Listing) -> list[Reference]:
    """Date each number by the day that follows it, or by its position in a column with the same number of days."""
    days = [
        day
        for day in DATE.finditer(text, where.start, where.end)
        if date_of(day)
        and not any(one.start <= day.start() < one.start + len(" ".join(one.numbers)) for one in items)
    ]
    # A day before the first number may belong to any row.
    if not items or not days or (days[0].start() < items[0].start and not any(one.date for one in items)):
        return items
    found: list[Reference] = []
    while len(found) < len(items):
        first = last = len(found)  # a run of numbers without a day between them
        while last + 1 < len(items) and not any(
            items[last].start < day.start() < items[last + 1].start for day in days
        ):
            last += 1
        several = items[first : last + 1]
        end = items[last + 1].start if last + 1 < len(items) else where.end
        column = [day for day in days if several[-1].start <= day.start() < end]
        if len(several) == 1:
            column = column[:1]
        if len(column) == len(several):
            several = [one._replace(date=date_of(day)) for one, day in zip(several, column, strict=True)]
        elif column and "\n" in text[several[-1].start : column[0].start()]:
            several[-1] = several[-1]._replace(date=None)  # a column's first day may belong to another row
        found += several
    return found
