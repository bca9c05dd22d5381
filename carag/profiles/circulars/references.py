"""Find where a text names a circular or direction by its number, its title, or a word defined for it.

The patterns follow the Reserve Bank of India's numbers and titles. The authority's own number (``RBI/2024-25/100``),
the department's (``DOR.STR.REC.54/21.04.048/2024-25``), and those of a series (``A.P. (DIR Series) Circular No. 17``)
are told apart by their form alone, without a table of departments.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import date
from operator import itemgetter
from typing import Final, NamedTuple

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
MONTH: Final = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?)"
)
DATE: Final = re.compile(
    rf"(?P<m1>{MONTH})\s+(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?:\s*,\s*|\s+)(?P<y1>(?:19|20)\d\d)"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+day)?(?:\s+of)?\s+(?P<m2>{MONTH})(?:\s*,\s*|\s+)(?P<y2>(?:19|20)\d\d)"
    r"|\b(?P<d3>\d{1,2})[./-](?P<m3>\d{1,2})[./-](?P<y3>(?:19|20)?\d\d)\b(?![./]\d)"
)
"""A date in words, or day, month and year in figures."""
_CENTURY: Final = 50
"""Two-digit years from this one on are in the 1900s; the Bank's first circulars are from the 1950s."""

_YEARS: Final = r"(?:(?:19|20)\s?)?\d\d(?:\s?[-–‐‑]\s?)?(?:19|20)?\d\d"
_SERIAL: Final = r"[A-Z]?\d{1,6}[A-Z]?"
_TOKEN: Final = rf"(?!Master|Circular|Direction)(?:[A-Z][A-Za-z]{{0,7}}|{_SERIAL})"
_BETWEEN: Final = (
    # Not the number of the next row; a word and a line break end the text before a department.
    r"(?:(?!\s*\n\s*\d{1,3}\.?\s)(?!(?<![.-])\s*\n\s*\n)(?!(?<=[A-Za-z)])\s*\n\s*[A-Z]{3,8}\.)(?:[.\s()&-]|(?<=[A-Z])/(?=[A-Z]+\)))){1,4}"
)
NUMBER: Final = re.compile(
    r"(?P<own>\b[A-Z]{2,6}/(?:[A-Za-z]{2,5}/)?(?:19|20)\d\d\s?[-–‐‑]\s?\d{2,4}/\s?\d{1,4}\b)"
    r"|(?P<series>\bA\.?\s?[PD]\.?\s?\(?\s?[A-Z][A-Z./ ]{0,7}\s*Series\s?\)?\s*"
    r"[Cc]ir(?:cular|\.)\s*(?:[Nn]o)?\.?\s?(?P<serial>\d{1,3})\b)"
    r"|(?P<law>\bFEMA[.\s]{0,2}\d{1,3}\s?(?:\(R\)\s?)?/\s?(?:(?:19|20)\d\d-RB|RB-(?:19|20)\d\d))"
    r"|(?P<master>\b[A-Z]{3,5}\s+Master\s+Direction\s+No\.?\s?\d{1,3}(?:/(?:19|20)\d\d-\d\d)?|\bMaster\s+Direction\s+No\.?\s?\d{1,3}/(?:19|20)\d\d-\d\d)"
    rf"|(?P<department>(?<![A-Za-z])(?!RBI\b)(?:Do[RS]|[A-Z]{{2,8}})(?:{_BETWEEN}{_TOKEN}){{0,11}}{_BETWEEN}{_SERIAL}[.)\s]{{0,2}}"
    r"/\s?(?:[\dA-Za-z][\dA-Za-z.()\s–‐‑-]{0,24}?/\s?(?:" + _YEARS + r"|\d\d)|C\.[\dA-Z][\dA-Z\s().-]{0,16}"
    r"[-–‐‑]\d\d|" + _YEARS + r")(?![\d/]))"
)

_UPPER: Final = r"(?!Please\b)[A-Z(\[‘“][\w’'()&,/.\[\]–-]*"
_SMALL: Final = (
    r"(?:of|and|for|in|on|to|the|or|by|with|under|as|from|at|into|between|taking|vis-à-vis|[-–—&])"
)
_TITLE: Final = re.compile(
    # Directions and guidelines end with their year; statutes, which others enact, are not circulars.
    rf"(?P<directions>(?:{_UPPER}|{_SMALL})(?:\s+(?:{_UPPER}|{_SMALL})){{1,28}}?\s+\(?(?:Directions?|Guidelines)\)?,?"
    r"\s*[-–‐‑]?\s*(?:19|20)\d\d)"
    r"|(?P<named>Reserve\s+Bank\s+of\s+India\s+\([^()]{5,160}\)\s*(?:[A-Z]\w+\s+){0,3}Directions?(?:,?\s*[-–]?\s*(?:19|20)\d\d)?)"
    r"|(?P<master>Master\s+(?:Directions?|Circulars?)\s*(?:\(MD\)\s*)?(?:[-–—:]\s*|on\s+)?[‘“'\"]?"
    rf"(?:{_UPPER})(?:(?<![’'”\"]\.)[ \t]*\n?[ \t]*(?:[-–—]\s*)?(?:{_UPPER}|{_SMALL}))*)"
    r"|“(?P<double>[A-Z][^“”\"\n]{10,200})”"
    r"|[‘“\"](?P<quoted>[A-Z][^‘’“”\"\n]*(?:\n[^‘’“”\"\n]+){0,3})[’”\"]"
)
_STATUTE: Final = re.compile(
    r"\b(?:Act|Rules?|Regulations?|Order|Ordinance|Code|Bill)\b,?\s*(?:,|\d{4})?\s*$"
)
_TRAILING: Final = re.compile(
    r"(?:[\s,.;:(\[‘“–-]|\b(?:of|and|for|in|on|to|the|or|by|with|under|as|vide|dated))+$"
)
_LEADING: Final = re.compile(
    r"^(?:(?:and|or|of|in|on|to|the|our|under|by|as|for|with|In|The|Existing|Paragraph|Please|Accordingly,?|Further,?)"
    r"\b[\s,]*)+"
)
_DEFINED: Final = re.compile(
    r"\(\s*(?:(?:hereinafter|herein\s+after|henceforth)[^()‘“\"']{0,40})?[‘“\"']?(?:the\s+)?"
    r"(?P<word>(?:MD|FEM|Master\s+Directions?|[A-Z][A-Za-z-]*(?:MD|Directions?|Framework|Guidelines|PPIs))"
    r"[^()‘’“”\"']{0,30})[’”\"']?\s*\)"
)
_DATED: Final = re.compile(r"\b(?:circulars?|letters?|guidelines|instructions)(?=\s+dated\s)", re.I)
"""A circular named by its date alone."""
_AGAIN: Final = re.compile(
    r"\b(?:[Tt]he|said|aforesaid)\s+(Master\s+(?:Direction|Circular))s?\b(?!\s*(?:[-–—:(‘“]|on\b|dated\b|\d|[A-Z]))"
)
"""A reference to the circular introduced last."""
_INSTRUMENT: Final = re.compile(
    r"\b(?:circular|(?<!revised )direction|guideline|guidance|framework|scheme|norms|policy|letter)", re.I
)
_CUE: Final = 40
"""Characters before quoted words that are searched for a sign that they are a circular's title."""
_REACH: Final = 90
"""Characters after a number or title that are searched for its date or defined word."""


_ODD: Final = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u200b\u00ad\ufeff", " "),
        "\u2010": "-",
        "\u2011": "-",
        "\f": "\n",
    }
)
_FURNITURE: Final = re.compile(
    r"(?<=\n)[ \t]*(?:Page\s+)?\d{1,3}(?:\s+of\s+\d{1,3})?[ \t]*(?=\n+\f)"
    r"|(?<=\n)(?!(?i:in|of|to|on|is|as|by|or|at|no|an|be|it|a)\n)[A-Za-z]{1,2}(?=\n)|(?<=\n)(?:ith|raw)(?=\n)"
)
"""Page numbers at the end of a page, and letters of a watermark that stand on lines of their own."""


def levelled(text: str) -> str:
    """Return a text of the same length with odd spaces and hyphens normalised, page numbers and watermarks blanked."""
    return _FURNITURE.sub(lambda one: " " * len(one[0]), text).translate(_ODD)


class Reference(NamedTuple):
    """A place in a text that names another circular or direction."""

    start: int
    end: int
    """Offsets in the text, including the date."""
    numbers: tuple[str, ...] = ()
    """The numbers as written in the text, with each line break as one space."""
    title: str = ""
    date: date | None = None
    word: str = ""
    """The word used for a circular introduced earlier, such as ``MD-PPIs``."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which the store may hold the circular."""
        return names_of(self.numbers, self.title, self.date)


def month_of(name: str) -> int:
    """Return the number of a month matched by :data:`MONTH`."""
    return _MONTHS[name[:3].lower()]


def date_of(found: re.Match[str]) -> date | None:
    """Return the day matched by :data:`DATE`; None if the calendar does not have it."""
    for kind in "123":
        if found[f"d{kind}"]:
            month = found[f"m{kind}"]
            number = int(month) if month.isdigit() else month_of(month)
            year = int(found[f"y{kind}"])
            if year < 100:
                year += 1900 if year >= _CENTURY else 2000
            try:
                return date(year, number, int(found[f"d{kind}"]))
            except ValueError:
                return None
    return None


def number_key(number: str) -> str:
    """Normalise a circular's number, so that different spellings of it are equal.

    Case, dots, spaces, hyphens, a leading "No.", zeros before the serial number and the century of a financial year do
    not count: line breaks in a PDF lose hyphens, and departments spell their own prefixes in several ways.

    Examples
    --------
    >>> number_key("DoR.SPE.REC.No.05/13.03.00/2024-2025") == number_key("DOR. SPE.REC.5/ 13-03.00/2024-25")
    True
    """
    if "Series" in number:
        series, _, serial = number.upper().partition("SERIES")
        return re.sub(r"[^A-Z]", "", series) + "SERIESCIRCULAR" + re.sub(r"\D", "", serial).lstrip("0")
    years = re.search(r"((?:19|20)?)\s?(\d\d)\s?[-–‐‑]\s?(?:19|20)?(\d\d)$", number.strip())
    body = number.strip()[: years.start()] if years else number
    body = re.sub(r"(?i)\b(?:cir(?:cular)?\.?\s?)?no\b\.?", " ", body)
    body = re.sub(r"(?<![\d/.-])0+(?=\d)|(?<=[A-Za-z].)0+(?=\d)|(?<=[A-Za-z])0+(?=\d)", "", body, count=1)
    if re.match(r"[A-Z]{2,6}/.*/\d+$", body):
        body = re.sub(r"/0+(?=\d+$)", "/", body)
        body = re.sub(r"/(?:19|20)?(\d\d)\s?[-–‐‑]\s?(?:19|20)?(\d\d)/", r"/\1\2/", body)
    tail = years[2] + years[3] if years else ""
    return re.sub(r"[^A-Z0-9]", "", body.upper()) + tail


def title_key(title: str) -> str:
    """Normalise a title to its words and years, without the kind of circular.

    Examples
    --------
    >>> title_key("Master Direction – Know Your Customer (KYC) Direction, 2016")
    'know your customer kyc direction 2016'
    """
    words = re.findall(r"[^\W_]+", title.casefold())
    plain = re.sub(r"\bdirections\b", "direction", " ".join(words))
    plain = re.sub(r"^(?:(?:the|our|master|circulars?|direction|md|on|fed)\s)+(?=\S)", "", plain)
    return plain.removeprefix("reserve bank of india ")


_NAME: Final = 120
"""Characters of a title in a name, which then fits in an id with its day; the year at the end is kept."""
_DISTINCT: Final = 3
"""Least number of words of a title that identifies a document without a date."""


def names_of(numbers: tuple[str, ...], title: str, day: date | None) -> tuple[str, ...]:
    """Return the names under which a circular is linked: by number, and by title and date.

    The numbers of a series restart every year, so they need a date. A title without a date counts only if it is long
    enough to be unique, and ends with a year.

    Examples
    --------
    >>> names_of(("A.P. (DIR Series) Circular No. 7",), "", date(2024, 6, 3))
    ('number APDIRSERIESCIRCULAR7 of 2024-06-03',)
    """
    found = []
    for number in numbers:
        if "Series" not in number:
            found.append(f"number {number_key(number)}")
        elif day is not None:
            found.append(f"number {number_key(number)} of {day.isoformat()}")
    key = title_key(title)
    short = key if len(key) <= _NAME else f"{key[: _NAME - 10]}~{key[-9:]}"
    if key and day is not None:
        found.append(f"title {short} of {day.isoformat()}")
    if len(key.split()) >= _DISTINCT and re.search(r" (?:19|20)\d\d$", key):
        found.append(f"title {short}")
    return tuple(found)


def references(text: str) -> list[Reference]:
    """Find all references in a text, in order: numbers, titles, and words defined earlier for one of these.

    Examples
    --------
    >>> one, = references("the circular DOR.STR.REC.54/21.04.048/2024-25 dated December 31, 2024 is withdrawn")
    >>> one.numbers, one.date.isoformat()
    (('DOR.STR.REC.54/21.04.048/2024-25',), '2024-12-31')
    """
    dates = [(one.start(), one.end(), date_of(one)) for one in DATE.finditer(text)]
    found: list[Reference] = []
    kinds: set[str | None] = set()
    for one in NUMBER.finditer(text):
        number = " ".join(one[0].split())
        last = found[-1] if found else None
        # An authority's and its department's number name one circular; two numbers of one kind name two.
        if last and one.lastgroup not in kinds and not re.search(r"[^\s;,.()]", text[last.end : one.start()]):
            found[-1] = last._replace(end=one.end(), numbers=(*last.numbers, number))
            kinds.add(one.lastgroup)
        else:
            found.append(Reference(one.start(), one.end(), (number,)))
            kinds = {one.lastgroup}
    taken = [(one.start, one.end) for one in found]
    for one in _TITLE.finditer(text):
        kind = one.lastgroup or "quoted"
        start, end = one.span(kind)
        if any(start < other_end and end > other for other, other_end in taken):
            cut = min(other for other, other_end in taken if start < other_end and end > other)
            if cut <= start:
                continue
            end = cut
        title = _TRAILING.sub("", text[start:end])
        end = start + len(title)
        lead = _LEADING.match(title)
        if lead and kind == "directions":
            start, title = start + lead.end(), title[lead.end() :]
        title = " ".join(title.split())
        if not _is_title(kind, title, text[max(0, start - _CUE) : start]):
            continue
        found.append(Reference(start, end, (), title))
    found += [Reference(one.start(), one.end()) for one in _DATED.finditer(text)]
    found.sort(key=_place)
    return _with_defined(text, _in_full(_joined(text, [_dated(text, one, dates) for one in found])))


def _is_title(kind: str, title: str, before: str) -> bool:
    """Tell whether words are the title of a circular, and not a statute, a paragraph or a term."""
    if kind == "master":
        named = re.sub(r"^Master\s+\w+", "", title)
        return not named or bool(re.search(r"[^\W\d_]{3}", named))
    if _STATUTE.search(title) or len(title.split()) < _DISTINCT:
        return False
    return kind in {"directions", "named"} or bool(_INSTRUMENT.search(title) or _INSTRUMENT.search(before))


def _place(one: Reference) -> tuple[int, int]:
    return one.start, one.end


def _dated(text: str, one: Reference, dates: list[tuple[int, int, date | None]]) -> Reference:
    at = bisect_right(dates, one.end, key=itemgetter(0))
    for start, end, day in dates[at : at + 1]:
        between = text[one.end : start]
        named = re.fullmatch(r"[^.;]{0,60}?\bdated\s+", between, re.DOTALL) if len(between) < _REACH else None
        if named or re.fullmatch(r"[\s’”\"')\]]*(?:Date|Circular\s+Date|,|–|-|\(|\s)*", between):
            return one._replace(end=end, date=day)
    return one


def _joined(text: str, several: list[Reference]) -> list[Reference]:
    """Merge a number with the title next to it, because both name the same circular."""
    found: list[Reference] = []
    for one in several:
        last = found[-1] if found else None
        if last is not None and one.start < last.end:
            if last.title and one.numbers and not last.numbers:
                found[-1] = last._replace(numbers=one.numbers, end=max(last.end, one.end))
            elif last.numbers and one.title and not last.title:
                found[-1] = last._replace(title=one.title, end=max(last.end, one.end))
            continue
        between = text[last.end : one.start] if last else ""
        beside = last is not None and re.fullmatch(
            r"[\s,(\[’”\"']*(?:(?:Ref\.?|vide|issued\s+vide|forwarding|on|the|our|circular|No\.?)[\s.‘“\"']*){0,4}[\s(‘“\"']*",
            between,
        )
        if (
            last is not None
            and beside
            and bool(last.numbers) != bool(one.numbers)
            and not (last.date and one.date and last.date != one.date)
        ):
            found[-1] = Reference(
                last.start,
                one.end,
                last.numbers or one.numbers,
                last.title or one.title,
                one.date or last.date,
            )
        else:
            found.append(one)
    return found


def _in_full(several: list[Reference]) -> list[Reference]:
    """Replace a shortened title, such as ``Master Direction on KYC``, by the title given earlier with its date."""
    found: list[Reference] = []
    known: list[tuple[set[str], Reference]] = []
    for one in several:
        words = set(title_key(one.title).split())
        whole = None
        if one.names:
            known += [(words, one)] if one.title else []
        elif words:
            whole = next((full for stated, full in reversed(known) if words <= stated), None)
        found.append(one if whole is None else whole._replace(start=one.start, end=one.end, word=one.title))
    return found


def _with_defined(text: str, several: list[Reference]) -> list[Reference]:
    """Add the uses of words that were defined for a reference: ``(hereinafter ‘Direction’)``, ``(MD-PPIs)``."""
    words: dict[str, Reference] = {}
    for one in several:
        if found := _DEFINED.search(text, one.start, min(len(text), one.end + _REACH)):
            words.setdefault(" ".join(found["word"].split()).strip(" ,."), one)
    added = []
    for word, one in words.items():
        pattern = r"\b" + r"\s+".join(map(re.escape, word.split())) + r"\b(?!\s*[’”\"']?\))"
        for place in re.finditer(pattern, text[one.end + 1 :]):
            start, end = place.start() + one.end + 1, place.end() + one.end + 1
            if not any(start < other.end and end > other.start for other in several):
                added.append(one._replace(start=start, end=end, word=word))
    known = sorted([*several, *added], key=_place)
    for place in _AGAIN.finditer(text):
        start, end = place.span()
        if any(start < other.end and end > other.start for other in known):
            continue
        kind = " ".join(place[1].split())
        earlier = [
            one
            for one in several
            if one.end <= start
            and (one.title.startswith(kind) or kind in text[max(0, one.start - 30) : one.start])
        ]
        meant = [one for one in earlier if one.names] or earlier
        if meant and "MD" in words:  # the circular introduced as the Master Direction, if any
            meant = [one for one in meant if one.title == words["MD"].title]
        if meant:
            added.append(meant[-1]._replace(start=start, end=end, word=" ".join(place[0].split())))
    return sorted((one for one in [*several, *added] if one.numbers or one.title or one.date), key=_place)
