"""Tell whether a figure concerns the company as a whole: nothing above it may say anything else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.generation.figures.concepts import rank_of
from carag.generation.words import terms
from carag.retrieval.reading.names import LEGAL_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.generation.figures.concepts import Concept
    from carag.generation.figures.entries import Entry


TIME_WORDS: Final = terms(
    "year years ended end ending fiscal at as of and january february march april may june july august september "
    "october november december jan feb mar apr jun jul aug sep sept oct nov dec three six nine twelve months month "
    "weeks week quarter first second third fourth day days fy actual total consolidated company note notes in the for "
    "except per share shares data amount amounts thousands thousand millions million billions billion dollars dollar "
    "us usd unaudited audited"
)
"""Words of heads that distinguish columns only by time and unit."""
_FOREIGN: Final = re.compile(
    r"\bpro[\s-]?forma\b|\bparent\s(?:company\s)?only\b|\bguarantors?\b|(?<!\band\s)\bsubsidiary\b|\bsegments?\b"
    r"|\bdiscontinued\b|\bcondensed\sfinancial\s(?:information|statements?)\sof\b|\bregistrant\sonly\b|\baffiliates?\b"
    r"|\bheld[\s-]for[\s-]sale\b|\binvestees?\b|\bjoint\sventures?\b|\bequity[\s-]method\b|\b(?:due|payable)\s(?:to|from)\s(?!banks?\b)[a-z]"
    r"|\bcondensed\sconsolidating\b|\bpredecessor\b|\bunconsolidated\b|\bby\s(?:geograph\w+|product|region)\b",
    re.IGNORECASE,
)
"""Words above a table whose entries do not concern the company as a whole."""
_STATEMENT: Final = re.compile(
    r"(?:.{0,80}\bsubsidiar(?:y|ies)\b\W+)?\W*(?:condensed\s)?consolidated\s"
    r"(?:statements?\sof|balance\ssheets?|results\sof|income\sstatements?).{0,60}",
    re.IGNORECASE,
)
"""A line that is the title of a statement, not a sentence that mentions one."""
_CONSOLIDATED: Final = re.compile(r"\bconsolidated\b", re.IGNORECASE)
_COMPANY: Final = re.compile(
    r"(?:[A-Z][\w&'’.-]*,?\s){1,6}(?:Inc|Incorporated|Corp|Corporation|Company|COMPANY|L\.?L\.?C|L\.?P|Ltd|Limited|plc|PLC|N\.?V"
    r"|S\.?A|INC|CORP|CORPORATION|LTD|LIMITED)\b"
)
_STATEMENTS: Final = terms(
    "statement statements balance sheet sheets income operations earnings cash flow flows financial position "
    "condition results selected summary highlights performance data table contents following presents sets forth "
    "information included including below above follow follows subsidiaries company companies our assets asset "
    "liabilities liability equity current noncurrent non operating investing financing activities adjustments "
    "reconcile reconciling net loss losses gains provided used by changes costs cost expenses expense revenues "
    "revenue sales inventories inventory property plant equipment other others stockholders shareholders "
    "stockholder shareholder commitments contingencies capitalization long short term debt taxes tax common stock "
    "basic diluted deferred receivables receivable payables payable accounts accrued goodwill intangible "
    "intangibles interest provision provisions gross profit margin before after comprehensive depreciation "
    "amortization weighted average outstanding dividends dividend declared paid issued continuing less add plus "
    "total key metrics ratios supplementary summarizes ii item liquidity capital resources see accompanying part "
    "integral"
)
"""Words in statements of a whole company, and in the lines that introduce them."""


def other_words(entry: Entry) -> frozenset[str]:
    """Return the words in the heads that say more than a time or a unit."""
    said = terms(" ".join(one.text for one in entry.heads)) - TIME_WORDS
    return frozenset(term for term in said if not term[0].isdigit() and len(term) > 1)


def is_whole(entry: Entry, names: frozenset[str]) -> bool:
    """Tell whether an entry concerns the company as a whole, and not a segment, a version or a comparison.

    ``names`` are the terms of the company's names.
    """
    others = other_words(entry) or foreign_words(entry) - names
    return not (others or entry.time.compares)


def foreign_words(entry: Entry) -> frozenset[str]:
    """Return the words above an entry that may say which part or version of the company it concerns.

    These are all the words that a statement of the whole company does not contain, unless a title says that the
    statement is consolidated.
    """
    section, titles = entry.section.text if entry.section else "", " ".join(entry.captions)
    said = (
        terms(section if _CONSOLIDATED.search(titles) else f"{section} {titles}") - _STATEMENTS - TIME_WORDS
    )
    unknown = frozenset(term for term in said if not term[0].isdigit() and len(term) > 1)
    companies = terms(" ".join(one for title in entry.captions for one in _COMPANY.findall(title)))
    return (
        unknown
        | terms(" ".join(_FOREIGN.findall(f"{titles} {section}")))
        | (companies - LEGAL_FORMS - _STATEMENTS - TIME_WORDS)
    )


def rows_of(concept: Concept, entries: Iterable[Entry]) -> list[Entry]:
    """Return the rows that match an entry of statements: those with the best caption, those of known scale first.

    Rows of a consolidated statement come before all others, because a note may print the same caption for a part.
    """
    ranked = [
        ((not any(map(_STATEMENT.fullmatch, one.captions)), rank), one)
        for one in entries
        if (rank := rank_of(concept, one)) is not None
    ]
    best = min((rank for rank, _ in ranked), default=None)
    found = [one for rank, one in ranked if rank == best]
    return sorted(found, key=lambda one: one.unit.scale is None)
