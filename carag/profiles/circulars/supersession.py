"""Find the statements by which a circular replaces, withdraws or amends others, and lists of what it repeals.

The object of a sentence is named in the sentence or below it, or was introduced earlier: "Please refer to circular X.
... it has been decided to revise the limit". If the object is uncertain, no act is reported.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.profiles.circulars.acts import (
    LISTED,
    Said,
    begins_clause,
    goes_on,
    is_actor,
    leaves_clause,
    said_in,
)
from carag.profiles.circulars.commencement import Commencement, commencement, effective_day
from carag.profiles.circulars.lists import listings, rows
from carag.profiles.circulars.references import Reference, levelled, references

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date


class Statement(NamedTuple):
    """What a circular does to another."""

    kind: ActKind
    start: int
    end: int
    """Offsets in the text of the words that name the other circular and the act."""
    other: Reference | None
    """None if the text only says "the circulars listed in the Annex" and the list is missing."""
    effective: date | None = None
    """The day from which the act holds, if the sentence states it."""
    consolidates: bool = False
    """Whether the other circular is only taken into a compilation, and stays in force."""


_SIGNED: Final = re.compile(r"\n\s*Yours\s+(?:faithfully|sincerely)", re.I)
"""Below this, the text is a footnote or an annex, and decides nothing more."""
_BACK: Final = re.compile(
    r"\b(?:above|above-mentioned|aforementioned|aforesaid|said|ibid|captioned|same|earlier|existing)\b", re.I
)
_OPENING: Final = (
    r"please\s+refer|we\s+refer|(?:invite|draw)\s+(?:your\s+|the\s+)?(?:attention|reference)"
    r"|(?:reference|attention)\b.{0,90}\b(?:invited|drawn|made)|has\s+reference\s+to|in\s+terms\s+of"
)
_ADDRESSES: Final = re.compile(rf"\b(?:{_OPENING})\b", re.I | re.S)
"""Words by which an opening names what the circular is about."""
_INTRODUCES: Final = re.compile(rf"\b(?:{_OPENING}|vide|had\s+issued)\b", re.I | re.S)
"""Words that introduce a circular to which "the said circular" refers back."""
_ALL: Final = re.compile(r"\s*(?:all|any)\b", re.I)
"""Words for all instructions on a subject, which are more than the opening names."""
_FOLLOWS: Final = re.compile(
    r"\bfollowing\s+(?:\w+\s+){0,3}(?:circular|direction|instruction|guideline|notification)|\b(?:at|in)\s+\((?:i|a|1)\)",
    re.I,
)
_BELOW: Final = re.compile(r":|\bnamely\b|\bviz\b", re.I)
_BEFORE: Final = 8
"""Number of earlier sentences that may have introduced the object of a sentence that acts."""
_ITEM: Final = 30
"""Greatest number of characters of a line between list items that names no circular, such as an item's number."""

_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:[Nn]o|Nos|Cir|Ref|viz|vide|i\.e|e\.g|Para|Sr|Sl|Dt|Ltd|A|P|Do[RS])|\n\s*\(?\d{1,2})$"
)
_CAPITALS: Final = re.compile(r"\b[A-Z]{2,8}$")
_WORD: Final = re.compile(r"[A-Z][a-z]+[\s,]")
"""A word that follows capitals with a full stop; the capitals then end a sentence and are not part of a number."""
_RUNS_ON: Final = re.compile(
    r"\b(?:dated|the|of|and|or|to|in|on|for|by|with|from|vide|our|circulars?|contained|No\.?)$"
)
_BREAK: Final = re.compile(
    r"\n\s*\n(?=\s*(?:[A-Z‘“\[]|\(?\w{1,4}[.)]\s))|(?<=[.;])\s+(?=[‘“(\[]?[A-Z\d(])|(?<=:)[ \t]*\n\s*"
    r"|\n\s*\n(?=\s*\d{1,2}\s+[A-Z][a-z])|\n(?=\s*(?:\(?[a-z\d]{1,4}[.)]|\d+(?:\.\d+)+)\s)"
)


def in_force_from(text: str, issued: date | None) -> Commencement | None:
    """Return where a circular says from when it is in force as a whole; None if it does not say that.

    Examples
    --------
    >>> in_force_from("4. This circular shall come into force with effect from April 1, 2025.", None).day.isoformat()
    '2025-04-01'
    """
    text = levelled(text)
    return commencement(text, _sentences(text), issued)


def statements(text: str, *, issued: date | None = None) -> list[Statement]:
    """Return all statements of a circular, in order; ``issued`` is the date of what holds "with immediate effect".

    Examples
    --------
    >>> said, = statements("The circular UBD.PCB.No.20/16.05.000/2013-14 dated September 27, 2013 stands repealed.")
    >>> said.kind.value, said.other.numbers
    ('withdraws', ('UBD.PCB.No.20/16.05.000/2013-14',))
    """
    text = levelled(text)
    all_references = references(text)
    every = _sentences(text, all_references)
    lists = listings(text, every)
    sentences = [one for one in every if not any(part.start <= one[0] < part.end for part in lists)]
    starts = [one.start for one in all_references]
    named = [all_references[bisect_left(starts, a) : bisect_left(starts, b)] for a, b in sentences]
    signed = _SIGNED.search(text)
    found: list[Statement] = []
    decided: list[Statement] = []
    for number, (start, end) in enumerate(sentences):
        said = said_in(text[start:end])
        if said is None or (said.is_of_opening and signed and start > signed.start()):
            continue
        if any(part.start < start + said.end <= part.end for part in lists):  # the heading of a list
            continue
        day = effective_day(text[start:end], issued)
        if said.kind is not ActKind.AMENDS and (below := _below(text, sentences, named, number)):
            found += [Statement(said.kind, one.start, one.end, one, day) for one in below]
            continue
        others, first = _acted_on(text, sentences, named, number, said)
        if not others and said.kind is ActKind.AMENDS:
            continue
        compiled = said.compiles and (not others or bool(LISTED.search(text, start, end)))
        acted_on: list[Reference | None] = [*others] or [None]
        several = [Statement(said.kind, first, end, other, day, compiled) for other in acted_on]
        (decided if said.is_of_opening else found).extend(several)
    acted = {name for one in found if one.other for name in one.other.names}
    found += [one for one in decided if not one.other or acted.isdisjoint(one.other.names)]
    whole = commencement(text, every, issued)
    day = whole.day if whole else None
    for part in lists:
        found += [
            Statement(kind, one.start, one.end, one, day, part.compiles)
            for kind, one in rows(text, all_references, part)
        ]
    return _once(found)


def _acted_on(
    text: str,
    sentences: list[tuple[int, int]],
    named: list[list[Reference]],
    number: int,
    said: Said,
) -> tuple[list[Reference], int]:
    """Return the objects of a sentence, and where the words that name them begin."""
    start, end = sentences[number]
    listed = LISTED.search(text, start, end)
    own = [
        one
        for one in named[number]
        if not is_actor(text, one.start)
        and not (listed and 0 <= one.start - listed.end() < _ITEM)  # the circular with the annex
    ]
    is_below = _BELOW.search(text, start + said.end, end)
    acts_at = start + said.start
    before = _coordinated(text, [one for one in own if one.start < acts_at])
    after = _coordinated(text, [one for one in own if one.start >= acts_at], end)
    if (
        after
        and not is_below
        and not said.compiles
        and leaves_clause(text[start + said.end : after[0].start])
    ):
        after = []
    if said.kind is not ActKind.AMENDS:
        others = (before or (after if is_below else [])) if said.is_done_to else after
    else:
        others = (before or after) if said.is_done_to else (after or before)
    if others:
        return others, start
    is_back = _BACK.search(text, start, end)
    if not said.compiles and (
        (said.kind is ActKind.WITHDRAWS and not is_back)
        or (said.kind is not ActKind.AMENDS and (listed or _ALL.match(text, start + said.end, end)))
    ):
        return [], start
    cues = _ADDRESSES if said.is_of_opening or (said.is_done_to and not is_back) else _INTRODUCES
    for earlier in _openings(number, said):
        cue = cues.search(text, *sentences[earlier])
        # The text before the cue is the circular's own title.
        if cue and (introduced := [one for one in named[earlier] if one.start >= cue.start()]):
            return _coordinated(text, introduced), sentences[earlier][0]
    return [], start


def _coordinated(text: str, several: list[Reference], end: int | None = None) -> list[Reference]:
    """Return the first circular and the circulars coordinated with it; later circulars are only cited.

    ``end`` is where the sentence ends. If it is given, a circular that begins a clause of its own is left out: "this
    supersedes X and circular Y shall apply".
    """
    found = several[:1]
    for one, other, following in zip(several, several[1:], [*several[2:], None], strict=False):
        rest = text[other.end : following.start if following else end] if end else ""
        if not goes_on(text[one.end : other.start]) or begins_clause(rest):
            break
        found.append(other)
    return found


def _openings(number: int, said: Said) -> range:
    """Return the sentences that may have introduced a sentence's object, the likeliest first."""
    if said.is_of_opening:
        return range(min(number, _BEFORE))
    return range(number - 1, max(-1, number - 1 - _BEFORE), -1)


def _below(
    text: str, sentences: list[tuple[int, int]], named: list[list[Reference]], number: int
) -> list[Reference]:
    """Return the circulars named by the items below a sentence, until an item that names none."""
    start, end = sentences[number]
    follows = _FOLLOWS.search(text, start, end)
    own = [one for one in named[number] if follows and one.start > follows.end()]
    if len(own) < len(named[number]) or not (follows or text[start:end].rstrip().endswith(":")):
        return []
    found = own
    for (start, end), several in zip(sentences[number + 1 :], named[number + 1 :], strict=True):
        several = [one for one in several if not one.word]
        if (not several and end - start > _ITEM) or said_in(text[start:end]):
            break
        found += several
    return found


def _once(found: list[Statement]) -> list[Statement]:
    seen = set()
    kept = []
    for one in sorted(found, key=lambda said: (said.start, said.end)):
        key = (one.kind, one.start, one.other and (one.other.numbers, one.other.title, one.other.date))
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


def _sentences(text: str, named: Sequence[Reference] = ()) -> list[tuple[int, int]]:
    """Split a text into sentences; a full stop inside a number, title or abbreviation does not end one."""
    edges = [0]
    starts = [one.start for one in named]
    for one in _BREAK.finditer(text):
        before, at = text[max(0, one.start() - 9) : one.start()], bisect_left(starts, one.start()) - 1
        if at >= 0 and one.end() < named[at].end:
            continue
        if _RUNS_ON.search(before) or (before.endswith(".") and _ABBREVIATED.search(before[:-1])):
            continue
        if before.endswith(".") and _CAPITALS.search(before[:-1]) and not _WORD.match(text, one.end()):
            continue
        edges.append(one.end())
    return [(start, end) for start, end in pairwise([*edges, len(text)]) if text[start:end].strip()]
