"""Tell whether a Form 25 or 15 leaves the common equity listed, and whether a periodic report shows that it is listed.

Form 25 strikes one class from listing (Exchange Act 12(d)), mostly notes that matured; Form 15 names the classes that
it covers, and the classes for which the duty to report remains. Only explicit words count: a form without text, or
without such words, counts as delisting the filer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.profiles.edgar.facts.forms import FormFamily, form_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.profiles.edgar.facts.filing import Filing


_COMMON: Final = re.compile(
    r"\b(?:common|ordinary|capital\s+stock|beneficial\s+interests?|depositar\w+|ADSs?|ADRs?|units?|partner\w*|members?\w*"
    r"|class\s+[A-Z]\b)",
    re.IGNORECASE,
)
_SENIOR: Final = re.compile(
    r"\b(?:notes?|bonds?|debentures?|debt|warrants?|rights?|prefer(?:red|ence)|certificates?)\b",
    re.IGNORECASE,
)
_EXCHANGE: Final = re.compile(
    r"\b(?:NYSE|NASDAQ|(?:New\s+York|American|Pacific|Chicago|Boston|Philadelphia|Midwest)\s+Stock\s+Exchange|Cboe\s+BZX)\b",
    re.IGNORECASE,
)
_UNDER_12B: Final = re.compile(r"\bsection\s+12\s*\(b\)", re.IGNORECASE)
_UNDER_12G: Final = re.compile(r"\bsection\s+12\s*\(g\)|\bindicate\s+by\s+check\s*mark", re.IGNORECASE)
_COVER: Final = 10_000
"""Characters at the beginning of a report that are read as its cover page."""
_AT_MOST: Final = 3_000
"""Characters of a cover that are read after *Section 12(b)* without a *Section 12(g)*."""
_IN_XML: Final = re.compile(r"^descriptionClassSecurity:[ \t]*(?P<words>[^\n]+)$", re.MULTILINE)
_BEFORE_25: Final = r"description\s+of\s+class\s+of\s+securit(?:y|ies)"
_BEFORE_15: Final = (
    r"titles?\s+of\s+all\s+other\s+classes\s+of\s+securities\s+for\s+which\s+a\s+duty\s+to\s+file"
)
_ABOVE: Final = r"(?P<words>[^\n]+)\n[\s_*-]*\([^\w\n]*{}"
_STATED_25: Final = re.compile(_ABOVE.format(_BEFORE_25), re.IGNORECASE)
_STATED_15: Final = re.compile(_ABOVE.format(_BEFORE_15), re.IGNORECASE)


def leaves_common_equity(filing: Filing) -> bool:
    """Tell whether a Form 25 or 15 itself states that the filer's common equity stays listed or registered.

    A Form 25 states that if every class it names is debt, preferred stock, warrants or rights; a Form 15 states it if
    the classes for which the duty to report remains include common equity.
    """
    form = filing.base_form
    if FormFamily.DELISTING not in form_families(form):
        return False
    texts = [document.text for document in filing.documents]
    if form in {"25", "25-NSE"}:
        classes = list(_classes((_IN_XML, _STATED_25), texts))
        return bool(classes) and all(_SENIOR.search(one) and not _COMMON.search(one) for one in classes)
    if form.startswith("15-"):
        return any(_COMMON.search(one) for one in _classes((_STATED_15,), texts))
    return False


def lists_common_equity(filing: Filing) -> bool:
    """Tell whether a periodic report's cover states that common equity of the filer is listed (Exchange Act 12(b)).

    The cover states that if one line between *Section 12(b)* and *Section 12(g)* names common equity, no senior
    security, and an exchange.
    """
    families = form_families(filing.base_form)
    if not families & {FormFamily.ANNUAL, FormFamily.INTERIM} or not filing.documents:
        return False
    cover = filing.documents[0].text[:_COVER]
    if (begins := _UNDER_12B.search(cover)) is None:
        return False
    ends = _UNDER_12G.search(cover, begins.end())
    lines = cover[begins.end() : ends.start() if ends else begins.end() + _AT_MOST].splitlines()
    return any(_COMMON.search(line) and _EXCHANGE.search(line) and not _SENIOR.search(line) for line in lines)


def _classes(patterns: Iterable[re.Pattern[str]], texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for pattern in patterns:
            for match in pattern.finditer(text):
                yield match["words"]
