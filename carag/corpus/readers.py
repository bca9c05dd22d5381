"""Files in: which of them hold filings, and one outcome for each filing, skipped file and broken place.

Nothing is passed over in silence, and nothing stops the reading: what cannot be read is an outcome with its
place and reason. One filing is in memory at a time, and the headers that lie beside a directory's rows.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from carag.corpus.beside import HeadersBeside, is_headers_file
from carag.corpus.dataset import filing_of_row, load_row, why_no_filing
from carag.corpus.submission import is_submission, parse_submission
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.corpus.filing import Filing

__all__ = ["ReadKind", "ReadOutcome", "read_filings", "total_bytes"]

_ROWS: Final = {".jsonl", ".ndjson"}
_SUBMISSIONS: Final = {".txt", ".sgml", ".nc"}
_NEVER_DOCUMENTS: Final = {
    "qa": "questions are never documents",
    "headers": "headers without their filings",
    "filings_meta_only": "metadata without text",
    "companies": "company metadata",
    "edgar_index": "an index of filings",
}
_READ_ERRORS: Final = (OSError, EOFError, zlib.error, UnicodeDecodeError)


class ReadKind(Enum):
    """What became of a file or row."""

    FILING = auto()
    SKIPPED = auto()
    """Readable, and no filing."""
    BROKEN = auto()
    """Meant as a filing, and unreadable."""


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """One filing, or why there is none."""

    kind: ReadKind
    where: str
    """Path relative to what was asked for, with ``:line`` for a row."""
    bytes_read: int
    """Bytes of all files taken so far, for a progress bar against :func:`total_bytes`."""
    filing: Filing | None = None
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
        compared with them; see :mod:`carag.corpus.beside`.

    Yields
    ------
    ReadOutcome
        A filing, a skipped file or row, or a broken one.

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
    else:
        wanted = ", ".join(sorted(_ROWS | _SUBMISSIONS))
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
        if why := why_no_filing(row):
            return ReadOutcome(ReadKind.SKIPPED, where, position, reason=why)
        filing = headers.compare_and_unite(filing_of_row(row), row)
        return ReadOutcome(ReadKind.FILING, where, position, filing=filing)
    except (CorruptFile, UnicodeDecodeError) as error:
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
