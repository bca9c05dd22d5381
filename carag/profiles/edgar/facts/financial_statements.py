"""Tell whether a text contains financial statements, by the words that accounting and auditing standards prescribe.

Audited statements come with an accountant's report (Regulation S-X 2-02), and every standard has kept the words of its
opinion: *in our opinion ... present fairly* (AU 508.08; PCAOB AS 3101.08). Interim statements need no report; there are
three of them, each with its own title (Regulation S-X 10-01(c)).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import FilingDocument


# Exhibits under Regulation S-K 601(b) that neither are nor contain financial statements. EX-13 (the annual report to
# holders), EX-11 and EX-12 (computed from them), EX-15, EX-18, EX-19, EX-20, EX-27, EX-28 and EX-99 may.
_NO_STATEMENTS: Final = frozenset(
    f"EX-{number}"
    for number in (
        *range(1, 6), 8, 9, 10, 14, 16, 17, *range(21, 27), *range(31, 37), 95, 96, 97,
    )
)  # fmt: skip

_OPINION: Final = re.compile(
    r"\bin\s+our\s+opinion\b[^|]{0,900}?\b(?:presents?\s+fairly|true\s+and\s+fair\s+view)\b"
    r"(?P<what>.{0,400})",
    re.IGNORECASE | re.DOTALL,
)
_OF_A_PLAN: Final = re.compile(r"\bnet\s+assets\s+available\s+for\b", re.IGNORECASE)
"""A line found only in the statements of employee plans (Regulation S-X 6A-02)."""

_BEFORE_TITLE: Final = r"^[^\w\n]{0,4}(?:(?:condensed|consolidated|combined|interim|unaudited)\W{1,3}){0,4}"
_AFTER_TITLE: Final = r"[^\w\n]*(?:\((?:continued|unaudited)\)|unaudited)?[^\w\n]*$"
_INTERIM: Final = tuple(
    re.compile(_BEFORE_TITLE + title + _AFTER_TITLE, re.IGNORECASE | re.MULTILINE)
    for title in (
        r"(?:balance\s+sheets?|statements?\s+of\s+(?:financial\s+(?:position|condition)|condition))",
        r"(?:income\s+statements?|statements?\s+of\s+(?:consolidated\s+)?(?:comprehensive\s+)?"
        r"(?:income|earnings|operations|loss)(?:\s+and\s+[a-z ]{4,40})?)",
        r"(?:cash\s+flow\s+statements?|statements?\s+of\s+(?:consolidated\s+)?cash\s+flows?)",
    )
)


def may_carry_statements(document: FilingDocument) -> bool:
    """Tell whether an exhibit of this type may be or contain financial statements."""
    return re.split(r"[.(]", document.type.upper())[0] not in _NO_STATEMENTS


@lru_cache(maxsize=64)
def has_opinion(text: str, *, of_a_plan: bool = False) -> bool:
    """Tell whether a text contains an accountant's opinion on financial statements.

    ``of_a_plan`` also counts opinions on employee plans. A plan's annual report may be filed as an amendment of its
    sponsor's report (Exchange Act Rule 15d-21), but does not change the sponsor's own statements.

    Examples
    --------
    >>> has_opinion("In our opinion, the statements present fairly, in all material respects, the position")
    True
    """
    return any(of_a_plan or not _OF_A_PLAN.search(match["what"]) for match in _OPINION.finditer(text))


@lru_cache(maxsize=64)
def has_interim_statements(text: str) -> bool:
    """Tell whether balance sheet, income statement and cash flows each have a title on a line of their own."""
    return all(title.search(text) for title in _INTERIM)
