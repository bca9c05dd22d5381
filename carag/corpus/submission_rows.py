"""Filings known by their facts alone: rows of EDGAR's submissions JSON, and tables and rows made from those.

EDGAR lists every filing of a company, without text, in ``CIK##########.json`` (``filings.recent``, one array a
column) and, what no longer fits, in ``CIK##########-submissions-###.json`` (the arrays alone).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from carag.corpus.bounded import line_text
from carag.corpus.dataset import filing_of_row
from carag.errors import CorruptFile
from carag.limits import quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from carag.corpus.filing import Filing

__all__ = ["filing_of_metadata", "is_metadata_row", "is_submissions", "rows_of_submissions", "rows_of_table"]

_SPELLINGS: Final = {
    "accessionNumber": "accession",
    "filingDate": "filed",
    "reportDate": "period",
    "acceptanceDateTime": "accepted",
    "fileNumber": "file_number",
    "isXBRL": "is_xbrl",
    "stateOfIncorporation": "state_of_inc",
    "category": "filer_category",
}
"""EDGAR's names of columns, and those of a data set's rows."""
_WANTED: Final = ("accession", "form")
_OF_PAGE: Final = re.compile(r"CIK(\d{10})-submissions-\d+", re.IGNORECASE)
_MAY_BE_EMPTY: Final = ("filed", "period", "accepted", "is_xbrl", "file_number")


def is_metadata_row(row: Mapping[str, Any]) -> bool:
    """Whether a row names a filing and its form, by either spelling, and holds neither text, header nor question.

    Examples
    --------
    >>> is_metadata_row({"accessionNumber": "0009999999-24-000007", "form": "25-NSE"})
    True
    >>> is_metadata_row({"cik": 7, "company": "EXAMPLE HOLDINGS PLC"})
    False
    """
    other = {"text", "header", "question"} & row.keys()
    return not other and bool({"form", "accession"} & {_SPELLINGS.get(name, name) for name in row})


def filing_of_metadata(row: Mapping[str, Any]) -> Filing:
    """Read a row without text.

    Raises
    ------
    CorruptFile
        If a key that is read has a value of the wrong kind, such as a date no calendar has, or the row names no
        filing.

    Examples
    --------
    >>> row = {"accessionNumber": "0009999999-24-000007", "form": "8-K", "items": "4.02,9.01", "reportDate": ""}
    >>> filing_of_metadata(row).items
    ('4.02', '9.01')
    """
    facts = {_SPELLINGS.get(name, name): value for name, value in row.items()}
    for name in _MAY_BE_EMPTY:
        if facts.get(name) == "":
            facts[name] = None
    if isinstance(facts.get("items"), str):
        facts["items"] = [item.strip() for item in facts["items"].split(",") if item.strip()]
    return filing_of_row({"form": None, **facts, "text": "", "documents": None})


def rows_of_table(
    lines: Iterable[tuple[int, bytes | None]],
) -> Iterator[tuple[int, Callable[[], dict[str, Any]]]]:
    """Read a tab-separated index: a line of column names, then one filing a line; each row with its line number.

    Columns that are not known are passed over. A row is read when it is asked for, and raises CorruptFile if its line
    has more cells than the first.

    Raises
    ------
    CorruptFile
        If the first line names no column of accession numbers or forms, or one of them twice.
    """
    numbered = iter(lines)
    names = next((_cells(line) for _, line in numbered), [])
    columns = [_SPELLINGS.get(name, name) for name in names]
    if missing := [name for name in _WANTED if name not in columns]:
        raise CorruptFile(
            f"the first line names no column {' or '.join(missing)} (but {quoted(', '.join(sorted(columns)))}); want a "
            "tab-separated index of filings with accession, form, cik, filed, period, accepted, file_number, items"
        )
    if twice := [name for name, count in Counter(columns).items() if count > 1]:
        raise CorruptFile(f"the first line names the column {quoted(twice[0])} twice; want it once")
    for number, line in numbered:
        yield number, partial(_row_of_cells, columns, line)


def _row_of_cells(columns: Sequence[str], line: bytes | None) -> dict[str, Any]:
    cells = _cells(line)
    if len(cells) > len(columns):
        raise CorruptFile("the line has more cells than the first line has columns")
    return {name: cell or None for name, cell in zip_longest(columns, cells, fillvalue=None) if name}


def _cells(line: bytes | None) -> list[str]:
    return line_text(line).rstrip("\r\n").split("\t")


def is_submissions(value: object) -> bool:
    """Whether a JSON value is a submissions file of EDGAR, or a further page of one."""
    return isinstance(value, dict) and ("filings" in value or isinstance(value.get("accessionNumber"), list))


def rows_of_submissions(value: Mapping[str, Any], file_name: str) -> list[dict[str, Any]]:
    """Turn the columns of a submissions file into rows; addresses are the filer's of today (and said to be so).

    Parameters
    ----------
    value : mapping
    file_name : str
        Of a further page, which does not say whose it is: ``CIK##########-submissions-###.json``.

    Raises
    ------
    CorruptFile
        If the columns are not those of EDGAR, or not of one length.

    Examples
    --------
    >>> page = {"accessionNumber": ["0009999999-24-000007"], "form": ["25-NSE"], "filingDate": ["2024-05-02"]}
    >>> [row["cik"] for row in rows_of_submissions(page, "CIK0009000001-submissions-001.json")]
    [9000001]
    """
    try:
        if "filings" in value:
            columns, of_filer = value["filings"]["recent"], _of_filer(value)
        elif found := _OF_PAGE.match(file_name):
            columns, of_filer = value, {"cik": int(found[1])}
        else:
            raise CorruptFile(
                f"{shown(file_name)} does not say whose submissions it holds; keep EDGAR's name, "
                "CIK##########-submissions-###.json"
            )
        lengths = {len(column) for column in columns.values()}
        if len(lengths) != 1:
            raise CorruptFile(f"the columns have {sorted(lengths)} entries; want one a filing in each")
        return [
            {**of_filer, **{name: column[at] for name, column in columns.items()}}
            for at in range(lengths.pop())
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptFile(
            f"no submissions of a filer ({error!r}); want EDGAR's CIK##########.json"
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
