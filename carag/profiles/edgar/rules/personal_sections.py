"""Find the passages of a report that are about named officers and directors, and those that are not.

A proxy statement and Part III of an annual report are personal unless a heading shows otherwise. A passage is
impersonal only if it is in a section about something else (the cover of Schedule 14A, audit fees, how to vote, a table
of contents) and does not itself mention a person's pay, age or career. A heading that is neither personal nor
impersonal ends an impersonal section; running heads and feet are not headings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from carag.labelling.chunking import Boundary, boundaries
from carag.profiles.edgar.facts.financial_statements import has_opinion

if TYPE_CHECKING:
    from collections.abc import Iterator


_PERSONAL: Final = re.compile(
    r"compensation|biograph|nominee|elect(?:ion|ing)?\s+(?:of\s+)?(?:\w+\s+){0,3}directors?|directors?\b|officers?\b"
    r"|management|beneficial|ownership|salar|bonus|pension|retirement|severance|change[\s-]+(?:in|of)[\s-]+control"
    r"|employment|grants?\b|options?\b|awards?\b|perquisite|pay\b|person|section\s+16|committees?\b|board\b|family"
    r"|governance|independence|diversity|indemnif|clawback|stock\s+plan|incentive",
    re.IGNORECASE,
)
_IMPERSONAL: Final = re.compile(
    r"""(?:audit|audit-related|tax|all\s+other|auditors?|accounting|accountants?|principal\s+accountant)\W*s?\W*fees?\b
      | fees?\s+(?:paid|billed|of\s+the\s+independent|and\s+services)
      | (?:principal|independent)\s+(?:registered\s+public\s+)?account
      | independent\s+(?:public\s+)?auditors?
      | (?:proposal\W+(?:no\W+)?\w+\W+)?ratif
      | (?:policy\s+(?:on|for|regarding)\s+)?(?:audit\s+committee\s+)?pre-?approval
      | (?:general\s+)?(?:voting|quorum|proxies|revoc|solicitation|householding)
      | proxy\s+(?:solicitation|voting|materials)
      | record\s+date | vote\s+required | required\s+vote | broker\s+non | how\s+(?:do|does|can|may|to|will|many)\b
      | (?:who|what|when|where|why|will|can|may|if)\b[^\n]{0,90}(?:vot|proxy|proxies|meeting|quorum|shares|materials)
      | (?:stock|share|unit)\s*holders?['’]?\s+proposals | proposals\s+(?:of|by|for)
      | other\s+(?:matters|business) | annual\s+report\b | where\s+you\s+can\s+find | incorporation\s+by\s+reference
      | delivery\s+of | internet\s+availability | important\s+notice | attend | admission | forward-looking
      | cost\s+of\s+(?:proxy\s+)?solicit | counting | tabulat | appraisal | dissent | transfer\s+agent
      | notice\s+of\s+(?:\w+\s+){0,4}meeting | (?:board\W+s\s+role\s+in\s+)?(?:oversight\s+of\s+)?risk\b
      | (?:proposal\W+(?:no\W+)?\w+\W+)?(?:approval\s+of\s+(?:the\s+|a\s+)?)?reverse\s+(?:stock|share)\s+split
      | (?:certain\s+|material\s+)?(?:u\W?s\W+)?federal\s+(?:income\s+)?tax\s+consequences
      | (?:no\s+)?fractional\s+shares | series\s+and\s+classes/contracts\s+information
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ITEM: Final = re.compile(
    r"(?:part\s+(?P<part>i{1,3}|iv)|items?\s+(?P<item>\d{1,2})[a-c]?)(?![\w.]*\w)"
    r"(?=[\s\xa0]*(?:$|[.:|(–—-]|(?-i:[A-Z])))",  # a heading, not a reference in a sentence
    re.IGNORECASE,
)
_PART_III: Final = range(10, 14)
_SPEAKS_OF_A_PERSON: Final = re.compile(
    r"\b(?:Mr|Ms|Mrs|Messrs|Dr|Prof|Sir|Dame)\.?\s+[A-Z]|\bage[sd]?:?\s+\d\d\b|\b(?:director|trustee|officer)\s+since\b"
    r"|\bhas\s+(?:served|been\s+(?:a|an|our|the)\s+\w*\s?(?:director|trustee|officer|president|chair))"
    r"|\b(?:base\s+salar|salary|bonus|severance|perquisite|annual\s+retainer|directors?['’]?\s+fees|stock\s+awards"
    r"|option\s+awards|total\s+compensation|non-equity\s+incentive)"
    r"|\b(?:retir(?:e[sd]?|ing)|resign(?:s|ed|ing)?|step(?:ped|ping|s)?\s+down)\b"
    r"|\b(?:his|her|their|['’]s)\s+(?:retirement|resignation|death)\b"
    r"|\b(?:not\s+(?:stand|standing|be\s+standing)|up)\s+for\s+(?:re-?)?election\b",
)
_OF_SOMETHING_ELSE: Final = re.compile(
    r"audit\s+committee|report\s+of\s+management|board\W+s\s+role\s+in"
    r"|\b(?:the|our)\s+board(?:\s+of\s+directors)?\s+recommends?",
    re.IGNORECASE,
)
"""Words that only sound personal, in headings about auditors, risk (Regulation S-K 407(h)) or how to vote."""
_SCHEDULE_14A: Final = re.compile(r"^[^\w\n]*schedule\s+14a\b", re.IGNORECASE | re.MULTILINE)
_FEE: Final = re.compile(
    r"no\s+fee\s+required|fee\s+paid\s+previously|fee\s+computed|total\s+fee\s+paid|amount\s+previously\s+paid"
    r"|filing\s+party:|date\s+filed:",
    re.IGNORECASE,
)
_LONGEST_COVER: Final = 4000
"""Greatest number of characters in the cover of Schedule 14A."""
_COVER_10K: Final = re.compile(r"exact\s+name\s+of\s+(?:the\s+)?registrant", re.IGNORECASE)
_LONGEST_COVER_10K: Final = 6000
"""Greatest number of characters in the cover of an amended annual report."""
_WITH_PAGE: Final = re.compile(
    r"(?P<first>\d{1,3})\s+(?P<after>[^\d|]{4,80})|(?P<before>[^\d|]{4,80})\s+(?P<last>\d{1,3})"
)
_PROXY_STATEMENT: Final = re.compile(
    r"^[^\w\n]*(?:\d{4}\s+)?proxy\s+statement[^\w\n]*$", re.IGNORECASE | re.MULTILINE
)
_FEWEST_PAGES: Final = 5
"""Least number of pages on which a running head or foot recurs."""
_CONTENTS_ROW: Final = re.compile(r".*[A-Za-z].*?(?:\||\.{3,}|\t)\s*(\d{1,3})")
_FEWEST_ROWS: Final = 8
"""Least number of rows of a table of contents."""
_SHORTEST, _LONGEST = 4, 140
"""Least and greatest number of characters of a heading."""
_LINE: Final = re.compile(r"[^\n]+")


_PERSON: Final = r"\b(?:Mr|Ms|Mrs|Messrs|Dr)\.?\s+[A-Z]"
_CAREER: Final = (
    r"\b(?:appoint|resign|retire|depart|succe(?:ed|ssor)|severance|salar|bonus|employment"
    r"|serv(?:e|es|ed)\s+as\b)"
)
_OFFICE: Final = (
    r"(?:[Cc]hief\s+\w+\s+[Oo]fficer|[Pp]resident|[Dd]irector|[Cc]hair\w*|[Tt]reasurer|[Bb]oard)\b"
)
_CHANGE: Final = r"\b(?:appoint|resign|retire|depart|elect(?:ed|ion)\s+(?!of\s+[Dd]irectors\b))"
_OFFICER_CHANGES: Final = re.compile(rf"{_CHANGE}[^.]{{0,100}}{_OFFICE}|{_OFFICE}[^.]{{0,100}}{_CHANGE}")


def tells_of_an_officer(text: str) -> bool:
    """Tell whether a passage reports the appointment, departure or pay of a named person.

    Examples
    --------
    >>> tells_of_an_officer("A release announcing Mr. Roe's appointment is attached.")
    True
    """
    named = re.search(_PERSON, text) and re.search(_CAREER, text, re.IGNORECASE)
    return bool(named) or _OFFICER_CHANGES.search(text) is not None


def is_impersonal(text: str, start: int, end: int, *, by_item: bool, is_exhibit: bool = False) -> bool:
    r"""Tell whether a passage of a document is certainly not about a named officer or director.

    With ``by_item`` the document is an annual report, where only items 10 to 13 are about persons; otherwise it is a
    proxy statement, where any heading counts. An annual report's exhibit with an accountant's opinion is impersonal.

    Examples
    --------
    >>> text = "AUDIT FEES\nThe firm billed $2 million.\nDIRECTOR COMPENSATION\nThe chair was paid $1.\n"
    >>> is_impersonal(text, 11, 38, by_item=False), is_impersonal(text, 39, 80, by_item=False)
    (True, False)
    """
    if _SPEAKS_OF_A_PERSON.search(text, start, end):
        return False
    if _is_contents(text[start:end]) or (by_item and is_exhibit and has_opinion(text, of_a_plan=True)):
        return True
    marks = _impersonal_spans(text, by_item)
    first = bisect_right(marks, start, key=lambda mark: mark[0]) - 1
    if first < 0:
        return not is_exhibit and end <= _cover_of_other_items(text, marks, by_item)
    return all(impersonal for at, impersonal in marks[first:] if at <= start or at < end)


@lru_cache(maxsize=8)
def _impersonal_spans(text: str, by_item: bool) -> tuple[tuple[int, bool], ...]:
    return tuple(_by_item(text) if by_item else _by_heading(text))


def _is_contents(text: str) -> bool:
    """Tell whether a passage is rows of a table of contents: titles with page numbers that never decrease."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pages = [int(match[1]) for line in lines if (match := _CONTENTS_ROW.fullmatch(line))]
    return len(pages) >= max(_FEWEST_ROWS, 0.8 * len(lines)) and pages == sorted(pages)


def _cover_of_other_items(text: str, marks: tuple[tuple[int, bool], ...], by_item: bool) -> int:
    """Return where the cover of an amended annual report without items of Part III ends; else 0.

    An amendment contains the complete text of each item that it amends, and of no other item (Rule 12b-15).
    """
    others = by_item and bool(marks) and all(impersonal for _, impersonal in marks)
    is_cover = others and marks[0][0] <= _LONGEST_COVER_10K and _COVER_10K.search(text, 0, marks[0][0])
    return marks[0][0] if is_cover else 0


def _by_item(text: str) -> Iterator[tuple[int, bool]]:
    """Yield where each part or item of an annual report begins, and whether it is outside Part III."""
    for line in _LINE.finditer(text):
        stated = line[0].strip()
        match = _ITEM.match(stated) if len(stated) <= _LONGEST else None
        if match and match["part"]:
            yield line.start(), match["part"].upper() != "III"
        elif match:
            yield line.start(), int(match["item"]) not in _PART_III
        elif len(stated) <= _LONGEST and re.search(r"\bexecutive\s+officers\b", stated, re.IGNORECASE):
            yield line.start(), False  # item 10's list of officers, which many reports have in Part I


def _by_heading(text: str) -> Iterator[tuple[int, bool]]:
    body = _end_of_cover(text)
    if body:
        yield 0, True
        yield body, False
    titles = {at for at, kind in boundaries(text) if kind <= Boundary.TITLE}
    running = _running_heads(text)
    for line in _LINE.finditer(text, body):
        stated = line[0].strip()
        at = line.start() + len(line[0]) - len(line[0].lstrip())
        if not _SHORTEST <= len(stated) <= _LONGEST or "|" in stated or stated in running:
            continue
        is_title = at in titles or at == 0 or stated.isupper() or stated.endswith("?")
        if is_title and stated[-1] not in ".,;":
            rest = _OF_SOMETHING_ELSE.sub("", stated)
            yield line.start(), bool(_IMPERSONAL.match(stated)) and not _PERSONAL.search(rest)


def _end_of_cover(text: str) -> int:
    """Return where the cover of Schedule 14A ends, by its prescribed words (17 CFR 240.14a-101); 0 without a cover."""
    if not _SCHEDULE_14A.search(text, 0, _LONGEST_COVER):
        return 0
    fees = list(_FEE.finditer(text, 0, _LONGEST_COVER))
    return max(text.find("\n", fees[-1].end()), 0) if fees else 0


def _running_heads(text: str) -> frozenset[str]:
    """Find running heads and feet: lines that recur with different page numbers."""
    pages: dict[str, dict[str, str]] = {}
    for line in _LINE.finditer(text):
        if match := _WITH_PAGE.fullmatch(line[0].strip()):
            words = match["before"] or match["after"]
            pages.setdefault(words.casefold(), {})[match["first"] or match["last"]] = line[0].strip()
    found = {line for lines in pages.values() if len(lines) >= _FEWEST_PAGES for line in lines.values()}
    alone = [line[0].strip() for line in _PROXY_STATEMENT.finditer(text)]
    return frozenset(found.union(alone if len(alone) >= _FEWEST_PAGES else ()))
