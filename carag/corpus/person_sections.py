"""Where a report speaks of named officers and directors, and where it does not.

A proxy statement, and Part III of an annual report, are personal unless a heading says otherwise. A passage is
impersonal only on two grounds at once: it stands under a heading that is about something else (audit fees, how to
vote), and it names nobody's pay, age or career itself. A heading of neither kind ends what the one before it promised.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from carag.corpus.chunking import Boundary, boundaries

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_impersonal", "tells_of_an_officer"]

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
      | record\s+date | vote\s+required | required\s+vote | broker\s+non | how\s+(?:do|can|may|to|will|many)\b
      | (?:who|what|when|where|why|will|can|may|if)\b[^\n]{0,90}(?:vot|proxy|proxies|meeting|quorum|shares|materials)
      | (?:stock|share|unit)\s*holders?['’]?\s+proposals | proposals\s+(?:of|by|for)
      | other\s+(?:matters|business) | annual\s+report\b | where\s+you\s+can\s+find | incorporation\s+by\s+reference
      | delivery\s+of | internet\s+availability | important\s+notice | attend | admission | forward-looking
      | cost\s+of\s+(?:proxy\s+)?solicit | counting | tabulat | appraisal | dissent | transfer\s+agent
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ITEM: Final = re.compile(
    r"(?:part\s+(?P<part>i{1,3}|iv)|items?\s+(?P<item>\d{1,2})[a-c]?)(?![\w.]*\w)"
    r"(?=[\s\xa0]*(?:$|[.:|(–—-]|(?-i:[A-Z])))",  # a heading, and no reference in a sentence
    re.IGNORECASE,
)
_PART_III: Final = range(10, 14)
_SPEAKS_OF_A_PERSON: Final = re.compile(
    r"\b(?:Mr|Ms|Mrs|Messrs|Dr|Prof|Sir|Dame)\.?\s+[A-Z]|\bage[sd]?:?\s+\d\d\b|\b(?:director|trustee|officer)\s+since\b"
    r"|\bhas\s+(?:served|been\s+(?:a|an|our|the)\s+\w*\s?(?:director|trustee|officer|president|chair))"
    r"|\b(?:base\s+salar|salary|bonus|severance|perquisite|annual\s+retainer|directors?['’]?\s+fees|stock\s+awards"
    r"|option\s+awards|total\s+compensation|non-equity\s+incentive)",
)
_SHORTEST, _LONGEST = 4, 140
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
    """Whether a passage, wherever it stands, tells of the appointment, departure or pay of somebody it names.

    Examples
    --------
    >>> tells_of_an_officer("A release announcing Mr. Roe's appointment is attached.")
    True
    >>> tells_of_an_officer("The registrant entered into a loan agreement.")
    False
    """
    named = re.search(_PERSON, text) and re.search(_CAREER, text, re.IGNORECASE)
    return bool(named) or _OFFICER_CHANGES.search(text) is not None


def is_impersonal(text: str, start: int, end: int, *, by_item: bool) -> bool:
    r"""Whether a passage certainly tells nothing of a named officer or director.

    Parameters
    ----------
    text : str
        The document.
    start, end : int
        The passage in it.
    by_item : bool
        Whether the document is an annual report, whose items 10 to 13 speak of persons and no others;
        else it is a proxy statement, and any of its headings counts.

    Examples
    --------
    >>> text = "AUDIT FEES\nThe firm billed $2 million.\nDIRECTOR COMPENSATION\nThe chair was paid $1.\n"
    >>> is_impersonal(text, 11, 38, by_item=False), is_impersonal(text, 39, 80, by_item=False)
    (True, False)
    """
    marks = _impersonal_spans(text, by_item)
    first = bisect_right(marks, start, key=lambda mark: mark[0]) - 1
    if first < 0:
        return False
    within = [impersonal for at, impersonal in marks[first:] if at <= start or at < end]
    return all(within) and not _SPEAKS_OF_A_PERSON.search(text, start, end)


@lru_cache(maxsize=8)
def _impersonal_spans(text: str, by_item: bool) -> tuple[tuple[int, bool], ...]:
    return tuple(_by_item(text) if by_item else _by_heading(text))


def _by_item(text: str) -> Iterator[tuple[int, bool]]:
    """Yield where each part or item of an annual report begins, and whether it is one outside Part III."""
    for line in _LINE.finditer(text):
        stated = line[0].strip()
        match = _ITEM.match(stated) if len(stated) <= _LONGEST else None
        if match and match["part"]:
            yield line.start(), match["part"].upper() != "III"
        elif match:
            yield line.start(), int(match["item"]) not in _PART_III
        elif len(stated) <= _LONGEST and re.search(r"\bexecutive\s+officers\b", stated, re.IGNORECASE):
            yield line.start(), False  # item 10's list, which many give in Part I


def _by_heading(text: str) -> Iterator[tuple[int, bool]]:
    """Yield every heading, and whether it is about something other than persons."""
    titles = {at for at, kind in boundaries(text) if kind <= Boundary.TITLE}
    for line in _LINE.finditer(text):
        stated = line[0].strip()
        at = line.start() + len(line[0]) - len(line[0].lstrip())
        if not _SHORTEST <= len(stated) <= _LONGEST or "|" in stated:
            continue
        is_title = at in titles or at == 0 or stated.isupper() or stated.endswith("?")
        if is_title and stated[-1] not in ".,;":
            yield (
                line.start(),
                bool(_IMPERSONAL.match(stated)) and not _PERSONAL.search(_without_auditors(stated)),
            )


def _without_auditors(heading: str) -> str:
    """Take out what only sounds personal in a heading about the auditors."""
    return re.sub(r"audit\s+committee|report\s+of\s+management", "", heading, flags=re.IGNORECASE)
