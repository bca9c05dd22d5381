"""Files in: which of them hold filings, and one outcome for each filing, skipped file and broken place.

Nothing is passed over in silence, and nothing stops the reading: what cannot be read is an outcome with its
place and reason. One filing is in memory at a time, and the headers that lie beside a directory's rows. A filing of
which a source states facts and holds no text is an outcome of its own kind.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from carag.corpus.bounded import READ_ERRORS, line_text, load_json, opened
from carag.corpus.dataset import filing_of_row, load_row, why_no_filing
from carag.corpus.door import check_filing, problem_of
from carag.corpus.filing import Filing
from carag.corpus.sidecar_headers import SidecarHeaders, is_headers_file
from carag.corpus.submission import is_submission, parse_submission
from carag.corpus.submission_rows import (
    filing_of_metadata,
    is_metadata_row,
    is_submissions,
    rows_of_submissions,
    rows_of_table,
)
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "JSON",
    "ROWS",
    "TABLES",
    "ReadKind",
    "ReadOutcome",
    "files_under",
    "kind_of",
    "read_filings",
    "total_bytes",
]

ROWS: Final = {".jsonl", ".ndjson"}
TABLES: Final = {".tsv"}
JSON: Final = {".json"}
_SUBMISSIONS: Final = {".txt", ".sgml", ".nc"}
_NEVER_DOCUMENTS: Final = {
    "qa": "questions are never documents",
    "headers": "headers without their filings",
    "companies": "company metadata",
}


class ReadKind(Enum):
    """What became of a file or row."""

    FILING = auto()
    METADATA = auto()
    """A filing known by its facts alone."""
    SKIPPED = auto()
    """Readable, and no filing."""
    BROKEN = auto()
    """Meant as a filing, and unreadable."""
    FAILED = auto()
    """Meant as a filing, and unread through a fault of the program."""


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """One filing, with its text or without, or why there is none."""

    kind: ReadKind
    where: str
    """Path relative to what was asked for, with ``:line`` for a row."""
    bytes_read: int
    """Bytes of all files taken so far, for a progress bar against :func:`total_bytes`."""
    filing: Filing | None = None
    """With its text."""
    facts: Filing | None = None
    """Of a filing without text."""
    reason: str = ""


_Read: TypeAlias = tuple[ReadKind, Filing | str]


def total_bytes(path: Path) -> int:
    """Return the size of everything :func:`read_filings` will go through."""
    return sum(_size(file) for file in files_under(path))


def read_filings(path: Path) -> Iterator[ReadOutcome]:
    """Read every filing of a file, or of a directory and those below it, in the order of their names.

    Parameters
    ----------
    path : Path
        EDGAR full submissions (``.txt``, ``.sgml``, ``.nc``), JSON Lines with a filing a row (``.jsonl``,
        ``.ndjson``), each also with ``.gz``; or a directory. Headers in ``headers*.jsonl`` beside rows are
        compared with them; see :mod:`carag.corpus.sidecar_headers`. Filings without text: rows without ``text``, an index as a
        table (``.tsv``), EDGAR's submissions (``.json``); see :mod:`carag.corpus.submission_rows`.

    Yields
    ------
    ReadOutcome
        A filing, the facts of one, a skipped file or row, or a broken one.

    Raises
    ------
    InvalidArgument
        If the path does not exist.
    """
    root = path if path.is_dir() else path.parent
    before = 0
    folder, headers = None, SidecarHeaders()
    for file in files_under(path):
        size = _size(file)
        if file.parent != folder and _is_rows(file):
            folder, headers = file.parent, SidecarHeaders.load(file.parent)
        for outcome in _read_file(file, shown(file.relative_to(root).as_posix()), headers):
            yield replace(outcome, bytes_read=before + outcome.bytes_read)
        before += size


def files_under(path: Path) -> list[Path]:
    """List a file, or all files of a directory and those below it, in the order of their names.

    Raises
    ------
    InvalidArgument
        If the path does not exist.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidArgument(f"{path} does not exist; want a file or directory of filings")
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if file.is_file())


def kind_of(file: Path) -> str:
    """Return what the end of a file's name tells of its format, whether it is packed or not.

    Examples
    --------
    >>> kind_of(Path("2025Q1.JSONL.gz"))
    '.jsonl'
    """
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _is_rows(file: Path) -> bool:
    return kind_of(file) in ROWS


def _read_file(file: Path, where: str, headers: SidecarHeaders) -> Iterator[ReadOutcome]:
    name = file.name.lower()
    kind = kind_of(file)
    stem = name.split(".")[0]
    never = next(
        (why for start, why in _NEVER_DOCUMENTS.items() if stem == start or stem.startswith(f"{start}_")), ""
    )
    if is_headers_file(file):
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=headers.account(file.name))
    elif never:
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=never)
    elif kind in ROWS:
        yield from _read_rows(file, where, headers)
    elif kind in _SUBMISSIONS:
        yield _told(where, _size(file), partial(_of_submission, file, where))
    elif kind in TABLES:
        yield from _read_table(file, where)
    elif kind in JSON:
        yield from _read_json(file, where)
    else:
        wanted = ", ".join(sorted(ROWS | _SUBMISSIONS | TABLES | JSON))
        reason = f"no format of filings; want {wanted}, or one of them with .gz"
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=reason)


def _read_rows(file: Path, where: str, headers: SidecarHeaders) -> Iterator[ReadOutcome]:
    number = 0
    try:
        with opened(file) as source:
            for number, line in source.lines():
                outcome = _told(f"{where}:{number}", source.position, partial(_of_row, line, headers))
                if number == 1 and outcome.kind is ReadKind.SKIPPED:
                    yield replace(
                        outcome, where=where, reason=f"holds no filings: its first row is {outcome.reason}"
                    )
                    return
                yield outcome
    except (CorruptFile, *READ_ERRORS) as error:
        yield _unreadable(f"{where}:{number + 1}", file, error)


def _of_row(line: bytes | None, headers: SidecarHeaders) -> _Read:
    row = load_row(line_text(line))
    if is_metadata_row(row):
        return ReadKind.METADATA, headers.compare_and_unite(filing_of_metadata(row), row)
    if why := why_no_filing(row):
        return ReadKind.SKIPPED, why
    return ReadKind.FILING, headers.compare_and_unite(filing_of_row(row), row)


def _read_table(file: Path, where: str) -> Iterator[ReadOutcome]:
    try:
        with opened(file) as source:
            for number, row in rows_of_table(source.lines()):
                yield _told(f"{where}:{number}", source.position, partial(_of_facts, row))
    except (CorruptFile, *READ_ERRORS) as error:
        yield _unreadable(where, file, error)


def _read_json(file: Path, where: str) -> Iterator[ReadOutcome]:
    size = _size(file)
    rows: list[dict[str, Any]] = []

    def columns() -> _Read:
        with opened(file) as source:
            value = load_json(source.whole().decode("utf-8"))
        if is_submissions(value):
            rows.extend(rows_of_submissions(value, file.name.removesuffix(".gz")))
        return ReadKind.SKIPPED, "no submissions of a filer (EDGAR's CIK##########.json)"

    outcome = _told(where, size, columns)
    if outcome.kind is not ReadKind.SKIPPED or not rows:
        yield outcome
    for number, row in enumerate(rows, start=1):
        yield _told(f"{where}:{number}", size, partial(_of_facts, partial(dict, row)))


def _of_facts(row: Callable[[], Mapping[str, Any]]) -> _Read:
    return ReadKind.METADATA, filing_of_metadata(row())


def _of_submission(file: Path, where: str) -> _Read:
    with opened(file) as source:
        content = source.whole()
    text = _decode(content)
    if not is_submission(text):
        return ReadKind.SKIPPED, (
            "no EDGAR full submission (no <SEC-HEADER>, <SEC-DOCUMENT> or <SUBMISSION> at its beginning)"
        )
    filing = replace(parse_submission(text), source_id=where)
    if not filing.accession_number:
        # What nothing names is known by its bytes: another company's file under the same path is another filing, and
        # the same file under another path is not.
        filing = replace(filing, accession_number=f"sha256-{sha256(content).hexdigest()}", numbered=False)
    return ReadKind.FILING, filing


def _told(where: str, position: int, read: Callable[[], _Read]) -> ReadOutcome:
    """Read one filing, and tell whatever becomes of it."""
    try:
        kind, found = read()
        if isinstance(found, Filing):
            check_filing(found)
    except Exception as error:  # noqa: BLE001 - nothing stops the reading, and nothing is passed over in silence
        problem = problem_of(error)
        kind, found = (ReadKind.BROKEN if problem.foreseen else ReadKind.FAILED), problem.reason
    return ReadOutcome(
        kind,
        where,
        position,
        filing=found if kind is ReadKind.FILING else None,  # type: ignore[arg-type]
        facts=found if kind is ReadKind.METADATA else None,  # type: ignore[arg-type]
        reason=found if isinstance(found, str) else "",
    )


def _unreadable(where: str, file: Path, error: Exception) -> ReadOutcome:
    return ReadOutcome(
        ReadKind.BROKEN, where, _size(file), reason=f"unreadable from here on: {problem_of(error).reason}"
    )


def _size(file: Path) -> int:
    """Return a file's size, and 0 of one that is gone: reading it will say so."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _decode(content: bytes) -> str:
    """Decode what filers sent: UTF-8 today, Windows-1252 or ASCII before."""
    if b"\0" in content:
        raise CorruptFile("binary data (a NUL byte); want the text of an EDGAR full submission")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
