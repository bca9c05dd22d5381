"""Read a document's cover page: its dates, its 8-K items, and the type of reporting person.

The cover page is read only for facts that the header or the source's metadata omits. A date counts only in a phrase
that gives it a meaning; of several dates the latest counts, because cover pages mention past dates more often than
future ones.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final

from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS, item_number
from carag.profiles.edgar.facts.forms import FormFamily, form_families

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing


COVER_CHARACTERS: Final = 5000
"""Characters at the beginning of a document that are read as its cover."""

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE: Final = re.compile(
    r"\b(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]{0,6}\.?\s+(?P<day>\d{1,2})"
    r"\s*,?\s+(?P<year>(?:19|20)\d\d)\b"
    r"|\b(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    # "Date of Report (Date of earliest event reported): ..."; "for the quarterly period ended ..."
    r"date of (?:report|earliest event)[^.;]{0,60}$"
    r"|\b(?:period|year|quarter|months|weeks)\s+end(?:ed|ing)\W{0,6}$",
    re.IGNORECASE,
)
_TO_BE_HELD: Final = re.compile(r"\b(?:to|will)\s+be\s+held\b[^.;]{0,80}$", re.IGNORECASE)
_HEAD_6K: Final = re.compile(
    r"form\s+6-k\b(?P<between>.{0,1500}?)\([^)\n]{0,40}\bregistrant", re.IGNORECASE | re.DOTALL
)
_AFTER: Final = re.compile(r"\W{0,6}date of (?:report|earliest event)", re.IGNORECASE)
_PLACE: Final = re.compile(r"\b[A-Z][\w.]{1,30}[,)]?\s?[(–—-]{0,2}\s?$")
_DASH: Final = re.compile(r"\)?\s*(?:[–—-]|/\s?PR ?Newswire|\(?BUSINESS WIRE)", re.IGNORECASE)

_ITEM: Final = re.compile(r"^\W{0,3}item\s+(\d\.\d\d|\d\d?)(?!\.?\d)", re.IGNORECASE | re.MULTILINE)
_PERSON_XML: Final = re.compile(r"typeOfReportingPerson\W+([A-Z]{2})\b")
_PERSON_COVER: Final = re.compile(
    r"type\s+of\s+(?:reporting\s+)?person[^\n]{0,60}\n?\W*([A-Z]{2})\b", re.IGNORECASE
)


def with_cover_facts(filing: Filing) -> Filing:
    """Fill in facts that the header omits but the documents state: 8-K items and types of reporting person."""
    families = form_families(filing.base_form)
    if FormFamily.CURRENT in families and not (filing.items and all(filing.items)) and filing.documents:
        stated = items_in_text(filing.documents[0].text)
        readable = filter(None, (*filing.items, *(item_number(item, filing.filed) for item in stated)))
        items = tuple(dict.fromkeys(readable))
        if len(items) < len(filing.items):
            items = (*items, "")  # fewer headings than items that the header left blank
        return replace(filing, items=items, provenance={**filing.provenance, "items": "headings in the text"})
    if FormFamily.OWNERSHIP in families:
        codes = (code for document in filing.documents for code in reporting_person_types(document.text))
        return replace(filing, reporting_person_types=tuple(dict.fromkeys(codes)))
    return filing


def latest_date(text: str) -> date | None:
    """Return the latest date on a cover page that is a report's date or period, or a release's dateline.

    Examples
    --------
    >>> latest_date("For the quarterly period ended March 31, 2020, or transition period")
    datetime.date(2020, 3, 31)
    """
    cover = " ".join(text[:COVER_CHARACTERS].split())
    found = []
    for match in _DATE.finditer(cover):
        before, after = (
            cover[max(0, match.start() - 100) : match.start()],
            cover[match.end() : match.end() + 40],
        )
        dateline = _PLACE.search(before) and _DASH.match(after)
        if (_BEFORE.search(before) or _AFTER.match(after) or dateline) and (day := _as_date(match)):
            found.append(day)
    return max(found, default=None)


def meeting_date(text: str) -> date | None:
    """Return the latest date for which a proxy statement's first pages call a meeting.

    The date must be on the first page (Schedule 14A, Item 1(a)), and the statement is filed before the meeting (Rule
    14a-6(b)). The date of a meeting that *was* held is ignored.
    """
    cover = " ".join(text[:COVER_CHARACTERS].split())
    found = [
        day
        for match in _DATE.finditer(cover)
        if _TO_BE_HELD.search(cover[max(0, match.start() - 100) : match.start()]) and (day := _as_date(match))
    ]
    return max(found, default=None)


def foreign_report_date(text: str) -> date | None:
    """Return the date of a Form 6-K, on a line of its own between the form's name and the registrant's.

    The report is furnished promptly after its contents are made public (Form 6-K, Gen. Instr. B).
    """
    head = _HEAD_6K.search(text, 0, COVER_CHARACTERS)
    lines = head["between"].splitlines() if head else []
    return max(filter(None, map(date_stated, lines)), default=None)


def date_stated(text: str) -> date | None:
    """Parse a text that is only a date, as cover pages write dates; None for any other text.

    ``3/4/2023`` is ambiguous (3 April or March 4), so it is None.

    Examples
    --------
    >>> date_stated("June 30, 2023"), date_stated("2023-06-30"), date_stated("December 31")
    (datetime.date(2023, 6, 30), datetime.date(2023, 6, 30), None)
    """
    text = " ".join(text.split())
    match = _DATE.fullmatch(text)
    if match and match["name"]:
        return _as_date(match)
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None
    except ValueError:
        return None


def items_in_text(text: str) -> tuple[str, ...]:
    """Return the 8-K items named by a report's own headings, as stated, in order."""
    stated = dict.fromkeys(_ITEM.findall(text))
    return tuple(item for item in stated if item in ITEM_NUMBERS or (item.isdigit() and 0 < int(item) <= 12))


def reporting_person_types(text: str) -> tuple[str, ...]:
    """Return the two-letter codes of a Schedule 13D or 13G, from its XML or its cover rows."""
    codes = (*_PERSON_XML.findall(text), *_PERSON_COVER.findall(text))
    return tuple(dict.fromkeys(code.upper() for code in codes))


def _as_date(match: re.Match[str]) -> date | None:
    if match["name"]:
        month = _MONTHS.index(match["name"][:3].lower()) + 1
        numbers = int(match["year"]), month, int(match["day"])
    else:
        numbers = int(match["y"]), int(match["m"]), int(match["d"])
    try:
        return date(*numbers)
    except ValueError:  # "September 31": the filer's error, not a date
        return None
