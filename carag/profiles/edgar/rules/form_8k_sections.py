"""Divide an 8-K by its items: find the items to which each passage and each exhibit belongs.

A report is divided by its headings. The cover before the first item and the signature belong to no item; an exhibit
belongs to the items that name it ("furnished as Exhibit 99.1"). If headings are missing, no item names the exhibit, or
text follows the signature page, the items are unknown (None) and the passage keeps every bit of the filing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS, item_number
from carag.profiles.edgar.rules.rules import FURNISHED_ITEMS, MATERIAL_ITEMS, OFFICER_ITEMS

if TYPE_CHECKING:
    from datetime import date


class Span(NamedTuple):
    """The text from ``start`` to the next span."""

    start: int
    items: frozenset[str] | None
    """The items that the text belongs to; None if unknown."""


_NONE: Final[frozenset[str]] = frozenset()
_TELLING: Final = frozenset({*FURNISHED_ITEMS, *MATERIAL_ITEMS, *OFFICER_ITEMS})
"""Items that set a bit."""
_EXHIBITS: Final = "9.01"
_MAY_BE_FURNISHED: Final = frozenset({*FURNISHED_ITEMS, "8.01", _EXHIBITS})
"""Items that may be furnished (Form 8-K Gen. Instr. B.2) or reported voluntarily (8.01)."""
_LONGEST_EXHIBIT_LIST: Final = 4000
"""Greatest number of characters in a list of exhibits."""
_SIGNATURE_PAGE: Final = 700
"""Characters after the signature heading that count as signatures; later text may be an exhibit."""

_NUMBER: Final = r"\d{1,2}(?:\.\d\d)?(?![\d.]*\d)"
_HEADING: Final = re.compile(
    rf"^[^\w\n(]{{0,4}}items?\.?\s+(?P<numbers>{_NUMBER}(?:\s*(?:,|;|&|and|or)\s*(?:items?\s+)?{_NUMBER})*)"
    r"(?P<rest>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_TITLE_FOLLOWS: Final = re.compile(r"[\s\xa0]*(?:$|[.:|(–—\xa0-]|[A-Z])")
_WRAPS: Final = re.compile(r"[^\n]{40,}[a-z,]$")
_SAYS: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|been|will|may|see|hereto|herewith|hereby|pursuant|incorporated"
    r"|announced|not applicable|none)\b",
    re.IGNORECASE,
)
_LONGEST_TITLE: Final = 250
"""Characters below which the text under a heading may be the rest of its title, and the section empty."""
_SIGNATURE: Final = re.compile(
    r"^[^\w\n]*signatures?[^\w\n]*$|pursuant\s+to\s+the\s+requirements\s+of\s+the\s+securities\s+exchange\s+act",
    re.IGNORECASE | re.MULTILINE,
)
_EXHIBIT_BEGINS: Final = re.compile(
    r"^[^\w\n]*(?:(?:exhibit|ex)[\s-]*\d{1,3}[\w.()]*|(?:press|news)\s+release|for\s+immediate\s+release\b[^\n]*)[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_EXHIBIT_INDEX: Final = re.compile(
    r"^[^\w\n]*(?:exhibit\s+index|index\s+(?:to|of)\s+exhibits)[^\w\n]*\n", re.IGNORECASE | re.MULTILINE
)
_INDEX_ROW: Final = re.compile(
    r"[^\w\n]*(?:\n|(?:exhibit|ex|no|number)\b[^\n]{0,40}\b(?:description|document)\b[^\n]{0,40}(?:\n|$)"
    r"|\d{1,3}(?:\.\d{1,3})?[^\w\n]*[|\t][^\n]*(?:\n|$))|\*[^\n]*(?:\n|$)",
    re.IGNORECASE,
)
"""A row of an exhibit index: an empty line, the heading, an exhibit with its number, or a footnote."""
_COVER: Final = re.compile(
    r"exact\s+name\s+of\s+registrant|commission\s+file|form\s+8-k|current\s+report", re.IGNORECASE
)
_NOTE: Final = re.compile(r"explanatory\s+note", re.IGNORECASE)
_INCORPORATED: Final = re.compile(r"incorporat(?:[^.]|\.\d){0,200}", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"\.\s")
_MENTIONED: Final = re.compile(
    rf"items?\s+({_NUMBER}(?:\s*(?:,|and|&)\s*(?:items?\s+)?{_NUMBER})*)", re.IGNORECASE
)
_NOT_FILED: Final = re.compile(
    r"\bnot\s+(?:be\s+)?(?:deemed|considered)\s+(?:to\s+(?:be|have\s+been)\s+)?[^\w\s]{0,2}filed",
    re.IGNORECASE,
)
_WHOLE_REPORT: Final = re.compile(
    r"information\s+(?:\w+\s+){0,3}in\s+this\s+(?:current\s+)?(?:report|form\s+8-k)\b(?:[^.]|\.\d){0,300}furnish",
    re.IGNORECASE,
)


@lru_cache(maxsize=8)
def item_spans(text: str, stated: tuple[str, ...], filed: date | None) -> tuple[Span, ...]:
    r"""Divide a report's main document by its items; spans are in order, the first from 0.

    If an item in ``stated`` (``ITEM INFORMATION``) sets a bit and has no heading, any passage may belong to it. The
    date ``filed`` determines which numbering the headings use.

    Examples
    --------
    >>> text = "Item 2.02 Results\nSales were up.\nItem 9.01 Exhibits\n99.1 Release\nSIGNATURE\n"
    >>> [(span.start, sorted(span.items)) for span in item_spans(text, ("2.02", "9.01"), None)]
    [(0, ['2.02']), (33, ['9.01']), (65, [])]
    """
    unknown = (Span(0, None),)
    if not stated or not ITEM_NUMBERS.issuperset(stated):
        return unknown
    found = _without_contents(text, _headings(text, filed))
    if not found or not _TELLING.intersection(stated) <= frozenset().union(*(items for _, _, items in found)):
        return unknown
    signed = _SIGNATURE.search(text, found[-1][1])
    end = signed.start() if signed else len(text)
    bodies = [
        text[after:until]
        for (_, after, _), until in zip(found, [*(at for at, _, _ in found[1:]), end], strict=True)
    ]
    owners = _owners([items for _, _, items in found], bodies)
    spans = _before_items(text, found[0][0])
    for (start, after, _), items, body in zip(found, owners, bodies, strict=True):
        spans.append(Span(start, items))
        if items == {_EXHIBITS} and len(body) > _LONGEST_EXHIBIT_LIST:
            spans.append(Span(after + _LONGEST_EXHIBIT_LIST, None))
    if signed:
        spans.append(Span(end, _NONE))
        begins = _EXHIBIT_BEGINS.search(text, end + len("signature"), end + _SIGNATURE_PAGE)
        after = begins.start() if begins else max(end + _SIGNATURE_PAGE, _end_of_index(text, end))
        if after < len(text):
            spans.append(Span(after, None))
    return tuple(spans)


def _end_of_index(text: str, signed: int) -> int:
    """Return where the exhibit index after the signature ends; like Item 9.01, it reports nothing itself."""
    row: re.Match[str] | None = _EXHIBIT_INDEX.search(text, signed, signed + _SIGNATURE_PAGE)
    end = signed
    while row and row.end() > end:
        end = row.end()
        row = _INDEX_ROW.match(text, end)
    return end


def _before_items(text: str, end: int) -> list[Span]:
    """Divide the text before the first item: the cover belongs to no item, a note after it to any of them."""
    if end == 0:
        return []
    if not _COVER.search(text, 0, end):
        return [Span(0, None)]
    note = _NOTE.search(text, 0, end)
    return [Span(0, _NONE), Span(note.start(), None)] if note else [Span(0, _NONE)]


def items_between(spans: tuple[Span, ...], start: int, end: int) -> frozenset[str] | None:
    """Unite the items of a passage; None if any part of it is unknown."""
    first = max(0, bisect_right(spans, start, key=lambda span: span.start) - 1)
    items = _NONE
    for span in spans[first:]:
        if span.start >= end and span.start > start:
            break
        if span.items is None:
            return None
        items |= span.items
    return items


# --- headings ---------------------------------------------------------------------------------------------


def _headings(text: str, filed: date | None) -> list[tuple[int, int, frozenset[str]]]:
    """Find (start, end of the number, items) of each heading; a wrapped sentence with "Item" is not a heading."""
    found = []
    for match in _HEADING.finditer(text):
        numbers = [item_number(number, filed) for number in re.findall(_NUMBER, match["numbers"])]
        if not ITEM_NUMBERS.issuperset(numbers):
            continue
        rest = match["rest"]
        titled = item_number(rest.strip(" .:|-–—\t\xa0"), filed) in numbers
        above = text[max(0, match.start() - 200) : match.start()].removesuffix("\n").rpartition("\n")[2]
        if titled or (_TITLE_FOLLOWS.match(rest) and not _WRAPS.fullmatch(above)):
            found.append((match.start(), match.end("numbers"), frozenset(numbers)))
    return found


def _without_contents(
    text: str, found: list[tuple[int, int, frozenset[str]]]
) -> list[tuple[int, int, frozenset[str]]]:
    """Remove a table of contents: headings without text that all recur later."""
    again = next((at for at, one in enumerate(found) if at and one[2] == found[0][2]), 0)
    listed, rest = found[:again], found[again:]
    bodies = [text[one[1] : after[0]] for one, after in pairwise(found[: again + 1])]
    empty = all(len(body) < _LONGEST_TITLE and not _SAYS.search(body) for body in bodies)
    comes_again = {one[2] for one in listed} <= {one[2] for one in rest}
    return rest if empty and comes_again else found


def _owners(headed: list[frozenset[str]], bodies: list[str]) -> list[frozenset[str]]:
    """Return all items to which each section belongs.

    A heading without text shares the text of the next one. Text that another item incorporates belongs to that item
    too. A section that says it is furnished is furnished; if the report says so of itself, all items that may be
    furnished are.
    """
    owners: list[frozenset[str]] = []
    carried = _NONE
    for items, body in zip(headed, bodies, strict=True):
        owners.append(items | carried)
        carried = owners[-1] if len(body) < _LONGEST_TITLE and not _SAYS.search(body) else _NONE
    incorporated: dict[str, frozenset[str]] = {}
    for items, body in zip(owners, bodies, strict=True):
        for match in _INCORPORATED.finditer(body):
            before = _SENTENCE_END.split(body[max(0, match.start() - 400) : match.start()])[-1]
            for mention in _MENTIONED.findall(before + match[0]):
                for number in re.findall(_NUMBER, mention):
                    incorporated[number] = incorporated.get(number, _NONE) | (items - {_EXHIBITS})
    whole = any(_WHOLE_REPORT.search(body) for body in bodies)
    furnished = frozenset(FURNISHED_ITEMS[-1:])
    for place, (items, body) in enumerate(zip(headed, bodies, strict=True)):
        more = _NONE.union(*(incorporated.get(number, _NONE) for number in items))
        if items != {_EXHIBITS} and ((whole and items <= _MAY_BE_FURNISHED) or _NOT_FILED.search(body)):
            more |= furnished
        owners[place] |= more
    return owners


# --- exhibits ---------------------------------------------------------------------------------------------

_EXHIBIT_NUMBER: Final = r"\d{1,3}(?:\.\d{1,3})?(?:\s?\(?[A-Za-z]\)?(?![A-Za-z]))?"
_NAMED: Final = re.compile(
    rf"exhibits?[\s\xa0]+(?:nos?\.?\s+)?({_EXHIBIT_NUMBER}(?:\s*(?:,|and|&|,\s*and)\s*(?:exhibits?\s+)?{_EXHIBIT_NUMBER})*)"
    r"(?P<after>(?:[^.]|\.\d){0,120})",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    r"^\W*(?:to|of|in)\s+(?:the|its|our)\b.{0,80}?(?:registration\s+statement|form\s+(?:10|20|S|F)-?|annual\s+report)",
    re.IGNORECASE | re.DOTALL,
)
_ATTACHES: Final = re.compile(
    r"\bexhibits?\b|\battached\b|\bfurnish|\bherewith\b|\bhereto\b|\bpress\s+release\b", re.IGNORECASE
)
_RANGE: Final = re.compile(r"exhibits?\s+\d[\d.]*\s+(?:through|to|[-–—])\s*\d", re.IGNORECASE)


@lru_cache(maxsize=64)
def exhibit_items(
    text: str, stated: tuple[str, ...], filed: date | None, exhibit: str
) -> frozenset[str] | None:
    """Return the items whose text names an exhibit (its ``<TYPE>``, such as ``EX-99.1``), or None if they are unknown.

    A section that attaches something without naming an exhibit may mean any exhibit. The other parameters are those of
    :func:`item_spans`.
    """
    wanted = _plain(exhibit.upper().removeprefix("EX-"))
    spans = item_spans(text, stated, filed)
    items, tied = _NONE, False
    for span, until in zip(spans, [*(span.start for span in spans[1:]), len(text)], strict=True):
        if not span.items or span.items == {_EXHIBITS}:
            continue
        body = text[span.start : until]
        named = list(_NAMED.finditer(body))
        here = {
            _plain(number): not _ELSEWHERE.match(match["after"])
            for match in named
            for number in re.findall(_EXHIBIT_NUMBER, match[1])
        }
        claims = [own for number, own in here.items() if number == wanted or _begins(number, wanted)]
        if claims:
            items |= span.items
            tied |= any(claims)
        elif _RANGE.search(body) or (not here and _ATTACHES.search(body)):
            items |= span.items
    return items if tied else None


def _plain(number: str) -> str:
    return re.sub(r"[^0-9A-Z]", "", number.upper())


def _begins(number: str, wanted: str) -> bool:
    """Tell whether one number is the other without its decimals: ``EX-99`` may be the text's Exhibit 99.1."""
    shorter, longer = sorted((number, wanted), key=len)
    return len(shorter) == 2 and longer.startswith(shorter)
