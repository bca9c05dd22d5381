"""Narrow a filing's policy word to a passage: drop the bits of other items, exhibits and sections.

A bit is dropped only if the filing itself shows that it belongs to another passage. There is one function per kind of
document; each returns the bits to drop.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.financial_statements import may_carry_statements
from carag.profiles.edgar.facts.forms import FormFamily
from carag.profiles.edgar.rules.fields import FORM_10K, family_mask, form_traits
from carag.profiles.edgar.rules.form_8k_sections import exhibit_items, item_spans, items_between
from carag.profiles.edgar.rules.personal_sections import is_impersonal, tells_of_an_officer
from carag.profiles.edgar.rules.rules import FURNISHED_ITEMS, MATERIAL_ITEMS, OFFICER_ITEMS, RESULTS_ITEMS

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing, FilingDocument


_BY_ITEM: Final = (
    (PolicyBit.FURNISHED.value, frozenset(FURNISHED_ITEMS)),
    (PolicyBit.FS_UNAUDITED.value, frozenset(RESULTS_ITEMS)),
    (PolicyBit.PD_COMP.value, frozenset(OFFICER_ITEMS)),
    (PolicyBit.MATERIAL.value, frozenset(MATERIAL_ITEMS)),
)
"""Bits that items of an 8-K set, each with its items."""
_ITEM_BITS: Final = sum(flag for flag, _ in _BY_ITEM)
_NO_ITEM: Final = frozenset({"9.01"})
"""The item that only lists exhibits and reports nothing itself."""
_STATEMENTS: Final = PolicyBit.FS_AUDITED.value | PolicyBit.FS_UNAUDITED.value

_CURRENT: Final = family_mask(FormFamily.CURRENT)
_PERIODIC: Final = family_mask(FormFamily.ANNUAL, FormFamily.INTERIM)

# Nasdaq Rule 5606's matrix: its title, its two parts, and its rows.
_DIVERSITY: Final = re.compile(
    r"diversity\s+matrix|board\s+diversity|(?:racial|ethnic|gender)\s+diversity|diversity\s+of\s+(?:the|our)\s+board"
    r"|demographic\s+(?:background|information)|gender\s+identity|non-?\s?binary|LGBTQ|self-?\s?identif"
    r"|under-?\s?represented|African\s+American|Alaskan\s+Native|Native\s+American|Hispanic|Latin[oax]\b"
    r"|Native\s+Hawaiian|Pacific\s+Islander|two\s+or\s+more\s+races|sexual\s+orientation",
    re.IGNORECASE,
)


def dropped_bits(word: int, filing: Filing, document: FilingDocument, text: str, start: int | None) -> int:
    """Return the bits of a filing's word that do not concern a passage; parameters as for ``chunk_word``."""
    traits = form_traits(filing.base_form)
    dropped = 0
    if word & PolicyBit.PD_SPECIAL.value and not _DIVERSITY.search(f"{document.description}\n{text}"):
        dropped |= PolicyBit.PD_SPECIAL.value
    if traits & _CURRENT:
        if word & _ITEM_BITS:
            dropped |= _outside_items(filing, document, text, start)
    elif word & PolicyBit.PD_COMP.value and start is not None:
        by_item = traits & FORM_10K != 0
        is_exhibit = _is_exhibit(filing, document)
        if is_impersonal(document.text, start, start + len(text), by_item=by_item, is_exhibit=is_exhibit):
            dropped |= PolicyBit.PD_COMP.value
    if (
        word & _STATEMENTS
        and traits & _PERIODIC
        and _is_exhibit(filing, document)
        and not may_carry_statements(document)
    ):
        dropped |= _STATEMENTS
    return dropped


def _outside_items(filing: Filing, document: FilingDocument, text: str, start: int | None) -> int:
    report = filing.documents[0] if filing.documents else document
    if _is_exhibit(filing, document):
        items = exhibit_items(report.text, filing.items, filing.filed, document.type)
    elif start is None:
        return 0
    else:
        spans = item_spans(report.text, filing.items, filing.filed)
        items = items_between(spans, start, start + len(text))
    if items is None:
        return 0
    dropped = sum(flag for flag, own in _BY_ITEM if own.isdisjoint(items))
    if items <= _NO_ITEM or not tells_of_an_officer(text):
        return dropped
    return dropped & ~PolicyBit.PD_COMP.value  # a release under 7.01 or 8.01 may announce what 5.02 reports


def _is_exhibit(filing: Filing, document: FilingDocument) -> bool:
    return bool(filing.documents) and document is not filing.documents[0] and document in filing.documents[1:]
