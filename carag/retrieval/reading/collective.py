"""Read questions about the documents themselves: which there are, how many, the latest, what was changed, and when.

A question is read only if nothing of it is left over. Everything else asks what documents say, and is answered from
passages. What a question can name comes from the documents given, which the session may use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import ActKind
from carag.retrieval.reading.instants import instants_of
from carag.retrieval.reading.names import words_listed
from carag.retrieval.reading.periods import LAST_DAY, periods_of
from carag.retrieval.reading.question import plain
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from carag.retrieval.reading.declared import Declared
    from carag.retrieval.reading.periods import Period
    from carag.retrieval.reading.question import Reading


_READ: Final = "\x01"
"""Takes the place of each character that was read; NUL, of each that names a period."""
_POLITE: Final = re.compile(r"\s*(?:(?:please|kindly|can you|could you|would you)\s+)*", re.IGNORECASE)
_COUNT: Final = re.compile(
    r"(?:how many|(?:(?:what is|what's|give me|tell me|show me)\s)?the (?:total )?number of|count)\b",
    re.IGNORECASE,
)
_LIST: Final = re.compile(
    r"(?:(?:list|show|name|enumerate|give)(?: me| us)?|(?:what|which)(?:'s| is| are| was| were)?)\b"
    r"(?: (?:a |the )?(?:full |complete )?list of)?",
    re.IGNORECASE,
)
_BY: Final = re.compile(r"by (?:what|which)\b", re.IGNORECASE)
"""How a question may begin that asks by what a document was replaced; see :mod:`carag.retrieval.reading.acted`."""
_MOST_LEFT: Final = 8
"""Words that the values of fields may explain; with more left over, a question asks something else."""
_NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MANY: Final = rf"(?:[1-9]\d{{0,2}}|{'|'.join(_NUMBERS)})"
_ORDER: Final = re.compile(
    rf"\b(?:(?P<before>{_MANY})\s)?"
    r"(?:(?P<latest>latest|newest|most\srecent(?:ly)?|last)|oldest|earliest|first)\b"
    rf"(?:\s(?P<after>{_MANY})\b)?",
    re.IGNORECASE,
)
_SEVERAL: Final = 10
"""How many are named where a question asks for "the latest documents" without a number."""
_ON: Final = (
    r"(?:on|about|regarding|concerning|relating to|related to|dealing with|entitled|titled|called|named)"
)
_VERB: Final = (
    r"(?:issued?|filed?|published?|released?|submitted|dated|made|sent|put out|brought out"
    r"|came out|circulated)"
)
_WHEN: Final = r"(?:since|after|before|until|till|up to|by|prior to|through|from|in|during|on|between|of|for)"
_TOPIC: Final = re.compile(
    rf"\b(?:{_ON}|(?:with|whose)(?: the)?(?: words?)? titles? (?:has|have|containing|contains?|includes?|mentions?))\s"
    rf"(?P<words>[^\0\x01?]+?)(?=\s(?:(?:that|which)\s)?(?:(?:were|was|are|is|have been|has been)\s)?{_VERB}\b"
    rf"|\s{_WHEN}\s(?:the\s)?(?:(?:month|year)\sof\s)?\0|\s?[\0\x01]|\s?[?.!]*\s*$)"
    rf"|\b(?:with|having|that (?:has|have|contains?|mentions?))\s(?:the\s)?(?:words?\s)?(?P<quoted>[^\0\x01?]+?)\s"
    r"in (?:the|its|their) titles?\b",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"\b(?:what|which|who|whom|whose|how|when|where|why|does|do|did|is|are|was|were|has|have|say|says|shall|must)\b",
    re.IGNORECASE,
)
_WHILE: Final = re.compile(
    rf"(?:\b(?P<when>{_WHEN})\s(?:the\s)?(?:(?:month|year|calendar year|day)\sof\s)?)?\0+(?:[^\0]{{1,16}}\0+)?"
    r"(?:\s(?:onwards?|and (?:later|after(?:wards)?)))?",
    re.IGNORECASE,
)
_CHANGED: Final = {
    "changed": frozenset(ActKind),
    "amended|revised|updated|modified": frozenset({ActKind.AMENDS}),
    "replaced|superseded": frozenset({ActKind.REPLACES}),
    "withdrawn|repealed|rescinded": frozenset({ActKind.WITHDRAWS}),
}
"""Words for what is done to documents, and the acts that they ask for."""
_FILLER: Final = words_listed("fillers.txt")
"""Words that change nothing about which documents are asked for."""
_SMALL: Final = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "s", "the", "to", "with")
)
_FISCAL: Final = re.compile(
    r"\b(?:fiscal|financial|FYE?(?:\d{2,4})?)\b|\b(?:19|20)\d\d\s?[-‐–/]\s?\d\d(?![\d-])",
    re.IGNORECASE,
)
"""Years that are not the calendar's, so that it is not certain which days are meant."""
_WORD: Final = re.compile(r"[^\W_]+")


def may_list(question: str) -> bool:
    """Tell whether a question begins like one about the documents themselves, whatever follows."""
    text = _POLITE.sub("", plain(question), count=1)
    return bool(_COUNT.match(text) or _LIST.match(text) or _BY.match(text))


class Order(StrEnum):
    """By date."""

    LATEST = "latest"
    OLDEST = "oldest"


class Bounds(NamedTuple):
    """The first and last day, and of what: when documents are dated, what period they report for, or were changed."""

    of: str
    """``dated``, ``for a period that ends`` or ``changed``."""
    first: date | None
    last: date | None

    def holds(self, day: date | None) -> bool:
        """Tell whether a day is within the bounds; an unknown day never is."""
        if day is None:
            return False
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)

    def described(self) -> str:
        """Return the bounds in words."""
        if self.first is not None and self.last is not None:
            first, last = self.first.isoformat(), self.last.isoformat()
            return f"{self.of} {first}" if first == last else f"{self.of} {first} to {last}"
        if self.first is not None:
            return f"{self.of} {self.first.isoformat()} or later"
        return f"{self.of} {self.last.isoformat()} or earlier" if self.last is not None else self.of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The documents that a question asks for, and how they are told; every condition must hold."""

    counts: bool
    """Whether it asks how many there are."""
    order: Order | None
    many: int
    """How many of the latest or oldest are asked for; 0 for those of one day."""
    entities: tuple[int, ...]
    kinds: tuple[str, ...]
    is_amendment: bool
    """Whether only filings on a form such as 10-K/A are asked for."""
    bounds: Bounds | None
    words: frozenset[str]
    """What the title must contain, as :func:`title_words` returns it."""
    values: tuple[tuple[str, frozenset[str]], ...]
    """Fields, and the values that are asked for, in lower case."""
    changed: frozenset[ActKind]
    """What must have been done to the documents; empty if nothing is asked about that."""
    said: tuple[str, ...]
    """The conditions in words."""


def read_choice(
    question: str,
    reading: Reading,
    declared: Declared,
    *,
    profile: str,
    values: Callable[[], Mapping[str, Iterable[str]]],
    authorities: Iterable[str] = (),
    intents: Iterable[re.Pattern[str]] = (),
) -> Choice | None:
    """Read a question about the documents themselves; None if it is not certain to be one.

    Parameters
    ----------
    question : str
    reading : Reading
        What the question names, read among the same documents.
    profile : str
        Its name in the plural names its documents, as in "How many circulars ...?".
    values : callable
        Returns the values of text fields that some of the documents have, in lower case.
    authorities : iterable of str
        Initials with which the numbers of most documents begin: "which RBI issued" narrows nothing.
    intents : iterable of pattern
        The phrases by which the policy was tightened, so that they need no other reading.
    """
    if reading.numbers or reading.sections:
        return None
    return _Reader(question, reading, declared, values).choice(profile, authorities, intents)


class _Reader:
    """Takes away one part of a question after the other."""

    def __init__(
        self,
        question: str,
        reading: Reading,
        declared: Declared,
        values: Callable[[], Mapping[str, Iterable[str]]],
    ) -> None:
        text = re.sub(r"\s", " ", plain(question))
        for day in instants_of(text) if declared.as_of is not None else ():
            text = _blanked(text, day.start, day.end)
        self._text = self._given = text
        self._reading = reading
        self._declared = declared
        self._values = values
        self._is_certain = True

    def choice(
        self, profile: str, authorities: Iterable[str], intents: Iterable[re.Pattern[str]]
    ) -> Choice | None:
        polite = _POLITE.match(self._text)
        self._text = self._text[polite.end() :] if polite else self._text
        counts = bool(_COUNT.match(self._text))
        if not (self._took(_COUNT, at_start=True) or self._took(_LIST, at_start=True)):
            return None
        periods, self._text = periods_of(self._text)
        for one in self._reading.entities:
            self._take(re.compile(rf"{re.escape(one.text)}(?:['’]s?\b)?"))
        is_amendment, has_kind = self._kinds()
        words, topic = self._topic()
        changed = self._changes()
        bounds = self._bounds(periods, changed=bool(changed))
        values, has_value = self._fields()
        order, many, is_several = self._order(profile)
        for name in authorities:
            self._take(_authority(name))
        has_noun = self._took(_nouns(profile, companies=self._declared.companies))
        for phrase in intents:
            self._take(phrase)
        self._take(re.compile(rf"\b{_VERB}\b", re.IGNORECASE))
        left = {one.casefold() for one in _WORD.findall(self._text)} - _FILLER
        if left or not self._is_certain or not (has_noun or has_kind or has_value):
            return None
        if counts and order is not None:
            return None
        return Choice(
            counts=counts,
            order=order,
            many=many or (_SEVERAL if order and is_several else 0),
            entities=tuple(key for one in self._reading.entities for key in one.keys if isinstance(key, int)),
            kinds=self._reading.kinds if self._declared.companies else (),
            is_amendment=is_amendment,
            bounds=bounds,
            words=words,
            values=values,
            changed=changed,
            said=tuple(self._said(topic, values, bounds, changed, is_amendment=is_amendment)),
        )

    # --- what is taken away ---

    def _take(self, pattern: re.Pattern[str]) -> None:
        self._text = pattern.sub(lambda match: _READ * len(match[0]), self._text)

    def _took(self, pattern: re.Pattern[str], *, at_start: bool = False) -> bool:
        """Take away what a pattern matches first; tell whether there was any."""
        match = pattern.match(self._text) if at_start else pattern.search(self._text)
        if match is not None:
            self._text = _blanked(self._text, *match.span())
        return match is not None

    def _kinds(self) -> tuple[bool, bool]:
        kinds = self._declared.kinds
        if not (self._declared.companies and kinds is not None and self._reading.kinds):
            return False, False
        self._text = kinds.without(self._text)
        return self._took(re.compile(r"(?<=\x01)/A\b", re.IGNORECASE)), True

    def _topic(self) -> tuple[frozenset[str], str]:
        match = _TOPIC.search(self._text)
        if match is None:
            return frozenset(), ""
        said = (match["words"] or match["quoted"]).strip(" \"'“”‘’.,")
        words = title_words(said)
        if self._declared.title is None or not words or _ASKS.search(said):
            self._is_certain = False
        self._text = _blanked(self._text, *match.span())
        return words, said

    def _fields(self) -> tuple[tuple[tuple[str, frozenset[str]], ...], bool]:
        """Take away values of fields, the longest first; a value of two fields is ambiguous."""
        if len(set(_WORD.findall(self._text.casefold())) - _FILLER) > _MOST_LEFT:
            self._is_certain = False
            return (), False
        bearers: dict[str, list[str]] = {}
        for field, values in self._values().items():
            for value in values:
                bearers.setdefault(value, []).append(field)
        found: dict[str, set[str]] = {}
        for value in sorted(bearers, key=lambda one: (-len(one), one)):
            if self._took(_plural(value)):
                self._take(_plural(value))
                self._is_certain &= len(bearers[value]) == 1
                found.setdefault(bearers[value][0], set()).add(value)
        for field in found:
            self._take(_plural(field.replace("_", " ")))
        kind = self._declared.kind in found or "kind" in found
        return tuple((field, frozenset(these)) for field, these in sorted(found.items())), kind

    def _order(self, profile: str) -> tuple[Order | None, int, bool]:
        match = _ORDER.search(self._text)
        if match is None:
            return None, 0, False
        self._text = _blanked(self._text, *match.span())
        nouns = _nouns(profile, companies=self._declared.companies).search(self._text)
        many = match["before"] or match["after"] or "0"
        number = int(many) if many.isdigit() else _NUMBERS.index(many.casefold()) + 1
        several = nouns is not None and nouns[0].casefold().endswith("s")
        return Order.LATEST if match["latest"] else Order.OLDEST, number, several

    def _changes(self) -> frozenset[ActKind]:
        changed = frozenset[ActKind]()
        for words, kinds in _CHANGED.items():
            if self._took(re.compile(rf"\b(?:{words})\b", re.IGNORECASE)):
                changed |= kinds
        return changed

    def _bounds(self, periods: Sequence[Period], *, changed: bool) -> Bounds | None:
        if not periods:
            return Bounds("changed", None, None) if changed else None
        match = _WHILE.search(self._text)
        if len(periods) > 1 or match is None or self._declared.dated is None or _FISCAL.search(self._given):
            self._is_certain = False
            return None
        when = (match["when"] or "").casefold()
        has_verb = re.search(rf"\b{_VERB}\b", self._text, re.IGNORECASE) is not None
        reports = {self._declared.report(one).value for one in self._reading.kinds} - {"other"}
        is_period = (
            self._declared.companies
            and bool(reports)
            and not has_verb
            and when in ("", "for", "of")
            and not changed
        )
        of = "changed" if changed else "for a period that ends" if is_period else "dated"
        self._text = _blanked(self._text, *match.span())
        return _bounded(of, when, periods[0])

    def _said(
        self,
        topic: str,
        values: Iterable[tuple[str, frozenset[str]]],
        bounds: Bounds | None,
        changed: frozenset[ActKind],
        *,
        is_amendment: bool,
    ) -> Iterator[str]:
        for one in self._reading.entities:
            yield f"of {visible_line(one.text)}"
        if self._declared.companies and self._reading.kinds:
            yield f"form {' or '.join(self._reading.kinds)}{', amendments only' if is_amendment else ''}"
        for field, these in values:
            yield f"{field.replace('_', ' ')} {' or '.join(map(visible_line, sorted(these)))}"
        if topic:
            yield f"with “{visible_line(topic)}” in the title"
        if changed and len(changed) < len(ActKind):
            yield " or ".join(sorted(_DONE[one] for one in changed))
        if bounds is not None:
            yield bounds.described()


_DONE: Final = {ActKind.REPLACES: "replaced", ActKind.WITHDRAWS: "withdrawn", ActKind.AMENDS: "amended"}


def title_words(text: str) -> frozenset[str]:
    """Reduce a title, or what is asked of titles, to its words without plurals and small words.

    Examples
    --------
    >>> sorted(title_words("Lending against the Gold Policies"))
    ['against', 'gold', 'lending', 'policy']
    """
    return frozenset(map(_singular, _WORD.findall(text.casefold()))) - _SMALL


def _singular(word: str) -> str:
    if len(word) > len("gas") and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
    return word


def _blanked(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{_READ * (end - start)}{text[end:]}"


def _bounded(of: str, when: str, period: Period) -> Bounds:
    """Return the days that a period and the word before it mean, such as "before"."""
    day = timedelta(days=1)
    match when:
        case "after":
            return Bounds(of, period.last + day, None)
        case "since":
            return Bounds(of, period.first, None)
        case "before" | "prior to":
            return Bounds(of, None, period.first - day)
        case "until" | "till" | "up to" | "by" | "through":
            return Bounds(of, None, period.last)
    return Bounds(of, period.first, None if period.last == LAST_DAY else period.last)


@lru_cache(maxsize=64)
def _nouns(profile: str, *, companies: bool) -> re.Pattern[str]:
    """Return the words for the documents of a store, whatever they are."""
    own = [r"(?:SEC |EDGAR )?filings?", "forms?", "submissions?"] if companies else []
    named = re.escape(profile.removesuffix("s").replace("_", " "))
    return re.compile(
        rf"\b(?:{'|'.join(('documents?', 'files?', 'papers?', *own, f'{named}s?'))})\b", re.IGNORECASE
    )


@lru_cache(maxsize=64)
def _authority(initials: str) -> re.Pattern[str]:
    """Match an authority's initials, or its name in full with capitals."""
    full = r"\s(?:(?:of|and|for|the)\s)?".join(rf"{one}[a-z]+" for one in initials)
    return re.compile(rf"\b(?:[Tt]he\s)?(?:{re.escape(initials)}|{full})(?:['’]s)?\b")


@lru_cache(maxsize=4096)
def _plural(value: str) -> re.Pattern[str]:
    """Match a value as a whole, in any case, in the singular or plural."""
    words = r"\s+".join(map(re.escape, value.split()))
    words = f"{words[:-1]}(?:y|ies)" if words.endswith("y") else f"{words}(?:e?s)?"
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
