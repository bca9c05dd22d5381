"""Read rows of a JSON Lines data set: one filing per row, with its text and EDGAR metadata.

Of the two readings of an acceptance time, the later counts: ``Z`` is read as Eastern.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carag.errors import CorruptFile
from carag.limits import quoted
from carag.profiles.edgar.facts.calendar import FIRST_YEAR, LAST_YEAR
from carag.profiles.edgar.facts.cover_page import with_cover_facts
from carag.profiles.edgar.facts.cross_check import of_main_document
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.form_8k_items import item_number
from carag.profiles.edgar.facts.publication import acceptance_readings
from carag.profiles.edgar.reading.bounded import load_json
from carag.profiles.edgar.reading.header import accession_year
from carag.profiles.edgar.reading.markup import DeiFact, xml_text

if TYPE_CHECKING:
    from collections.abc import Mapping


_Day = Annotated[date, Field(ge=date(FIRST_YEAR, 1, 1), le=date(LAST_YEAR, 12, 31))]
_EXHIBIT: Final = re.compile(r"^=== (EX-[^\s=]+)[^\n]*===$\n?", re.MULTILINE)


class _Row(BaseModel):
    """The keys of a row that are read; all others are ignored. Keys without a default are required."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | None = None
    form: str | None
    text: str
    accession: str | None = None
    accession_year: int | None = Field(default=None, ge=FIRST_YEAR, le=LAST_YEAR)
    cik: int | None = None
    company: str | None = None
    filed: _Day | None = None
    period: _Day | None = None
    accepted: str | None = None
    released: _Day | None = None
    private_to_public: bool | None = None
    items: list[str] | None = None
    items_in_text: list[str] | None = None
    business_state: str | None = None
    business_country: str | None = None
    state_of_inc: str | None = None
    sic: str | None = None
    roles: list[str] | None = None
    n_parties: int | None = Field(default=None, ge=0, le=10_000)
    file_number: str | None = None
    exchanges: list[str] | None = None
    filer_category: str | None = None
    dei: dict[str, str] | None = None
    documents: list[_RowDocument] | None = None
    text_chars_full: int | None = None
    text_truncated: bool | None = None
    is_xbrl: bool | None = None
    meta_src: dict[str, list[str]] | None = None


class _RowDocument(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str
    sequence: int | None = None
    description: str | None = None


def load_row(line: str) -> dict[str, Any]:
    """Parse one line of JSON.

    Raises ``CorruptFile`` if the line is not a JSON object that :func:`~carag.profiles.edgar.reading.bounded.load_json`
    accepts.
    """
    row = load_json(line)
    if not isinstance(row, dict):
        raise CorruptFile(f"the line is a JSON {type(row).__name__}; want one JSON object per line")
    return row


def why_no_filing(row: Mapping[str, Any]) -> str | None:
    """Return why a row is not a filing with text; None if it is one."""
    if "question" in row:
        return "a question, not a document"
    if "header" in row and "text" not in row:
        return "a header without its filing"
    if "text" not in row:
        return "metadata without text"
    if "form" not in row or not {"accession", "id"} & row.keys():
        return "a text without the keys of a filing (form, and accession or id)"
    return None


def filing_of_row(row: Mapping[str, Any]) -> Filing:
    """Convert a row to a filing.

    Raises ``CorruptFile`` if a key that is read has a value of the wrong type, or the row names no filing.
    """
    try:
        given = _Row.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(
            part if re.fullmatch(r"\w{1,64}", part) else quoted(part) for part in map(str, first["loc"])
        )
        raise CorruptFile(f"field {field}: {first['msg']} ({error.error_count()} in all)") from error
    number = given.accession or given.id
    if not number:
        raise CorruptFile("both accession and id are empty; want one of them, to name the filing")
    dei = given.dei or {}
    readings = acceptance_readings(given.accepted or "")
    countries = (dei.get("EntityAddressCountry"), None if given.business_state else given.business_country)
    documents = _documents(given)
    filing = Filing(
        accession_number=number,
        form=given.form or None,
        source_id=given.id or number,
        company=given.company or "",
        ciks=() if given.cik is None else (given.cik,),
        parties=_parties(given),
        filed=given.filed,
        period=given.period,
        accepted=next(iter(readings), None),
        accepted_earliest=readings[-1] if len(readings) > 1 else None,
        accession_year=accession_year(given.accession or "") or given.accession_year,
        private_to_public=bool(given.private_to_public),
        released=given.released,
        items=tuple(
            dict.fromkeys(item_number(item, given.filed) for item in given.items or given.items_in_text or ())
        ),
        business_codes=_stated(given.business_state) + _co_registrants(given),
        incorporation_codes=_stated(given.state_of_inc),
        address_countries=_stated(*countries),
        sics=_stated(given.sic),
        party_roles=tuple(role.replace("REPORTING OWNER", "REPORTING-OWNER") for role in given.roles or ()),
        file_numbers=_stated(given.file_number),
        exchanges=_stated(dei.get("SecurityExchangeName"), *(given.exchanges or ())),
        filer_category=given.filer_category or dei.get("EntityFilerCategory", ""),
        emerging_growth=_truth(dei, "EntityEmergingGrowthCompany"),
        shell_company=_truth(dei, "EntityShellCompany"),
        carries_xbrl=given.is_xbrl,
        documents=documents,
        disagreements=of_main_document(given.form or "", documents),
        provenance=_provenance(given),
    )
    return with_cover_facts(filing)


def _co_registrants(row: _Row) -> tuple[str, ...]:
    """Return an empty location code if the header has registrants that the row does not name.

    A row names the first party of each role. If all parties are filers, every further party is another registrant,
    whose location is unknown; a second reporting owner, or a second party that files about a subject company, is not.
    """
    return ("",) if row.roles == ["FILER"] and (row.n_parties or 0) > 1 else ()


def _parties(row: _Row) -> tuple[int, ...]:
    named = () if row.cik is None else (row.cik,)
    count = max(row.n_parties or 0, len(row.roles or ()))
    return (*named, *(0 for _ in range(count - len(named))))


def _documents(row: _Row) -> tuple[FilingDocument, ...]:
    """Split the text into exhibits, each below a line ``=== EX-99.1 ... ===``."""
    text = xml_text(row.text) if row.text.lstrip().startswith("<?xml") else row.text
    if not row.documents:
        return (FilingDocument(type=row.form or "", text=text),)
    pieces = _EXHIBIT.split(text)
    texts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if len(texts) != len(pieces) // 2 or not texts.keys() <= {
        document.type for document in row.documents[1:]
    }:
        texts, pieces = {}, [text]  # the lines do not match the list of documents: leave the text whole
    return tuple(
        FilingDocument(
            type=document.type,
            text=texts.pop(document.type, "") if place else pieces[0].rstrip(),
            sequence=document.sequence or place + 1,
            description=document.description or "",
        )
        for place, document in enumerate(row.documents)
    )


def _provenance(row: _Row) -> dict[str, str]:
    found = {field: source for source, fields in (row.meta_src or {}).items() for field in fields}
    if not row.items and row.items_in_text:
        found["items"] = "headings in the text"
    if row.text_truncated:
        found["text"] = f"cut by the source at {len(row.text)} of {row.text_chars_full} characters"
    return found


def _truth(dei: Mapping[str, str], name: str) -> bool | None:
    """Read a Boolean only if it is a word, because a lone check mark may be a ticked *No*."""
    return DeiFact(name, dei.get(name, ""), "").truth


def _stated(*values: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
