"""Read the text of a PDF file page by page, with the exact place at which each page begins.

Two libraries read it. pypdf goes through the file first (``whole``): it warns where it repairs damage or leaves
something out, and a file that it warns of is refused, unless the warning is known to cost no text: half a document must
not pass for a whole one. Then PDFium, which repairs in silence, gives the characters and their places (``lines``).
Limits of size are pypdf's, set here; a file of a few kilobytes can ask for hours, which the process that reads it has
not (``child``).
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import pypdf
import pypdfium2.raw as pdfium
from pypdf.errors import LimitReachedError

from carag.errors import CaragError
from carag.limits import MAX_TEXT, quoted
from carag.readers.outcome import Content, ProblemKind, Unreadable
from carag.readers.pdf.columns import in_columns
from carag.readers.pdf.lines import UnknownGlyphs, lines_of
from carag.readers.pdf.text import joined_words, noted, pieces_of, settled, words, written
from carag.readers.pdf.whole import MAX_FORMS, MAX_STREAM, Reader, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypdf import PageObject

    from carag.readers.pdf.text import Piece

__all__ = ["read_pdf"]

MAX_PAGES: Final = 5000
"""Greatest number of pages."""
MAX_OPERATORS: Final = 500_000
"""Greatest number of operators and operands of one stream: a page full of text has about 10,000."""
_HARMLESS: Final = (
    "Annotations are not an array",
    "Duplicate %%EOF marker(s) found",
    "EOF marker not at start of line",
    "Ignoring malformed /ID entry",
    "Ignoring non-string first /ID entry",
    "Ignoring wrong pointing object",
    "Object count",
    "Optional font table",
    "Superfluous whitespace found in object header",
    "Xref table not zero-indexed",
    "incorrect startxref pointer",
    "parsing for Object Streams",
    "startxref on same line as offset",
)
"""Beginnings of pypdf's warnings after which all text is still there. An object that is really missing warns again."""
_warned: ContextVar[list[str] | None] = ContextVar("warnings of the file being read", default=None)


class _Warnings(logging.Handler):
    """Keeps pypdf's warnings for the file that is being read; outside of that, logging goes on as without it."""

    def emit(self, record: logging.LogRecord) -> None:
        kept = _warned.get()
        if kept is None:
            logging.getLogger().handle(record)
        elif record.levelno >= logging.WARNING:
            kept.append(record.getMessage())


_logger = logging.getLogger("pypdf")
_logger.addHandler(_Warnings())
_logger.propagate = False  # a warning may quote the file, and no text goes into a log before its record


def read_pdf(content: bytes) -> Content:
    """Return the text of a PDF file, one line a line, its pages and its title.

    After the text of a page come the values of form fields and the free text notes on it. Attachments, text in
    pictures, and text on layers that are off, are not read. Files that are encrypted are refused, also with an empty
    password.

    Raises
    ------
    Unreadable
        If the file is encrypted, damaged or too large, or does not say what its pages show.
    """
    if not _logger.isEnabledFor(logging.WARNING):
        raise Unreadable(
            ProblemKind.FAILED,
            "the logger 'pypdf' is set to keep no warnings; want level WARNING, to miss no damage",
        )
    kept: list[str] = []
    token = _warned.set(kept)
    try:
        with pypdf.apply_configuration(**_LIMITS):
            found = _read(content)
    except CaragError:
        raise
    except LimitReachedError as error:
        raise Unreadable(ProblemKind.TOO_LARGE, f"a limit of size: {quoted(str(error))}") from None
    except MemoryError:
        raise Unreadable(ProblemKind.TOO_LARGE, "does not fit in memory; want it in parts") from None
    except Exception as error:  # noqa: BLE001 - pypdf: "broken PDF files might cause other exceptions"
        raise Unreadable(
            ProblemKind.BROKEN, f"no sound PDF: {quoted(str(error)) or type(error).__name__}"
        ) from None
    finally:
        _warned.reset(token)
    for warning in kept:
        if not warning.startswith(_HARMLESS):
            kind = ProblemKind.TOO_LARGE if "xceed" in warning or "imit" in warning else ProblemKind.BROKEN
            raise Unreadable(kind, f"not all of it can be read: {quoted(warning)}")
    return found


_LIMITS: Final[dict[str, Any]] = {
    "array_based_stream_maximum_output_length": MAX_STREAM,
    "lzw_maximum_output_length": MAX_STREAM,
    "run_length_maximum_output_length": MAX_STREAM,
    "zlib_maximum_output_length": MAX_STREAM,
    "zlib_maximum_recovery_input_length": 1 << 20,
    "brotli_maximum_output_length": MAX_STREAM,
    "stream_parsing_work_maximum_count": MAX_OPERATORS,
    "page_tree_maximum_entries": 4 * MAX_PAGES,
    "page_tree_maximum_depth": 64,
    "xform_maximum_invocations_per_extraction": MAX_FORMS,
    "jbig2dec_binary": None,  # no other program is run
}


def _read(content: bytes) -> Content:
    with Reader(BytesIO(content)) as reader:
        if reader.is_encrypted:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without protection")
        many = len(reader.pages)
        if many > MAX_PAGES:
            raise Unreadable(ProblemKind.TOO_LARGE, f"{many} pages; want {MAX_PAGES} at most")
        stated = reader.root_object["/Pages"].get_object().get("/Count")  # type: ignore[union-attr]
        if stated != many:
            raise Unreadable(
                ProblemKind.BROKEN, f"has {many} pages and states {quoted(stated)}; want all of them"
            )
        walk = Walk(reader)
        notes: list[list[str]] = []
        for at, page in enumerate(reader.pages):
            with _on_page(at):
                walk.page(at, page)
                notes.append(_notes(page, walk))
        title = reader.metadata.title if reader.metadata else None
        reader.release()
        try:
            drawn = _drawn(_rewritten(reader, walk) if walk.altered else content, walk, many)
        except UnknownGlyphs:
            if not walk.name_glyphs():
                raise
            drawn = _drawn(_rewritten(reader, walk), walk, many)
    return _laid_out(drawn, notes, title or "")


@contextmanager
def _on_page(at: int) -> Iterator[None]:
    """Name the page in what is said of it."""
    try:
        yield
    except Unreadable as error:
        raise type(error)(error.kind, f"page {at + 1}: {error}") from None


def _rewritten(reader: Reader, walk: Walk) -> bytes:
    """Return the file as it was altered, and with other contents of some pages."""
    writer = pypdf.PdfWriter(clone_from=reader)
    for at, contents in walk.altered.items():
        writer.pages[at].replace_contents(contents)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def _drawn(content: bytes, walk: Walk, many: int) -> list[list[list[Piece]]]:
    """Return what each page shows, in lines."""
    document = pdfium.FPDF_LoadMemDocument64(content, len(content), None)
    if not document:
        raise Unreadable(ProblemKind.BROKEN, f"no sound PDF: error {pdfium.FPDF_GetLastError()} of PDFium")
    try:
        if pdfium.FPDF_GetFormType(document) in {pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND}:
            raise Unreadable(ProblemKind.BROKEN, "its text is in an XFA form; want a file printed from it")
        found = pdfium.FPDF_GetPageCount(document)
        if found != many:
            raise Unreadable(ProblemKind.BROKEN, f"has {many} pages or {found}; want a sound file")
        pages, size = [], 0
        for at in range(many):
            with _on_page(at):
                pages.append(_lines(document, at, walk))
            size += sum(len(piece.text) for line in pages[-1] for piece in line)
            if size > MAX_TEXT:
                raise Unreadable(
                    ProblemKind.TOO_LARGE, f"more than {MAX_TEXT} characters of text; want fewer"
                )
    finally:
        pdfium.FPDF_CloseDocument(document)
    return pages


def _lines(document: Any, at: int, walk: Walk) -> list[list[Piece]]:
    page = pdfium.FPDF_LoadPage(document, at)
    if not page:
        raise Unreadable(ProblemKind.BROKEN, "cannot be read; want a sound file")
    try:
        if at in walk.shows_text and not pdfium.FPDFPage_CountObjects(page):
            raise Unreadable(ProblemKind.BROKEN, "its contents are damaged; want a sound file")
        return [pieces_of(line) for line in in_columns(settled(lines_of(page, all_fonts=walk.all_fonts)))]
    finally:
        pdfium.FPDF_ClosePage(page)


def _laid_out(drawn: list[list[list[Piece]]], notes: list[list[str]], title: str) -> Content:
    """Return the text of all pages."""
    marks = noted(line for page in drawn for line in page)
    lines = [[written(line, marks) for line in page] for page in drawn]
    known = words(line for page in lines for line in page)
    pages: list[int] = []
    texts: list[str] = []
    start = 0
    for page, more in zip(lines, notes, strict=True):
        pages.append(start)
        texts.append("\n".join(filter(None, [*joined_words(page, known), *more])) + "\n")
        start += len(texts[-1])
    if start > MAX_TEXT:
        raise Unreadable(ProblemKind.TOO_LARGE, f"more than {MAX_TEXT} characters of text; want fewer")
    return Content("".join(texts), title, tuple(pages))


def _notes(page: PageObject, walk: Walk) -> list[str]:
    """Return what form fields and free text notes show on a page: neither is part of what the page itself draws."""
    found = []
    for one in page.get("/Annots") or ():
        note = one.get_object()
        kind = note.get("/Subtype")
        if kind == "/Redact":
            raise Unreadable(
                ProblemKind.BROKEN, "text marked to be redacted is still there; want a file where it is gone"
            )
        if walk.hides(note):
            continue
        if kind == "/FreeText":
            shown = note.get("/Contents")
        elif kind == "/Widget":
            above = note.get("/Parent")
            field = note if "/V" in note or above is None else above.get_object()
            shown = field.get("/V") if field.get("/FT", note.get("/FT")) in {"/Tx", "/Ch"} else None
        else:
            continue
        values = shown if isinstance(shown, list) else [shown]
        found += [str(value.get_object()) for value in values if value is not None]
    return found
