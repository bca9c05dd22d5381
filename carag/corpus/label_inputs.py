"""What can be labelled without being searchable: headers and submissions rows, beside whole filings.

Ingest skips a header without its filing; labelling needs no more than that. So this reads what
:func:`~carag.corpus.readers.read_filings` reads, and three kinds of metadata besides: rows with an SGML ``header``,
rows without ``text``, and EDGAR's own submissions rows, whatever their spelling.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.corpus.bounded import READ_ERRORS, line_text, load_json, opened
from carag.corpus.dataset import filing_of_row, load_row, why_no_filing
from carag.corpus.door import check_filing, problem_of
from carag.corpus.header import parse_header
from carag.corpus.readers import JSON, ROWS, TABLES, ReadKind, files_under, kind_of, read_filings
from carag.corpus.sidecar_headers import SidecarHeaders
from carag.corpus.submission_rows import (
    filing_of_metadata,
    is_metadata_row,
    is_submissions,
    rows_of_submissions,
    rows_of_table,
)
from carag.errors import CorruptFile
from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from carag.corpus.filing import Filing

__all__ = ["LabelInput", "label_inputs"]


class LabelInput(NamedTuple):
    """One thing to label, or why there is none."""

    where: str
    filing: Filing | None = None
    metadata_only: bool = False
    """The source states facts and holds no text, so its lack is no fault."""
    problem: str = ""
    """Meant as a filing, and unreadable."""
    skipped: str = ""
    """Readable, and no filing."""
    accession: str = ""
    """Of what is broken, where it can still be told."""


def label_inputs(path: Path) -> Iterator[LabelInput]:
    """Read everything under a path that can be labelled, in the order of names.

    Raises
    ------
    InvalidArgument
        If the path does not exist.
    """
    beside = SidecarHeaders()
    folder: Path | None = None
    for file in files_under(path):
        if file.parent != folder:
            folder = file.parent
            beside = SidecarHeaders.load(folder)
        where = shown(file.relative_to(path).as_posix() if path.is_dir() else file.name)
        try:
            yield from _READERS.get(kind_of(file), _submission)(file, where, beside)
        except (CorruptFile, *READ_ERRORS) as error:
            yield LabelInput(where, problem=f"unreadable from here on: {problem_of(error).reason}")


def _submission(file: Path, where: str, beside: SidecarHeaders) -> Iterator[LabelInput]:  # noqa: ARG001 - one signature
    for outcome in read_filings(file):
        if outcome.filing is not None:
            yield LabelInput(where, outcome.filing, metadata_only=not outcome.filing.documents)
        elif outcome.kind is ReadKind.SKIPPED:
            yield LabelInput(where, skipped=outcome.reason)
        else:
            yield LabelInput(where, problem=outcome.reason)


def _rows(file: Path, where: str, beside: SidecarHeaders) -> Iterator[LabelInput]:
    with opened(file) as source:
        for number, line in source.lines():
            yield _input(partial(_row_of_line, line), f"{where}:{number}", beside)


def _row_of_line(line: bytes | None) -> dict[str, Any]:
    return load_row(line_text(line))


def _table(file: Path, where: str, beside: SidecarHeaders) -> Iterator[LabelInput]:
    with opened(file) as source:
        for number, row in rows_of_table(source.lines()):
            yield _input(row, f"{where}:{number}", beside)


def _json(file: Path, where: str, beside: SidecarHeaders) -> Iterator[LabelInput]:
    """Read one row, a list of rows, or a filer's submissions with its columns of filings."""
    with opened(file) as source:
        value = load_json(source.whole().decode("utf-8"))
    rows = rows_of_submissions(value, file.name) if is_submissions(value) else value
    for number, row in enumerate(rows if isinstance(rows, list) else [rows], start=1):
        if not isinstance(row, dict):
            yield LabelInput(
                f"{where}:{number}", problem=f"a JSON {type(row).__name__}; want an object a filing"
            )
        else:
            yield _input(partial(dict, row), f"{where}:{number}", beside)


_READERS: Final[dict[str, Callable[[Path, str, SidecarHeaders], Iterator[LabelInput]]]] = {
    **dict.fromkeys(ROWS, _rows),
    **dict.fromkeys(TABLES, _table),
    **dict.fromkeys(JSON, _json),
}
"""By the end of a file's name; all others are submissions, or skipped."""


def _input(read: Callable[[], Mapping[str, Any]], where: str, beside: SidecarHeaders) -> LabelInput:
    """Read one row, and tell whatever becomes of it."""
    row: Mapping[str, Any] = {}
    try:
        row = read()
        given = _of_row(row, where, beside)
        if (
            given.filing is not None and given.filing.accession_number
        ):  # a header alone may be labelled without one
            check_filing(given.filing)
    except Exception as error:  # noqa: BLE001 - nothing stops the reading, and nothing is passed over in silence
        stated = str(row.get("accession") or row.get("accessionNumber") or row.get("id") or "")
        return LabelInput(where, problem=problem_of(error).reason, accession=shown(stated))
    return given


def _of_row(row: Mapping[str, Any], where: str, beside: SidecarHeaders) -> LabelInput:
    if "header" in row and "text" not in row:
        return LabelInput(where, parse_header(str(row["header"])), metadata_only=True)
    if "text" in row or "question" in row:
        if why := why_no_filing(row):
            return LabelInput(where, skipped=why)
        return LabelInput(where, beside.compare_and_unite(filing_of_row(row), row))
    if not is_metadata_row(row):
        return LabelInput(where, skipped="neither form nor accession: no filing's row")
    return LabelInput(where, filing_of_metadata(row), metadata_only=True)
