"""Name the readers of files by the ending of a file's name; a parser is imported when the first file needs it."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from carag.limits import quoted
from carag.readers.outcome import ProblemKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.readers.outcome import Content


PACKED: Final = {".jsonl.gz", ".ndjson.gz"}
ROWS: Final = {".jsonl", ".ndjson", *PACKED}
"""Formats that hold one document per row."""
_PLAIN: Final = dict.fromkeys((".md", ".markdown", ".txt", ".text"), "plain:read_plain")
_TABLES: Final = {".csv": "delimited:read_csv", ".tsv": "delimited:read_tsv"}
_PARSED: Final = {
    ".docx": "office.docx:read_docx",
    ".eml": "mail:read_eml",
    ".pdf": "pdf.reader:read_pdf",
    ".pptx": "office.pptx:read_pptx",
    ".xlsx": "office.xlsx:read_xlsx",
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html:read_html"),
}
PARSED: Final = frozenset(_PARSED)
"""Formats whose parsers the extra ``readers`` brings."""
_READERS: Final = _PLAIN | _TABLES | _PARSED
WHOLE: Final = frozenset(_READERS)
"""Formats that hold one document per file."""


def ending_of(file: str) -> str:
    """Return the ending of a file's name that tells its format, in lower case.

    Examples
    --------
    >>> ending_of("a/B.Docx"), ending_of("a.jsonl.gz"), ending_of("v1.2.txt"), ending_of("README")
    ('.docx', '.jsonl.gz', '.txt', '')
    """
    endings = PurePath(file.lower()).suffixes
    return next((one for one in ("".join(endings[-2:]),) if one in PACKED), "".join(endings[-1:]))


def reader_of(file: str) -> Callable[[bytes], Content]:
    """Return the reader for a file's name; raises ``Unreadable`` if no reader is for its ending."""
    ending = ending_of(file)
    if ending not in _READERS:
        known = ", ".join(sorted(WHOLE | ROWS))
        raise Unreadable(ProblemKind.SKIPPED, f"ends in {quoted(ending)}; want {known}")
    module, _, function = _READERS[ending].partition(":")
    reader: Callable[[bytes], Content] = getattr(import_module(f"carag.readers.{module}"), function)
    return reader
