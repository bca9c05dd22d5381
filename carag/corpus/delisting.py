"""Whether the form that removes a class of securities leaves the filer's common equity where it was.

Form 25 strikes one class from listing (Exchange Act 12(d)), and most that are filed name notes that matured; Form 15
names the classes it covers, and those for which the duty to report remains. Only what a form says in so many words
counts: a form without text, or of words that fit neither kind, removes the filer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.corpus.forms import FormFamily, form_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.corpus.filing import Filing

__all__ = ["leaves_common_equity"]

_COMMON: Final = re.compile(
    r"\b(?:common|ordinary|capital\s+stock|beneficial\s+interests?|depositar\w+|ADSs?|ADRs?|units?|partner\w*|members?\w*"
    r"|class\s+[A-Z]\b)",
    re.IGNORECASE,
)
_SENIOR: Final = re.compile(
    r"\b(?:notes?|bonds?|debentures?|debt|warrants?|rights?|prefer(?:red|ence)|certificates?)\b",
    re.IGNORECASE,
)
_IN_XML: Final = re.compile(r"^descriptionClassSecurity:[ \t]*(?P<words>[^\n]+)$", re.MULTILINE)
_BEFORE_25: Final = r"description\s+of\s+class\s+of\s+securit(?:y|ies)"
_BEFORE_15: Final = (
    r"titles?\s+of\s+all\s+other\s+classes\s+of\s+securities\s+for\s+which\s+a\s+duty\s+to\s+file"
)
_ABOVE: Final = r"(?P<words>[^\n]+)\n[\s_*-]*\([^\w\n]*{}"
_STATED_25: Final = re.compile(_ABOVE.format(_BEFORE_25), re.IGNORECASE)
_STATED_15: Final = re.compile(_ABOVE.format(_BEFORE_15), re.IGNORECASE)


def leaves_common_equity(filing: Filing) -> bool:
    r"""Whether a Form 25 or 15 says itself that the filer's common equity stays listed, or registered.

    Parameters
    ----------
    filing : Filing
        Of a Form 25 every class it names must be debt, preferred stock, warrants or rights. Of a Form 15 the classes
        for which the duty to report remains must be common equity.

    Examples
    --------
    >>> from carag.corpus.filing import Filing, FilingDocument
    >>> struck = "4.5% Senior Notes due 2021\n(Description of class of securities)"
    >>> texts = (struck, struck.replace("4.5% Senior Notes", "Common Stock"))
    >>> filings = [
    ...     Filing(accession_number="a", form="25-NSE", documents=(FilingDocument("25-NSE", text),)) for text in texts
    ... ]
    >>> [leaves_common_equity(filing) for filing in filings]
    [True, False]
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


def _classes(patterns: Iterable[re.Pattern[str]], texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for pattern in patterns:
            for match in pattern.finditer(text):
                yield match["words"]
