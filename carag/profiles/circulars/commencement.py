"""Find the day from which a circular says it is in force as a whole, in the words of circulars and statutes.

A circular that begins on a day that the text does not tell, such as the day of its publication in the Official Gazette,
is closed until a field states the day.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.numerals import NUMBER_WORDS
from carag.profiles.circulars.references import DATE, MONTH, date_of, month_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Commencement(NamedTuple):
    """The words that say when a circular comes into force."""

    day: date | None
    """None if the words do not tell the day."""
    start: int
    end: int
    """Offsets of the sentence in the text."""


_NOUN: Final = (
    r"(?:circulars?|directions?|instructions?|guidelines?|provisions?|framework|guidance\s+note|changes?|amendments?"
    r"|modifications?|regulations?|rules?|order|notification|scheme|norms?|requirements?|policy|limits?|measures?)"
)
_GAP: Final = (
    r"(?:(?!\b(?:para|item|clause|section|chapter|annex|schedule)\w*\b)(?:[^.;:\d]|\b(?:19|20)\d\d\b)){0,80}?"
)
_WHOLE: Final = re.compile(
    rf"(?:\b(?:this|these|the|said)\s+(?:\w+\s+){{0,4}}?(?:\([^()]{{1,160}}\)\s+)?{_NOUN}\b{_GAP}|\b(?:they|it)\s"
    r"|^\W*(?:\d+\W+)?(?:commencement|effective\s+date|date\s+of\s+(?:effect|commencement))\W{1,3})"
    r"(?=(?P<verb>\b(?:shall|will|would|is|are|to|be|comes?|takes?|becomes?|stands?)\b))",
    re.I,
)
"""The subject of a commencement sentence, up to its verb; a subject that names a paragraph is only about a part."""
_ISSUED_AND: Final = re.compile(
    rf"\b(?:this|these)\s+(?:\w+\s+){{0,2}}?{_NOUN}\s+(?:is|are)\s+(?:being\s+)?issued\b"
    r"[^;]{0,300}?\band\s+(?=(?P<verb>shall|will)\b)",
    re.I,
)
_STRONG: Final = re.compile(
    r"\b(?:com(?:e|es)|came|brought|put|enter|enters)\s+(?:\w+\s+)?in(?:to)?\s+(?:force|effect|operation)\b"
    r"|\btakes?\s+effect\b|\bha(?:ve|s)\s+effect\s+from\b|\bbe\s+in\s+force\b"
    r"|\b(?:be|is|are|become|becomes)\s+(?:made\s+)?(?:operative|operational|effective)\b|\bcommences?\b",
    re.I,
)
"""Words that always state a commencement."""
_WEAK: Final = re.compile(
    r"\b(?:applicable|appl(?:y|ies)|implemented|effective|enforced|enforceable|complied\s+with)\b", re.I
)
"""Words that state a commencement only if a time follows."""
_FROM: Final = (
    r"(?:with\s+effect\s+from|w\.?\s?e\.?\s?f\.?|effective\s+from|from(?!\s+time\s+to\s+time)|on\s+and\s+from|as\s+from"
    r"|with\s+immediate|immediately|forthwith|at\s+once)"
)
_TIME: Final = re.compile(
    rf"\W*(?:only\s+)?(?:{_FROM}|after|upon|on\s+(?:the\s+)?(?:expiry|date|day|publication|notification|\d|{MONTH}))\b"
    rf"|[^.;]{{0,100}}?\b(?:with\s+effect\s+from|w\.?\s?e\.?\s?f\b|effective\s+from)",
    re.I,
)
_LOOSE: Final = re.compile(
    r"\b(?:shall|will|would)\s+(?:come|be|become|take)\b[^.;]{0,60}?\b(?:force|effect|effective|applicable)\b"
    rf"|\b{_NOUN}\b[^.;]{{0,40}}\b(?:effective|applicable)\b",
    re.I,
)
_CONCERNED: Final = re.compile(rf"\b(?:this|these|the)\s*(?:\w+\s+){{0,3}}{_NOUN}\b", re.I)
_NO_TIME: Final = re.compile(
    r"\W*(?:only\s+)?(?:prospectively|retrospectively|in\s+nature|and\s+adequate)\b", re.I
)

_EFFECT: Final = re.compile(
    r"(?:with\s+effect\s+from|w\.?\s?e\.?\s?f\.?|effective\s+(?:from|on)?|(?:in)?to\s+(?:force|effect)\s+(?:on|from"
    r"|with\s+effect\s+from)|(?:force|effect)\s+from|applicable\s+(?:from|with\s+effect\s+from))\s+(?:the\s+)?"
    r"(?:close\s+of\s+business\s+(?:on|of)\s+|(?:\w+\s+){0,3}?(?:beginning|commencing|starting)\s+)?$",
    re.I,
)
_AT_ONCE: Final = re.compile(
    r"\bwith\s+immediate\s+effect\b|\bimmediately\b|\bforthwith\b|\bat\s+once\b"
    r"|\b(?:from|on|upon)\s+(?:the\s+)?(?:date\s+of\s+)?(?:(?:its|their|the|this)\s+)?(?:issu(?:e|ance)|this|the\s+circular)\b"
    r"|\bclose\s+of\s+business\s+today|\bplaced\s+on\s+the\s+(?:official\s+)?web\s?-?site",
    re.I,
)
"""Words for the day of issue; a circular is issued by being placed on the authority's own web site."""
_NUMBERS: Final = {word: number for word, number in NUMBER_WORDS.items() if number}
_UNITS: Final = "|".join(word for word, number in _NUMBERS.items() if number < 10)
_COUNT: Final = (
    rf"\d{{1,3}}|(?:(?:one\s+)?hundred\s+(?:and\s+)?)?(?:{'|'.join(_NUMBERS)})(?:[-\s](?:{_UNITS}))?"
)
_PERIOD: Final = re.compile(
    rf"(?P<lapse>\b(?:after|expir\w+|complet\w+|elaps\w+|lapse)\b[^.;]{{0,30}}?)?"
    rf"\b(?P<count>{_COUNT})\s*(?:\([^()]{{1,30}}\)\s*)?(?:calendar\s+)?(?P<unit>day|week|month|year)s?\W*"
    r"(?:from|of|after|following)\s+(?:the\s+)?(?:date\s+of\s+)?(?:(?:its|their|the|this|these)\s+)?"
    r"(?:issu(?:e|ance)|circular|directions?|instructions|guidelines|notification\s+of\s+even\s+date)\b",
    re.I,
)
"""A period from the day of issue; "from" excludes the first day (General Clauses Act, 1897, s. 9)."""
_FINANCIAL_YEAR: Final = re.compile(
    r"\b(?:(?:financial|accounting|fiscal)\s+year|F\.?\s?Y\.?)\s*(?:of\s+)?(?P<year>(?:19|20)\d\d)\s?[-–‐‑/]\s?(?P<next>\d{2,4})\b",
    re.I,
)
_SPAN: Final = re.compile(
    r"\b(?P<span>quarter|half[-\s]?year|year)\s+(?:ending|ended)\s+(?:on\s+|as\s+on\s+)?(?:the\s+)?$", re.I
)
_SPANS: Final = {"q": 3, "h": 6, "y": 12}
_IN_MONTH: Final = re.compile(rf"\b(?P<month>{MONTH}),?\s+(?P<year>(?:19|20)\d\d)\b")
_NOT_TOLD: Final = re.compile(
    r"\bgazette|\bnotif|\bpublication\b|\bto\s+be\s+\w+|\bmay\s+(?:be\s+)?(?:appoint|specif|decid|notif|announc|prescrib)"
    rf"|\bas\s+and\s+when\b|\bwhichever\b|\bsubject\s+to\b|\b(?:{_COUNT})\s*(?:\([^()]*\)\s*)?(?:\w+\s+)?(?:days?|weeks?|months?|years?)\b",
    re.I,
)
_FAR: Final = 200
"""Characters after the verb in which the day is searched."""


def commencement(text: str, sentences: Iterable[tuple[int, int]], issued: date | None) -> Commencement | None:
    """Return the words that say when a circular comes into force as a whole; None if it has no such words.

    The first sentence about the whole decides. Without such a sentence, the first about a part whose day can be read
    decides: until that day it is unknown which parts of the circular hold. Periods are counted from ``issued``.

    Examples
    --------
    >>> words = "It shall come into force from the financial year 2023-24."
    >>> commencement(words, [(0, len(words))], None).day.isoformat()
    '2023-04-01'
    """
    part = None
    for start, end in sentences:
        sentence = " ".join(text[start:end].split())
        if (told := _told(sentence)) is not None:
            return Commencement(_day(told, issued), start, end)
        if part is None and _LOOSE.search(sentence) and _CONCERNED.search(sentence):
            day = effective_day(sentence, issued)
            part = Commencement(day, start, end) if day else None
    return part


def _told(sentence: str) -> str | None:
    """Return the words in a sentence that tell the day of commencement; None if it is about something else."""
    for subject in [*_ISSUED_AND.finditer(sentence), *_WHOLE.finditer(sentence)]:
        clause = sentence[subject.start("verb") :]
        reach = clause[:_FAR]
        strong = _STRONG.search(reach[:80])
        if (
            strong
            and not _NO_TIME.match(reach, strong.end())
            and not re.search(r"\bnot\b", reach[: strong.end()])
        ):
            return clause[strong.start() :][:_FAR]
        weak = _WEAK.search(reach[:80])
        if weak and (time := _TIME.match(reach, weak.end())):
            return clause[max(weak.end(), time.end() - 30) :][:_FAR]
    return None


def _day(told: str, issued: date | None) -> date | None:
    """Return the first day that words name; None if they mention a day before it without saying which it is."""
    found = [(one.start(), _counted(one, issued)) for one in _PERIOD.finditer(told)]
    found += [(one.start(), issued) for one in _AT_ONCE.finditer(told)]
    found += [(one.start(), _year_begins(one)) for one in _FINANCIAL_YEAR.finditer(told)]
    found += [(one.start(), _first_of(told[: one.start()], date_of(one))) for one in DATE.finditer(told)]
    found += [
        (one.start(), date(int(one["year"]), month_of(one["month"]), 1)) for one in _IN_MONTH.finditer(told)
    ]
    first, day = min(found, key=lambda one: one[0], default=(len(told), None))
    if (doubt := _NOT_TOLD.search(told)) and (doubt.start() < first or "whichever" in told.lower()):
        return None
    return day


def effective_day(sentence: str, issued: date | None) -> date | None:
    """Return the day from which a sentence's act holds; of several days the first, as exceptions follow the rule."""
    if period := _PERIOD.search(sentence):
        return _counted(period, issued)
    at_once = _AT_ONCE.search(sentence)
    for one in DATE.finditer(sentence):
        if _EFFECT.search(sentence[: one.start()]) and not (at_once and at_once.start() < one.start()):
            return date_of(one)
    return issued if at_once else None


def _counted(period: re.Match[str], issued: date | None) -> date | None:
    if issued is None:
        return None
    words = re.split(r"[-\s]+", period["count"].lower())
    count = int(words[0]) if words[0].isdigit() else sum(_NUMBERS.get(word, 0) for word in words)
    if "hundred" in words:
        count += 100 - (1 if words[0] == "one" else 0)
    unit = period["unit"].lower()
    months = {"month": count, "year": 12 * count}.get(unit)
    day = (
        _months_after(issued, months)
        if months is not None
        else issued + timedelta(days=count * (7 if unit == "week" else 1))
    )
    return day + timedelta(days=1) if period["lapse"] else day


def _months_after(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _year_begins(one: re.Match[str]) -> date | None:
    """Return 1 April of a financial year (General Clauses Act, 1897, s. 3(21))."""
    year = int(one["year"])
    return date(year, 4, 1) if int(one["next"]) % 100 == (year + 1) % 100 else None


def _first_of(before: str, day: date | None) -> date | None:
    """Return the first day of the quarter or year that ends on a day, if the words before it name one."""
    span = _SPAN.search(before)
    if span is None or day is None:
        return day
    return _months_after(day + timedelta(days=1), -_SPANS[span["span"][0].lower()])
