"""Read questions about the documents themselves: which there are, how many, the latest, what was changed, and when.

A question is read only if nothing of it is left over. Everything else asks what documents say, and is answered from
passages. What a question can name comes from the documents given, which the session may use.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.labelling.numerals import NUMBER_WORDS
from carag.retrieval.reading.forms import acts_of, one_line, read_acted
from carag.retrieval.reading.instants import instants_of
from carag.retrieval.reading.names import words_listed
from carag.retrieval.reading.patterns import pattern
from carag.retrieval.reading.periods import LAST_DAY, Span, periods_of
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from carag.labelling.document import ActKind
    from carag.policy import Vocabulary
    from carag.retrieval.reading.declared import Declared
    from carag.retrieval.reading.documents import Documents
    from carag.retrieval.reading.periods import Period
    from carag.retrieval.reading.question import Reading


_SEVERAL: Final = 10
"""How many are named where a question asks for "the latest documents" without a number."""
_MOST_LEFT: Final = 10
"""Words that nouns and the values of fields may explain; with more left, a question asks something else."""
_LONGEST: Final = 80
"""Characters in the longest value of a field that a question may name."""
_ALWAYS: Final = (1, date.max.toordinal())
_SMALL: Final = "a an and at by for from in of on or s the to with"
_INITIALS: Final = re.compile(r"[a-z]{2,6}(?=/)")
"""The authority in a number such as RBI/2024-25/93, in lower case."""
_WORD: Final = re.compile(r"[^\W_]+")


class Choice(NamedTuple):
    """The documents that a question asks for."""

    found: NDArray[np.bool_]
    """(n,) bool: which of the documents given meet all conditions, except those on changes."""
    said: tuple[str, ...]
    """The conditions in words."""
    counts: bool
    """Whether it asks how many there are."""
    order: str
    """``latest``, ``oldest`` or empty."""
    many: int
    """How many of the latest or oldest are asked for; 0 for those of one day."""
    changed: frozenset[ActKind]
    """What must have been done to the documents; empty if nothing is asked about that."""
    days: tuple[int, int]
    """The ordinals of the first and last day on which it must have been done."""


def may_list(question: str) -> bool:
    """Tell whether a question begins like one about the documents themselves, whatever follows."""
    text = one_line(question)
    return read_acted(question) is not None or any(
        pattern(one).match(text) for one in ("count", "list", "bare")
    )


def choose(
    question: str,
    reading: Reading,
    records: Documents,
    declared: Declared,
    vocabulary: Vocabulary,
    intents: Iterable[str],
    stated: Callable[[str], Sequence[str]],
) -> Choice | None:
    """Choose the documents that a question asks for; None if it is not certain to ask for documents.

    - ``reading``: what the question names, read among the documents, which are ``records``.
    - ``vocabulary``: its profile's name in the plural names its documents, as in "How many circulars ...?".
    - ``intents``: those by which the policy was tightened, so that their phrases need no other reading.
    - ``stated``: returns a text field of each document, in lower case.
    """
    one = _Reader(question, reading, records, declared)
    is_one = pattern("asks_what").match(one.text) is not None and not declared.companies
    is_within = pattern("asks_within").match(one.text)
    counts = one.begins("count")
    is_done = pattern("what_done").match(one.text) is not None
    begins = counts or one.begins("list") or pattern("bare").match(one.text)
    if reading.numbers or reading.sections or is_within or not begins:
        return None
    own = re.escape(vocabulary.profile.removesuffix("s"))
    nouns = re.compile(rf"{pattern('nouns').pattern}|\b{own}s?\b", re.IGNORECASE)
    periods, one.text = periods_of(one.text)
    has_kind = one.names()
    one.topic()
    changed = one.changes()
    days = one.times(periods, is_changed=bool(changed))
    order, many = one.order(nouns)
    for name in declared.numbers[:1]:
        one.authority(stated(name))
    if len(one.left()) <= _MOST_LEFT:
        named = {declared.title, *declared.numbers}
        fields = [name for name, kind in vocabulary.metadata.items() if kind == "text" and name not in named]
        has_kind |= one.values({name: stated(name) for name in fields}, nouns)
    has_noun = bool(one.take(nouns)) or is_done
    for phrase in (phrase for rule in vocabulary.intents.named(intents) for phrase in rule.phrases):
        one.said += map(visible_line, one.take(phrase))
    one.take(pattern("done"))
    asks_what = is_one and not (counts or order or is_done)
    if one.left() or not one.is_certain or not (has_noun or has_kind) or (counts and order) or asks_what:
        return None
    return Choice(one.found, tuple(one.said), counts, order, many, changed, days)


class _Reader:
    """Takes one part after the other from a question, and keeps the documents that meet it."""

    def __init__(self, question: str, reading: Reading, records: Documents, declared: Declared) -> None:
        text = one_line(question)
        for name in ("range_days", "range_months"):
            text = pattern(name).sub(r"\g<a> \g<b>\g<d>\g<e>\g<c>\g<d>\g<e>", text)
        for day in instants_of(text) if declared.as_of is not None else ():
            text = text[: day.start] + "\1" * (day.end - day.start) + text[day.end :]
        self.text = self._given = text
        self._reading, self._records, self._declared = reading, records, declared
        self.found = np.ones(len(records), np.bool_)
        self.said: list[str] = []
        self.is_certain = True

    def begins(self, name: str) -> bool:
        """Take the beginning of the text, if it has a form."""
        match = pattern(name).match(self.text)
        self.text = self.text[match.end() :] if match else self.text
        return match is not None

    def take(self, said: re.Pattern[str]) -> list[str]:
        """Take everything that a pattern matches."""
        taken = [match[0] for match in said.finditer(self.text)]
        self.text = said.sub(lambda match: "\1" * len(match[0]), self.text)
        return taken

    def left(self) -> set[str]:
        """Return the words that were not taken, except those that change nothing."""
        return set(_WORD.findall(self.text.casefold())) - words_listed("fillers.txt")

    def names(self) -> bool:
        """Take companies, and forms of filings; tell whether there is a form."""
        for one in self._reading.entities:
            self.take(re.compile(rf"{re.escape(one.text)}(?:['’]s?\b)?"))
            self.said.append(f"of {visible_line(one.text)}")
        if self._reading.entities:
            self.found &= self._records.of_entities(map(int, self._reading.keys))
        kinds = self._declared.kinds if self._declared.companies else None
        if kinds is None or not self._reading.kinds:
            return False
        self.text = kinds.without(self.text)
        self.is_certain &= "\1/" not in self.text  # 10-K/A
        self._keep(self._records.of_kinds(self._reading.kinds), f"form {' or '.join(self._reading.kinds)}")
        return True

    def topic(self) -> None:
        """Take the words that titles must have; if no title has them, texts may be meant."""
        match = pattern("topic_in").search(self.text) or pattern("topic").search(self.text)
        if match is None:
            return
        said = match["words"].strip(" \"'“”‘’.,")
        words = title_words(said)
        titled = np.array([words <= title_words(one) for one in self._records.titles], np.bool_)
        self.is_certain &= bool(words) and bool(titled.any()) and not pattern("asks").search(said)
        self.text = f"{self.text[: match.start()]}\1{self.text[match.end() :]}"
        self._keep(titled, f"with “{visible_line(said)}” in the title")

    def changes(self) -> frozenset[ActKind]:
        match = pattern("changed").search(self.text)
        self.is_certain &= match is None or not self._declared.companies
        self.said += self.take(pattern("changed"))
        return acts_of(match) if match else frozenset()

    def times(self, periods: Sequence[Period], *, is_changed: bool) -> tuple[int, int]:
        """Take the time, and return its first and last day if it is that of a change."""
        if not periods:
            return _ALWAYS
        match = pattern("while").search(self.text)
        is_unclear = pattern("fiscal").search(self._given) or (
            periods[0].span is Span.YEARS and pattern("numeric_day").search(self._given)
        )
        if len(periods) > 1 or match is None or self._declared.dated is None or is_unclear:
            self.is_certain = False
            return _ALWAYS
        when = (match["when"] or "").casefold()
        first, last = _bounds(when, periods[0])
        reports = {self._declared.report(one).value for one in self._reading.kinds} - {"other"}
        is_of_report = when in ("", "for", "of") and bool(reports) and not pattern("done").search(self.text)
        self.text = f"{self.text[: match.start()]}\1{self.text[match.end() :]}"
        days = self._records.periods if is_of_report else self._records.dated
        if is_changed:
            self.said[-1] += f" {_described(first, last)}"
        else:
            of = "for a period that ends" if is_of_report else "dated"
            self._keep((days >= first) & (days <= last), f"{of} {_described(first, last)}")
        return first, last

    def order(self, nouns: re.Pattern[str]) -> tuple[str, int]:
        match = pattern("order").search(self.text)
        if match is None:
            return "", 0
        self.text = f"{self.text[: match.start()]}\1{self.text[match.end() :]}"
        many = match["before"] or match["after"] or ""
        noun = nouns.search(self.text)
        several = _SEVERAL if noun is not None and noun[0].casefold().endswith("s") else 0
        number = NUMBER_WORDS.get(many.casefold()) or int(many or several)
        return "latest" if match["latest"] else "oldest", number

    def authority(self, numbers: Iterable[str]) -> None:
        """Take the authority with whose initials most numbers begin: that it issued something narrows nothing."""
        begins = Counter(match[0] for one in numbers if one and (match := _INITIALS.match(one)))
        for initials, often in begins.items():
            if 2 * often > begins.total():
                whole = r"\s(?:(?:of|and|for|the)\s)?".join(rf"{one.upper()}[a-z]+" for one in initials)
                self.take(re.compile(rf"\b(?:[Tt]he\s)?(?:{initials.upper()}|{whole})(?:['’]s)?\b"))

    def values(self, columns: dict[str, Sequence[str]], nouns: re.Pattern[str]) -> bool:
        """Take the values of fields, the longest first; tell whether one is a kind. One of two fields is ambiguous."""
        of: dict[str, list[str]] = {}
        for name, column in columns.items():
            for value in {one for one in column if 1 < len(one) <= _LONGEST and not nouns.fullmatch(one)}:
                of.setdefault(value, []).append(name)
        asked: dict[str, list[str]] = {}
        text = self.text.casefold()
        near = [
            value for value in of if value[:-1] in text
        ]  # in the singular or plural; there may be many values
        for value in sorted(near, key=lambda one: (-len(one), one)):
            if self.take(_plural(value)):
                self.is_certain &= len(of[value]) == 1
                asked.setdefault(of[value][0], []).append(value)
        for name, values in asked.items():
            called = name.replace("_", " ")
            self.take(_plural(called))
            said = " or ".join(map(visible_line, values))
            self._keep([one in values for one in columns[name]], f"{called} {said}")
        return bool({"kind", self._declared.kind} & asked.keys())

    def _keep(self, condition: ArrayLike, said: str) -> None:
        self.found &= np.asarray(condition, np.bool_)
        self.said.append(said)


@lru_cache(maxsize=1 << 16)
def title_words(text: str) -> frozenset[str]:
    """Reduce a title, or what is asked of titles, to its words without plurals and small words.

    Examples
    --------
    >>> sorted(title_words("Lending against the Gold Policies"))
    ['against', 'gold', 'lending', 'policy']
    """
    return frozenset(map(_singular, _WORD.findall(text.casefold()))) - frozenset(_SMALL.split())


def _singular(word: str) -> str:
    if len(word) <= len("gas") or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


def _bounds(when: str, period: Period) -> tuple[int, int]:
    """Return the first and last day that a period and the word before it mean, as ordinals."""
    first, last = period.first.toordinal(), period.last.toordinal()
    match when:
        case "after":
            return last + 1, _ALWAYS[1]
        case "before" | "prior to":
            return 1, first - 1
        case "until" | "till" | "up to" | "by" | "through":
            return 1, last
    return first, _ALWAYS[1] if when == "since" or period.last == LAST_DAY else last


def _described(first: int, last: int) -> str:
    days = [date.fromordinal(one).isoformat() for one in (first, last)]
    if first == _ALWAYS[0]:
        return f"{days[1]} or earlier"
    if last == _ALWAYS[1]:
        return f"{days[0]} or later"
    return days[0] if first == last else " to ".join(days)


@lru_cache(maxsize=4096)
def _plural(value: str) -> re.Pattern[str]:
    """Match a value as a whole, in any case, in the singular or plural."""
    words = r"\s+".join(map(re.escape, value.split()))
    words = f"{words[:-1]}(?:y|ies)" if words.endswith("y") else f"{words}(?:e?s)?"
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
