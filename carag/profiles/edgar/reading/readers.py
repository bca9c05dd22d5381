"""Read filings from files and directories: one outcome for each filing, skipped file and unreadable place.

Nothing is skipped silently, and nothing stops the reading: a place that cannot be read is an outcome with a position
and a reason. Only one filing at a time is in memory, along with the sidecar headers of its directory. A filing whose
source has metadata but no text gives a separate kind of outcome.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from carag.errors import CorruptFile, InvalidArgument, MissingExtra
from carag.limits import shown
from carag.profiles.edgar.facts.filing import Filing
from carag.profiles.edgar.reading.bounded import READ_ERRORS, line_text, load_json, opened
from carag.profiles.edgar.reading.dataset import filing_of_row, load_row, why_no_filing
from carag.profiles.edgar.reading.door import check_filing, problem_of
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.markup import html_text_in
from carag.profiles.edgar.reading.sidecar_headers import SidecarHeaders, is_headers_file
from carag.profiles.edgar.reading.submission import is_submission, parse_submission
from carag.profiles.edgar.reading.submissions_json import (
    filing_of_metadata,
    is_metadata_row,
    is_submissions,
    pages_of_submissions,
    rows_of_submissions,
    rows_of_table,
)
from carag.readers.child import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from carag.profiles.edgar.reading.markup import ReadsHtml


_ROWS: Final = {".jsonl", ".ndjson"}
_TABLES: Final = {".tsv"}
_JSON: Final = {".json"}
_SUBMISSIONS: Final = {".txt", ".sgml", ".nc"}
_NEVER_DOCUMENTS: Final = {
    "qa": "questions are never documents",
    "headers": "headers without their filings",
    "companies": "company metadata",
}


class ReadKind(Enum):
    """The outcome of reading a file or row."""

    FILING = auto()
    METADATA = auto()
    """A filing whose source has no text."""
    SKIPPED = auto()
    """Something readable that is not a filing."""
    BROKEN = auto()
    """A filing that cannot be read."""
    FAILED = auto()
    """A filing that could not be read because of a fault of the program."""


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """One filing, with or without its text, or the reason why there is no filing."""

    kind: ReadKind
    where: str
    """Path relative to the requested one, with ``:line`` for a row."""
    bytes_read: int
    """Bytes of all files read so far, for a progress bar against :func:`total_bytes`."""
    filing: Filing | None = None
    """A filing with its text."""
    metadata: Filing | None = None
    """A filing without text."""
    reason: str = ""
    """Why there is no filing."""
    accession: str = ""
    """Accession number of a broken row, if it states one."""


_T = TypeVar("_T")
_Read: TypeAlias = tuple[ReadKind, Filing | str]
_Row: TypeAlias = "Mapping[str, Any]"


def total_bytes(path: Path) -> int:
    """Return the size in bytes of all files that :func:`read_filings` will read."""
    return sum(_size(file) for file in _files_under(path))


def read_filings(path: Path, *, metadata: bool = False) -> Iterator[ReadOutcome]:
    """Read every filing of a file, or of a directory and its subdirectories, in the order of their names.

    Parameters
    ----------
    path : Path
        A directory, or a file: an EDGAR full submission (``.txt``, ``.sgml``, ``.nc``) or JSON Lines with one filing
        per row (``.jsonl``, ``.ndjson``), each also with ``.gz``. Rows are compared with the sidecar headers of their
        directory (``headers*.jsonl``). Filings without text come from rows without ``text``, an index table (``.tsv``),
        or EDGAR's submissions (``.json``).
    metadata : bool
        Whether to read, in addition, what can be labelled but not searched: headers without their filings, and rows and
        lists of rows in ``.json``. In that case, no file is skipped because of its name or its first row.

    Raises
    ------
    InvalidArgument
        If the path does not exist.
    MissingExtra
        If a document is HTML and the extra ``engine`` is not installed.
    """
    root = path if path.is_dir() else path.parent
    before = 0
    folder, headers = None, SidecarHeaders()
    with Child() as child:
        html = partial(html_text_in, child)
        for file in _files_under(path):
            size = _size(file)
            if file.parent != folder and kind_of(file) in _ROWS | _JSON:
                folder, headers = file.parent, SidecarHeaders.load(file.parent)
            where = shown(file.relative_to(root).as_posix())
            for outcome in _read_file(file, where, headers, html, metadata=metadata):
                yield replace(outcome, bytes_read=before + outcome.bytes_read)
            before += size


def _files_under(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidArgument(f"{path} does not exist; want a file or directory of filings")
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if file.is_file())


def kind_of(file: Path) -> str:
    """Return the lower-case suffix that tells a file's format, ignoring ``.gz``."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _read_file(
    file: Path, where: str, headers: SidecarHeaders, html: ReadsHtml, *, metadata: bool
) -> Iterator[ReadOutcome]:
    kind = kind_of(file)
    of_row = partial(_of_row_or_metadata if metadata else _of_row, headers=headers)
    has_rows = kind in _ROWS | _TABLES | _JSON
    if not (metadata and has_rows) and (reason := _why_skipped(file, headers)):
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=reason)
    elif kind in _ROWS:
        yield from _read_rows(file, where, of_row, any_first=metadata)
    elif kind in _TABLES:
        yield from _read_table(file, where)
    elif kind in _JSON:
        yield from _read_json(file, where, of_row if metadata else None)
    else:
        yield _outcome_of(where, _size(file), lambda: file, partial(_of_submission, where=where, html=html))


def _why_skipped(file: Path, headers: SidecarHeaders) -> str:
    """Return why a file's name shows that it holds no filings; empty if it may hold some."""
    if is_headers_file(file):
        return headers.account(file.name)
    stem = file.name.lower().split(".")[0]
    for start, why in _NEVER_DOCUMENTS.items():
        if stem == start or stem.startswith(f"{start}_"):
            return why
    known = _ROWS | _SUBMISSIONS | _TABLES | _JSON
    if kind_of(file) not in known:
        return f"not a file format of filings; want {', '.join(sorted(known))}, each also with .gz"
    return ""


def _read_rows(
    file: Path, where: str, of_row: Callable[[_Row], _Read], *, any_first: bool
) -> Iterator[ReadOutcome]:
    number = 0
    try:
        with opened(file) as source:
            for number, line in source.lines():
                outcome = _outcome_of(
                    f"{where}:{number}", source.position, partial(_row_of_line, line), of_row
                )
                if number == 1 and outcome.kind is ReadKind.SKIPPED and not any_first:
                    yield replace(
                        outcome, where=where, reason=f"holds no filings: its first row is {outcome.reason}"
                    )
                    return
                yield outcome
    except (CorruptFile, *READ_ERRORS) as error:
        yield _unreadable(f"{where}:{number + 1}", file, error)


def _row_of_line(line: bytes | None) -> _Row:
    return load_row(line_text(line))


def _of_row(row: _Row, headers: SidecarHeaders) -> _Read:
    if is_metadata_row(row):
        return ReadKind.METADATA, headers.compare_and_unite(filing_of_metadata(row), row)
    if why := why_no_filing(row):
        return ReadKind.SKIPPED, why
    return ReadKind.FILING, headers.compare_and_unite(filing_of_row(row), row)


def _of_row_or_metadata(row: _Row, headers: SidecarHeaders) -> _Read:
    """Read a row of any kind; a row without text is not united with its header, which is itself read as a row."""
    if "header" in row and "text" not in row:
        return ReadKind.METADATA, parse_header(str(row["header"])).filing
    if is_metadata_row(row):
        return _of_metadata(row)
    if not {"text", "question"} & row.keys():
        return ReadKind.SKIPPED, "not the row of a filing: it has neither form nor accession"
    return _of_row(row, headers)


def _of_metadata(row: _Row) -> _Read:
    return ReadKind.METADATA, filing_of_metadata(row)


def _read_table(file: Path, where: str) -> Iterator[ReadOutcome]:
    try:
        with opened(file) as source:
            for number, row in rows_of_table(source.lines()):
                yield _outcome_of(f"{where}:{number}", source.position, row, _of_metadata)
    except (CorruptFile, *READ_ERRORS) as error:
        yield _unreadable(where, file, error)


def _read_json(file: Path, where: str, of_row: Callable[[_Row], _Read] | None) -> Iterator[ReadOutcome]:
    """Read a filer's submissions, which are columns of filings; with ``of_row``, also one row or a list of rows."""
    size = _size(file)
    rows: list[Any] = []
    pages: list[str] = []

    def load() -> Any:
        with opened(file) as source:
            return load_json(source.whole().decode("utf-8"))

    def take(value: Any) -> _Read:
        if is_submissions(value):
            rows.extend(rows_of_submissions(value, file.name.removesuffix(".gz")))
            pages.extend(pages_of_submissions(value))
        elif of_row is not None:
            rows.extend(value if isinstance(value, list) else [value])
        return ReadKind.SKIPPED, "not a filer's submissions (EDGAR's CIK##########.json)"

    outcome = _outcome_of(where, size, load, take)
    if outcome.kind is not ReadKind.SKIPPED or not rows:
        yield outcome
    for number, row in enumerate(rows, start=1):
        yield _outcome_of(f"{where}:{number}", size, partial(_object, row), of_row or _of_metadata)
    for page in pages:
        if not any((file.parent / name).exists() for name in (page, f"{page}.gz")):
            reason = (
                f"lists older filings in {page}, which is missing; fetch it from EDGAR into the same folder"
            )
            yield ReadOutcome(ReadKind.BROKEN, where, size, reason=reason)


def _object(value: Any) -> _Row:
    if not isinstance(value, dict):
        raise CorruptFile(f"the row is a JSON {type(value).__name__}; want one object per filing")
    return value


def _of_submission(file: Path, *, where: str, html: ReadsHtml) -> _Read:
    with opened(file) as source:
        content = source.whole()
    text = _decode(content)
    if not is_submission(text):
        return ReadKind.SKIPPED, (
            "not an EDGAR full submission (no <SEC-HEADER>, <SEC-DOCUMENT> or <SUBMISSION> at its beginning)"
        )
    filing = replace(parse_submission(text, html=html), source_id=where)
    if not filing.accession_number:
        # A filing without a number is identified by its bytes: another file under the same path is another filing, and
        # the same file under another path is the same filing.
        filing = replace(filing, accession_number=f"sha256-{sha256(content).hexdigest()}", numbered=False)
    return ReadKind.FILING, filing


def _outcome_of(
    where: str, position: int, load: Callable[[], _T], read: Callable[[_T], _Read]
) -> ReadOutcome:
    loaded = None
    accession = ""
    try:
        loaded = load()
        kind, found = read(loaded)
        if isinstance(found, Filing) and found.accession_number:  # a header can be labelled without one
            check_filing(found)
    except MissingExtra:  # the same for every filing
        raise
    except Exception as error:  # noqa: BLE001 - nothing stops the reading, and nothing is skipped silently
        problem = problem_of(error)
        kind, found = (ReadKind.BROKEN if problem.foreseen else ReadKind.FAILED), problem.reason
        accession = _stated_number(loaded)
    return ReadOutcome(
        kind,
        where,
        position,
        filing=found if kind is ReadKind.FILING else None,  # type: ignore[arg-type]
        metadata=found if kind is ReadKind.METADATA else None,  # type: ignore[arg-type]
        reason=found if isinstance(found, str) else "",
        accession=accession,
    )


def _stated_number(row: object) -> str:
    stated = (
        (row.get(name) for name in ("accession", "accessionNumber", "id")) if isinstance(row, dict) else ()
    )
    return next((shown(str(one)) for one in stated if one and isinstance(one, str | int)), "")


def _unreadable(where: str, file: Path, error: Exception) -> ReadOutcome:
    return ReadOutcome(
        ReadKind.BROKEN, where, _size(file), reason=f"unreadable from here on: {problem_of(error).reason}"
    )


def _size(file: Path) -> int:
    """Return a file's size, or 0 if the file is gone, which reading it will report."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _decode(content: bytes) -> str:
    """Decode a submission: UTF-8 today, Windows-1252 or ASCII in the past."""
    if b"\0" in content:
        raise CorruptFile("the file is binary (it has a NUL byte); want the text of an EDGAR full submission")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
