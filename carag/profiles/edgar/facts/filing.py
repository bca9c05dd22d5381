"""Define a filing as EDGAR describes it, before any labelling: header facts and documents.

Readers fill in these classes and labelling reads them. A fact that the source does not state is None or empty, never
guessed, and ``provenance`` names the source of each stated fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime


class Disagreement(NamedTuple):
    """Two sources that contradict each other about a fact from which a label is derived."""

    field: str
    first_source: str
    first: str
    second_source: str
    second: str
    reason: str
    """Why the fact matters."""

    @property
    def text(self) -> str:
        """Both values, in words."""
        first, second = shown(self.first), shown(self.second)
        return f"{self.field}: {self.first_source} states {first}, {self.second_source} states {second}"


@dataclass(frozen=True, slots=True)
class FilingDocument:
    """One document of a submission (``<DOCUMENT>``)."""

    type: str
    """``<TYPE>``, such as ``10-K`` or ``EX-99.1``."""
    text: str
    """Plain text; empty if the source has none."""
    sequence: int = 1
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """One submission; fields are named as in EDGAR."""

    accession_number: str
    """``ACCESSION NUMBER``; if none is stated, the data set's id of the row, or the hash of the submission's bytes, and
    ``accession_year`` is None."""
    form: str | None
    """``CONFORMED SUBMISSION TYPE``, with ``/A`` where amended."""
    numbered: bool = True
    """False if the filing is identified by the hash of its bytes, which quarantines it."""
    source_id: str = ""
    """The source's name for the filing: a data set row's ``id``, or a file name."""
    company: str = ""
    ciks: tuple[int, ...] = ()
    """``CENTRAL INDEX KEY`` of every filer, issuer, subject company and reporting owner, but not of the filing agent or
    a ``FILED BY`` party: the exchange that files a Form 25-NSE is not the company delisted."""
    parties: tuple[int, ...] = ()
    """``CENTRAL INDEX KEY`` of each block of the header, 0 if not stated. ``FILED BY`` is included, because a Schedule
    13D or a tender offer is that party's filing, except for the exchange of a Form 25."""
    filed: date | None = None
    """``FILED AS OF DATE``."""
    period: date | None = None
    """``CONFORMED PERIOD OF REPORT``."""
    accepted: datetime | None = None
    """``<ACCEPTANCE-DATETIME>``, aware, US Eastern."""
    accepted_earliest: datetime | None = None
    """The earlier reading of an ambiguous acceptance time: EDGAR's JSON marks some Eastern times ``Z``."""
    accession_year: int | None = None
    """The year in the accession number."""
    private_to_public: bool = False
    """``<PRIVATE-TO-PUBLIC>``: accepted confidentially, made public later."""
    released: date | None = None
    """``PUBLIC-REL-DATE``: when a confidential submission or staff letter became public."""
    items: tuple[str, ...] = ()
    """Current 8-K item numbers, such as ``2.02``; an unreadable one is kept verbatim. An empty string is an item that
    the header lists without a name."""
    business_codes: tuple[str, ...] = ()
    """EDGAR state and country codes of the business addresses, one per filer that states one; an empty string for a
    filer that states neither this nor an incorporation code."""
    incorporation_codes: tuple[str, ...] = ()
    """EDGAR codes of the states or countries of incorporation."""
    address_countries: tuple[str, ...] = ()
    """``dei:EntityAddressCountry``: ISO 3166 codes, or English names, never EDGAR codes."""
    sics: tuple[str, ...] = ()
    """``STANDARD INDUSTRIAL CLASSIFICATION`` codes."""
    party_roles: tuple[str, ...] = ()
    """Blocks of the header: ``FILER``, ``ISSUER``, ``REPORTING-OWNER``, ``SUBJECT COMPANY``, ``FILED BY``."""
    reporting_person_types: tuple[str, ...] = ()
    """``typeOfReportingPerson`` of a Schedule 13D or 13G: ``IN`` is an individual."""
    file_numbers: tuple[str, ...] = ()
    """``SEC FILE NUMBER``."""
    exchanges: tuple[str, ...] = ()
    """``dei:SecurityExchangeName``, or the exchanges the source lists."""
    filer_category: str = ""
    emerging_growth: bool | None = None
    """``dei:EntityEmergingGrowthCompany``."""
    shell_company: bool | None = None
    """``dei:EntityShellCompany``."""
    carries_xbrl: bool | None = None
    """``isXBRL`` of EDGAR's submissions."""
    documents_counted: int | None = None
    """``PUBLIC DOCUMENT COUNT``."""
    documents: tuple[FilingDocument, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    """Contradictions between the sources; any one quarantines the filing."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """The source of each value, by field name."""

    @property
    def base_form(self) -> str:
        """The form without ``/A``, in capitals; empty if unknown."""
        return " ".join((self.form or "").upper().split()).removesuffix("/A").strip()

    @property
    def subjects(self) -> tuple[int, ...]:
        """CIKs of all entities that the passages may be about, ascending; 0 stands for parties without a CIK."""
        return tuple(sorted({*self.ciks, *self.parties}))

    @property
    def is_amendment(self) -> bool:
        """Whether the form ends in ``/A``."""
        return (self.form or "").strip().upper().endswith("/A")
