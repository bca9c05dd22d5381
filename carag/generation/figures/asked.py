"""Read what a question asks for: its words, and whether it wants one figure as printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.generation.words import terms

if TYPE_CHECKING:
    from carag.retrieval.reading import Reading


_OPENS: Final = re.compile(r"(?:^|[,:;]\s*|\bquestion\s+)(?=(?:what|how\s(?:much|many))\b)", re.IGNORECASE)
_WHERE: Final = re.compile(
    r"\bstatements?\b|\bbalance sheet\b|\b10-[KQ]\b|\bP&L\b|\bquestion\b|\banalyst\b|\bfilings?\b|\breports?\b",
    re.IGNORECASE,
)
"""Words with which a question says where to look for its answer."""
_FORM: Final = re.compile(
    r"\s?\((?:in\s|as\s(?:a\s)?)?(?:units?\sof\s)?(?:%|\$|percent\w*|USD|US\sdollars?|thousands|millions|billions)[^()]{0,60}\)"
    r"|\s?\((?:please\s)?round\w*[^()]{0,60}\)",
    re.IGNORECASE,
)
"""Parentheses that say in which form to answer."""
_GENERIC: Final = terms(
    "company firm business years year end ended fiscal financial quarter months month calendar amount value figure "
    "number usd eur dollars million millions billion billions thousand thousands answer units report reported "
    "respectively during period date according statement fye fy cy level balance recorded q1 q2 q3 q4 jan feb january "
    "february march april june july august september october november december"
)
"""Words that do not distinguish rows."""
_TIME: Final = re.compile(
    r"\b(?:FYE?|CY|F)\s?['’]?(?:(?:19|20)\d\d|\d\d)\b|\b(?:19|20)\d\d\b|\bQ[1-4]\b|\b[1-4]Q\b", re.IGNORECASE
)
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAY: Final = re.compile(
    rf"\b(?:{_MONTHS})[a-z]{{0,6}}\.?\s\d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?(?:{_MONTHS})[a-z]{{0,6}}\b"
    r"|\b(?:three|six|nine|twelve|\d{1,2})[\s-](?:months?|weeks?)\b",
    re.IGNORECASE,
)
_ONE_FIGURE: Final = re.compile(
    r"\bwhat(?:['’]s|\s(?:is|was|were|are)\b)|\bhow\s(?:much|many)\b", re.IGNORECASE
)
_MORE_THAN_A_FIGURE: Final = re.compile(
    r"\b(?:why|which|who|explain|describe|discuss|compare[ds]?|comparison|factors?|trends?|drivers?|drove|driven|cause[ds]?"
    r"|reasons?|respectively|between|both|each|list|highest|lowest|largest|biggest|smallest|most|least|greater"
    r"|higher|lower|half|h[12]|ytd|year-to-date|to\sdate|more|less|than|except|excluding|excl|without|adjusted|if)\b",
    re.IGNORECASE,
)
"""Words that make a question one that the figure of a single row does not answer, or may not answer."""
_COMPUTES: Final = re.compile(
    r"\b(?:change[ds]?|increase[ds]?|decrease[ds]?|grow(?:th|n|s)?|grew|declin\w+|difference|ratio|margin|average|mean|median"
    r"|proportion|share\sof|as\sa?\s?(?:%|percent\w*)|percent(?:age)?|portion|sum|combined|cagr|turnover|yield|per)\b",
    re.IGNORECASE,
)
"""Words in a question that a row answers only if it contains those words itself."""


def clause(sentence: str) -> str:
    """Return a sentence without the parts that only say where to look, before the words that ask, or how to answer.

    Examples
    --------
    >>> clause("Using the balance sheet, answer this: what is net PPNE of FY2018?")
    'what is net PPNE of FY2018?'
    """
    opened = list(_OPENS.finditer(sentence))
    if opened and _WHERE.search(sentence, 0, opened[-1].end()):
        sentence = sentence[opened[-1].end() :]
    return _FORM.sub("", sentence)


def asked_terms(sentence: str, reading: Reading) -> frozenset[str]:
    """Return the words of a sentence that say what is asked for, without companies, times and generic words."""
    named = terms(" ".join(one.text for one in reading.entities))
    rest = terms(_DAY.sub(" ", _TIME.sub(" ", clause(sentence))))
    return frozenset(term for term in rest - named - _GENERIC if not term[0].isdigit() and len(term) > 1)


def asked_numbers(text: str) -> frozenset[str]:
    """Return the numbers of a question that are not times: ``Level 3``, ``5.25 % notes``.

    Examples
    --------
    >>> sorted(asked_numbers("what were Level 3 assets on December 31, 2018?"))
    ['3']
    """
    return frozenset(one for one in terms(_DAY.sub(" ", _TIME.sub(" ", text))) if one[0].isdigit())


def wants_one_figure(sentence: str) -> bool:
    """Tell whether a sentence asks for one figure, as a row may print it.

    Examples
    --------
    >>> [wants_one_figure(one) for one in ("What was revenue in 2018?", "Why did revenue fall?")]
    [True, False]
    """
    return _ONE_FIGURE.search(sentence) is not None and not _MORE_THAN_A_FIGURE.search(sentence)


def computes(text: str) -> frozenset[str]:
    """Return the words of a text that ask for a computation: a row answers only if it contains those words itself."""
    return terms(" ".join(_COMPUTES.findall(text)))
