"""Read a follow-up, such as "And the year before?", with the words that it leans on from earlier questions.

What is taken over are words of the asker's own questions: names, periods, sections, and what was asked about them. The
result depends on these questions and on a public table of names, never on a store, so that hidden documents change
nothing. What is in doubt is not taken over.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.limits import MAX_QUESTION
from carag.retrieval.reading import anaphora
from carag.retrieval.reading.anaphora import content, is_thanks, topic
from carag.retrieval.reading.instants import instants_of
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.relative import relative_in, shifted
from carag.retrieval.reading.slots import ENDING, Slots, blanked, one_line, slots_of
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.reading.names import Names
    from carag.retrieval.reading.patterns import Place


# Characters of the longest question that a follow-up can lean on, and of the longest follow-up, in NFKC.
LONGEST_TURN: Final = 2_000
LONGEST_FOLLOW_UP: Final = 300
_PREPOSITIONS: Final = pattern("PREPOSITIONS").pattern
_PREPOSITION: Final = re.compile(rf"(?:{_PREPOSITIONS})\b", re.IGNORECASE)
# Prepositions before a place or a rule, which are added to what was asked, and never replace a company.
_ADDS: Final = frozenset(
    ["in", "on", "under", "within", "outside", "during", "across", "per", "after", "before"]
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_ORDINAL: Final = re.compile(r"\b(?:first|second|third|fourth)\b")
_MOST_WORDS: Final = 4
_MOST_OPENING: Final = 7


class Carried(NamedTuple):
    """A question as it is read, and what it was given from earlier ones.

    - ``taken``: what was taken over, in the asker's own words; empty for a question that stands alone, read as asked.
    - ``days``: the days as of which the earlier question asked, which are never taken over.
    """

    text: str
    taken: tuple[str, ...] = ()
    days: tuple[str, ...] = ()

    def described(self) -> str:
        """Say in one line what was taken over, and how the question is read; empty if nothing was."""
        if not self.taken:
            return ""
        left = f"; not taken over: {', '.join(f'on {day}' for day in self.days)}" if self.days else ""
        return f"taken over: {'; '.join(map(visible_line, self.taken))}{left}; read as: {visible_line(self.text)}"


def carried(
    question: str, earlier: Sequence[str], *, names: Names | None = None, instants: bool = False
) -> Carried:
    """Read a question after the earlier ones of its conversation, oldest first.

    Parameters
    ----------
    names : Names, optional
        Public names, beside those that capitals show. They must not come from documents of a store.
    instants : bool
        Whether days as of which a question asks decide what is searched; such a day is never taken over.

    Examples
    --------
    >>> read = carried("And the year before?", ["How much did Acme Corp pay in dividends in 2020?"])
    >>> read.text
    'How much did Acme Corp pay in dividends in 2019?'
    >>> read.taken
    ('Acme Corp', 'pay in dividends', '2019 (the year before 2020)')
    """
    before, prior, days = "", "", tuple[str, ...]()
    for one in earlier:
        if is_thanks(one):
            continue
        read = _after(one, before, names, prior)
        prior = before if read.taken else ""
        # A follow-up whose subject was not found has nothing to lean on either.
        is_lost = not read.taken and leans(one) and not slots_of(one, names).names
        before, days = _without_days("" if is_lost else read.text, instants=instants)
    found = _after(question, before, names, prior)
    return found._replace(days=days if found.taken else ())


def leans(question: str) -> bool:
    """Tell whether a question may be a follow-up, so that a question that is not costs no look at earlier ones."""
    return (asked := _Asked.of(question, None)) is not None and asked.leans


def _without_days(text: str, *, instants: bool) -> tuple[str, tuple[str, ...]]:
    days = []
    for one in reversed(instants_of(text) if instants else ()):
        text = f"{text[: one.start].rstrip()} {text[one.end :].lstrip()}".strip().replace(" ?", "?")
        days.append("an unreadable day" if one.day is None else one.day.isoformat())
    return text, tuple(reversed(days))


def _after(question: str, before: str, names: Names | None, prior: str) -> Carried:
    """Read a question after the one before it, as that one was read; ``prior`` is what that one leaned on."""
    asked = _Asked.of(question, names) if before else None
    if asked is None or not asked.leans or len(one_line(before)) > LONGEST_TURN:
        return Carried(question)
    base, earlier = slots_of(before, names), slots_of(prior, names)
    if (alike := _same_kind(asked, base)) is not None:
        return Carried(f"{alike}?", _taken(base, base.said(base.times)))
    if earlier.text and not asked.slots.periods and pattern("BOTH").search(asked.slots.text):
        base = _joined(base, earlier)
    replaces = asked.is_fragment or (asked.is_phrase and _phrase_of(asked.slots.text, base) is not None)
    found = (_edited if replaces else _composed)(asked, base)
    return Carried(question) if found is None or len(found.text) > MAX_QUESTION else found


class _Asked(NamedTuple):
    """A question that may be a follow-up, without the words that introduce it.

    - ``words``: what it says beside names, periods and sections.
    - ``compares``: whether it asks for something beside what was asked, as in "compare with 2021".
    - ``leaning``: the place of a pronoun that refers to an earlier question.
    - ``step``: a period relative to the earlier one: steps, unit and place.
    - ``is_implied``: whether it asks about a part of what was said, as in "Who was the lender?".
    - ``is_fragment``: whether it has no predicate, so that the earlier question is read with a part replaced.
    - ``is_phrase``: whether it is a phrase without a verb or a question word, such as "urban banks".
    - ``leans``: whether it leans on an earlier question at all.
    """

    slots: Slots
    words: tuple[str, ...]
    compares: bool
    leaning: Place | None
    step: tuple[int, str, Place] | None
    is_implied: bool
    is_fragment: bool
    is_phrase: bool
    leans: bool

    @classmethod
    def of(cls, question: str, names: Names | None) -> _Asked | None:
        """Read a question; None if it is too long to lean on another, or has no word by which it would."""
        text = one_line(question)
        if len(text) > LONGEST_FOLLOW_UP:
            return None
        lead = pattern("LEAD").match(text)
        rest = text[lead.end() :] if lead else text
        has_lead = rest != text and not is_thanks(text)
        compares = pattern("COMPARED").match(rest)
        rest = rest[compares.end() :] if compares else rest
        if not (has_lead or compares or _may_lean(rest.rstrip(ENDING))):
            return None
        slots = slots_of(rest, names)
        step = None if slots.periods else relative_in(slots.rest)
        left = blanked(slots.rest, [step[2]]) if step else slots.rest
        same = None if slots.periods else pattern("SAME_TIME").search(left)
        left = blanked(left, [same.span()]) if same else left
        leaning = anaphora.pronoun(left)
        if leaning and slots.names and left[leaning[0] :].casefold().startswith("the "):
            leaning = None
        words = content(blanked(left, [leaning] if leaning else []))
        named = bool(slots.names or slots.periods or slots.sections)
        implied = not (leaning or named or has_lead) and bool(pattern("IMPLIED").search(slots.text))
        asks, verbs = slots.words & anaphora.QUESTION_WORDS, slots.words & anaphora.VERBS
        is_open = bool(asks) and (bool(words) or not (slots.periods or step) or not asks <= {"how", "what"})
        fragment = not (leaning or implied or verbs or is_open)
        fragment = fragment and (not words or bool(_PREPOSITION.match(slots.text)))
        phrase = bool(words) and not (leaning or asks or verbs)
        many = len(slots.text.split())
        if leaning or step or same or compares:
            leans = len(words) <= 2 * _MOST_WORDS
        elif has_lead or implied:
            leans = len(words) <= _MOST_WORDS
        else:
            leans = many <= _MOST_OPENING if fragment else (phrase and many < 3) or not (words or named)
        leans = leans and bool(slots.text) and not is_thanks(slots.text)
        return cls(slots, words, bool(compares), leaning, step, implied, fragment, phrase, leans)


def _may_lean(text: str) -> bool:
    """Tell at little cost whether a question is short, or has words that may lean on an earlier one."""
    if len(text.split()) <= _MOST_OPENING or anaphora.pronoun(text):
        return True
    if pattern("IMPLIED").search(text) and len(content(text)) <= _MOST_WORDS:
        return True
    return not _YEAR.search(text) and any(pattern(one).search(text) for one in ("STEP", "PART", "SAME_TIME"))


# --- the earlier question with a part replaced ------------------------------------------------------------


def _edited(asked: _Asked, base: Slots) -> Carried | None:
    """Return the earlier question with what the fragment names; None if its words fit no place in that question."""
    period = _period(asked, base)
    if asked.step is not None and period is None:
        return None
    kept, edits = base, list[tuple[tuple[int, int], str]]()
    if asked.words or asked.slots.names:
        if (replacement := _replacement(asked, base)) is None:
            return None
        edits.append(replacement)
        kept = base.without(replacement[0])
    if asked.slots.sections:
        said = asked.slots.said(asked.slots.sections)
        edits.append((base.whole(base.sections), said if base.sections else f" under {said}"))
        kept = replace(kept, sections=())
    if period is not None and period[0] != base.said(base.times) and not asked.slots.is_dated:
        said = f"{base.said(base.times)} and {period[0]}" if asked.compares and base.periods else period[0]
        place = kept.whole(kept.times)
        if _ORDINAL.match(said) and not base.text[: place[0]].endswith("the "):
            said = f"the {said}"
        edits.append((place, said if kept.periods else f" in {said}"))
    if not edits:
        return None
    for (start, end), said in sorted(edits, reverse=True):
        base = replace(base, text=base.text[:start] + said + base.text[end:])
    taken = _taken(kept, period[1] if period else "")
    return Carried(f"{base.text}?", taken) if taken else None


def _shape(name: str) -> tuple[bool, bool]:
    """Tell names of documents and codes from others; a new name replaces one of the same shape."""
    return bool(re.search(pattern("DOCUMENT").pattern + r"\b", name, re.IGNORECASE)), any(
        map(str.isdigit, name)
    )


def _same_kind(asked: _Asked, base: Slots) -> str | None:
    """Return the earlier question with another number, as in "and grade 2?" or "the third?"; None otherwise."""
    found = re.fullmatch(
        rf"(?:the\s)?((?P<kind>[a-z]+)\s\d+|{_ORDINAL.pattern})", asked.slots.text, re.IGNORECASE
    )
    if found is None or asked.slots.names or asked.slots.periods:
        return None
    like = rf"\b{found['kind']}\s\d+\b" if found["kind"] else _ORDINAL.pattern
    made, many = re.subn(like, found[1], base.text, flags=re.IGNORECASE)
    return made if many == 1 else None


def _joined(base: Slots, earlier: Slots) -> Slots:
    """Return the earlier question with the name or the period of the one before it as well."""
    text = base.text
    for one, two in ((base.times, earlier.times), (base.names, earlier.names)):
        if one and two and earlier.said(two) not in base.said(one):
            text = text.replace(base.said(one), f"{earlier.said(two)} and {base.said(one)}", 1)
    return slots_of(text, None) if text != base.text else base


def _replacement(asked: _Asked, base: Slots) -> tuple[Place, str] | None:
    """Return what the names or the phrase of a fragment replace, and by which words; None if that is in doubt."""
    slots, names = asked.slots, base.names
    found = _PREPOSITION.match(slots.text)
    preposition = found[0].casefold() if found else ""
    if slots.names and not asked.words:
        named = slots.said(slots.names)
        if asked.compares:
            at = names[-1][1] if names else len(base.text)
            return (at, at), f" and {named}"
        behind = re.compile(rf"\b{preposition}\s(?:the\s)?$", re.IGNORECASE)
        if preposition and (after := [one for one in names if behind.search(base.text[: one[0]])]):
            return after[0], named
        if names and preposition not in _ADDS:
            like = [one for one in names if _shape(base.text[slice(*one)]) == _shape(named)]
            like = like if len(like) == 1 else [*names]
            return (base.whole(like), named) if base.adjoin(like) else None
    said = slots.text if not slots.periods else slots.text[: slots.periods[0][0]].rstrip()
    said = re.sub(rf"\s(?:{_PREPOSITIONS})$", "", said)
    place = _phrase_of(said, base)
    if place is None:
        return base.whole(()), f" {said}" if preposition else f" for {said}"
    return place, said if preposition else f"{base.text[place[0] :].partition(' ')[0]} {said}"


def _phrase_of(said: str, base: Slots) -> Place | None:
    """Return the place of the last phrase that a phrase may replace, up to the next preposition or period.

    That is one with the same last word or, unless it may be added as well, with the same preposition.
    """
    found = _PREPOSITION.match(said)
    alike = found is not None and found[0].casefold() not in _ADDS
    text = blanked(base.text, [*base.periods, *base.sections])
    stop = rf"(?!\s(?:{_PREPOSITIONS}|and|when|if|that|which|who)\b)[^\0,;?]"
    for one in reversed(list(re.finditer(rf"\b(?:{_PREPOSITIONS})\b(?:{stop})+", text, re.IGNORECASE))):
        phrase = one[0].rstrip()
        is_like = alike and found is not None and phrase.casefold().startswith(f"{found[0].casefold()} ")
        same_head = phrase.rpartition(" ")[2].casefold() == said.rpartition(" ")[2].casefold()
        if content(phrase) and (is_like or same_head):
            return one.start(), one.start() + len(phrase)
    return None


# --- the follow-up with what it leans on ------------------------------------------------------------------


def _composed(asked: _Asked, base: Slots) -> Carried | None:
    """Return the follow-up with the subject in the place of its pronoun, and the rest of what it leans on added."""
    own, text = asked.slots, asked.slots.text
    period = _period(asked, base)
    if asked.step is not None and period is None:
        return None
    takes_name = not own.names or asked.leaning is not None
    is_subject = bool(base.names) and _is_subject(base)
    named = asked.leaning is not None and " " in text[slice(*asked.leaning)]
    is_about_document = bool(base.names) and not is_subject and _shape(base.said(base.names[-1:]))[0]
    takes_topic = (
        not base.names
        or not asked.words
        or asked.is_implied
        or {one.casefold() for one in asked.words} <= anaphora.AMOUNT
        or (is_about_document and (asked.is_phrase or (asked.leaning is not None and not named)))
    )
    asks_when = bool(own.words & {"when", "since", "until"}) or bool(pattern("LATEST").search(text))
    takes_period = not asks_when and (
        not own.periods or asked.compares or bool(pattern("AGAINST").search(text))
    )
    kept = replace(
        base,
        names=base.names if takes_name else (),
        rest=base.rest if takes_topic else "",
        sections=base.sections if asked.leaning is not None and not own.sections else (),
        periods=base.periods if takes_period or asked.step else (),
    )
    first = kept.names if kept.adjoin(kept.names) else kept.names[:1]
    subject = kept.said(first)
    added = [kept.said(kept.names[len(first) :]), topic(kept.rest), kept.said(kept.sections)]
    if asked.leaning is not None and subject and (is_subject or named or not takes_topic):
        start, end = asked.leaning
        possesses = re.fullmatch(r"(?:its|their|his|her)\s", text[start : end + 1], re.IGNORECASE)
        suffix = "'s" if possesses else ""
        text = f"{text[:start]}{subject}{suffix}{text[end:]}"
    else:
        added.insert(0, subject)
    if kept.periods and (asked.step or not kept.is_dated):
        added.append(base.said(base.times) if own.periods or period is None else period[0])
    how = base.said(base.times) if own.periods or period is None else period[1]
    taken = _taken(kept, how if kept.periods else "")
    more = "; ".join(dict.fromkeys(filter(None, added)))
    return Carried(f"{text} ({more})?" if more else f"{text}?", taken) if taken else None


def _is_subject(base: Slots) -> bool:
    """Tell whether the first name is what the earlier question is about, and not only where to look."""
    start, end = base.names[0]
    ahead = pattern("SUBJECT").search(base.text[:start]) or base.text[end : end + 1] in ("'", "’")
    return bool(ahead) and not pattern("WHERE").search(base.text[:start])


def _period(asked: _Asked, base: Slots) -> tuple[str, str] | None:
    """Return the period asked about, and how it was taken over: its own, one worked out, or the earlier one."""
    before = base.said(base.times)
    if asked.slots.periods:
        said = asked.slots.said(asked.slots.periods)
        fiscal = re.match(r"fiscal\s|", before if said.isdigit() else "")
        return f"{fiscal[0] if fiscal else ''}{said}", before if asked.compares else ""
    if asked.step is None:
        return (before, before) if before else None
    found = shifted(before, *asked.step[:2])
    return found and (found[0], f"{found[0]} ({found[1]})")


def _taken(kept: Slots, how: str) -> tuple[str, ...]:
    said = (kept.text[slice(*one)] for places in (kept.names, kept.sections) for one in places)
    return tuple(dict.fromkeys(filter(None, (*said, topic(kept.rest), how))))
