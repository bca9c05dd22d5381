"""Hold a filing as EDGAR describes it: header facts and documents, before any labelling.

Readers fill these in; labelling reads them. A fact that the source does not state is None or empty, never guessed,
and ``provenance`` names the source of each stated fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime

__all__ = ["Disagreement", "Filing", "FilingDocument"]


class Disagreement(NamedTuple):
    """Two sources that contradict each other on a fact from which a label is derived."""

    field: str
    first_source: str
    first: str
    second_source: str
    second: str
    reason: str
    """What is derived from the fact."""

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
    """Plain text; empty where the source ships none."""
    sequence: int = 1
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """One submission, named as EDGAR names its fields."""

    accession_number: str
    """``ACCESSION NUMBER``. If none is stated, the data set's own identifier of the row, or the hash of the
    submission's bytes; then ``accession_year`` is None."""
    form: str | None
    """``CONFORMED SUBMISSION TYPE``, with ``/A`` where amended."""
    numbered: bool = True
    """Whether the source names the filing. If not, it is identified by the hash of its bytes, and quarantined."""
    source_id: str = ""
    """The source's own name of the filing: a data set row's ``id``, a file's name."""
    company: str = ""
    ciks: tuple[int, ...] = ()
    """``CENTRAL INDEX KEY`` of every filer, issuer, subject company and reporting owner, but not of the filing
    agent or a ``FILED BY`` party: an exchange files a Form 25-NSE, and is not the company delisted."""
    parties: tuple[int, ...] = ()
    """``CENTRAL INDEX KEY`` of every block of the header: one per block, 0 if it is not stated. ``FILED BY`` is
    included, because a Schedule 13D or a tender offer is that party's filing; except for the exchange of a Form 25."""
    filed: date | None = None
    """``FILED AS OF DATE``."""
    period: date | None = None
    """``CONFORMED PERIOD OF REPORT``."""
    accepted: datetime | None = None
    """``<ACCEPTANCE-DATETIME>``, aware, US Eastern."""
    accepted_earliest: datetime | None = None
    """The earlier reading of an ambiguous acceptance time: EDGAR's JSON labels some Eastern times ``Z``."""
    accession_year: int | None = None
    """The year in the accession number."""
    private_to_public: bool = False
    """``<PRIVATE-TO-PUBLIC>``: accepted confidentially, made public later."""
    released: date | None = None
    """``PUBLIC-REL-DATE``: when a confidential submission or staff letter became public."""
    items: tuple[str, ...] = ()
    """8-K item numbers of today's form, such as ``2.02``; an unreadable one is kept verbatim. An empty string is an
    item that the header lists without naming it."""
    business_codes: tuple[str, ...] = ()
    """EDGAR state and country codes of the business addresses, one per filer that states one. A filer that states
    neither this nor an incorporation code contributes an empty string."""
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
    """Contradictions between the SGML header, the submissions row and the XBRL cover; any one quarantines the
    filing."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Source of each value, by field name."""

    @property
    def base_form(self) -> str:
        """The form without its ``/A``, in capitals; empty if the form is unknown."""
        return " ".join((self.form or "").upper().split()).removesuffix("/A").strip()

    @property
    def subjects(self) -> tuple[int, ...]:
        """CIKs of all entities that its passages may be about, ascending; 0 among them for parties not named.

        Examples
        --------
        >>> Filing(accession_number="a", form="4", ciks=(7,), parties=(7, 9)).subjects
        (7, 9)
        """
        return tuple(sorted({*self.ciks, *self.parties}))

    @property
    def is_amendment(self) -> bool:
        """Whether the form ends in ``/A``."""
        return (self.form or "").strip().upper().endswith("/A")
