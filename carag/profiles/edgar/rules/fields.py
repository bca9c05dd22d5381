"""Encode a filing's facts as a few integers, which the rules of the policy word test.

One filing is a :class:`Fields` of integers, a corpus is a :class:`Fields` of columns, and the rules use operators that
mean the same for both. Each rule is therefore written once, for one filing or a million. Sets (of form families, items,
locations) are bitsets; dates are ordinals, 0 if not stated.
"""

from __future__ import annotations

import re
from datetime import date
from enum import IntFlag, auto
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.calendar import FIRST_YEAR, LAST_YEAR
from carag.profiles.edgar.facts.filing import Filing
from carag.profiles.edgar.facts.financial_statements import (
    has_interim_statements,
    has_opinion,
    may_carry_statements,
)
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS
from carag.profiles.edgar.facts.forms import FormFamily, form_families, periodic_family
from carag.profiles.edgar.facts.jurisdictions import ANYWHERE, edgar_places, iso_places
from carag.profiles.edgar.facts.publication import PublicAtSource, public_time

if TYPE_CHECKING:
    from collections.abc import Iterable


Column: TypeAlias = Any
"""An ``int``, or an int64 array with one element per filing; a test gives a ``bool`` or a Boolean array."""


class Fields(NamedTuple):
    """The fields of one filing or of many."""

    traits: Column
    """``CONFORMED SUBMISSION TYPE``: families of the form (:func:`form_traits`), and whether it amends."""
    items: Column
    """``ITEM INFORMATION``: one bit per item number of Form 8-K, ascending, and ``UNREADABLE``."""
    places: Column
    """Jurisdiction bits of business addresses, ``dei:EntityAddressCountry`` and foreign ``STATE OF INCORPORATION``
    (:func:`places`)."""
    exhibits: Column
    """The exhibits in the document list that rules test (:class:`Exhibit`)."""
    marks: Column
    """All other Boolean facts (:class:`Mark`)."""
    filed: Column
    """``FILED AS OF DATE``, an ordinal like all dates here."""
    accepted: Column
    """Day of ``<ACCEPTANCE-DATETIME>``, US Eastern."""
    released: Column
    """``PUBLIC-REL-DATE``."""
    period: Column
    """``CONFORMED PERIOD OF REPORT``."""
    year: Column
    """Year of the accession number, 0 without one."""


class Exhibit(IntFlag):
    """Exhibits that rules test, because they show what else a submission contains."""

    EX_13 = auto()
    EX_32 = auto()


class Mark(IntFlag):
    """Boolean facts of a filing."""

    PRIVATE_TO_PUBLIC = auto()
    """``<PRIVATE-TO-PUBLIC>``."""
    REPORTING_OWNER = auto()
    """A ``REPORTING-OWNER`` block."""
    INDIVIDUAL = auto()
    """``typeOfReportingPerson`` IN."""
    MAY_BE_NASDAQ = auto()
    """``dei:SecurityExchangeName`` names Nasdaq or an unknown exchange, or is not stated."""
    EMERGING_GROWTH = auto()
    """``dei:EntityEmergingGrowthCompany``, or else the filer category."""
    SHELL = auto()
    """SIC 6770, or ``dei:EntityShellCompany``."""
    HAS_TEXT = auto()
    """At least one document has text."""
    COVER_DATED = auto()
    """The cover page states a usable date; read only without another usable date."""
    STATEMENTS = auto()
    """The text of an amended annual or quarterly report contains financial statements
    (:mod:`carag.profiles.edgar.facts.financial_statements`)."""
    DISAGREES = auto()
    """Two sources of the filing's facts contradict each other (:mod:`carag.profiles.edgar.facts.cross_check`)."""
    UNNUMBERED = auto()
    """A submission that states no accession number."""


# --- sets as masks ----------------------------------------------------------------------------------------

_FAMILIES: Final = {family: 1 << place for place, family in enumerate(FormFamily)}
_ITEMS: Final = {number: 1 << place for place, number in enumerate(sorted(ITEM_NUMBERS))}

UNREADABLE: Final = 1 << len(_ITEMS)
"""Bit of :attr:`Fields.items`: no item is stated, or an unknown one."""
AMENDMENT: Final = 1 << len(_FAMILIES)
"""Bit of :attr:`Fields.traits`: the form ends in ``/A``."""
FORM_10K: Final = AMENDMENT << 1
"""Bit of :attr:`Fields.traits`: Form 10-K or one of its variants."""
FORM_20F: Final = AMENDMENT << 2
"""Bit of :attr:`Fields.traits`: Form 20-F."""


_ANNUAL: Final = _FAMILIES[FormFamily.ANNUAL]
_INTERIM: Final = _FAMILIES[FormFamily.INTERIM]


def family_mask(*families: FormFamily) -> int:
    """Return the bits of families in :attr:`Fields.traits`."""
    return sum(_FAMILIES[family] for family in set(families))


@lru_cache(maxsize=4096)
def form_traits(form: str, *, amends: bool = False) -> int:
    """Return the traits of a form without ``/A``; 0 for a form that EDGAR does not have."""
    families = form_families(form)
    traits = family_mask(*families)
    if FormFamily.ANNUAL in families:
        traits |= FORM_10K if periodic_family(form) == "10-K" else 0
        traits |= FORM_20F if form == "20-F" else 0
    return traits | AMENDMENT if amends else traits


@lru_cache(maxsize=4096)
def _traits(form: str) -> int:
    stated = Filing(accession_number="", form=form)
    return form_traits(stated.base_form, amends=stated.is_amendment)


@lru_cache(maxsize=4096)
def item_mask(*numbers: str) -> int:
    """Return the bits of 8-K items in :attr:`Fields.items`; ``UNREADABLE`` for no item or an unknown one."""
    unreadable = not numbers or not ITEM_NUMBERS.issuperset(numbers)
    mask = sum(_ITEMS[number] for number in set(numbers) & ITEM_NUMBERS)
    return mask | UNREADABLE if unreadable else mask


@lru_cache(maxsize=65536)
def places(business: tuple[str, ...], incorporation: tuple[str, ...], countries: tuple[str, ...]) -> int:
    """Unite the jurisdictions of addresses, states of incorporation and ``dei:EntityAddressCountry``.

    A state of incorporation in the United States sets no bit, because it does not show where the business is
    (Delaware); one elsewhere does (GDPR Art. 3: establishment). A registrant that states nothing, or an unknown code,
    may be anywhere: every bit is set, which hides the filing from sessions barred from any of these places.
    """
    at = {edgar_places(code) for code in business} | {iso_places(country) for country in countries}
    at |= {edgar_places(code) for code in incorporation} - {PolicyBit.J_US}
    return int(reduce(or_, at) if at and "" not in business else ANYWHERE)


_NUMBERED: Final = re.compile(r"EX[-. ]?0*([0-9]+)")
"""The number of an exhibit under Regulation S-K 601(b), whatever the filer appends: ``EX-32A``, ``EX-32.1``."""


@lru_cache(maxsize=4096)
def _exhibit(document_type: str) -> int:
    number = _NUMBERED.match(document_type.upper())
    return int({"13": Exhibit.EX_13, "32": Exhibit.EX_32}.get(number[1] if number else "", 0))


# --- a filing to its fields -------------------------------------------------------------------------------

FIRST_DAY: Final = date(FIRST_YEAR, 1, 1).toordinal()
"""Ordinal of the first usable date."""
LAST_DAY: Final = date(LAST_YEAR, 12, 31).toordinal()
"""Ordinal of the last usable date."""


def fields_of(filing: Filing) -> Fields:
    """Encode a filing as fields."""
    traits = _traits(filing.form or "")
    exhibits = 0
    for document in filing.documents:
        exhibits |= _exhibit(document.type)
    accepted = filing.accepted
    dates = (
        _ordinal(filing.filed),
        _ordinal(accepted.date() if accepted is not None else None),
        _ordinal(filing.released),
        _ordinal(filing.period),
    )
    marks, year = _marks(filing), filing.accession_year or 0
    if traits & AMENDMENT:
        marks |= _statements_in_text(filing, traits)
    filed, accepted_on, _, period = dates
    if not (FIRST_YEAR <= year <= LAST_YEAR) and not any(
        FIRST_DAY <= day <= LAST_DAY for day in (filed, accepted_on, period)
    ):
        marks |= _COVER_DATED if public_time(filing).source is PublicAtSource.COVER_PAGE else 0
    return Fields(
        traits,
        item_mask(*filing.items),
        places(filing.business_codes, filing.incorporation_codes, filing.address_countries),
        exhibits,
        marks,
        *dates,
        year,
    )


def columns_of(filings: Iterable[Filing]) -> Fields:
    """Encode filings as columns, one per field, in the order given."""
    rows = np.array([fields_of(filing) for filing in filings], dtype=np.int64).reshape(
        -1, len(Fields._fields)
    )
    return Fields(*np.ascontiguousarray(rows.T))


# Plain integers: a union of IntFlag members takes longer than everything else together.
(
    _PRIVATE,
    _OWNER,
    _INDIVIDUAL,
    _MAY_BE_NASDAQ,
    _GROWING,
    _SHELL,
    _HAS_TEXT,
    _COVER_DATED,
    _DISAGREES,
    _UNNUMBERED,
) = (
    int(mark)
    for mark in (
        Mark.PRIVATE_TO_PUBLIC,
        Mark.REPORTING_OWNER,
        Mark.INDIVIDUAL,
        Mark.MAY_BE_NASDAQ,
        Mark.EMERGING_GROWTH,
        Mark.SHELL,
        Mark.HAS_TEXT,
        Mark.COVER_DATED,
        Mark.DISAGREES,
        Mark.UNNUMBERED,
    )
)
_NOT_NASDAQ: Final = re.compile(
    r"\s*(?:the\s+)?(?:(?:NYSE|New\s+York\s+Stock|AMEX|American\s+Stock|CBOE|BATS|CHX|Chicago|OTC|IEX|Investors|LTSE|"
    r"Long-?\s?Term\s+Stock|MIAX|BOX)(?!.*nasdaq).*|none)\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Exchanges and markets that are not Nasdaq's; any other may be Nasdaq's."""
_JOBS_ACT: Final = date(2012, 4, 5)
"""The day from which emerging growth companies exist (Pub. L. 112-106). The filer category is today's, so it is ignored
for filings before that day."""


def _marks(filing: Filing) -> int:
    marks = _PRIVATE if filing.private_to_public else 0
    if "REPORTING-OWNER" in filing.party_roles:
        marks |= _OWNER
    if "IN" in filing.reporting_person_types:
        marks |= _INDIVIDUAL
    if not filing.exchanges or not all(map(_NOT_NASDAQ.fullmatch, filing.exchanges)):
        marks |= _MAY_BE_NASDAQ
    growing = filing.emerging_growth
    may_grow = filing.filed is None or filing.filed >= _JOBS_ACT
    if growing or (growing is None and may_grow and "emerging growth" in filing.filer_category.lower()):
        marks |= _GROWING
    if "6770" in filing.sics or filing.shell_company is True:
        marks |= _SHELL
    if filing.disagreements:
        marks |= _DISAGREES
    if not filing.numbered:
        marks |= _UNNUMBERED
    for document in filing.documents:
        if document.text and not document.text.isspace():
            return marks | _HAS_TEXT
    return marks


def _statements_in_text(filing: Filing, traits: int) -> int:
    if not traits & (_ANNUAL | _INTERIM):
        return 0
    found = has_opinion if traits & _ANNUAL else has_interim_statements
    for place, document in enumerate(filing.documents):
        if (place == 0 or may_carry_statements(document)) and found(document.text):
            return int(Mark.STATEMENTS)
    return 0


def _ordinal(day: date | None) -> int:
    return day.toordinal() if day is not None else 0
