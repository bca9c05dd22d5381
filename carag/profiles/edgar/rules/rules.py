"""Define the rules that derive policy bits from the fields of an EDGAR filing, and those that quarantine it.

Rules are data: :mod:`carag.profiles.edgar.rules.labeller` applies them to one filing, :func:`words` to columns of many,
and ``carag policy bits`` prints them.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.labelling.rule import QuarantineRule, Rule, label_words
from carag.policy import PolicyBit
from carag.profiles.edgar.facts.calendar import FIRST_YEAR, LAST_YEAR
from carag.profiles.edgar.facts.forms import FormFamily
from carag.profiles.edgar.rules.fields import (
    AMENDMENT,
    FIRST_DAY,
    FORM_10K,
    FORM_20F,
    LAST_DAY,
    UNREADABLE,
    Exhibit,
    Mark,
    family_mask,
    item_mask,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from carag.labelling.rule import Test
    from carag.profiles.edgar.rules.fields import Column, Fields


FURNISHED_ITEMS: Final = ("2.02", "7.01")
"""Items of Form 8-K that are furnished, not filed, and so are their exhibits (Form 8-K Gen. Instr. B.2)."""
RESULTS_ITEMS: Final = ("2.02",)
"""Items of Form 8-K on results of operations, which are unaudited."""
OFFICER_ITEMS: Final = ("5.02",)
"""Items of Form 8-K on appointment, departure and pay of named officers and directors."""
MATERIAL_ITEMS: Final = (
    "1.01", "1.02", "1.03", "1.04", "1.05", "2.01", "2.02", "2.03", "2.04", "2.05", "2.06", "3.01", "3.03",
    "4.01", "4.02", "5.01",
)  # fmt: skip


# --- tests ------------------------------------------------------------------------------------------------


def _form(*families: FormFamily) -> Test:
    mask = family_mask(*families)
    return lambda of: of.traits & mask != 0


def _marked(mark: Mark) -> Test:
    flag = int(mark)
    return lambda of: of.marks & flag != 0


def _at(bit: PolicyBit) -> Test:
    return lambda of: of.places & bit.value != 0


def _reports(*numbers: str, unreadable: bool = True) -> Test:
    """Test for 8-K items; an 8-K that has an unreadable item, or no items at all, may report any of them."""
    mask = item_mask(*numbers) | (UNREADABLE if unreadable else 0)
    return lambda of: _current(of) & (of.items & mask != 0)


_annual, _interim = _form(FormFamily.ANNUAL), _form(FormFamily.INTERIM)
_current, _foreign_current = _form(FormFamily.CURRENT), _form(FormFamily.FOREIGN_CURRENT)
_ownership, _proxy, _insider = _form(FormFamily.OWNERSHIP), _form(FormFamily.PROXY), _form(FormFamily.INSIDER)
_letter, _not_public_at_once = _form(FormFamily.LETTER), _form(FormFamily.LETTER, FormFamily.DRAFT)
_furnished_items, _material_items = _reports(*FURNISHED_ITEMS), _reports(*MATERIAL_ITEMS)
_officer_items, _results_items = _reports(*OFFICER_ITEMS), _reports(*RESULTS_ITEMS, unreadable=False)
_reporting_owner, _individual = _marked(Mark.REPORTING_OWNER), _marked(Mark.INDIVIDUAL)
_private_to_public, _has_text = _marked(Mark.PRIVATE_TO_PUBLIC), _marked(Mark.HAS_TEXT)
_disagrees, _statements_in_text = _marked(Mark.DISAGREES), _marked(Mark.STATEMENTS)
_cover_dated, _may_be_nasdaq = _marked(Mark.COVER_DATED), _marked(Mark.MAY_BE_NASDAQ)
_unnumbered = _marked(Mark.UNNUMBERED)

_MATRICES: Final = ((date(2022, 8, 8).toordinal(), 2022), (date(2024, 12, 11).toordinal(), 2024))
"""First and last day of board diversity matrices, as (ordinal, year): from Nasdaq Rule 5606's first due date to the
day it was vacated."""


def _original(of: Fields) -> Column:
    return of.traits & AMENDMENT == 0


def certified(of: Fields) -> Column:
    """Test whether an amendment carries financial statements, by its exhibits or its text.

    A section 906 certificate accompanies every report with statements (Rule 13a-14(b)): EX-32, or EX-13 for a 20-F. For
    filings before section 906, and for sources without a list of exhibits, the text is searched
    (:mod:`carag.profiles.edgar.facts.financial_statements`). A financial data schedule (EX-27) proves nothing:
    amendments were filed to add one that had been omitted.
    """
    is_20f = of.traits & FORM_20F != 0
    certificate = (is_20f & (of.exhibits & Exhibit.EX_13.value != 0)) | (
        (is_20f ^ True) & (of.exhibits & Exhibit.EX_32.value != 0)
    )
    return certificate | _statements_in_text(of)


def _part_iii(of: Fields) -> Column:
    """Test whether a 10-K/A carries no statements; most of those carry Part III, on directors and pay."""
    is_10k = of.traits & FORM_10K != 0
    return is_10k & (of.traits & AMENDMENT != 0) & (certified(of) ^ True)


def _in_matrix_years(of: Fields) -> Column:
    """Test the filing date, else the acceptance date, else the accession year; an unknown date counts as inside."""
    (first, first_year), (last, last_year) = _MATRICES
    by_filed = (of.filed >= first) & (of.filed <= last)
    by_accepted = (of.filed == 0) & (of.accepted >= first) & (of.accepted <= last)
    undated = (of.filed == 0) & (of.accepted == 0)
    by_year = undated & ((of.year == 0) | ((of.year >= first_year) & (of.year <= last_year)))
    return by_filed | by_accepted | by_year


def _fs_audited(of: Fields) -> Column:
    return _annual(of) & (_original(of) | certified(of))


def _fs_unaudited(of: Fields) -> Column:
    return _interim(of) | _results_items(of)


_furnished_forms: Final = _form(FormFamily.FOREIGN_CURRENT, FormFamily.ANNUAL_TO_HOLDERS)


def _furnished(of: Fields) -> Column:
    return _furnished_items(of) | _furnished_forms(of)


def _pd_comp(of: Fields) -> Column:
    return _proxy(of) | _officer_items(of) | _part_iii(of)


def _pd_natural(of: Fields) -> Column:
    """Test for reports by natural persons; before 2003 only the form shows them, without a REPORTING-OWNER block."""
    return _reporting_owner(of) | (_ownership(of) & _individual(of)) | _insider(of)


def _pd_special(of: Fields) -> Column:
    return (_proxy(of) | _part_iii(of)) & _may_be_nasdaq(of) & _in_matrix_years(of)


def _priv2pub(of: Fields) -> Column:
    return _private_to_public(of) | _not_public_at_once(of)


def _material(of: Fields) -> Column:
    return _material_items(of) | _foreign_current(of)


# --- the table --------------------------------------------------------------------------------------------

_TYPE, _ITEMS = "CONFORMED SUBMISSION TYPE", "ITEM INFORMATION"
_WHERE = "BUSINESS ADDRESS STATE; STATE OF INCORPORATION"
_COUNTRY = "dei:EntityAddressCountry"
_BY_ITEM = "of an 8-K, the text under {items} and the exhibits those items name"
_CITED = ", ".join(MATERIAL_ITEMS)

RULES: Final = (
    Rule(
        PolicyBit.J_US,
        "BUSINESS ADDRESS STATE",
        "a registrant's business address is in the United States",
        _at(PolicyBit.J_US),
        also=_COUNTRY,
        limits="a charter in the United States alone sets nothing: Delaware is where companies are chartered",
    ),
    Rule(
        PolicyBit.J_EU,
        _WHERE,
        "a registrant is established in the EU or EEA",
        _at(PolicyBit.J_EU),
        also=_COUNTRY,
    ),
    Rule(
        PolicyBit.J_UK,
        _WHERE,
        "a registrant is established in the United Kingdom",
        _at(PolicyBit.J_UK),
        also=_COUNTRY,
    ),
    Rule(PolicyBit.J_CA, _WHERE, "a registrant is established in Canada", _at(PolicyBit.J_CA), also=_COUNTRY),
    Rule(
        PolicyBit.J_OTHER,
        _WHERE,
        "a registrant is established elsewhere",
        _at(PolicyBit.J_OTHER),
        also=_COUNTRY,
        limits="Jersey, Guernsey and the Isle of Man are elsewhere, not the United Kingdom; for a registrant that"
        " states no location, or an unknown code, all five bits are set",
    ),
    Rule(
        PolicyBit.FS_AUDITED,
        _TYPE,
        "annual report; an amendment only with its certificate (EX-32, of a 20-F EX-13) or an accountant's opinion",
        _fs_audited,
        also="document list; text",
        passages="all but exhibits without statements: contracts, charters, consents, certificates, codes",
        limits="the report's own narrative keeps it, because the beginning of the statements is not detected; an "
        "opinion on an affiliate's statements (Regulation S-X 3-09) counts as one on the filer's, and one that the "
        "source truncated is not seen",
    ),
    Rule(
        PolicyBit.FS_UNAUDITED,
        _TYPE,
        "quarterly report, or 8-K item 2.02",
        _fs_unaudited,
        also=_ITEMS,
        passages=_BY_ITEM.format(items="item 2.02")
        + "; of a quarterly report, all but exhibits without statements",
        limits="an 8-K whose items cannot be read is not marked",
    ),
    Rule(
        PolicyBit.FURNISHED,
        _ITEMS,
        "8-K item 2.02, 7.01 or unreadable; 6-K; ARS",
        _furnished,
        also=_TYPE,
        passages=_BY_ITEM.format(items="items 2.02 and 7.01, sections that say they are not deemed filed,"),
        limits="an 8.01 that says it is furnished, without 2.02 or 7.01 in the same report, is not marked",
    ),
    Rule(
        PolicyBit.OFFERING,
        _TYPE,
        "registration statement, prospectus or draft of one",
        _form(FormFamily.OFFERING),
    ),
    Rule(
        PolicyBit.PROXY_TENDER,
        _TYPE,
        "Schedule 14A or 14C, tender offer, going private",
        _form(FormFamily.PROXY, FormFamily.TENDER),
    ),
    Rule(PolicyBit.OWNERSHIP, _TYPE, "Schedule 13D or 13G, by either of its names; Form 13F", _ownership),
    Rule(PolicyBit.PD_INSIDER, _TYPE, "Form 3, 4, 5 or 144", _insider),
    Rule(
        PolicyBit.PD_COMP,
        _TYPE,
        "proxy statement, 8-K item 5.02 or unreadable, or 10-K/A without statements (Part III)",
        _pd_comp,
        also=f"{_ITEMS}; document list; text",
        passages=_BY_ITEM.format(items="item 5.02")
        + ", and other passages on a named officer's appointment, departure or pay"
        + "; of a proxy statement or Part III, all but sections with another heading (audit fees, voting) or none"
        " (cover, contents) that mention no person's pay, age or career",
        limits="careers and pay in Part III of a complete 10-K, in a registration statement or under 8-K item 5.07 "
        "are not marked: the bit is for filings whose purpose they are",
    ),
    Rule(
        PolicyBit.PD_NATURAL,
        "REPORTING-OWNER",
        "a reporting owner; a Schedule 13D or 13G by a person of type IN; Form 3, 4, 5 or 144",
        _pd_natural,
        also=f"typeOfReportingPerson; {_TYPE}",
        limits="a reporting owner that is a company is marked too: the header does not say which it is",
    ),
    Rule(
        PolicyBit.PD_SPECIAL,
        _TYPE,
        "proxy statement or Part III of a Nasdaq issuer, 2022-08-08 to 2024-12-11 (Rule 5606); an unknown "
        "exchange may be Nasdaq, an unknown date in the window",
        _pd_special,
        also="dei:SecurityExchangeName; FILED AS OF DATE",
        passages="passages that speak of directors' diversity: the matrix, its parts and its rows",
        limits="a matrix published voluntarily before or after is not marked",
    ),
    Rule(
        PolicyBit.PRIV2PUB,
        "PRIVATE-TO-PUBLIC",
        "accepted in private and released later: drafts, staff letters, replies",
        _priv2pub,
        also=_TYPE,
        limits="an order (SEC STAFF ACTION) is public as it is entered, and not marked",
    ),
    Rule(
        PolicyBit.CONF_TREAT,
        _TYPE,
        "confidential-treatment order",
        _form(FormFamily.CONFIDENTIAL_TREATMENT),
        limits="under-covers: since 2019 most redactions need no order (Regulation S-K 601(b)(10)(iv)), and "
        "filings an order names are not marked",
    ),
    Rule(
        PolicyBit.MATERIAL,
        _ITEMS,
        f"8-K item {_CITED} or unreadable; 6-K",
        _material,
        also=_TYPE,
        passages=_BY_ITEM.format(items="those items"),
    ),
    Rule(
        PolicyBit.EGC,
        "dei:EntityEmergingGrowthCompany",
        "emerging growth company; where that is not stated, by the filer category",
        _marked(Mark.EMERGING_GROWTH),
        also="dei:EntityFilerCategory",
    ),
    Rule(
        PolicyBit.SHELL,
        "STANDARD INDUSTRIAL CLASSIFICATION",
        "SIC 6770 (blank checks), or tagged a shell",
        _marked(Mark.SHELL),
        also="dei:EntityShellCompany",
    ),
    Rule(
        PolicyBit.FPI,
        _TYPE,
        "form of a foreign private issuer",
        _form(FormFamily.FOREIGN),
        limits="a foreign private issuer that chose domestic forms is not marked",
    ),
)
"""Rules of the bits that a filing's own facts set, in the order of the bits."""


# --- quarantine -------------------------------------------------------------------------------------------


class QuarantineCode(StrEnum):
    """A reason why a filing cannot be labelled."""

    NO_ACCESSION_NUMBER = "NO_ACCESSION_NUMBER"
    NO_FORM = "NO_FORM"
    UNKNOWN_FORM = "UNKNOWN_FORM"
    LETTER_RELEASE_UNKNOWN = "LETTER_RELEASE_UNKNOWN"
    PRIVATE_RELEASE_UNKNOWN = "PRIVATE_RELEASE_UNKNOWN"
    NO_TIME = "NO_TIME"
    NO_TEXT = "NO_TEXT"
    FACTS_DISAGREE = "FACTS_DISAGREE"


def _usable(day: Column) -> Column:
    return (day >= FIRST_DAY) & (day <= LAST_DAY)


def _timeless(of: Fields) -> Column:
    private = _priv2pub(of)
    year = (of.year >= FIRST_YEAR) & (of.year <= LAST_YEAR)
    dated = _usable(of.accepted) | _usable(of.filed) | year | _usable(of.period) | _cover_dated(of)
    return (private & (_usable(of.released) ^ True)) | ((private ^ True) & (dated ^ True))


QUARANTINES: Final = (
    QuarantineRule(QuarantineCode.FACTS_DISAGREE, "{disagreements}", _disagrees),
    QuarantineRule(
        QuarantineCode.NO_ACCESSION_NUMBER,
        "the submission states no ACCESSION NUMBER, so nothing tells which filing it is",
        _unnumbered,
    ),
    QuarantineRule(
        QuarantineCode.UNKNOWN_FORM,
        "{form} is not a known EDGAR form",
        lambda of: of.traits & (AMENDMENT - 1) == 0,
    ),
    QuarantineRule(
        QuarantineCode.LETTER_RELEASE_UNKNOWN,
        "staff letters and replies are released no sooner than 20 business days after a review ends, no rule says "
        "by when, and no release date is stated",
        lambda of: _timeless(of) & _letter(of),
    ),
    QuarantineRule(
        QuarantineCode.PRIVATE_RELEASE_UNKNOWN,
        "accepted in private, and no release date is stated",
        lambda of: _timeless(of) & _priv2pub(of),
    ),
    QuarantineRule(
        QuarantineCode.NO_TIME,
        "neither acceptance, filing date, accession number nor period of report is stated",
        _timeless,
    ),
    QuarantineRule(QuarantineCode.NO_TEXT, "no document has text", lambda of: _has_text(of) ^ True),
)
"""Rules that quarantine a filing, the most specific reason first."""


def words(columns: Fields) -> NDArray[np.uint32]:
    """Label n filings at once, from :func:`~carag.profiles.edgar.rules.fields.columns_of`; an (n,) uint32 array.

    The words are those that :func:`~carag.profiles.edgar.rules.labeller.label` gives when it labels the filings one at
    a time.
    """
    return label_words(columns, RULES, QUARANTINES)
