"""The facts of a filing as EDGAR's submissions rows state them, and rows of data sets made from those.

A submissions row belongs to one company and describes the filing; the address, SIC code and category beside
it describe the company *today* and are no evidence of what they were at the filing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from carag.corpus.acceptance import acceptance_readings
from carag.corpus.cross_check import Place, StatedFacts
from carag.corpus.form_8k_items import item_number
from carag.corpus.jurisdictions import edgar_jurisdiction

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "copied_from_header",
    "facts_copied_from_header",
    "facts_of_company",
    "facts_of_row",
    "facts_of_submissions_row",
]

COMPANY_STATE: Final = frozenset({"business", "incorporation", "sics"})
"""What a submissions file knows of the company only, as of the crawl."""
_KEYS: Final = {
    "accessionNumber": "accession",
    "filingDate": "filed",
    "reportDate": "period",
    "acceptanceDateTime": "accepted",
    "fileNumber": "file_number",
}
"""The names EDGAR's JSON gives the columns of the full index."""
_ROW_FIELDS: Final = (
    "form", "filed", "accepted", "period", "items", "cik", "file_number", "business_state", "state_of_inc",
    "sic", "private_to_public", "roles",
)  # fmt: skip


def facts_of_submissions_row(row: Mapping[str, Any]) -> StatedFacts:
    """Read one filing of a submissions file, by EDGAR's names or the short ones of the index.

    Examples
    --------
    >>> row = {"accessionNumber": "0009999999-24-000007", "form": "8-K", "items": "2.02,9.01", "cik": "7"}
    >>> facts_of_submissions_row(row).items
    ('2.02', '9.01')
    """
    named = {_KEYS.get(key, key): value for key, value in row.items()}
    return _facts("submissions row", named, frozenset(_ROW_FIELDS))


def facts_of_row(row: Mapping[str, Any]) -> StatedFacts:
    """Read the fields of a data set's row that are no copy of the filing's own header.

    ``meta_src`` says where each field comes from. What the source copied from the header is no second opinion
    of it and is left out; a field without a stated source counts as the row's own.
    """
    wanted = frozenset(_ROW_FIELDS) - copied_from_header(row)
    return _facts("data row", row, wanted)


def copied_from_header(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields of a row that ``meta_src`` says were copied from the filing's own header."""
    sources = row.get("meta_src")
    if not isinstance(sources, dict):
        return frozenset()
    return frozenset(
        str(field)
        for source, fields in sources.items()
        if str(source).startswith("sgml_header") and "another" not in str(source) and isinstance(fields, list)
        for field in fields
    )


def facts_copied_from_header(row: Mapping[str, Any]) -> StatedFacts:
    """Read the other fields: the header as the maker of the data set read it, where the header is not at hand."""
    facts = _facts("header as the data set read it", row, copied_from_header(row) & frozenset(_ROW_FIELDS))
    return replace(facts, complete=False, current_state=frozenset())


def facts_of_company(company: Mapping[str, Any]) -> StatedFacts:
    """Read what a submissions file says of the company today."""
    return _facts("company today", company, frozenset({"cik", "business_state", "state_of_inc", "sic"}))


def _facts(source: str, row: Mapping[str, Any], wanted: Collection[str]) -> StatedFacts:
    def text(name: str) -> str:
        value = row.get(name) if name in wanted else None
        return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def places(name: str) -> tuple[Place, ...]:
        code = text(name).upper()
        return (Place(code, edgar_jurisdiction(code)),) if code else ()

    filed = _day(text("filed"))
    private = row.get("private_to_public") if "private_to_public" in wanted else None
    cik = text("cik")
    return StatedFacts(
        source=source,
        accession_number=str(row.get("accession") or ""),
        form=" ".join(text("form").upper().split()),
        filed=filed,
        accepted=acceptance_readings(text("accepted")),
        period=_day(text("period")),
        items=_items(row.get("items") if "items" in wanted else None, filed),
        ciks=(int(cik),) if cik.isascii() and cik.isdigit() else (),
        business=places("business_state"),
        incorporation=places("state_of_inc"),
        sics=(text("sic"),) if text("sic") else (),
        private_to_public=private if isinstance(private, bool) else None,
        party_roles=_roles(row.get("roles") if "roles" in wanted else None),
        file_numbers=(text("file_number"),) if text("file_number") else (),
        current_state=COMPANY_STATE,
    )


def _items(stated: Any, filed: date | None) -> tuple[str, ...]:
    """Read a list, or the submissions row's own ``2.02,9.01``."""
    listed = stated.split(",") if isinstance(stated, str) else stated if isinstance(stated, list) else []
    texts = (str(item).strip() for item in listed)
    return tuple(dict.fromkeys(item_number(item, filed) for item in texts if item))


def _roles(stated: Any) -> tuple[str, ...]:
    listed = stated if isinstance(stated, list) else []
    return tuple(dict.fromkeys(str(role).replace("REPORTING OWNER", "REPORTING-OWNER") for role in listed))


def _day(stated: str) -> date | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", stated, re.ASCII):
        return None
    try:
        return date.fromisoformat(stated)
    except ValueError:
        return None
