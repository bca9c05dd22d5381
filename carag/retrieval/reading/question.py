"""Read what a question names: companies, titles, periods, kinds, sections, and whether it wants the latest.

No model is used: a reading depends on the question and the tables given alone. It can only order what a session admits.
What is ambiguous is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

from carag.labelling.sentences import sentences
from carag.limits import check_question
from carag.retrieval.reading.instants import instants_of
from carag.retrieval.reading.periods import periods_of, taken
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from carag.retrieval.reading.instants import Instant
    from carag.retrieval.reading.lexicon import Lexicon
    from carag.retrieval.reading.names import Key, Mention, Names
    from carag.retrieval.reading.numbers import NumberPlace
    from carag.retrieval.reading.periods import Period, ReportKind


_SPACE: Final = re.compile(r"\s+")
_CLOSING: Final = "\"'\u201d\u2019) "
_LATEST: Final = re.compile(r"(?<!\bat the )\b(?:latest|newest|most\srecent(?:ly)?)\b", re.IGNORECASE)
_AHEAD: Final = re.compile(
    r"\b(?:due (?:after|by|during|in|on)|matur(?:e|es|ing|ity|ities)|future|schedul(?:e|es|ed)|estimated"
    r"|expected (?:amortization|benefits?|contributions?|payments?)|expir(?:e|es|ing)|commitments?|obligations?"
    r"|lease payments)\b",
    re.IGNORECASE,
)
"""Words that ask about the future, such as a payment in a table of maturities (Regulation S-K, Item 303(b)(1))."""
_NUMBER: Final = r"\d{1,9}[a-z]?\d{0,9}(?:[./-]\d{1,9}[a-z]?){0,9}(?:\s?\((?:\d{1,9}|[a-z]{1,4})\)){0,9}"
NUMBERED: Final = {
    "article": r"art(?:icles?|ikel|ículo|icolo|\.)",
    "section": r"sec(?:tions?|\.)|§{1,2}",
    "clause": r"clauses?|cl\.",
    "item": "items?",
    "paragraph": r"para(?:graphs?|s?\.)|¶{1,2}",
    "rule": "rules?",
    "regulation": "regulations?",
    "note": "notes?",
    "chapter": "chapters?",
    "exhibit": "exhibits?",
    "annex": "annex(?:es)?",
    "appendix": "appendi(?:x|ces)",
    "schedule": r"schedules?(?!\s1[34][a-z])",  # Schedule 13D is a form
    "part": "parts?",
}
_LETTERED: Final = frozenset({"annex", "appendix", "schedule", "exhibit"})
_ROMAN: Final = _LETTERED | {"article", "chapter", "part"}
SECTION: Final = re.compile(
    rf"(?<!\w)(?:{'|'.join(f'(?P<{kind}>{words})' for kind, words in NUMBERED.items())})\s?"
    rf"(?P<numbers>{_NUMBER}(?:(?:\s?,\s?(?:and\s|or\s)?|\s(?:and|or|&)\s)(?!(?:19|20)\d\d\b){_NUMBER}){{0,9}}"
    r"|(?-i:[IVX]+|[A-Z])(?!['’])(?:\s?\(\w{1,4}\)){0,9})(?!\w)",
    re.IGNORECASE,
)


class Section(NamedTuple):
    """A numbered part of a document that a question names."""

    kind: str
    """In lower case and the singular, such as ``article``; § is ``section``."""
    number: str
    """In lower case, without spaces, such as ``12(3)(a)``."""

    def described(self) -> str:
        """Return the section in words."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question names, in the order of the question."""

    entities: tuple[Mention, ...] = ()
    periods: tuple[Period, ...] = ()
    kinds: tuple[str, ...] = ()
    """In the order of the table of kinds."""
    wants_latest: bool = False
    looks_ahead: bool = False
    """Whether it may ask what a report says about future years."""
    sections: tuple[Section, ...] = ()
    titles: tuple[Mention, ...] = ()
    numbers: tuple[Mention, ...] = ()
    """Document numbers; without keys if no given document has the number."""
    days: tuple[date, ...] = ()
    """The days as of which it asks."""
    said: tuple[str, ...] = ()
    """All words that name an entity or a title, repeated mentions included."""

    @property
    def is_about_somebody(self) -> bool:
        """Whether it names an entity, a title or a number, so that only documents about these can answer it."""
        return bool(self.entities or self.titles or self.numbers)

    @property
    def keys(self) -> frozenset[Key]:
        """The keys of everything that the entities may mean."""
        return frozenset(key for one in self.entities for key in one.keys)

    def fits(
        self, period_of_report: date | None, fiscal_year_end: str | None, kind: ReportKind | str
    ) -> float:
        """Tell how well a document fits the best of the periods, as :meth:`Period.fits` does; 0 without periods."""
        return max((one.fits(period_of_report, fiscal_year_end, kind) for one in self.periods), default=0.0)

    def described(self) -> str:
        """Return in one line what was understood, in the question's own words; empty if nothing was.

        It reveals nothing about a table: no key, not how many have a name, and no name that is not in the question.
        """
        named = [visible_line(one.text) for one in (*self.entities, *self.titles, *self.numbers)]
        parts = [
            *named,
            *(f"on {day.isoformat()}" for day in self.days),
            *(one.described() for one in self.periods),
            *self.kinds,
            *(["the latest"] if self.wants_latest else []),
            *(one.described() for one in self.sections),
        ]
        return "; ".join(dict.fromkeys(parts))


def read_question(
    question: str,
    *,
    names: Names | None = None,
    titles: Names | None = None,
    kinds: Lexicon | None = None,
    numbers: Callable[[str], Sequence[NumberPlace]] | None = None,
    instants: bool = False,
) -> Reading:
    """Read a question of 1 to 8,192 characters.

    ``names`` holds companies, ``titles`` documents, and ``numbers`` finds document numbers;
    :mod:`carag.retrieval.reading.names` says which may be among them. With ``instants``, days as of which the question
    asks are not read as periods.

    Examples
    --------
    >>> reading = read_question("What was revenue from FY2015 - FY2017, and under section 12(3)?")
    >>> [one.described() for one in reading.periods], [one.described() for one in reading.sections]
    (['2015 to 2017'], ['section 12(3)'])
    """
    days = instants_of(question) if instants else ()
    numbered = numbers(plain(question)) if numbers else ()
    text, sections, periods, rest = _parts(question, (*days, *numbered))
    entities = names.find(rest) if names else ()
    titled = titles.find(text) if titles else ()
    meant = {key for one in numbered for key in one.mention.keys}
    # A title that several documents have means the one whose number is named with it.
    titled = tuple(
        replace(one, keys=tuple(key for key in one.keys if key in meant) or one.keys) for one in titled
    )
    return Reading(
        entities=_each_once(entities),
        periods=tuple(dict.fromkeys(periods)),
        kinds=kinds.expand(text) if kinds else (),
        wants_latest=bool(_LATEST.search(text)),
        looks_ahead=bool(_AHEAD.search(text)),
        sections=tuple(dict.fromkeys(one for _, _, one in sections)),
        titles=_each_once(titled),
        numbers=_each_once(tuple(one.mention for one in numbered)),
        days=tuple(dict.fromkeys(one.day for one in days if one.day is not None)),
        said=tuple(dict.fromkeys(one.text for one in (*entities, *titled))),
    )


def asking(question: str) -> str:
    """Return the sentences of a question that ask, or the whole question if no sentence ends in a question mark."""
    said = [question[start:end] for start, end in sentences(question, wrapped=True)]
    return " ".join([one for one in said if one.rstrip(_CLOSING).endswith(("?", "\uff1f"))] or said)


def unread(question: str) -> str:
    """Return a question without the periods and sections that it names, each replaced by NUL."""
    return _parts(question)[3]


def sections_in(text: str) -> tuple[list[tuple[int, int, Section]], str]:
    """Return the sections that a text names with their places, and the text without them, each replaced by NUL."""
    return taken(SECTION, text, _sections_of)


def plain(question: str) -> str:
    """Return a question in NFKC, with one blank or line end for each run of white space."""
    check_question("question", question)
    return _SPACE.sub(lambda run: "\n" if "\n" in run[0] else " ", normalize("NFKC", question))


def _parts(
    question: str, without: Sequence[Instant | NumberPlace] = ()
) -> tuple[str, list[tuple[int, int, Section]], list[Period], str]:
    rest = text = plain(question)
    for one in without:
        rest = rest[: one.start] + "\0" * (one.end - one.start) + rest[one.end :]
    sections, rest = sections_in(rest)
    return text, sections, *periods_of(rest)


def _each_once(mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
    first: dict[tuple[Key, ...] | str, Mention] = {}
    for one in mentions:
        first.setdefault(one.keys or one.text, one)
    return tuple(first.values())


def _sections_of(match: re.Match[str]) -> list[Section]:
    kind = next(kind for kind in NUMBERED if match[kind])
    numbers = re.findall(_NUMBER, match["numbers"], re.IGNORECASE)
    if not match["numbers"][0].isdigit():
        is_roman = match["numbers"][0] in "IVX"
        numbers = [match["numbers"]] if kind in (_ROMAN if is_roman else _LETTERED) else []
    return [Section(kind, "".join(one.split()).casefold()) for one in numbers]
