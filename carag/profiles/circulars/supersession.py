"""Read the statements by which a circular replaces, withdraws or amends others, and lists of what it repeals.

A statement is a word of a small table in one of its forms: "X stands repealed" (what it acts on stands before), "this
circular supersedes X" and "in partial modification of X" (after). If no other is named there, it is what the opening
introduced ("Please refer to circular X. ... it has been decided to revise the limit"). What a text tells of acts by
others, such as statutes or footnotes, what it denies, and what is only "as amended from time to time" is no statement.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.profiles.circulars.references import DATE, NUMBER, Reference, date_of, levelled, references

if TYPE_CHECKING:
    from collections.abc import Sequence
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


class _Said(NamedTuple):
    """What a sentence does, in the words from ``start`` to ``end`` of it."""

    kind: ActKind
    start: int
    end: int
    is_done_to: bool = False
    """What it acts on stands before: "X stands repealed"."""
    is_of_opening: bool = False
    """It names no act, but decides on what the circular began with."""
    compiles: bool = False


_VERBS: Final = {
    ActKind.WITHDRAWS: ("withdraw/withdrawn", "repeal", "rescind", "revoke", "cancel/cancelled", "annul/annulled"),
    ActKind.REPLACES: ("supersede", "replace"),
    ActKind.AMENDS: ("amend", "modify/modified/modifies", "revise", "update", "substitute", "delete", "omit/omitted", "insert"),
}
"""Base, participle and third person of what acts; the regular ones are left out."""
_NOUNS: Final = {
    ActKind.REPLACES: r"supersession|replacement",
    ActKind.AMENDS: r"(?:partial\s+)?modification|amendment",
}
_WHOLE: Final = (
    r"(?:circulars?|directions?|instructions?|guidelines|guidance\s+notes?|notifications?|master\s+\w+|MDs?|framework"
    r"|letters?|scheme)"
)
"""What an act may be on."""
_PIECE: Final = re.compile(
    r"(?<!/)\b(?:para(?:graph|s)?\b\.?|sub-?para\w*|sections?|clauses?|footnotes?|words?|sentences?|definitions?|(?:annex\w*|appendix)(?:\s+[-\dIVX]+)?\s+(?:to|of)\b|exemptions?|relaxations?|limits?|facility|requirements?|conditions?|stipulations?)(?![^.]{0,12}\bstands?\b)",
    re.I,
)
"""An act on a piece of a circular amends the whole."""
_BE: Final = r"\b(?:stands?|is|are|be|been|being|may\s+be\s+treated\s+as)(?:\s+(?!not\b|already\b|since\b|to\b|by\b|the\b)\w+,?){0,2}?\s+"
_BY_ANOTHER: Final = r"(?!\s*(?:by|vide|through|in\s+terms\s+of|on|as\s+on)\b(?!\s+(?:this|these|the\s+(?:following|issu)|revising|incl|incorp|insert|add|delet)))"


_DECIDED: Final = r"decided(?:,(?![^,]*\btime\b|[^,]*onetime)[^,.]{0,80},)?\s+to(?:,[^,.]{0,80},)?"


def _forms(kind: ActKind) -> list[tuple[re.Pattern[str], bool]]:
    """Return the forms of the verbs of an act, and whether what each acts on stands before it."""
    base, done, third = [], [], []
    for verb in _VERBS[kind]:
        one, *irregular = verb.split("/")
        base.append(one)
        done.append(irregular[0] if irregular else f"{one.removesuffix('e')}ed")
        third.append(irregular[1] if len(irregular) > 1 else f"{one}s")
    finite, past = "|".join([*base, *third]), "|".join(done)
    doing = "|".join(f"{one.removesuffix('e')}ing" for one in base)
    will = "" if kind is ActKind.AMENDS else "shall|will|"  # banks, too, shall amend what is theirs
    forms = [
        (rf"{_BE}(?:{past})\b{_BY_ANOTHER}", True),
        (rf"\b(?:hereby,?|{_DECIDED}|{will}{_WHOLE})\s+(?:(?:shall|will|also|hereby,?)\s+)*(?:{finite})\b", False),
    ]
    if kind is not ActKind.AMENDS:
        forms.append((rf"\band\s+(?:{'|'.join(third)})\b", False))
    if kind in _NOUNS:  # a withdrawal is the heading of one, or that of a service
        forms.append((rf"\b(?:{_NOUNS[kind]})\s+of\b(?!\s+terms)", False))
    if kind is ActKind.WITHDRAWS:
        forms.append((r"\b(?:ceases?\s+to|no\s+longer)\s+(?:(?:be\s+)?(?:applicable|in\s+force|operative|valid)|apply|have\s+effect)", True))
    if kind is ActKind.REPLACES:
        forms.append((rf"\b(?:{doing})\s+(?:the|all|any|earlier|existing)\b", False))
    if kind is ActKind.AMENDS:
        forms.append((r"\bshall\s+be\s+read\s+as\b", True))
    else:
        forms.append((rf"\b{_WHOLE}\s+(?:{past})\s+(?:by\s+this|with\s+the\s+issu)", True))
    return [(re.compile(form, re.I), is_done_to) for form, is_done_to in forms]


_FORMS: Final = [(kind, form, is_done_to) for kind in _VERBS for form, is_done_to in _forms(kind)]
_REISSUES: Final = re.compile(
    r"\b(?:this|these|(?:the\s+)?enclosed|it\s+may\s+be\s+noted\s+that\s+the)\s+(?:revised\s+|updated\s+)?(?:Master\s+)?(?:Circular|Direction|Guidance\s+Note)s?\b"
    r"[^.]{0,120}?\b(?:consolidate|update)s?\s"
    r"|\battached\s+is\s+the\s+revised\s+Master\b|\bcompiled\s+in\s+this\b|\brevised\s+and\s+updated\s+the\s+Master\b|\bupdated\s+Master\s+(?:Circular|Direction)"
    r"|\bMaster\s+(?:Circular|Direction)s?\s+ha(?:s|ve)\s+been\s+(?:\w+\s+)?updated\s+(?:by|to)\s+incorporat",
    re.I,
)
"""The circular is the new issue of one that its opening names, or else a compilation."""
_CHANGES: Final = re.compile(
    r"(?<!subject\sto\sthe\s)\bfollowing\s+(?:\S+\s+){0,2}?(?:amendments|modifications|changes)\b"
    r"|\b(?P<lists>amendments?|modifications?|changes)\s+(?:to\s+[^.]{0,60}?\s+)?(?:is|are|being|been|have)\s+(?:\w+\s+){0,2}?(?:carried\s+out|made|effected)\b"
    r"|\bmodified\s+para\w+|\bnow\s+being\s+(?:revised|changed|raised|reduced)\b|\bas\s+(?:amended|modified|revised)\s+(?:is|are)\b",
    re.I,
)
_DECIDES: Final = re.compile(
    rf"\b{_DECIDED}\s+(?:\w+\s+)?(?:revise|review|raise|increase|enhance|extend|reduce|lower|shift|align|expand|include|relax|allow|permit|defer|dispense|do\s+away)\b"
    r"|\bha(?:s|ve)\s+(?:\w+\s+)?been\s+(?:\w+\s+)?(?:extended|raised|increased|enhanced|reduced|lowered|relaxed|deferred)\b"
    r"|\bdecided\s+as\s+(?:under|follows)|\b(?:decided|directed|clarified)\s+that\b[^.]{0,80}?\b(?:aforementioned|aforesaid|above|existing|said)\b"
    r"|\bit\s+is\s+(?:\w+\s+)?directed\b|\bhereby\s+permitted\b|\b(?:will|shall|would)\s+now\s+(?:be|mean|read)\b",
    re.I,
)
_NOT_SAID: Final = re.compile(
    r"\b(?:not|nor|neither|may|might|proposed|already|since|continue|was|were|had|such|any|herewith)\b[^.;,]{0,24}$"
    r"|\b(?:to|can|could|should|would|must)\s*$"
    r"|\b(?:if|whether|unless|until|where(?:ver)?|in\s+case)\b(?:(?!\.\s|;|,\s\D).)*$"
    r"|\b(?:licen[cs]e|registration|approval|authori[sz]ation|certificate|permission|recognition)\b(?:(?!\.\s|;).)*$"
    r"|\bprior\s+to[^.;,]{0,30}$|\bthis\s+provision\s[^.;,]{0,12}$",
    re.I | re.S,
)
"""Before the words of an act: it is denied, conceded, or told of another time."""
_SAYS_NOTHING: Final = re.compile(
    r"(?:as|and)\s+(?:amended|updated|modified|revised)\s+(?:from\s+time|on|as|up\s*to|vide)|from\s+time\s+to\s+time"
    r"|\(?(?:amended|updated|substituted|inserted|deleted|modified)\s+(?:vide|as\s+on|on)\b",
    re.I,
)
_BY_LAW: Final = re.compile(
    r"\b(?:Act|Rules|Regulations|Government|Gazette|UNSC|Security\s+Council|Schedule|Sanctions\s+List|designated\s+list)\b"
)
_HEAD: Final = re.compile(r"\b(?:issued|granted|given|in\s+terms|as\s+per)\b", re.I)
"""What is superseded stands before such words; what stands behind them tells which."""
_INSTRUMENT: Final = re.compile(r"\b(?:Master|Directions?,?\s+\d{4}|circular)")
_SIGNED: Final = re.compile(r"\n\s*Yours\s+(?:faithfully|sincerely)", re.I)
"""What stands below is a footnote or an annex, and decides nothing anew."""
_BACK: Final = re.compile(
    r"\b(?:above|above-mentioned|aforementioned|aforesaid|said|ibid|captioned|same|earlier|existing)\b", re.I
)
_AN_OTHER: Final = re.compile(rf"\b{_WHOLE}\b", re.I)
_OTHER_OR_PIECE: Final = re.compile(rf"\b{_WHOLE}\b|{_PIECE.pattern}|\bprovisions\b", re.I)
_ACTOR: Final = re.compile(
    r"(?:communicated|repealed|amended|notified|deleted|substituted|inserted|conveyed)\s+(?:vide|by|through|under)\s+(?:\S+\s+){0,4}$"
    r"|in\s+terms\s+of\s+(?:\S+\s+){0,3}$|\b(?:issue|issuance|commencement)\s+of\s+(?:the\s+)?$|(?:defined\s+in|in\s+accordance\s+with|in\s+alignment\s+with|as\s+per|read\s+with)"
    r"\s+(?:the\s+|our\s+)?$",
    re.I,
)
_OPENING: Final = r"please\s+refer|we\s+refer|(?:invite|draw)\s+(?:your\s+|the\s+)?(?:attention|reference)|(?:reference|attention)\b.{0,90}\b(?:invited|drawn|made)|has\s+reference\s+to|in\s+terms\s+of"
_ADDRESSES: Final = re.compile(rf"\b(?:{_OPENING})\b", re.I | re.S)
"""With these words an opening names what the circular is about."""
_INTRODUCES: Final = re.compile(rf"\b(?:{_OPENING}|vide|had\s+issued)\b", re.I | re.S)
"""With these, too, something is named to which "the said circular" goes back."""
_ALL: Final = re.compile(r"\s*(?:all|any)\b", re.I)
"""All instructions on a subject are not those that the opening names."""
_FOLLOWS: Final = re.compile(
    r"\bfollowing\s+(?:\w+\s+){0,3}(?:circular|direction|instruction|guideline|notification)", re.I
)
_BELOW: Final = re.compile(r":|\bnamely\b|\bviz\b", re.I)
_BEFORE: Final = 8
"""Sentences before one that acts, in which what it acts on may have been introduced."""
_NEAR: Final = 250
"""Characters before or after the words of an act, in which there is said what it acts on."""
_ITEM: Final = 30
"""Greatest number of characters of a line between the items of a list that names nothing, such as its number."""

_ANNEX: Final = r"(?P<{}>(?:Annex(?:ure)?|Appendix|Schedule)(?:\s*[-–]?\s*(?:[IVX]+|\d+|[A-Z])\b)?)"
_LISTED: Final = re.compile(
    r"\b(?:listed|mentioned|given|enumerated|indicated|contained|specified|provided|detailed|set\s+out|as\s+per|shown)\s+(?:below\s+)?"
    rf"(?:at|in|under)\s+(?:the\s+)?{_ANNEX.format('part')}"
    rf"|\blist\s+of\s+(?:such\s+|these\s+|the\s+)?circulars[^.]{{0,80}}?\bin\s+(?:the\s+)?{_ANNEX.format('other')}",
    re.I,
)
_ENDED: Final = "withdrawn|repealed|rescinded|revoked|cancelled"
_TAKEN: Final = "superseded|replaced"
_COMPILED: Final = "consolidated|compiled|incorporated"
_LIST: Final = re.compile(
    rf"(?:\blist\s+of\s+|(?<=\n)[ \t]*)(?P<head>(?:(?!(?<!\b[A-Z])\.\s|\n\s*\n|\bgiven\b|:).){{0,90}}?\b(?:circulars?|notifications|instructions|directions|guidelines)\b"
    rf"(?:(?!(?<!\b[A-Z])\.\s|\n\s*\n|\b(?:is|are)\s+given\b).){{0,110}}?\b(?:{_ENDED}|{_TAKEN}|{_COMPILED})\b(?:[^.\n]|\n(?!\s*\n)){{0,110}})"
    rf"|\blist\s+of\s+(?P<short>(?:{_ENDED}|{_TAKEN}|{_COMPILED})\s+(?:circulars|notifications|instructions|directions|guidelines))",
    re.I | re.S,
)
_CLAUSE: Final = re.compile(r"\b(?:is|are|stands?|ha[sv]e?|been|shall|will)\b(?<!that\sstand)", re.I)
"""A line with such a word is no heading, unless it begins as a list."""
_CONTENTS: Final = re.compile(r"\.{4,}")
_TABLE: Final = re.compile(r"\n\s*(?:Annex(?:ure)?|Appendix)\b[^\n.]{0,40}\n[^.]{0,20}(?:\.\s*)?\n?\s*Circular\s+No", re.I)
"""The head of the table of what a compilation holds."""
_NEXT_PART: Final = re.compile(r"\n\s*(?:Annex(?:ure)?|Appendix|Chapter|Schedule)\b[^\n]{0,60}\n", re.I)
_GAP: Final = 1500
"""Most characters between two numbers of a list, such as a column of titles; what follows a longer gap is other text."""
_LINE: Final = 110
"""Characters after a number in a list that are about it."""
_EFFECT: Final = re.compile(
    r"(?:with\s+effect\s+from|w\.?\s?e\.?\s?f\.?|effective\s+(?:from|on)?|(?:in)?to\s+(?:force|effect)\s+(?:on|from|with\s+effect\s+from)"
    r"|(?:force|effect)\s+from|applicable\s+(?:from|with\s+effect\s+from))\s+(?:the\s+)?(?:close\s+of\s+business\s+(?:on|of)\s+|(?:\w+\s+){0,3}?(?:beginning|commencing|starting)\s+)?$",
    re.I,
)
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:No|Nos|Cir|Ref|viz|vide|i\.e|e\.g|Para|Sr|Sl|Dt|Ltd|A|P|[A-Z]{2,8}|Do[RS])|\n\s*\(?\d{1,2})$"
)
_RUNS_ON: Final = re.compile(r"\b(?:dated|the|of|and|or|to|in|on|for|by|with|from|vide|our|circulars?|contained|No\.?)$")
_BREAK: Final = re.compile(
    r"\n\s*\n(?=\s*(?:[A-Z‘“\[]|\(?\w{1,4}[.)]\s))|(?<=[.;])\s+(?=[‘“(\[]?[A-Z\d(])|(?<=:)[ \t]*\n\s*|\n\s*\n(?=\s*\d{1,2}\s+[A-Z][a-z])|\n(?=\s*(?:\(?[a-z\d]{1,4}[.)]|\d+(?:\.\d+)+)\s)"
)
_AT_ONCE: Final = re.compile(
    r"\bwith\s+immediate\s+effect\b|\bimmediately\b|\bfrom\s+the\s+date\s+of\s+(?:this|the|its|issu)|close\s+of\s+business\s+today",
    re.I,
)
_COMMENCES: Final = re.compile(
    r"\b(?:shall|will|would)\s+(?:come|be|become|take)\b[^.;]{0,60}?\b(?:force|effect|effective|applicable)\b"
    r"|\b(?:instructions|directions|provisions|circular|changes?|modifications)\b[^.;]{0,40}\b(?:effective|applicable)\b",
    re.I,
)


def in_force_from(text: str, issued: date | None) -> tuple[date, int, int] | None:
    """Return from when a circular says that it is in force as a whole, and where it says so; None if it does not.

    Examples
    --------
    >>> in_force_from("4. This circular shall come into force with effect from April 1, 2025.", None)[0].isoformat()
    '2025-04-01'
    """
    text = levelled(text)
    return _in_force(text, _sentences(text), issued)


def _in_force(
    text: str, sentences: Sequence[tuple[int, int]], issued: date | None
) -> tuple[date, int, int] | None:
    for start, end in sentences:
        sentence = text[start:end]
        if not _COMMENCES.search(sentence) or not re.search(
            r"\b(?:this|these|the)\s*(?:\w+\s+){0,3}(?:circular|directions?|instructions|guidelines|provisions|framework"
            r"|guidance\s+note|changes?|amendments|modifications)\b",
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
    text = levelled(text)
    all_references = references(text)
    every = _sentences(text, all_references)
    lists = [*_lists(text), *_parts(text, every)]
    lists = [
        one
        for number, one in enumerate(lists)
        if not any(a < one[1] and b > one[0] for a, b, _ in lists[:number])
    ]
    sentences = [one for one in every if not any(a <= one[0] < b for a, b, _ in lists)]
    starts = [one.start for one in all_references]
    named = [all_references[bisect_left(starts, a) : bisect_left(starts, b)] for a, b in sentences]
    signed = _SIGNED.search(text)
    found: list[Statement] = []
    decided: list[Statement] = []
    for number, (start, end) in enumerate(sentences):
        said = _said(text[start:end])
        if said is None or (said.is_of_opening and signed and start > signed.start()):
            continue
        day = _effective(text[start:end], issued)
        if said.kind is not ActKind.AMENDS and (below := _below(text, sentences, named, number)):
            found += [Statement(said.kind, one.start, one.end, one, day) for one in below]
            continue
        others, first = _acted_on(text, sentences, named, number, said)
        if not others and said.kind is ActKind.AMENDS:
            continue
        compiled = said.compiles and (not others or bool(_LISTED.search(text, start, end)))
        acted_on: list[Reference | None] = [*others] or [None]
        several = [Statement(said.kind, first, end, other, day, compiled) for other in acted_on]
        (decided if said.is_of_opening else found).extend(several)
    acted = {name for one in found if one.other for name in one.other.names}
    found += [one for one in decided if not one.other or acted.isdisjoint(one.other.names)]
    whole = _in_force(text, every, issued)
    for start, end, kind in lists:
        found += _listed(text, all_references, start, end, kind, whole[0] if whole else None)
    return _once(found)


def _said(sentence: str) -> _Said | None:
    """Return what a sentence does; None if it does not act. What ends another comes before what changes it."""
    plain = _SAYS_NOTHING.sub(lambda one: " " * len(one[0]), sentence)
    for kind, form, is_done_to in _FORMS:
        if kind is ActKind.AMENDS and (again := _REISSUES.search(plain)) and not _denied(plain, again.start()):
            return _Said(ActKind.REPLACES, *again.span(), compiles=True)
        for one in form.finditer(plain):
            near = plain[max(0, one.start() - _NEAR) : one.start()] if is_done_to else plain[one.end() :][:_NEAR]
            if not is_done_to and kind is not ActKind.AMENDS:
                near = _HEAD.split(near, maxsplit=1)[0]
            named = (_OTHER_OR_PIECE if kind is ActKind.AMENDS else _AN_OTHER).search(f"{near} {one[0]} {near}")
            by_law = kind is ActKind.AMENDS and _BY_LAW.search(near) and not _INSTRUMENT.search(near)
            if not (named or NUMBER.search(near)) or by_law or _denied(plain, one.start()):
                continue
            return _Said(ActKind.AMENDS if _PIECE.search(_LISTED.sub("", near + one[0])) else kind, *one.span(), is_done_to)
    # Laws and lists of others, too, are amended: what is must then be named.
    if (one := _CHANGES.search(plain)) and (_AN_OTHER.search(plain) or not (one["lists"] or _BY_LAW.search(plain))):
        return _Said(ActKind.AMENDS, *one.span())
    if one := _DECIDES.search(plain):
        return _Said(ActKind.AMENDS, *one.span(), is_of_opening=True)
    return None


def _denied(sentence: str, at: int) -> bool:
    return bool(_NOT_SAID.search(sentence[max(0, at - _NEAR) : at]))


def _acted_on(
    text: str,
    sentences: list[tuple[int, int]],
    named: list[list[Reference]],
    number: int,
    said: _Said,
) -> tuple[list[Reference], int]:
    """Return what a sentence acts on, and where the words that name it begin."""
    start, end = sentences[number]
    listed = _LISTED.search(text, start, end)
    own = [
        one
        for one in named[number]
        if not _ACTOR.search(text[max(start, one.start - 60) : one.start])
        and not (listed and 0 <= one.start - listed.end() < _ITEM)  # of which the annex is
    ]
    is_below = _BELOW.search(text, start + said.end, end)
    before = [one for one in own if one.start < start + said.start]
    after = [one for one in own if one.start >= start + said.start]
    if said.is_done_to or said.kind is ActKind.AMENDS:
        others = (before or (after if said.kind is ActKind.AMENDS or is_below else [])) if said.is_done_to else after or before
    else:
        others = after
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
        # What stands before the cue is the circular's own title.
        if cue and (introduced := [one for one in named[earlier] if one.start >= cue.start()]):
            return introduced, sentences[earlier][0]
    return [], start


def _openings(number: int, said: _Said) -> range:
    """Return which sentences may have introduced what a sentence acts on, the likeliest first."""
    return range(min(number, _BEFORE)) if said.is_of_opening else range(number - 1, max(-1, number - 1 - _BEFORE), -1)


def _below(
    text: str, sentences: list[tuple[int, int]], named: list[list[Reference]], number: int
) -> list[Reference]:
    """Return what the items below a sentence name, as far as each names something or is a mere number of an item."""
    start, end = sentences[number]
    follows = _FOLLOWS.search(text, start, end)
    own = [one for one in named[number] if follows and one.start > follows.end()]
    if len(own) < len(named[number]) or not (follows or text[start:end].rstrip().endswith(":")):
        return []
    found = own
    for (start, end), several in zip(sentences[number + 1 :], named[number + 1 :], strict=True):
        several = [one for one in several if not one.word]
        if (not several and end - start > _ITEM) or _said(text[start:end]):
            break
        found += several
    return found


def _lists(text: str) -> list[tuple[int, int, str]]:
    """Find the lists of circulars that are repealed or consolidated, each until the next part of the text."""
    heads = [
        one
        for one in _LIST.finditer(text)
        if not _CONTENTS.search(text[one.start() : one.end() + 120])
        and (one[0].lower().startswith("list") or not _CLAUSE.search(one[0]))
        and re.search(r"\n\s*[^\n]{0,60}$", text[max(0, one.start() - 80) : one.start() + 1])
    ]
    found = []
    for one, end in zip(heads, [*(one.start() for one in heads[1:]), len(text)], strict=False):
        part = _NEXT_PART.search(text, one.end(), end)
        begin = text.rfind("\n", 0, one.start() + 1) + 1
        found.append((begin, part.start() if part else end, (one["head"] or one["short"]).lower()))
    return found


def _parts(text: str, sentences: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """Find the parts, such as an appendix, of which a sentence says that what they list is repealed or compiled."""
    found = []
    compiled = _REISSUES.search(text)
    for one in _TABLE.finditer(text, compiled.end()) if compiled else ():
        part = _NEXT_PART.search(text, one.end())
        found.append((one.end(), part.start() if part else len(text), "consolidated"))
    for start, end in sentences:
        listed = _LISTED.search(text, start, end)
        said = _said(text[start:end]) if listed else None
        if listed is None or said is None or said.kind is ActKind.AMENDS:
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
            act = "consolidated" if said.compiles else "repealed" if said.kind is ActKind.WITHDRAWS else "superseded"
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
        and not one.word
        and not _ACTOR.search(text[max(0, one.start - 60) : one.start])
    ]
    is_ended, is_taken = re.search(_ENDED, act), re.search(_TAKEN, act)
    if is_ended or is_taken:
        gaps = (at for at, (one, other) in enumerate(pairwise(items), start=1) if other.start - one.end > _GAP)
        items = items[: next(gaps, len(items))]
    found = []
    for number, one in enumerate(_with_dates(text, items, start, end)):
        line = min(items[number + 1].start if number + 1 < len(items) else end, one.end + _LINE)
        kind = ActKind.WITHDRAWS if is_ended else ActKind.REPLACES
        if is_ended and _PIECE.search(text[one.start : line]):
            kind = ActKind.AMENDS
        found.append(Statement(kind, one.start, one.end, one, day, not (is_ended or is_taken)))
    return found


def _with_dates(text: str, items: list[Reference], start: int, end: int) -> list[Reference]:
    """Give each number of a list the day that stands after it, or as far down in a column of as many days."""
    days = [
        day
        for day in DATE.finditer(text, start, end)
        if date_of(day) and not any(one.start <= day.start() < one.start + len(" ".join(one.numbers)) for one in items)
    ]
    if not items or not days:
        return items
    if days[0].start() < items[0].start and not any(one.date for one in items):
        return items  # of which row each day is, is not sure
    found: list[Reference] = []
    at = 0
    while at < len(items):
        last = at  # of the numbers between which no day stands
        while last + 1 < len(items) and not any(items[last].start < day.start() < items[last + 1].start for day in days):
            last += 1
        several = items[at : last + 1]
        high = items[last + 1].start if last + 1 < len(items) else end
        column = [day for day in days if several[-1].end <= day.start() < high]
        if len(several) == 1:
            column = column[:1]
        if len(column) == len(several) and not several[-1].date:
            several = [one._replace(date=date_of(day)) for one, day in zip(several, column, strict=True)]
        found += several
        at = last + 1
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


def _sentences(text: str, named: Sequence[Reference] = ()) -> list[tuple[int, int]]:
    """Cut a text into sentences; a full stop inside of a number, title or abbreviation ends none."""
    edges = [0]
    starts = [one.start for one in named]
    for one in _BREAK.finditer(text):
        before, at = text[max(0, one.start() - 9) : one.start()], bisect_left(starts, one.start()) - 1
        if at >= 0 and one.end() < named[at].end:
            continue
        if (before.endswith(".") and _ABBREVIATED.search(before[:-1])) or _RUNS_ON.search(before):
            continue
        edges.append(one.end())
    return [(start, end) for start, end in pairwise([*edges, len(text)]) if text[start:end].strip()]
