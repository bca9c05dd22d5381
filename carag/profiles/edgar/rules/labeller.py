"""Label an EDGAR filing: apply the rules to its fields, and narrow its policy word to each of its passages.

The rules are data (:mod:`carag.profiles.edgar.rules.rules`); here they are applied to one filing, with their causes.
These are the bits that a filing's own facts set; :mod:`carag.profiles.edgar.rules.filing_events` derives those that
later filings set (18-23). Each passage keeps those bits of its filing that concern it
(:mod:`carag.profiles.edgar.rules.narrowing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.labelling.label import Cause, Label, Quarantine
from carag.policy import QUARANTINE, policy_word
from carag.profiles.edgar.facts.publication import public_time
from carag.profiles.edgar.rules.fields import Mark, fields_of
from carag.profiles.edgar.rules.narrowing import dropped_bits
from carag.profiles.edgar.rules.rules import QUARANTINES, RULES, QuarantineCode, certified

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing, FilingDocument
    from carag.profiles.edgar.rules.fields import Fields

__all__ = [
    "LABELLER_VERSION",
    "carries_certified_statements",
    "chunk_word",
    "label",
]

LABELLER_VERSION: Final = "edgar-7"
"""Must change whenever the same filing may be labelled differently."""


def label(filing: Filing, *, metadata_only: bool = False) -> Label:
    """Label a filing. Never raises: a missing fact sets the bits that hide, or quarantines the filing.

    Parameters
    ----------
    filing : Filing
    metadata_only : bool
        Whether the source is a header or a row of metadata, for which lack of text is no reason for quarantine.

    Examples
    --------
    >>> from datetime import date
    >>> from carag.profiles.edgar.facts.filing import Filing, FilingDocument
    >>> text = (FilingDocument("10-K", "Item 1. Business"),)
    >>> filing = Filing(
    ...     accession_number="", form="10-K", filed=date(2024, 7, 3), business_codes=("DE",), documents=text
    ... )
    >>> said = label(filing)
    >>> hex(said.word), said.public_at_source.value, [cause.bit for cause in said.causes]
    ('0x8000021', 'filing date', ['J_US', 'FS_AUDITED'])
    """
    fields = fields_of(filing)
    if metadata_only:
        fields = fields._replace(marks=fields.marks | Mark.HAS_TEXT)
    applied = [rule for rule in RULES if rule.test(fields)]
    bits = sum(rule.bit for rule in applied)
    time = public_time(filing)
    quarantine = _quarantine(filing, fields)
    return Label(
        word=policy_word(bits) | (QUARANTINE if quarantine else 0),
        public_at=time.minutes,
        public_at_source=time.source,
        causes=tuple(Cause(rule.bit.name, rule.field, rule.text) for rule in applied),
        quarantine=quarantine,
    )


def chunk_word(
    label: Label, filing: Filing, document: FilingDocument, text: str, start: int | None = None
) -> int:
    r"""Narrow a filing's word to one of its passages.

    A passage keeps the bits of the item, exhibit or section that contains it; if that is unknown, it keeps all bits of
    the filing. No bit is ever added.

    Parameters
    ----------
    label : Label
        Of the filing.
    filing : Filing
    document : FilingDocument
        One of the filing's.
    text : str
        The passage.
    start : int or None
        Where it begins in ``document.text``; None if unknown, and then its section is unknown too.

    Examples
    --------
    >>> from datetime import date
    >>> from carag.profiles.edgar.facts.filing import Filing, FilingDocument
    >>> results = "Item 2.02 Results of Operations\nRevenue was $5 million.\n"
    >>> officer = "Item 5.02 Departure of Directors\nMs. Doe has resigned.\n"
    >>> report = FilingDocument("8-K", results + officer)
    >>> filing = Filing(
    ...     accession_number="",
    ...     form="8-K",
    ...     filed=date(2024, 7, 3),
    ...     items=("2.02", "5.02"),
    ...     business_codes=("NY",),
    ...     documents=(report,),
    ... )
    >>> from carag.policy import bit_names
    >>> bit_names(chunk_word(label(filing), filing, report, officer, len(results)))
    ('J_US', 'PD_COMP')
    """
    return label.word & ~dropped_bits(label.word, filing, document, text, start)


def carries_certified_statements(filing: Filing) -> bool:
    """Tell whether an amendment has financial statements, by its exhibits or its text (:func:`rules.certified`)."""
    return bool(certified(fields_of(filing)))


def _quarantine(filing: Filing, fields: Fields) -> Quarantine | None:
    """Return why a filing is quarantined: the first of :data:`QUARANTINES` that applies."""
    if not filing.base_form and not filing.disagreements:
        return Quarantine(QuarantineCode.NO_FORM, "no CONFORMED SUBMISSION TYPE is stated")
    rule = next((rule for rule in QUARANTINES if rule.test(fields)), None)
    if rule is None:
        return None
    disagreements = "; ".join(one.text for one in filing.disagreements)
    return Quarantine(rule.code, rule.text.format(form=filing.form, disagreements=disagreements))
