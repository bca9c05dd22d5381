"""Read the day as of which a question asks: "on 1 March 2024", "as on 31.3.2024", "as of March 1, 2024".

A day is read only if the question asks how things stood on that day. The day of an event, as in "issued on" or
"dated", does not count; nor does a month or a year, which is a period; nor a day after "by", "since" or "before". A
date that can mean two days, or that does not exist, is reported as unreadable and never guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

from carag.retrieval.reading.periods import DATE, Span, days_of

if TYPE_CHECKING:
    from datetime import date


_HYPHENS: Final = re.compile(r"(?<![\w./-])(\d\d?)-(\d\d?)-((?:19|20)\d\d)(?![\w-])")
"""Day, month and year, or month, day and year, as with slashes."""
_CUE: Final = re.compile(
    r"(?:^|(?<=\W))(?:(?P<plain>on)|(?:as|position) (?:on|at|of))(?: the)?"
    r"(?: (?:mon|tues|wednes|thurs|fri|satur|sun)day,?)? $",
    re.IGNORECASE,
)
_LOOK_BEHIND: Final = 32
"""Characters before a day that are searched for a cue."""
_CLAUSE: Final = re.compile(r"[^,;:.?!]*$")
_EVENT: Final = re.compile(
    r"\b(?:issu(?:ed?|ing)|dated|releas(?:ed?|ing)|publish(?:ed)?|notif(?:y|ied)|announced?|sign(?:ed)?|circulated?"
    r"|communicated?|introduced?|sanctioned|opened|disbursed|executed|entered|contracted|matur(?:ed?|es|ing)|received"
    r"|sent|made|granted|given|taken|sold|paid|due|filed|submitted|registered|booked|acquired|placed|met|adopted"
    r"|(?:c[ao]m(?:e|es|ing)|put|brought|enter(?:s|ed)?) into|t(?:ook|akes?|aking) effect|effective|expir(?:ed?|es|ing)"
    r"|began|begins?|beginning|start(?:s|ed|ing)?|end(?:s|ed|ing)|commenc(?:ed?|es|ing)|happened|amended|replaced"
    r"|withdrawn|withdrew|repealed|superseded|revised|updated)\b",
    re.IGNORECASE,
)
"""Words in a clause after which "on" and a day tell when something happened."""
_DONE: Final = re.compile(r"\b\w{2,}ed $", re.IGNORECASE)
_WAS_SO: Final = re.compile(
    r"\b(?:appli|exist|prevail|allow|permitt|requir|need|prohibit|exempt|cover|cap+|oblig|exce)ed $",
    re.IGNORECASE,
)
"""Words in -ed before "on" that describe a state, not an event."""
_JOINED: Final = re.compile(
    r" ?(?:,|&|and|or|to|till|until|through|vs\.?|versus|[-–])(?: (?:and|or|on|the))* ?"
)
"""What can be between two days that are asked about together."""
_MOST_BETWEEN: Final = 16


class Instant(NamedTuple):
    """A day as of which a question asks, and its place."""

    start: int
    """The offset of the cue, in the question in NFKC with single spaces."""
    end: int
    day: date | None
    """None for a date that can mean two days, or that does not exist."""


def instants_of(question: str) -> tuple[Instant, ...]:
    """Return the days as of which a question asks, in the order of the question.

    Examples
    --------
    >>> [one.day.isoformat() for one in instants_of("What was the rule on 1 March 2024?")]
    ['2024-03-01']
    >>> instants_of("What does the circular issued on 1 March 2024 say?")
    ()
    >>> [one.day for one in instants_of("What was the limit as on 31.02.2024?")]
    [None]
    """
    text = re.sub(r"\s+", " ", normalize("NFKC", question))
    plain = _HYPHENS.sub(r"\1/\2/\3", text)
    found: list[Instant] = []
    for match in DATE.finditer(plain):
        read = days_of(match)
        if match["m2"] and not match["d2"]:
            continue  # a month
        day = read[0].first if read and read[0].span is Span.DAYS else None
        start = _start(plain, match.start())
        if start is None and found:
            between = plain[found[-1].end : match.start()]
            start = match.start() if len(between) <= _MOST_BETWEEN and _JOINED.fullmatch(between) else None
        if start is not None:
            found.append(Instant(start, match.end(), day))
    return tuple(found)


def _start(text: str, at: int) -> int | None:
    """Return the start of the cue that the day at an offset is asked about, or None."""
    begin = max(0, at - _LOOK_BEHIND)
    cue = _CUE.search(text[begin:at])
    if cue is None or (cue.start() == 0 < begin):
        return None
    start = begin + cue.start()
    if cue["plain"]:
        before = _CLAUSE.search(text[:start])
        clause = before[0] if before else ""
        if _EVENT.search(clause) or (_DONE.search(clause) and not _WAS_SO.search(clause)):
            return None
    return start
