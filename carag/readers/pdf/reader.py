"""Read the text of a PDF file page by page, with the exact offset of each page.

Two libraries read it. pypdf walks the file first (``whole``) and warns where it repairs damage or leaves something out;
a file with such a warning is refused, unless the warning is known to cost no text: half a document must not pass for a
whole one. Then PDFium, which repairs silently, gives the characters and their places (``lines``). The size limits are
pypdf's, and the time limit is that of the child process (``child``).
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
from carag.readers.outcome import Content, ProblemKind, Unreadable, broken, too_large
from carag.readers.pdf.columns import in_columns
from carag.readers.pdf.lines import UnknownGlyphs, lines_of
from carag.readers.pdf.text import joined_words, noted, pieces_of, settled, words, written
from carag.readers.pdf.whole import MAX_FORMS, MAX_STREAM, Reader, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypdf import PageObject

    from carag.readers.pdf.text import Piece


MAX_PAGES: Final = 5000
"""Greatest number of pages."""
MAX_OPERATORS: Final = 500_000
"""Greatest number of operators and operands in one stream; a page full of text has about 10,000."""
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
"""Beginnings of pypdf's harmless warnings, after which no text is lost. A missing object gives a different warning."""
_warned: ContextVar[list[str] | None] = ContextVar("warnings of the file being read", default=None)


class _Warnings(logging.Handler):
    """Keeps pypdf's warnings about the file being read; otherwise, logging works as usual."""

    def emit(self, record: logging.LogRecord) -> None:
        kept = _warned.get()
        if kept is None:
            logging.getLogger().handle(record)
        elif record.levelno >= logging.WARNING:
            kept.append(record.getMessage())


_logger = logging.getLogger("pypdf")
_logger.addHandler(_Warnings())
_logger.propagate = False  # a warning may quote the file, and no text may enter a log before its record


def read_pdf(content: bytes) -> Content:
    """Return the text of a PDF file line by line, its page offsets and its title.

    The text of a page is followed by its form field values and free-text notes. Attachments, text in pictures, and text
    on hidden layers are not read. Encrypted files are refused, even those whose password is empty.

    Raises ``Unreadable`` if the file is encrypted, damaged or too large, or does not state the characters of its pages.
    """
    if not _logger.isEnabledFor(logging.WARNING):
        raise Unreadable(
            ProblemKind.FAILED,
            "the logger 'pypdf' drops warnings, which report damage; set it to level WARNING",
        )
    kept: list[str] = []
    token = _warned.set(kept)
    try:
        with pypdf.apply_configuration(**_LIMITS):
            found = _read(content)
    except CaragError:
        raise
    except LimitReachedError as error:
        raise too_large(f"exceeds a size limit: {quoted(str(error))}") from None
    except MemoryError:
        raise too_large("does not fit in memory; split the file") from None
    except Exception as error:  # noqa: BLE001 - pypdf: "broken PDF files might cause other exceptions"
        raise broken(f"is not a valid PDF: {quoted(str(error)) or type(error).__name__}") from None
    finally:
        _warned.reset(token)
    for warning in kept:
        if not warning.startswith(_HARMLESS):
            kind = ProblemKind.TOO_LARGE if "xceed" in warning or "imit" in warning else ProblemKind.BROKEN
            raise Unreadable(kind, f"parts of it cannot be read: {quoted(warning)}")
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
    "jbig2dec_binary": None,  # never run another program
}


def _read(content: bytes) -> Content:
    with Reader(BytesIO(content)) as reader:
        if reader.is_encrypted:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without protection")
        many = len(reader.pages)
        if many > MAX_PAGES:
            raise too_large(f"has {many} pages; want {MAX_PAGES} at most")
        stated = reader.root_object["/Pages"].get_object().get("/Count")  # type: ignore[union-attr]
        if stated != many:
            raise broken(f"has {many} pages but states {quoted(stated)}; get a complete copy")
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
    try:
        yield
    except Unreadable as error:
        raise type(error)(error.kind, f"page {at + 1}: {error}") from None


def _rewritten(reader: Reader, walk: Walk) -> bytes:
    writer = pypdf.PdfWriter(clone_from=reader)
    for at, contents in walk.altered.items():
        writer.pages[at].replace_contents(contents)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def _drawn(content: bytes, walk: Walk, many: int) -> list[list[list[Piece]]]:
    document = pdfium.FPDF_LoadMemDocument64(content, len(content), None)
    if not document:
        raise broken(f"is not a valid PDF: PDFium error {pdfium.FPDF_GetLastError()}")
    try:
        if pdfium.FPDF_GetFormType(document) in {pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND}:
            raise broken("its text is in an XFA form; print the form to a PDF")
        found = pdfium.FPDF_GetPageCount(document)
        if found != many:
            raise broken(f"has {many} pages for pypdf and {found} for PDFium; get an undamaged copy")
        pages, size = [], 0
        for at in range(many):
            with _on_page(at):
                pages.append(_lines(document, at, walk))
            size += sum(len(piece.text) for line in pages[-1] for piece in line)
            if size > MAX_TEXT:
                raise too_large(f"more than {MAX_TEXT} characters of text; want fewer")
    finally:
        pdfium.FPDF_CloseDocument(document)
    return pages


def _lines(document: Any, at: int, walk: Walk) -> list[list[Piece]]:
    page = pdfium.FPDF_LoadPage(document, at)
    if not page:
        raise broken("cannot be read; get an undamaged copy")
    try:
        if at in walk.shows_text and not pdfium.FPDFPage_CountObjects(page):
            raise broken("its contents are damaged; get an undamaged copy")
        return [pieces_of(line) for line in in_columns(settled(lines_of(page, all_fonts=walk.all_fonts)))]
    finally:
        pdfium.FPDF_ClosePage(page)


def _laid_out(drawn: list[list[list[Piece]]], notes: list[list[str]], title: str) -> Content:
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
        raise too_large(f"more than {MAX_TEXT} characters of text; want fewer")
    return Content("".join(texts), title, tuple(pages))


def _notes(page: PageObject, walk: Walk) -> list[str]:
    """Return a page's form field values and free-text notes, which the page itself does not draw."""
    found = []
    for one in page.get("/Annots") or ():
        note = one.get_object()
        kind = note.get("/Subtype")
        if kind == "/Redact":
            raise broken("text marked for redaction is still there; apply the redactions first")
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
