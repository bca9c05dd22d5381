"""Read the statements by which a circular replaces, withdraws or amends others, and lists of what it repeals.

A statement is a sentence that acts, with the references that it acts on: its own, or those of the sentence before that
introduces them ("Please refer to circular X. On a review, it has been decided to revise ..."). What a text tells of
acts of others, such as statutes, footnotes ("amended vide circular X") or "as amended from time to time", is none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.profiles.circulars.references import DATE, Reference, date_of, references

if TYPE_CHECKING:
    from datetime import date

__all__ = ["Statement", "in_force_from", "statements"]


class Statement(NamedTuple):
    """What a circular does to another."""

    kind: ActKind
    start: int
    end: int
    """Offsets in the text of the words that name the other and act."""
    other: Reference | None
    """None where the text only says "the circulars listed in the Annex", and its list is not there."""
    effective: date | None = None
    """From when, where the sentence says so."""
    consolidates: bool = False
    """The other is taken into a compilation, and nothing says that it ceases to be in force."""


_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:No|Nos|Cir|Ref|viz|vide|i\.e|e\.g|Para|Sr|Sl|Dt|Ltd|A|P|[A-Z]{2,8}|Do[RS])|\n\s*\(?\d{1,2})$"
)
_RUNS_ON: Final = re.compile(r"\b(?:dated|the|of|and|to|in|on|for|vide|No\.?)$")
_BREAK: Final = re.compile(
    r"\n\s*\n(?=\s*(?:[A-Z‘“\[]|\(?\w{1,4}[.)]\s))|(?<=[.;:])\s+(?=[‘“(\[]?[A-Z\d(])|\n(?=\s*(?:\(?[a-z\d]{1,4}[.)]|\d+(?:\.\d+)+)\s)"
)
_SAYS_NOTHING: Final = re.compile(
    r"(?:as|and)\s+(?:amended|updated|modified|revised)\s+(?:from\s+time|on|as|up\s*to|vide)|from\s+time\s+to\s+time"
    r"|\(?(?:amended|updated|substituted|inserted|deleted|modified)\s+(?:vide|as\s+on|on)\b",
    re.I,
)
_NOUN: Final = (
    r"(?:circulars?|directions?|instructions?|guidelines|guidance\s+note|notifications?|master|MDs?\b"
    r"|framework)"
)
_PASSIVE: Final = (
    r"(?:stands?|(?:shall|will)\s+stand|(?:is|are|be|been|being|has\s+been|have\s+been)\b)(?:\s+\w+){0,2}?\s+"
)

_WITHDRAWS: Final = re.compile(
    rf"{_PASSIVE}(?:withdrawn|repealed|rescinded)\b|\bcease(?:s)?\s+to\s+(?:be\s+(?:applicable|in\s+force)|apply)|(?:decided\s+to|hereby)\s+(?:withdraw|repeal|rescind)",
    re.I,
)
_NO_WITHDRAWAL: Final = re.compile(
    r"since\s+been\s+(?:repealed|withdrawn)|already\s+repealed|repealed\s+(?:circulars|directions|lists?)\b|such\s+repeal"
    r"|(?:repealed|withdrawn)\s+(?:in\s+terms\s+of|vide|by)\b|provision\s+has\s+been|prior\s+to\s+the",
    re.I,
)
_REPLACES: Final = re.compile(
    rf"\bsupersed(?:e|es|ing)\b|{_PASSIVE}superseded\b(?!\s+(?:by|vide))|\bsupersession\s+of\b|\breplac(?:es|ing)\s+the\b(?!\s+(?:words?|existing\s+para))"
    r"|\brevised(?:\s+and\s+updated)?\s+(?:the\s+)?Master\s+(?:Circular|Direction)|\bin\s+place\s+of\s+the\s+circular"
    r"|\bThis\s+(?:Guidance\s+Note|Circular|Direction)\s+updates\b"
    r"|\b(?:has|have)\s+been\s+(?:\w+\s+)?(?:updated|revised)(?:\s+and\s+\w+)?\s+(?:by|to|so\s+as\s+to)\s+(?:incorporat|includ|reflect)"
    r"|\b(?:attached|enclosed|updated|a\s+revised)\b[^.]{0,60}?\bMaster\s+(?:Circular|Direction)s?\b[^.]{0,90}?\b(?:updat|incorporat|revis)"
    r"|\bupdated\s+Master\s+(?:Circular|Direction)",
    re.I,
)
_CONSOLIDATES: Final = re.compile(
    r"\b(?:This|These|The\s+enclosed)\s+(?:Master\s+)?(?:Circular|Direction)s?\b[^.]{0,90}?\bconsolidate",
    re.I | re.S,
)
_NO_REPLACEMENT: Final = re.compile(
    r"\bnot\s+(?:meant\s+to\s+)?(?:replace|supersede|in\s+substitution)|supersession\s+of\s+(?:earlier|the\s+board)\s+orders"
    r"|government\s+instructions",
    re.I,
)
_CHANGED: Final = r"(?:amended|modified|updated|revised|replaced|substituted|deleted)"
_AMENDS: Final = re.compile(
    rf"{_PASSIVE}(?:accordingly\s+|suitably\s+|hereby\s+)?{_CHANGED}\b(?!\s+(?:vide|through|in\s+terms))|shall\s+(?:\w+\s+)?be\s+(?:\w+\s+)?{_CHANGED}\b"
    rf"|(?:amendments?|modifications?|changes)\s+(?:to\s+[^.]{{0,60}}?\s+)?(?:{_PASSIVE}|being\s+)?(?:carried\s+out|made|effected)\b"
    r"|\bcarry\s+out\s+(?:the\s+)?(?:following\s+)?(?:amendments?|modifications?|changes)"
    r"|\b(?:partial\s+)?modification\s+of\b(?!\s+terms)|\bAmendment\s+Directions\s+modify\b|\bmodified\s+paragraph\b"
    r"|\bdecided\s+to\s+(?:\w+\s+)?(?:revise|amend|modify|raise|increase|enhance|extend|reduce|shift|align|review)\b"
    r"|\bdecided\s+that\s+[^.]{0,60}?\b(?:aforementioned|above|existing|said|aforesaid)\b|\bnow\s+being\s+revised\b"
    r"|\b(?:it\s+(?:has|is|was)\s+(?:\w+\s+)?(?:been\s+)?(?:\w+\s+)?(?:decided|directed|clarified)|hereby\s+permitted)\b"
    r"|\bwith\s+the\s+following\s+(?:amendments|modifications|changes)",
    re.I,
)
_BY_LAW: Final = re.compile(
    r"\b(?:Act|Rules|Regulations|Government|Gazette|UNSC|Security\s+Council|Schedule|Sanctions\s+List|designated\s+list)\b"
)
_ACTOR: Final = re.compile(
    r"(?:communicated|repealed|amended|notified|deleted|substituted|inserted|conveyed)\s+(?:vide|by|through|under)\s+(?:\S+\s+){0,4}$"
    r"|in\s+terms\s+of\s+(?:\S+\s+){0,3}$|(?:defined\s+in|in\s+accordance\s+with|in\s+alignment\s+with|as\s+per|read\s+with)"
    r"\s+(?:the\s+|our\s+)?$",
    re.I,
)
_BACK: Final = re.compile(
    r"\b(?:above|above-mentioned|enclosed|attached|aforementioned|aforesaid|said|ibid|captioned|same|these|this|accordingly|existing|extant|following|on\s+a\s+review"
    r"|decided|revised|modified|the\s+(?:Directions|Master\s+Directions?|circulars?|framework|scheme))\b",
    re.I,
)
_INTRODUCES: Final = re.compile(
    r"\b(?:please\s+refer|(?:reference|attention)\b.{0,60}\b(?:invited|drawn|made)|has\s+reference\s+to|in\s+terms\s+of|vide|had\s+issued)\b",
    re.I | re.S,
)
_ADDRESSED: Final = re.compile(r"\bplease\s+refer\b", re.I)
"""What a decision that names no change is about: the circular with which its own begins."""
_FOLLOWS: Final = re.compile(
    r"\bfollowing\s+(?:\w+\s+){0,3}(?:circular|direction|instruction|guideline|notification)", re.I
)
_ITEM: Final = 30
"""Greatest number of characters of a line between the items of a list that names nothing, such as its number."""
_BEFORE: Final = 3
"""Sentences before one that acts, in which what it acts on may have been introduced."""
_LISTED: Final = re.compile(
    r"\b(?:listed|mentioned|given|enumerated|indicated|contained|specified|provided|detailed|set\s+out|as\s+per|shown)\s+(?:below\s+)?"
    r"(?:at|in|under)\s+(?:the\s+)?(?P<part>(?:Annex(?:ure)?|Appendix|Schedule)(?:\s*[-–]?\s*(?:[IVX]+|\d+|[A-Z])\b)?)"
    r"|\blist\s+of\s+(?:such\s+|these\s+|the\s+)?circulars[^.]{0,80}?\bin\s+(?:the\s+)?(?P<other>(?:Annex(?:ure)?|Appendix|Schedule)(?:\s*[-–]?\s*(?:[IVX]+|\d+|[A-Z])\b)?)",
    re.I,
)

_LIST: Final = re.compile(
    r"(?:list\s+of\s+|(?<=\n))(?:(?:the|other|all|earlier|important|relevant|RBI)\s+)*(?:master\s+)?(?:circulars?|notifications|instructions|directions|guidelines)\b"
    r"[^.]{0,110}?\b(?P<act>repealed|withdrawn|superseded|replaced|consolidated|compiled|incorporated)\b",
    re.I | re.S,
)
_CONTENTS: Final = re.compile(r"\.{4,}")
_NEXT_PART: Final = re.compile(r"\n\s*(?:Annex(?:ure)?|Appendix|Chapter|Schedule)\b[^\n]{0,60}\n", re.I)
_PART: Final = re.compile(r"\bpara(?:graph|s|\.)?\b|\bPara\b", re.I)
_LINE: Final = 110
"""Characters after a number in a list that are about it."""

_EFFECT: Final = re.compile(
    r"(?:with\s+effect\s+from|w\.?\s?e\.?\s?f\.?|effective\s+(?:from|on)?|(?:in)?to\s+(?:force|effect)\s+(?:on|from|with\s+effect\s+from)"
    r"|(?:force|effect)\s+from|applicable\s+(?:from|with\s+effect\s+from))\s+(?:the\s+)?(?:close\s+of\s+business\s+(?:on|of)\s+)?$",
    re.I,
)
_AT_ONCE: Final = re.compile(
    r"\bwith\s+immediate\s+effect\b|\bimmediately\b|\bfrom\s+the\s+date\s+of\s+(?:this|the|its|issue)|close\s+of\s+business\s+today",
    re.I,
)
_COMMENCES: Final = re.compile(
    r"\b(?:shall|will)\s+(?:come|be|become|take)\b[^.;]{0,60}?\b(?:force|effect|effective|applicable)\b"
    r"|\b(?:instructions|directions|provisions|circular)\b[^.;]{0,40}\b(?:effective|applicable)\b",
    re.I,
)


def in_force_from(text: str, issued: date | None) -> tuple[date, int, int] | None:
    """Return from when a circular says that it is in force as a whole, and where it says so; None if it does not.

    Examples
    --------
    >>> in_force_from("4. This circular shall come into force with effect from April 1, 2025.", None)[0].isoformat()
    '2025-04-01'
    """
    for start, end in _sentences(text):
        sentence = text[start:end]
        if not _COMMENCES.search(sentence) or not re.search(
            r"\b(?:this|these|the\s+(?:revised|above|amended|aforesaid)?)\s*(?:\w+\s+){0,2}(?:circular|directions?|instructions|guidelines"
            r"|provisions|framework|guidance\s+note)\b",
            sentence,
            re.I,
        ):
            continue
        if day := _effective(sentence, issued):
            return day, start, end
    return None


def statements(text: str, *, issued: date | None = None) -> list[Statement]:
    """Read all statements of a circular, in order.

    Parameters
    ----------
    text : str
    issued : date, optional
        When the circular was issued: from when what it does "with immediate effect" holds.

    Examples
    --------
    >>> said, = statements("The circular UBD.PCB.No.20/16.05.000/2013-14 dated September 27, 2013 stands repealed.")
    >>> said.kind.value, said.other.numbers
    ('withdraws', ('UBD.PCB.No.20/16.05.000/2013-14',))
    """
    lists = [*_lists(text), *_parts(text)]
    lists = [
        one
        for number, one in enumerate(lists)
        if not any(a < one[1] and b > one[0] for a, b, _ in lists[:number])
    ]
    all_references = references(text)
    sentences = [one for one in _sentences(text) if not any(a <= one[0] < b for a, b, _ in lists)]
    starts = [one.start for one in all_references]
    named = [all_references[bisect_left(starts, a) : bisect_left(starts, b)] for a, b in sentences]
    found: list[Statement] = []
    for number, (start, end) in enumerate(sentences):
        sentence = text[start:end]
        if (said := _kind(sentence)) is None:
            continue
        kind, consolidates = said
        others, first = _acted_on(text, sentences, named, number, kind)
        if kind is not ActKind.AMENDS and (
            _FOLLOWS.search(sentence) or (not others and sentence.rstrip().endswith(":"))
        ):
            below = _below(text, sentences, named, number)
            found += [Statement(kind, one.start, one.end, one, _effective(sentence, issued)) for one in below]
            if below and not named[number]:
                continue
        day = _effective(sentence, issued)
        listed = bool(_LISTED.search(sentence))
        if not others and not (listed or kind is not ActKind.AMENDS):
            continue
        compiled = consolidates and (listed or not others)
        acted_on: list[Reference | None] = [*others] or [None]
        found += [Statement(kind, min(first, start), end, other, day, compiled) for other in acted_on]
    whole = in_force_from(text, issued)
    for start, end, act in lists:
        found += _listed(text, all_references, start, end, act, whole[0] if whole else None)
    return _once(found)


def _kind(sentence: str) -> tuple[ActKind, bool] | None:
    """Return what a sentence does, and whether it only compiles; None if it does not act."""
    plain = _SAYS_NOTHING.sub(lambda one: " " * len(one[0]), sentence)
    about = re.search(_NOUN, plain, re.I)
    if _WITHDRAWS.search(plain) and about and not _NO_WITHDRAWAL.search(plain):
        return ActKind.WITHDRAWS, False
    if _REPLACES.search(plain) and about and not _NO_REPLACEMENT.search(plain):
        return ActKind.REPLACES, False
    if _CONSOLIDATES.search(plain) and not _NO_REPLACEMENT.search(plain):
        return ActKind.REPLACES, True
    if _AMENDS.search(plain) and not (
        _BY_LAW.search(plain) and not re.search(r"\b(?:Master|Directions?,?\s+\d{4}|circular)", plain)
    ):
        return ActKind.AMENDS, False
    return None


def _acted_on(
    text: str,
    sentences: list[tuple[int, int]],
    named: list[list[Reference]],
    number: int,
    kind: ActKind,
) -> tuple[list[Reference], int]:
    """Return what a sentence acts on, and where the words that name it begin."""
    start, end = sentences[number]
    own = [one for one in named[number] if not _ACTOR.search(text[max(start, one.start - 60) : one.start])]
    if own:
        return own, start
    sentence = text[start:end]
    if (_LISTED.search(sentence) and kind is not ActKind.REPLACES) or not _BACK.search(sentence):
        return [], start
    weak = kind is ActKind.AMENDS and not re.search(
        _CHANGED + r"|amend|modif|revis|chang|existing|above|said", sentence, re.I
    )
    for before in range(number - 1, max(-1, number - 1 - _BEFORE), -1):
        cue = (_ADDRESSED if weak else _INTRODUCES).search(text, *sentences[before])
        # What stands before the cue is the circular's own title.
        if cue and (introduced := [one for one in named[before] if one.start >= cue.start()]):
            return introduced, sentences[before][0]
    return [], start


def _below(
    text: str, sentences: list[tuple[int, int]], named: list[list[Reference]], number: int
) -> list[Reference]:
    """Return what the items below a sentence name, as far as each names something or is a mere number of an item."""
    found: list[Reference] = []
    for (start, end), several in zip(sentences[number + 1 :], named[number + 1 :], strict=True):
        if not several and (end - start > _ITEM or _kind(text[start:end])):
            break
        if several and _kind(text[start:end]) and not several[0].numbers:
            break
        found += several
    return found


def _lists(text: str) -> list[tuple[int, int, str]]:
    """Find the lists of circulars that are repealed or consolidated, each until the next part of the text."""
    heads = [
        one
        for one in _LIST.finditer(text)
        if not _CONTENTS.search(text[one.start() : one.end() + 120])
        and re.search(r"\n\s*[^\n]{0,60}$", text[max(0, one.start() - 80) : one.start()])
        and not re.search(r"\b(?:stand|is|are)\s*$", text[max(0, one.start() - 12) : one.start()])
    ]
    found = []
    for one, end in zip(heads, [*(one.start() for one in heads[1:]), len(text)], strict=False):
        part = _NEXT_PART.search(text, one.end(), end)
        found.append((one.end(), part.start() if part else end, one["act"].lower()))
    return found


def _parts(text: str) -> list[tuple[int, int, str]]:
    """Find the parts, such as an appendix, of which a sentence says that what they list is repealed or compiled."""
    found = []
    for start, end in _sentences(text):
        sentence = text[start:end]
        listed = _LISTED.search(sentence)
        said = _kind(sentence) if listed else None
        if listed is None or said is None or said[0] is ActKind.AMENDS:
            continue
        label = r"\s*[-–]?\s*".join(map(re.escape, re.findall(r"\w+", listed["part"] or listed["other"])))
        heads = list(
            re.finditer(
                rf"(?:^|\n|\f)[ \t]*{label}\b(?!\s*[-–]?\s*\.{{3}})[^\n.]{{0,80}}\n", text[end:], re.I
            )
        )
        if heads:
            begin = end + heads[-1].end()
            part = _NEXT_PART.search(text, begin)
            act = "consolidated" if said[1] else "repealed" if said[0] is ActKind.WITHDRAWS else "superseded"
            found.append((begin, part.start() if part else len(text), act))
    return found


def _listed(
    text: str, several: list[Reference], start: int, end: int, act: str, day: date | None
) -> list[Statement]:
    """Return a statement for every number of a list; a line that names a paragraph changes a part only."""
    items = [
        one
        for one in several
        if start <= one.start < end
        and one.numbers
        and not _ACTOR.search(text[max(0, one.start - 60) : one.start])
    ]
    found = []
    for number, one in enumerate(items):
        line = min(items[number + 1].start if number + 1 < len(items) else end, one.end + _LINE)
        kind = ActKind.WITHDRAWS if act in {"repealed", "withdrawn"} else ActKind.REPLACES
        if kind is ActKind.WITHDRAWS and _PART.search(text[one.start : line]):
            kind = ActKind.AMENDS
        other = one
        if other.date is None and (near := DATE.search(text, one.end, line)):
            other = other._replace(date=date_of(near))
        found.append(
            Statement(
                kind,
                one.start,
                max(one.end, one.start + 1),
                other,
                day,
                act not in {"repealed", "withdrawn", "superseded", "replaced"},
            )
        )
    return found


def _once(found: list[Statement]) -> list[Statement]:
    """Leave out what is said twice of the same words."""
    seen = set()
    kept = []
    for one in sorted(found, key=lambda said: (said.start, said.end)):
        key = (one.kind, one.start, one.other and (one.other.numbers, one.other.title, one.other.date))
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


def _effective(sentence: str, issued: date | None) -> date | None:
    """Return from when; of several days the first, as what follows is the exception."""
    at_once = _AT_ONCE.search(sentence)
    for one in DATE.finditer(sentence):
        if _EFFECT.search(sentence[: one.start()]) and not (at_once and at_once.start() < one.start()):
            return date_of(one)
    return issued if at_once else None


def _sentences(text: str) -> list[tuple[int, int]]:
    """Cut a text into sentences; a full stop inside of a number or abbreviation ends none."""
    edges = [0]
    for one in _BREAK.finditer(text):
        before = text[max(0, one.start() - 9) : one.start()]
        if (before.endswith(".") and _ABBREVIATED.search(before[:-1])) or _RUNS_ON.search(before):
            continue
        edges.append(one.end())
    return [(start, end) for start, end in pairwise([*edges, len(text)]) if text[start:end].strip()]
