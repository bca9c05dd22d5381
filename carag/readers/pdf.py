"""Read the text of a PDF file page by page, with the exact place at which each page begins.

pypdf repairs damaged files and warns where it leaves something out. A file that it warns of is therefore refused,
unless the warning is known to cost no text: half a document must not pass for a whole one. Limits of size are pypdf's,
set here; a file of a few kilobytes can ask for hours, which the process that reads it has not (``child``).
"""

from __future__ import annotations

import logging
import re
import zlib
from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import pypdf
from pypdf.errors import LimitReachedError
from pypdf.generic import EncodedStreamObject, StreamObject

from carag.errors import CaragError
from carag.limits import MAX_TEXT, quoted
from carag.readers.outcome import Content, ProblemKind, Unreadable

if TYPE_CHECKING:
    from pypdf import PageObject
    from pypdf.generic import IndirectObject, PdfObject

__all__ = ["read_pdf"]

MAX_PAGES: Final = 5000
"""Greatest number of pages."""
MAX_STREAM: Final = 1 << 24
"""Greatest number of bytes of one stream of a file, decompressed: the operators of a page, or a font."""
MAX_OPERATORS: Final = 500_000
"""Greatest number of operators and operands of one stream: a page full of text has about 10,000."""
MAX_FORMS: Final = 5000
"""Greatest number of times that a page may draw a form XObject."""
_KEPT_UNPACKED: Final = 8
"""Greatest number of streams that stay unpacked at a time."""
_SHOWS_TEXT: Final = re.compile(rb"\bT[jJ]\b|['\"]\s")
_HARMLESS: Final = (
    "Annotations are not an array",
    "Duplicate %%EOF marker(s) found",
    "EOF marker not at start of line",
    "Ignoring malformed /ID entry",
    "Ignoring non-string first /ID entry",
    "Ignoring wrong pointing object",
    "Optional font table",
    "Superfluous whitespace found in object header",
    "Xref table not zero-indexed",
    "incorrect startxref pointer",
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

    After the text of a page come the values of form fields and the free text notes on it. Attachments, and text in
    pictures, are not read. Files that are encrypted are refused, also with an empty password.

    Raises
    ------
    Unreadable
        If the file is encrypted, damaged or too large.
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
    with _Reader(BytesIO(content)) as reader:
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
        pages: list[int] = []
        texts: list[str] = []
        written = 0
        for page in reader.pages:
            lines = [page.extract_text(visitor_operand_before=_whole).strip("\n"), *_notes(page)]
            pages.append(written)
            texts.append("\n".join(filter(None, lines)) + "\n")
            written += len(texts[-1])
            if written > MAX_TEXT:
                raise Unreadable(
                    ProblemKind.TOO_LARGE, f"more than {MAX_TEXT} characters of text; want fewer"
                )
        title = reader.metadata.title if reader.metadata else None
        reader.release()
        return Content("".join(texts), title or "", tuple(pages))


def _whole(*_: object) -> None:
    """Have each operator read: without a visitor, pypdf does not look at a page that it thinks shows no text."""


class _Reader(pypdf.PdfReader):
    """Lets go of unpacked streams, which pypdf would keep, and checks that each is whole, which pypdf does not."""

    def __init__(self, stream: BytesIO) -> None:
        self._used: list[StreamObject] = []
        self._checked: set[int] = set()
        super().__init__(stream)

    def get_object(self, indirect_reference: int | IndirectObject) -> PdfObject | None:
        """Return an object as pypdf does."""
        found = super().get_object(indirect_reference)
        if isinstance(found, StreamObject):
            self._used.append(found)
            if len(self._used) > _KEPT_UNPACKED:
                self.release()
        return found

    def release(self) -> None:
        """Check the streams used since the last time, and forget what they unpack to.

        Raises
        ------
        Unreadable
            If one is cut off or fails its checksum (RFC 1950), or is a form that shows text with the fonts of the page
            that draws it, as PDF 1.1 allowed, which pypdf passes over.
        """
        used, self._used = self._used, []
        for one in used:
            unpacked = isinstance(one, EncodedStreamObject) and one.decoded_self is not None
            if isinstance(one, EncodedStreamObject):
                one.decoded_self = None
            if id(one) in self._checked:  # the reader holds it, so no other has its id
                continue
            self._checked.add(id(one))
            if unpacked and not _is_whole(one):
                raise Unreadable(ProblemKind.BROKEN, "a stream is cut off or altered; want a complete file")
            if (
                one.get("/Subtype") == "/Form"
                and "/Resources" not in one
                and _SHOWS_TEXT.search(one.get_data())
            ):
                raise Unreadable(
                    ProblemKind.BROKEN, "a form shows text without naming its fonts; want it saved anew"
                )


def _is_whole(stream: StreamObject) -> bool:
    """Tell whether a stream packed with Deflate ends with its checksum; others have none."""
    named = stream.get("/Filter")
    if isinstance(named, list):
        named = named[0].get_object() if named else None
    if named not in {"/FlateDecode", "/Fl"}:
        return True
    unpacking = zlib.decompressobj()
    try:
        unpacking.decompress(stream._data, MAX_STREAM)  # noqa: SLF001 - pypdf gives out the unpacked bytes alone
    except zlib.error:
        return False
    return unpacking.eof


def _notes(page: PageObject) -> list[str]:
    """Return what form fields and free text notes show on a page: pypdf reads what a page itself draws."""
    found = []
    for one in page.get("/Annots") or ():
        note = one.get_object()
        kind = note.get("/Subtype")
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
