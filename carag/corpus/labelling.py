"""A filing's facts to its policy word: one rule a bit, each with the EDGAR field it reads.

These are the bits a filing earns by itself; those that later filings set (18-23) are events' business. A fact
that is missing closes: no location is *elsewhere*, an 8-K whose items cannot be read is whatever an 8-K may
be, and what cannot be labelled at all is quarantined, where no policy reaches it.

Known limit: since 2019 most redactions need no order (Regulation S-K 601(b)(10)(iv)), so ``CONF_TREAT``
marks the orders themselves and under-covers. The mapping to regulations is an engineering control, not legal
advice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.corpus.forms import FormFamily, form_families, periodic_family
from carag.corpus.geography import edgar_jurisdiction, iso_jurisdiction
from carag.corpus.items import ITEM_NUMBERS
from carag.corpus.publication import PublicAtSource, accepted_in_private, public_time
from carag.policy import QUARANTINE, PolicyBit, policy_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.corpus.filing import Filing, FilingDocument

__all__ = ["LABELLER_VERSION", "Cause", "Label", "Quarantine", "QuarantineCode", "chunk_word", "label"]

LABELLER_VERSION: Final = "edgar-2"
"""Changes whenever the same filing may be labelled otherwise."""


class Cause(NamedTuple):
    """Why a bit is set."""

    bit: str
    field: str
    """The EDGAR field the rule read."""
    rule: str


class QuarantineCode(StrEnum):
    """Why a filing cannot be labelled."""

    NO_FORM = "NO_FORM"
    UNKNOWN_FORM = "UNKNOWN_FORM"
    LETTER_RELEASE_UNKNOWN = "LETTER_RELEASE_UNKNOWN"
    PRIVATE_RELEASE_UNKNOWN = "PRIVATE_RELEASE_UNKNOWN"
    NO_TIME = "NO_TIME"
    NO_TEXT = "NO_TEXT"
    FACTS_DISAGREE = "FACTS_DISAGREE"


class Quarantine(NamedTuple):
    """A stable code, and the same for a person."""

    code: QuarantineCode
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """What labelling says of a filing."""

    word: int
    """Policy bits and schema version, with the quarantine bit where quarantined."""
    public_at: int
    """Minutes since 1970-01-01T00:00Z; ``NEVER`` where unknown."""
    public_at_source: PublicAtSource
    causes: tuple[Cause, ...]
    quarantine: Quarantine | None = None


def label(filing: Filing) -> Label:
    """Label a filing. Never raises: what is missing closes or quarantines.

    Examples
    --------
    >>> from datetime import date
    >>> from carag.corpus.filing import Filing, FilingDocument
    >>> text = (FilingDocument("10-K", "Item 1. Business"),)
    >>> filing = Filing(
    ...     accession_number="", form="10-K", filed=date(2024, 7, 3), business_codes=("DE",), documents=text
    ... )
    >>> said = label(filing)
    >>> hex(said.word), said.public_at_source.value, [cause.bit for cause in said.causes]
    ('0x8000021', 'filing date', ['J_US', 'FS_AUDITED'])
    """
    applied = [rule for rule in _RULES if rule.test(filing)]
    bits = sum(rule.bit.flag for rule in applied)
    time = public_time(filing)
    quarantine = _quarantine(filing, time.source)
    return Label(
        word=policy_word(bits) | (QUARANTINE if quarantine else 0),
        public_at=time.minutes,
        public_at_source=time.source,
        causes=tuple(Cause(rule.bit.name, rule.field, rule.text) for rule in applied),
        quarantine=quarantine,
    )


def chunk_word(label: Label, filing: Filing, document: FilingDocument, text: str) -> int:  # noqa: ARG001
    """Narrow a filing's word to one of its passages.

    Only ``PD_SPECIAL`` narrows: of a proxy statement, the passages that speak of directors' diversity keep
    it. A passage is judged with its document's description, and a table cut in two by the names of its rows.
    """
    if label.word & PolicyBit.PD_SPECIAL.flag and not _DIVERSITY.search(f"{document.description}\n{text}"):
        return label.word & ~PolicyBit.PD_SPECIAL.flag
    return label.word


# Nasdaq Rule 5606's matrix: its title, its two parts, and its rows.
_DIVERSITY: Final = re.compile(
    r"diversity\s+matrix|board\s+diversity|(?:racial|ethnic|gender)\s+diversity|diversity\s+of\s+(?:the|our)\s+board"
    r"|demographic\s+(?:background|information)|gender\s+identity|non-?\s?binary|LGBTQ|self-?\s?identif"
    r"|under-?\s?represented|African\s+American|Alaskan\s+Native|Native\s+American|Hispanic|Latin[oax]\b"
    r"|Native\s+Hawaiian|Pacific\s+Islander|two\s+or\s+more\s+races|sexual\s+orientation",
    re.IGNORECASE,
)


# Facts the rules share


def _is(*families: FormFamily) -> Callable[[Filing], bool]:
    wanted = frozenset(families)
    return lambda filing: not wanted.isdisjoint(form_families(filing.base_form))


_annual, _interim = _is(FormFamily.ANNUAL), _is(FormFamily.INTERIM)
_current, _foreign_current = _is(FormFamily.CURRENT), _is(FormFamily.FOREIGN_CURRENT)
_offering, _ownership = _is(FormFamily.OFFERING), _is(FormFamily.OWNERSHIP)
_proxy, _proxy_or_tender = _is(FormFamily.PROXY), _is(FormFamily.PROXY, FormFamily.TENDER)
_insider, _foreign = _is(FormFamily.INSIDER), _is(FormFamily.FOREIGN)


def carries_certified_statements(filing: Filing) -> bool:
    """Whether an amendment's exhibits show that it carries financial statements.

    A section 906 certificate accompanies every report that contains them (Rule 13a-14(b)): EX-32, of a 20-F
    EX-13. Before section 906, the financial data schedule did: EX-27 (Regulation S-K 601(c), until 2001).
    """
    certificate = "EX-13" if filing.base_form == "20-F" else "EX-32"
    wanted = {certificate, "EX-27"} if _before(filing, 2002) else {certificate}
    return any(re.split(r"[.(]", document.type.upper())[0] in wanted for document in filing.documents)


def _before(filing: Filing, year: int) -> bool:
    stated = filing.filed.year if filing.filed else filing.accession_year
    return stated is not None and stated < year


def _part_iii_amendment(filing: Filing) -> bool:
    """Whether a 10-K/A carries no statements: then Part III, on directors and pay, is what most carry."""
    is_10k = periodic_family(filing.base_form) == "10-K"
    return is_10k and filing.is_amendment and not carries_certified_statements(filing)


def _reports(*items: str) -> Callable[[Filing], bool]:
    """Test for 8-K items; an 8-K with an unreadable item, or none, may report any of them."""
    wanted = frozenset(items)

    def test(filing: Filing) -> bool:
        stated = frozenset(filing.items)
        unreadable = not stated or not stated <= ITEM_NUMBERS
        return _current(filing) and (unreadable or not wanted.isdisjoint(stated))

    return test


_furnished_items = _reports("2.02", "7.01")
_officer_item = _reports("5.02")
_material_items = _reports(
    "1.01", "1.02", "1.03", "1.04", "1.05", "2.01", "2.02", "2.03", "2.04", "2.05", "2.06", "3.01", "3.03",
    "4.01", "4.02", "5.01",
)  # fmt: skip


# One function a bit


def _jurisdictions(filing: Filing) -> frozenset[PolicyBit]:
    """Unite registrants' BUSINESS ADDRESS STATE, STATE OF INCORPORATION and dei:EntityAddressCountry.

    A state of incorporation in the United States says nothing of where the business is (Delaware), so it
    sets no bit; one elsewhere does (GDPR Art. 3: establishment).
    """
    at = {edgar_jurisdiction(code) for code in filing.business_codes}
    at |= {iso_jurisdiction(country) for country in filing.address_countries}
    at |= {edgar_jurisdiction(code) for code in filing.incorporation_codes} - {PolicyBit.J_US}
    return frozenset(at or {PolicyBit.J_OTHER})


def _in(bit: PolicyBit) -> Callable[[Filing], bool]:
    return lambda filing: bit in _jurisdictions(filing)


def _fs_audited(filing: Filing) -> bool:
    """Test FS_AUDITED on CONFORMED SUBMISSION TYPE and the document list (SOX 302, 404; PCAOB AS 3101)."""
    return _annual(filing) and (not filing.is_amendment or carries_certified_statements(filing))


def _fs_unaudited(filing: Filing) -> bool:
    """Test FS_UNAUDITED on CONFORMED SUBMISSION TYPE and ITEM INFORMATION 2.02 (PCAOB AS 4105)."""
    return _interim(filing) or (_current(filing) and "2.02" in filing.items)


def _furnished(filing: Filing) -> bool:
    """Test FURNISHED on ITEM INFORMATION 2.02, 7.01; a 6-K has no items (Form 8-K Gen. Instr. B.2)."""
    return _furnished_items(filing) or _is(FormFamily.FOREIGN_CURRENT, FormFamily.ANNUAL_TO_HOLDERS)(filing)


def _pd_comp(filing: Filing) -> bool:
    """Test PD_COMP on the form, ITEM INFORMATION 5.02, the document list (S-K 402; GDPR Art. 6)."""
    return _proxy(filing) or _officer_item(filing) or _part_iii_amendment(filing)


def _pd_natural(filing: Filing) -> bool:
    """Test PD_NATURAL on REPORTING-OWNER and typeOfReportingPerson IN (GDPR Art. 4(1), 14, 21).

    Before 2003 insiders' reports have no REPORTING-OWNER block; the form alone says who reports.
    """
    individual = _ownership(filing) and "IN" in filing.reporting_person_types
    return "REPORTING-OWNER" in filing.party_roles or individual or _insider(filing)


_MATRICES: Final = (date(2022, 8, 8), date(2024, 12, 11))
"""From Nasdaq Rule 5606's first due date to the day it was vacated."""


def _pd_special(filing: Filing) -> bool:
    """Test PD_SPECIAL on the form, the exchange and the filing date (GDPR Art. 9(1); Nasdaq Rule 5606).

    An unknown exchange may be Nasdaq, and an unknown date may be in the window.
    """
    nasdaq = not filing.exchanges or any("nasdaq" in name.lower() for name in filing.exchanges)
    first, last = _MATRICES
    day = filing.filed or (filing.accepted.date() if filing.accepted else None)
    year = filing.accession_year
    in_window = first <= day <= last if day else year is None or first.year <= year <= last.year
    return (_proxy(filing) or _part_iii_amendment(filing)) and nasdaq and in_window


def _egc(filing: Filing) -> bool:
    """Test EGC on dei:EntityEmergingGrowthCompany, else the filer category (FINRA 2241(b)(2)(I))."""
    if filing.emerging_growth is not None:
        return filing.emerging_growth
    return "emerging growth" in filing.filer_category.lower()


def _shell(filing: Filing) -> bool:
    """Test SHELL on SIC 6770 (blank checks) and dei:EntityShellCompany (Rules 419, 144(i))."""
    return "6770" in filing.sics or filing.shell_company is True


class _Rule(NamedTuple):
    bit: PolicyBit
    field: str
    text: str
    test: Callable[[Filing], bool]


_TYPE, _ITEMS = "CONFORMED SUBMISSION TYPE", "ITEM INFORMATION"
_WHERE = "BUSINESS ADDRESS STATE; STATE OF INCORPORATION"
_RULES: Final = (
    _Rule(
        PolicyBit.J_US, "BUSINESS ADDRESS STATE", "business address in the United States", _in(PolicyBit.J_US)
    ),
    _Rule(PolicyBit.J_EU, _WHERE, "established in the EU or EEA", _in(PolicyBit.J_EU)),
    _Rule(PolicyBit.J_UK, _WHERE, "established in the United Kingdom", _in(PolicyBit.J_UK)),
    _Rule(PolicyBit.J_CA, _WHERE, "established in Canada", _in(PolicyBit.J_CA)),
    _Rule(PolicyBit.J_OTHER, _WHERE, "established elsewhere, or no location stated", _in(PolicyBit.J_OTHER)),
    _Rule(PolicyBit.FS_AUDITED, _TYPE, "annual report; an amendment only with its certificate", _fs_audited),
    _Rule(PolicyBit.FS_UNAUDITED, _TYPE, "quarterly report, or 8-K item 2.02", _fs_unaudited),
    _Rule(PolicyBit.FURNISHED, _ITEMS, "8-K item 2.02, 7.01 or unreadable; 6-K; ARS", _furnished),
    _Rule(PolicyBit.OFFERING, _TYPE, "registration statement, prospectus or draft of one", _offering),
    _Rule(
        PolicyBit.PROXY_TENDER, _TYPE, "Schedule 14A or 14C, tender offer, going private", _proxy_or_tender
    ),
    _Rule(PolicyBit.OWNERSHIP, _TYPE, "Schedule 13D or 13G, Form 13F", _ownership),
    _Rule(PolicyBit.PD_INSIDER, _TYPE, "Form 3, 4, 5 or 144", _insider),
    _Rule(
        PolicyBit.PD_COMP, _TYPE, "proxy statement, 8-K item 5.02, or 10-K/A without a certificate", _pd_comp
    ),
    _Rule(PolicyBit.PD_NATURAL, "REPORTING-OWNER", "reported by or about an individual", _pd_natural),
    _Rule(PolicyBit.PD_SPECIAL, _TYPE, "proxy statement or Part III of the Nasdaq matrix years", _pd_special),
    _Rule(
        PolicyBit.PRIV2PUB, "PRIVATE-TO-PUBLIC", "accepted in private, released later", accepted_in_private
    ),
    _Rule(
        PolicyBit.CONF_TREAT, _TYPE, "confidential-treatment order", _is(FormFamily.CONFIDENTIAL_TREATMENT)
    ),
    _Rule(
        PolicyBit.MATERIAL,
        _ITEMS,
        "8-K item of a material event or unreadable; 6-K",
        lambda filing: _material_items(filing) or _foreign_current(filing),
    ),
    _Rule(PolicyBit.EGC, "dei:EntityEmergingGrowthCompany", "emerging growth company", _egc),
    _Rule(PolicyBit.SHELL, "STANDARD INDUSTRIAL CLASSIFICATION", "SIC 6770, or tagged a shell", _shell),
    _Rule(PolicyBit.FPI, _TYPE, "form of a foreign private issuer", _foreign),
)


def _quarantine(filing: Filing, source: PublicAtSource) -> Quarantine | None:
    """Say why a filing cannot be shown to anyone, most telling reason first."""
    families = form_families(filing.base_form)
    if filing.disagreements:
        texts = "; ".join(one.text for one in filing.disagreements)
        return Quarantine(QuarantineCode.FACTS_DISAGREE, texts)
    if not filing.base_form:
        return Quarantine(QuarantineCode.NO_FORM, "no CONFORMED SUBMISSION TYPE is stated")
    if not families:
        return Quarantine(QuarantineCode.UNKNOWN_FORM, f"{filing.form} is no form EDGAR is known to have")
    if source is PublicAtSource.UNKNOWN and FormFamily.LETTER in families:
        return Quarantine(
            QuarantineCode.LETTER_RELEASE_UNKNOWN,
            "staff letters and replies are released after their filing date, and no release date is stated",
        )
    if source is PublicAtSource.UNKNOWN and accepted_in_private(filing):
        return Quarantine(
            QuarantineCode.PRIVATE_RELEASE_UNKNOWN, "accepted in private, and no release date is stated"
        )
    if source is PublicAtSource.UNKNOWN:
        return Quarantine(
            QuarantineCode.NO_TIME,
            "neither acceptance, filing date, accession number nor period of report is stated",
        )
    if not any(document.text.strip() for document in filing.documents):
        return Quarantine(QuarantineCode.NO_TEXT, "no document has text")
    return None
