"""Take the lines of a PDF page from PDFium, as runs of characters with their places and sizes.

PDFium keeps the order in which a page draws its text, drops text drawn twice, and finds spaces and lines. But it ends a
line at a raised mark, and does not end one at a hyphen; both are corrected here.
"""

from __future__ import annotations

import ctypes
import sys
import unicodedata
from math import atan2, cos, hypot, sin
from typing import TYPE_CHECKING, Final, NamedTuple

import pypdfium2.raw as pdfium

from carag.readers.outcome import ProblemKind, Unreadable, broken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


UNKNOWN: Final = "\ufffd"
"""Stands for a glyph whose character the file does not state."""
MAX_UNKNOWN: Final = 0.05
"""Greatest share of such glyphs on a readable page."""
NEAR: Final = 1.0
"""Greatest gap, in font sizes, before text of a different height on the same line."""


_TERMINATOR: Final = 2
"""Bytes of an empty text."""
_NO_SPACES: Final = frozenset([0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F, 0x85])
"""Control characters that Python counts as white space: codes of glyphs without a character."""


class UnknownGlyphs(Unreadable):
    """Raised for a page with words whose characters are unknown."""


class Run(NamedTuple):
    """Characters of one size and height, without a space between them."""

    text: str
    spaced: bool
    """Whether a space precedes it."""
    start: float
    end: float
    height: float
    """The height of the baseline, relative to the direction of the text."""
    size: float


class Line(list[Run]):
    """Runs in one direction."""

    turned: int = 0
    """Degrees."""


class _Places:
    def __init__(self, text: Any) -> None:
        self._text = text
        self._x, self._y, self._right, self._top = (ctypes.c_double() for _ in range(4))
        self._left, self._bottom = ctypes.c_double(), ctypes.c_double()
        self._matrix = pdfium.FS_MATRIX()

    def of(self, at: int) -> tuple[float, float, float, float]:
        """Return position along and across the direction of the text, size, and direction in radians."""
        pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
        pdfium.FPDFText_GetMatrix(self._text, at, self._matrix)
        matrix, x, y = self._matrix, self._x.value, self._y.value
        size = pdfium.FPDFText_GetFontSize(self._text, at) * hypot(matrix.c, matrix.d)
        if not matrix.b and matrix.a > 0:
            return x, y, size, 0.0
        angle = atan2(matrix.b, matrix.a)
        return x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle), size, angle

    def end(self, at: int, angle: float) -> float:
        box = self._left, self._right, self._bottom, self._top
        pdfium.FPDFText_GetCharBox(self._text, at, *box)
        left, right, bottom, top = (one.value for one in box)
        return max(x * cos(angle) + y * sin(angle) for x in (left, right) for y in (bottom, top))


def lines_of(page: Any, *, all_fonts: bool = True) -> list[Line]:
    """Return the lines of a PDFium page in the order in which it draws them.

    ``all_fonts`` tells whether all fonts for non-Latin scripts are embedded; with its own fonts, PDFium drops text that
    they have no glyphs for. Raises ``Unreadable`` if glyphs in words or figures, or too many glyphs, have no known
    character, or if text was dropped.
    """
    text = pdfium.FPDFText_LoadPage(page)
    if not text:
        raise broken("the text cannot be read")
    try:
        if not all_fonts and any(_is_dropped(one, text) for one in _texts(page)):
            raise broken("a font is not embedded; want a file with embedded fonts")
        lines = _Lines(text).read()
    finally:
        pdfium.FPDFText_ClosePage(text)
    _check_known(lines)
    return lines


def _texts(page: Any) -> Iterator[Any]:
    found = [pdfium.FPDFPage_GetObject(page, at) for at in range(pdfium.FPDFPage_CountObjects(page))]
    while found:
        one = found.pop()
        kind = pdfium.FPDFPageObj_GetType(one)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            yield one
        elif kind == pdfium.FPDF_PAGEOBJ_FORM:
            found += [
                pdfium.FPDFFormObj_GetObject(one, at) for at in range(pdfium.FPDFFormObj_CountObjects(one))
            ]


def _is_dropped(one: Any, text: Any) -> bool:
    """Tell whether a text object in a font that is not embedded gave no text."""
    if pdfium.FPDFTextObj_GetText(one, text, None, 0) > _TERMINATOR:
        return False
    return not pdfium.FPDFFont_GetIsEmbedded(pdfium.FPDFTextObj_GetFont(one))


class _Lines:
    def __init__(self, text: Any) -> None:
        self._text, self._places = text, _Places(text)
        self._lines: list[Line] = []
        self._chars: list[str] = []
        """The open run; the next three are its start, its last character, and its height, size and angle."""
        self._start = 0.0
        self._last = -1
        self._at = (0.0, 0.0, 0.0)
        self._run_spaced = False

    def read(self) -> list[Line]:
        ended = spaced = True
        half = 0
        for at in range(pdfium.FPDFText_CountChars(self._text)):
            code = pdfium.FPDFText_GetUnicode(self._text, at)
            if 0xD800 <= code < 0xDC00:  # the first half of a character beyond U+FFFF
                half = code
                continue
            if 0xDC00 <= code < 0xE000 and half:
                code = 0x10000 + ((half - 0xD800) << 10) + code - 0xDC00
            half = 0
            char = chr(code) if code <= sys.maxunicode else UNKNOWN
            if char.isspace() and code not in _NO_SPACES:
                ended, spaced = ended or code == 10, True
                continue
            hyphen = code == 2 and pdfium.FPDFText_IsHyphen(self._text, at) == 1
            if hyphen:
                char = "-"
            elif pdfium.FPDFText_HasUnicodeMapError(self._text, at) != 0 or not _is_character(char):
                char = UNKNOWN
            self._add(char, at, ended=ended, spaced=spaced)
            ended, spaced = hyphen, False
        self._close()
        return self._lines

    def _add(self, char: str, at: int, *, ended: bool, spaced: bool) -> None:
        start, height, size, angle = self._places.of(at)
        where = (height, size, angle)
        if ended or spaced or where != self._at:
            self._close()
            turned = round(angle * 57.3)
            line = self._lines[-1] if self._lines else None
            ended = ended or (line is not None and _goes_back(line[-1], start, height, size))
            if (
                line is None
                or line.turned != turned
                or (ended and not _goes_on(line[-1], start, height, size))
            ):
                self._lines.append(line := Line())
                line.turned = turned
            elif ended:
                spaced = start - line[-1].end > 0.15 * size
            self._start, self._at, self._run_spaced = start, where, spaced and bool(line)
        self._chars.append(char)
        self._last = at

    def _close(self) -> None:
        if self._chars:
            height, size, angle = self._at
            end = self._places.end(self._last, angle)
            run = Run("".join(self._chars), self._run_spaced, self._start, end, height, size)
            self._lines[-1].append(run)
            self._chars.clear()


def _is_character(char: str) -> bool:
    """Tell whether a character is neither a control, nor private-use, nor unassigned."""
    return char != UNKNOWN and (
        (char < "\x7f" and char >= " ") or unicodedata.category(char) not in {"Cc", "Co", "Cn", "Cs"}
    )


def _goes_back(run: Run, start: float, height: float, size: float) -> bool:
    """Tell whether text begins a new line, though PDFium did not end one; upright text goes down, not back."""
    down = abs(height - run.height) / size if size else 0
    return down > 1.25 or (down > 0.3 and start < run.end - 2 * size)


def _goes_on(run: Run, start: float, height: float, size: float) -> bool:
    """Tell whether text continues a line that PDFium ended: it is raised, lowered, or back on the line."""
    size = max(size, run.size)
    return -0.3 * size <= start - run.end <= NEAR * size and abs(height - run.height) <= 0.8 * size


def _check_known(lines: list[Line]) -> None:
    """Refuse a page with an unknown glyph in a word or figure; a single one may be a bullet."""
    words = [word for line in lines for word in _words(line)]
    unknown = sum(word.count(UNKNOWN) for word in words)
    inside = any(
        word.count(UNKNOWN) > 1 or (UNKNOWN in word and any(char.isalnum() for char in word))
        for word in words
    )
    if inside or unknown > MAX_UNKNOWN * sum(map(len, words)) + 1 or words == [UNKNOWN] * unknown != []:
        raise UnknownGlyphs(
            ProblemKind.BROKEN,
            f"the characters of {unknown} of its glyphs are not stated; want a file with a ToUnicode map",
        )


def _words(line: Line) -> list[str]:
    words = [""]
    for run in line:
        if run.spaced:
            words.append("")
        words[-1] += run.text
    return words
