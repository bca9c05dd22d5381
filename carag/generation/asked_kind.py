"""Tell from a question's words what a sentence that answers it must contain: a date, an amount, a share, a duration.

The table is small, and makes no statement about questions that it does not recognise.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


_NUMBER: Final = (  # By the first letter, so that few alternatives are tried on a word; the same is so below.
    r"(?:\d[\d,.]*|\b(?=[efhnost])(?:one|t(?:wo|hree|en|welve|wenty|hirty|housand)|f(?:our|ive|ifteen|orty|ifty)"
    r"|s(?:ix|even|ixty|eventy)|e(?:ight|leven|ighty)|nin(?:e|ety)|h(?:undred|alf)))"
)
_MONTH: Final = r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"


class Kind(Enum):
    """A kind of answer: its name in messages, words that ask for it, and what a sentence then contains."""

    DATE = (
        "a date",
        r"\b(?:when|dates?|(?:what|which) (?:month|\w*day|(?:financial )?year)|(?:by|from|since|till|until) which)\b",
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}|{_MONTH}\s+\d|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}"
        r"|(?<![\w/.-])(?:19|20)\d\d\b(?![/-])"
        r"|immediate effect|with effect from|date of|close of business|\b(?:noon|midnight)\b|\d\s*(?:[ap]\.?m\b|hours)"
        r"|in the (?:morning|afternoon|evening)|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    )
    DURATION = (
        "a duration",
        r"\bhow (?:early|far ahead|fast|frequently|long|often|old|quickly|soon)\b"
        r"|\bhow many (?:\w+ )?(?:hours|days|weeks|months|years)\b"
        r"|\b(?:deadline|frequency|maturity|period|tenor|time limit|window)\b",
        rf"{_NUMBER}\)?(?:\s+\w+)?[\s-]+(?:(?:calendar|working|business) )?"
        r"(?:hour|day|week|fortnight|month|quarter|year)s?\b"
        r"|\b(?:daily|weekly|fortnightly|monthly|(?:half-)?yearly|quarterly|annual(?:ly)?|immediately|forthwith|at once"
        r"|every (?:\w+ )?(?:day|week|month|quarter|year))\b",
    )
    SHARE = (
        "a share",
        r"\b(?:interest|loan[- ]to[- ]value|margin|multiple|per ?cent(?:age)?|proportion|provision|rate|ratio"
        r"|risk weight|share|spread)\b|%",
        rf"{_NUMBER}\s*(?:%|per\s?cent|percentage|basis points|bps|times)|\brate\b.{{0,20}}(?:plus|\+)",
    )
    AMOUNT = (
        "an amount",
        r"\bhow (?:big|high|large|much|many (?:\w+ )?(?:dollars|euros|pounds|rupees))\b"
        r"|\b(?:amount|balance|cap|ceiling|charge|commission|compensation|cost|exposure|fee|fine|largest|limit"
        r"|net (?:owned fund|worth)|penalty|price|size|smallest|threshold|value)\b",
        rf"(?:[$€£₹¥`]|\b(?:rs|inr|usd|eur|rupees)\b\.?)\s*{_NUMBER}|\d,\d|\| *[($]*\d"
        rf"|{_NUMBER}\s*(?:lakh|crore|cr|million|billion|tonne|cent|dollar|euro|pound|rupee|gram|kilo(?:gram)?|lit(?:er|re)|met(?:er|re)|mile)s?\b"
        r"|\d\s*(?:[mµ]?g|kg|m?l|[kcm]?m|[kMGT]?Wh?)\b",
    )
    COUNT = ("a number", r"\bhow many\b", _NUMBER)
    BODY = (
        "a person or a body",
        r"\b(?:who|whom|whose)\b"
        r"|\b(?:what|which) (?:\w+ )?(?:agency|authority|bank|body|company|court|department|institution|office)\b",
        r"(?-i:\b[A-Z][\w.&-]+ (?:(?:of|and|for|the) )*[A-Z]\w+)",
    )
    RULE = (
        "a permission or a prohibition",
        r"\A\W*(?:(?:if|where|when)\b[^?]*,\s*)?(?:are|can|do|does|has|have|is|may|must|need|should|will)\b"
        r"|[:,] (?:can|do|does|is|may|must) \w+[^?]*\?",
        r"\b(?=[acemnoprsw])(?:allowed|cannot|eligible|exempt\w*|may|must|no|not|only|permitted|prohibited|required|shall|without)\b",
    )

    def __init__(self, named: str, asks: str, holds: str) -> None:
        self.named = named
        self.asks = re.compile(asks, re.IGNORECASE)
        self.holds = re.compile(holds, re.IGNORECASE)

    def is_in(self, text: str, question: str) -> bool:
        """Tell whether a text contains such an answer in words that are not the question's."""
        said = question.lower()
        return any(found[0].lower() not in said for found in self.holds.finditer(text))


_MAY_ANSWER: Final = {
    Kind.DATE: re.compile(
        rf"{Kind.DATE.holds.pattern}|{Kind.DURATION.holds.pattern}|{_MONTH}(?!\w)"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days\b"
        r"|o['\u2019]clock|\b\d{1,2}:\d\d\b|\b(?:today|tomorrow|yesterday|spring|summer|autumn|winter|never|always)\b",
        re.IGNORECASE,
    ),
    Kind.SHARE: re.compile(
        rf"{Kind.SHARE.holds.pattern}|{Kind.AMOUNT.holds.pattern}|\b(?:third|quarter|half|all|none)\b",
        re.IGNORECASE,
    ),
    Kind.AMOUNT: re.compile(
        rf"{Kind.AMOUNT.holds.pattern}|{Kind.SHARE.holds.pattern}|\b[A-Z]{{3}}\s?\d"
        r"|\b(?:free|no charge|no fee|nothing|none)\b"
        rf"|{_NUMBER}\s+(?!(?:and|of|or|to)\b)[a-z]",
        re.IGNORECASE,
    ),
}
"""What may answer in place of a kind: a limit may be an amount or a share, a time a day or a duration. A person, a body
and a count are written in too many ways to say that a sentence contains none."""
_MAY_ANSWER[Kind.DURATION] = re.compile(
    rf"{_MAY_ANSWER[Kind.DATE].pattern}|\b(?:once|twice|fortnight|same day|times a)\b|{_NUMBER}\s+[a-z]",
    re.IGNORECASE,
)

_WHILE: Final = re.compile(
    r"(?<=\w)(?<!\band)(?<!\bby)(?<!\bfrom)(?<!\bor)(?<!\bsince)(?<!\buntil) when\b", re.IGNORECASE
)
"""A "when" that names a condition, as in "what applies when a card is lost", and does not ask for a date."""
_REASON: Final = re.compile(r"\b(?:why|what for|how (?:are|can|do|does|is|must|should))\b", re.IGNORECASE)


def asked_kinds(question: str) -> tuple[Kind, ...]:
    """Return the kinds of answer that a question asks for.

    Examples
    --------
    >>> [kind.name for kind in asked_kinds("Within how many days must it be filed, and what is the fee?")]
    ['DURATION', 'AMOUNT', 'COUNT']
    """
    return tuple(kind for kind in Kind if kind.asks.search(question))


def not_said(question: str, quotes: Sequence[str]) -> str:
    """Say in a sentence that no quote contains what is asked for first; empty if a quote does, or that is unclear."""
    asks = _WHILE.sub("", question)
    found = {kind: match.start() for kind in Kind if (match := kind.asks.search(asks))}
    if not found or Kind.RULE in found or _REASON.search(question):
        return ""
    first = min(found, key=found.__getitem__)
    may_answer, said = _MAY_ANSWER.get(first), question.lower()
    if may_answer is None or any(
        one[0].lower() not in said for quote in quotes for one in may_answer.finditer(quote)
    ):
        return ""
    return f"No sentence quoted states {first.named}."
