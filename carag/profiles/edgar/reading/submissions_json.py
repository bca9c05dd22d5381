"""Read EDGAR's submissions JSON, and tables and rows made from it: metadata of filings, without text.

EDGAR lists every filing of a company in ``CIK##########.json`` (``filings.recent``, one array per column) and, for
older filings, in ``CIK##########-submissions-###.json`` (the arrays alone). Each row describes one filing of one
company; its address, SIC code and category describe the company *today*, and are not evidence for the time of filing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.limits import quoted, shown
from carag.profiles.edgar.facts.cross_check import Place, StatedFacts
from carag.profiles.edgar.facts.form_8k_items import item_number
from carag.profiles.edgar.facts.jurisdictions import edgar_jurisdiction
from carag.profiles.edgar.facts.publication import acceptance_readings
from carag.profiles.edgar.reading.bounded import line_text
from carag.profiles.edgar.reading.dataset import filing_of_row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from carag.profiles.edgar.facts.filing import Filing


_COLUMNS: Final = {
    "accessionNumber": "accession",
    "filingDate": "filed",
    "reportDate": "period",
    "acceptanceDateTime": "accepted",
    "fileNumber": "file_number",
    "isXBRL": "is_xbrl",
    "stateOfIncorporation": "state_of_inc",
    "category": "filer_category",
}
"""EDGAR's column names, each with its name in rows of a data set."""
_WANTED: Final = ("accession", "form")
_OF_PAGE: Final = re.compile(r"CIK(\d{10})-submissions-\d+", re.IGNORECASE)
_PAGE: Final = re.compile(rf"{_OF_PAGE.pattern}\.json", re.IGNORECASE)
_MAY_BE_EMPTY: Final = ("filed", "period", "accepted", "is_xbrl", "file_number")
COMPANY_STATE: Final = frozenset({"business", "incorporation", "sics"})
"""Facts that a submissions file states about the company at the time of the crawl, not of the filing."""
_ROW_FIELDS: Final = (
    "form", "filed", "accepted", "period", "items", "cik", "file_number", "business_state", "state_of_inc",
    "sic", "private_to_public", "roles",
)  # fmt: skip


# --- rows to filings --------------------------------------------------------------------------------------


def is_metadata_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row names a filing and its form, in either spelling, and has no text, header or question."""
    other = {"text", "header", "question"} & row.keys()
    return not other and bool({"form", "accession"} & {_COLUMNS.get(name, name) for name in row})


def filing_of_metadata(row: Mapping[str, Any]) -> Filing:
    """Read a row without text.

    Raises ``CorruptFile`` if a key that is read has a value of the wrong type, such as an impossible date, or the row
    names no filing.

    Examples
    --------
    >>> row = {"accessionNumber": "0009999999-24-000007", "form": "8-K", "items": "4.02,9.01", "reportDate": ""}
    >>> filing_of_metadata(row).items
    ('4.02', '9.01')
    """
    facts = {_COLUMNS.get(name, name): value for name, value in row.items()}
    for name in _MAY_BE_EMPTY:
        if facts.get(name) == "":
            facts[name] = None
    if isinstance(facts.get("items"), str):
        facts["items"] = [item.strip() for item in facts["items"].split(",") if item.strip()]
    return filing_of_row({"form": None, **facts, "text": "", "documents": None})


def rows_of_table(
    lines: Iterable[tuple[int, bytes | None]],
) -> Iterator[tuple[int, Callable[[], dict[str, Any]]]]:
    """Read a tab-separated index: a line of column names, then one filing per line; yield line numbers and parsers.

    Unknown columns are ignored. A row is parsed when its function is called, which raises CorruptFile if the line has
    more cells than the first.

    Raises ``CorruptFile`` if the first line lacks a column of accession numbers or forms, or repeats a name.
    """
    numbered = iter(lines)
    names = next((_cells(line) for _, line in numbered), [])
    columns = [_COLUMNS.get(name, name) for name in names]
    if missing := [name for name in _WANTED if name not in columns]:
        raise CorruptFile(
            f"the first line has no column {' or '.join(missing)} (it has {quoted(', '.join(sorted(columns)))}); want "
            "a tab-separated index of filings with accession, form, cik, filed, period, accepted, file_number, items"
        )
    if twice := [name for name, count in Counter(columns).items() if count > 1]:
        raise CorruptFile(f"the first line has the column {quoted(twice[0])} twice; want it once")
    for number, line in numbered:
        yield number, partial(_row_of_cells, columns, line)


def _row_of_cells(columns: Sequence[str], line: bytes | None) -> dict[str, Any]:
    cells = _cells(line)
    if len(cells) > len(columns):
        raise CorruptFile("the line has more cells than the first line has columns; want one per column")
    return {name: cell or None for name, cell in zip_longest(columns, cells, fillvalue=None) if name}


def _cells(line: bytes | None) -> list[str]:
    return line_text(line).rstrip("\r\n").split("\t")


def is_submissions(value: object) -> bool:
    """Tell whether a JSON value is an EDGAR submissions file, or a further page of such a file."""
    return isinstance(value, dict) and ("filings" in value or isinstance(value.get("accessionNumber"), list))


def pages_of_submissions(value: Mapping[str, Any]) -> list[str]:
    """Return the names of the further pages that list a filer's older filings (``filings.files``).

    Raises ``CorruptFile`` if an entry is not the name of a page.
    """
    filings = value.get("filings")
    listed = (filings.get("files") if isinstance(filings, dict) else None) or []
    names: list[str] = []
    for one in listed if isinstance(listed, list) else [listed]:
        name = one.get("name") if isinstance(one, dict) else one
        if not isinstance(name, str) or not _PAGE.fullmatch(name):
            raise CorruptFile(
                f"filings.files lists {quoted(name)}; want EDGAR's CIK##########-submissions-###.json"
            )
        names.append(name)
    return names


def rows_of_submissions(value: Mapping[str, Any], file_name: str) -> list[dict[str, Any]]:
    """Turn the columns of a submissions file into rows; addresses are those of the filer today, and are marked as such.

    ``file_name`` identifies the filer of a further page, which does not state it:
    ``CIK##########-submissions-###.json``. Raises ``CorruptFile`` if the columns are not EDGAR's, or differ in length.
    """
    try:
        if "filings" in value:
            columns, of_filer = value["filings"]["recent"], _of_filer(value)
        elif found := _OF_PAGE.match(file_name):
            columns, of_filer = value, {"cik": int(found[1])}
        else:
            raise CorruptFile(
                f"the name {shown(file_name)} does not tell whose submissions it holds; keep EDGAR's name, "
                "CIK##########-submissions-###.json"
            )
        lengths = {len(column) for column in columns.values()}
        if len(lengths) != 1:
            raise CorruptFile(f"the columns have {sorted(lengths)} entries; want one per filing in each")
        return [
            {**of_filer, **{name: column[at] for name, column in columns.items()}}
            for at in range(lengths.pop())
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptFile(
            f"these are not a filer's submissions ({error!r}); want EDGAR's CIK##########.json"
        ) from error


def _of_filer(filer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cik": int(filer["cik"]),
        "company": filer.get("name"),
        "sic": filer.get("sic") or None,
        "business_state": filer.get("addresses", {}).get("business", {}).get("stateOrCountry"),
        "state_of_inc": filer.get("stateOfIncorporation") or None,
        "exchanges": [name for name in filer.get("exchanges") or () if name],
        "filer_category": filer.get("category"),
    }


# --- rows as a source to compare --------------------------------------------------------------------------


def facts_of_row(row: Mapping[str, Any]) -> StatedFacts:
    """Read the fields of a data set's row that were not copied from the filing's own header.

    ``meta_src`` names the source of each field; a field without a source counts as the row's own.
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
    """Read the fields copied from the header, to be compared in place of a missing header."""
    facts = _facts("header as the data set read it", row, copied_from_header(row) & frozenset(_ROW_FIELDS))
    return replace(facts, complete=False, current_state=frozenset())


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
