"""Files in: which of them hold filings, and one outcome for each filing, skipped file and broken place.

Nothing is passed over in silence, and nothing stops the reading: what cannot be read is an outcome with its
place and reason. One filing is in memory at a time, and the headers that lie beside a directory's rows. A filing of
which a source states facts and holds no text is an outcome of its own kind.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from carag.corpus.beside import HeadersBeside, is_headers_file
from carag.corpus.dataset import filing_of_row, load_row, why_no_filing
from carag.corpus.submission import is_submission, parse_submission
from carag.corpus.submission_rows import (
    filing_of_facts,
    is_row_of_facts,
    is_submissions,
    rows_of_submissions,
    rows_of_table,
)
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from carag.corpus.filing import Filing

__all__ = ["ReadKind", "ReadOutcome", "read_filings", "total_bytes"]

_ROWS: Final = {".jsonl", ".ndjson"}
_TABLES: Final = {".tsv"}
_JSON: Final = {".json"}
_SUBMISSIONS: Final = {".txt", ".sgml", ".nc"}
_NEVER_DOCUMENTS: Final = {
    "qa": "questions are never documents",
    "headers": "headers without their filings",
    "companies": "company metadata",
}
_READ_ERRORS: Final = (OSError, EOFError, zlib.error, UnicodeDecodeError)


class ReadKind(Enum):
    """What became of a file or row."""

    FILING = auto()
    FACTS = auto()
    """A filing known by its facts alone."""
    SKIPPED = auto()
    """Readable, and no filing."""
    BROKEN = auto()
    """Meant as a filing, and unreadable."""


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


def total_bytes(path: Path) -> int:
    """Return the size of everything :func:`read_filings` will go through."""
    return sum(file.stat().st_size for file in _files(path))


def read_filings(path: Path) -> Iterator[ReadOutcome]:
    """Read every filing of a file, or of a directory and those below it, in the order of their names.

    Parameters
    ----------
    path : Path
        EDGAR full submissions (``.txt``, ``.sgml``, ``.nc``), JSON Lines with a filing a row (``.jsonl``,
        ``.ndjson``), each also with ``.gz``; or a directory. Headers in ``headers*.jsonl`` beside rows are
        compared with them; see :mod:`carag.corpus.beside`. Filings without text: rows without ``text``, an index as a
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
    folder, headers = None, HeadersBeside()
    for file in _files(path):
        size = file.stat().st_size
        if file.parent != folder and _is_rows(file):
            folder, headers = file.parent, HeadersBeside.load(file.parent)
        for outcome in _read_file(file, file.relative_to(root).as_posix(), headers):
            yield replace(outcome, bytes_read=before + outcome.bytes_read)
        before += size


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidArgument(f"{path} does not exist; want a file or directory of filings")
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if file.is_file())


def _kind(file: Path) -> str:
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _is_rows(file: Path) -> bool:
    return _kind(file) in _ROWS


def _read_file(file: Path, where: str, headers: HeadersBeside) -> Iterator[ReadOutcome]:
    name = file.name.lower()
    kind = _kind(file)
    stem = name.split(".")[0]
    never = next(
        (why for start, why in _NEVER_DOCUMENTS.items() if stem == start or stem.startswith(f"{start}_")), ""
    )
    if is_headers_file(file):
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=headers.account(file.name))
    elif never:
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=never)
    elif kind in _ROWS:
        yield from _read_rows(file, where, headers)
    elif kind in _SUBMISSIONS:
        yield _read_submission(file, where)
    elif kind in _TABLES:
        yield from _read_table(file, where)
    elif kind in _JSON:
        yield from _read_json(file, where)
    else:
        wanted = ", ".join(sorted(_ROWS | _SUBMISSIONS | _TABLES | _JSON))
        reason = f"no format of filings; want {wanted}, or one of them with .gz"
        yield ReadOutcome(ReadKind.SKIPPED, where, 0, reason=reason)


def _read_rows(file: Path, where: str, headers: HeadersBeside) -> Iterator[ReadOutcome]:
    number = 0
    try:
        with file.open("rb") as raw, _unpacked(file, raw) as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                outcome = _read_row(line, f"{where}:{number}", raw.tell(), headers)
                if number == 1 and outcome.kind is ReadKind.SKIPPED:
                    yield replace(
                        outcome, where=where, reason=f"holds no filings: its first row is {outcome.reason}"
                    )
                    return
                yield outcome
    except _READ_ERRORS as error:
        yield ReadOutcome(
            ReadKind.BROKEN,
            f"{where}:{number + 1}",
            file.stat().st_size,
            reason=f"unreadable from here on: {error}",
        )


def _read_row(line: bytes, where: str, position: int, headers: HeadersBeside) -> ReadOutcome:
    try:
        row = load_row(line.decode("utf-8"))
        if is_row_of_facts(row):
            facts = headers.compare_and_unite(filing_of_facts(row), row)
            return ReadOutcome(ReadKind.FACTS, where, position, facts=facts)
        if why := why_no_filing(row):
            return ReadOutcome(ReadKind.SKIPPED, where, position, reason=why)
        filing = headers.compare_and_unite(filing_of_row(row), row)
        return ReadOutcome(ReadKind.FILING, where, position, filing=filing)
    except (CorruptFile, UnicodeDecodeError) as error:
        return ReadOutcome(ReadKind.BROKEN, where, position, reason=str(error))


def _read_table(file: Path, where: str) -> Iterator[ReadOutcome]:
    try:
        with file.open("rb") as raw, _unpacked(file, raw) as lines:
            for number, row in rows_of_table(lines):
                yield _facts_of_row(row, f"{where}:{number}", raw.tell())
    except (CorruptFile, csv.Error, *_READ_ERRORS) as error:
        yield ReadOutcome(
            ReadKind.BROKEN, where, file.stat().st_size, reason=f"unreadable from here on: {error}"
        )


def _read_json(file: Path, where: str) -> Iterator[ReadOutcome]:
    size = file.stat().st_size
    try:
        with file.open("rb") as raw, _unpacked(file, raw) as stream:
            value = json.loads(stream.read())
        if not is_submissions(value):
            reason = "no submissions of a filer (EDGAR's CIK##########.json)"
            yield ReadOutcome(ReadKind.SKIPPED, where, size, reason=reason)
            return
        rows = rows_of_submissions(value, file.name.removesuffix(".gz"))
    except (CorruptFile, ValueError, RecursionError, *_READ_ERRORS) as error:
        yield ReadOutcome(ReadKind.BROKEN, where, size, reason=str(error))
        return
    for number, row in enumerate(rows, start=1):
        yield _facts_of_row(row, f"{where}:{number}", size)


def _facts_of_row(row: Mapping[str, Any], where: str, position: int) -> ReadOutcome:
    try:
        return ReadOutcome(ReadKind.FACTS, where, position, facts=filing_of_facts(row))
    except CorruptFile as error:
        return ReadOutcome(ReadKind.BROKEN, where, position, reason=str(error))


def _read_submission(file: Path, where: str) -> ReadOutcome:
    size = file.stat().st_size
    try:
        with file.open("rb") as raw, _unpacked(file, raw) as stream:
            content = stream.read()
        text = _decode(content)
        if not is_submission(text):
            reason = (
                "no EDGAR full submission (no <SEC-HEADER>, <SEC-DOCUMENT> or <SUBMISSION> at its beginning)"
            )
            return ReadOutcome(ReadKind.SKIPPED, where, size, reason=reason)
        filing = parse_submission(text)
    except (CorruptFile, *_READ_ERRORS) as error:
        return ReadOutcome(ReadKind.BROKEN, where, size, reason=str(error))
    filing = replace(filing, source_id=where, accession_number=filing.accession_number or where)
    return ReadOutcome(ReadKind.FILING, where, size, filing=filing)


def _unpacked(file: Path, raw: IO[bytes]) -> IO[bytes]:
    return gzip.open(raw) if file.suffix.lower() == ".gz" else raw  # type: ignore[return-value]


def _decode(content: bytes) -> str:
    """Decode what filers sent: UTF-8 today, Windows-1252 or ASCII before."""
    if b"\0" in content[:8192]:
        raise CorruptFile("binary data (a NUL byte); want the text of an EDGAR full submission")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
