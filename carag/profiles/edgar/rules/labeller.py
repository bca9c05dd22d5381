"""Label an EDGAR filing: apply the rules to its fields, and narrow its policy word to each passage.

Rules are data (:mod:`carag.profiles.edgar.rules.rules`). This module sets the bits that a filing's own facts determine;
the bits that later filings set (18-23) are in :mod:`carag.profiles.edgar.rules.filing_events`. Each passage keeps the
bits that concern it (:mod:`carag.profiles.edgar.rules.narrowing`).
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


LABELLER_VERSION: Final = "edgar-7"
"""This must change whenever the same filing may be labelled differently."""


def label(filing: Filing, *, metadata_only: bool = False) -> Label:
    """Label a filing; never raises, because a missing fact sets the bits that hide the filing, or quarantines it.

    With ``metadata_only``, for a header or a row of metadata, lack of text does not quarantine.
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
    """Narrow a filing's word to one of its passages; no bit is ever added.

    A passage keeps the bits of the item, exhibit or section that contains it; if that is unknown, all bits of the
    filing. ``start`` is its offset in ``document.text``; if that is unknown, so is its section.
    """
    return label.word & ~dropped_bits(label.word, filing, document, text, start)


def carries_certified_statements(filing: Filing) -> bool:
    """Tell whether an amendment has financial statements, by its exhibits or text (:func:`rules.certified`)."""
    return bool(certified(fields_of(filing)))


def _quarantine(filing: Filing, fields: Fields) -> Quarantine | None:
    if not filing.base_form and not filing.disagreements:
        return Quarantine(QuarantineCode.NO_FORM, "no CONFORMED SUBMISSION TYPE is stated")
    rule = next((rule for rule in QUARANTINES if rule.test(fields)), None)
    if rule is None:
        return None
    disagreements = "; ".join(one.text for one in filing.disagreements)
    return Quarantine(rule.code, rule.text.format(form=filing.form, disagreements=disagreements))
