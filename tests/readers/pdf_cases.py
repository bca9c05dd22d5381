r"""Build the PDF files of ``cases/pdf.txt``, byte by byte, each with the text that its pages show.

::

    # NAME of the case
    X Y SIZE TEXT         one line of text; {^7,4:1} writes 1 in size 7 raised by 4, and a negative number lowers it
    OPERATORS             anything else that begins with none of these words is a content stream as it is
    page: ENTRIES         of the page          resources: ENTRIES   of its resources, beside /Font << /F 3 0 R >>
    catalog: ENTRIES      of the catalogue     + OBJECT             further objects, from number 4 on
    +< ENTRIES > DATA     a stream             startxref: N         the place of the table is off by N
    ---                   the next page
    => LINE               a line of the text   ! KIND PATTERN       or what is said of the file
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.readers.writers import pdf_of, stream

CASES: Final = Path(__file__).parent / "cases" / "pdf.txt"
FONT: Final = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
_PIECE: Final = re.compile(r"\{\^([\d.]+),(-?[\d.]+):([^}]*)\}")


@dataclass
class _Page:
    content: list[str] = field(default_factory=list)
    entries: str = ""
    resources: str = ""


@dataclass
class Case:
    """A PDF file to be built, and the text or the problem that reading it should give."""

    name: str
    pages: list[_Page] = field(default_factory=lambda: [_Page()])
    objects: list[bytes] = field(default_factory=list)
    catalog: str = ""
    moved: int = 0
    lines: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def text(self) -> str:
        """The text that reading should give."""
        return "".join(f"{line}\n" for line in self.lines)

    def add(self, line: str) -> None:
        """Take one line of the table."""
        word, _, rest = line.partition(" ")
        page = self.pages[-1]
        match word:
            case "page:":
                page.entries += rest
            case "resources:":
                page.resources += rest
            case "catalog:":
                self.catalog += rest
            case "+":
                self.objects.append(rest.encode("cp1252"))
            case "+<":
                entries, _, data = rest.partition(" > ")
                self.objects.append(stream(data.encode("cp1252"), entries.encode()))
            case "startxref:":
                self.moved = int(rest)
            case "---":
                self.pages.append(_Page())
            case "=>":
                self.lines.append(rest)
            case "!":
                self.problem = rest
            case _:
                page.content.append(_drawn(line) if word.isdigit() else line)

    def built(self) -> bytes:
        """Return the file."""
        first = 4 + len(self.objects)
        kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(self.pages)))
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R %s >>" % self.catalog.encode(),
            b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids.encode(), len(self.pages)),
            FONT,
            *self.objects,
        ]
        for at, page in enumerate(self.pages):
            box = "" if "/MediaBox" in page.entries else "/MediaBox [0 0 600 800]"
            fonts = page.resources if "/Font" in page.resources else f"/Font << /F 3 0 R >> {page.resources}"
            head = f"/Type /Page /Parent 2 0 R {box} /Contents {first + 2 * at + 1} 0 R {page.entries}"
            objects.append(f"<< {head} /Resources << {fonts} >> >>".encode("cp1252"))
            objects.append(stream("\n".join(page.content).encode("cp1252")))
        made = pdf_of(objects)
        if self.moved:
            head, _, place = made.rpartition(b"startxref\n")
            made = head + b"startxref\n%d\n%%%%EOF\n" % (int(place.split()[0]) + self.moved)
        return made


def _drawn(line: str) -> str:
    """Return the operators of one line of text."""
    x, y, size, text = line.split(" ", 3)
    pieces = _PIECE.split(text)
    drawn = f"BT /F {size} Tf {x} {y} Td {_shown(pieces[0])}"
    for small, rise, raised, plain in zip(
        pieces[1::4], pieces[2::4], pieces[3::4], pieces[4::4], strict=True
    ):
        drawn += f" /F {small} Tf {rise} Ts {_shown(raised)} /F {size} Tf 0 Ts {_shown(plain)}"
    return drawn + " ET"


def _shown(text: str) -> str:
    escaped = re.sub(r"([\\()])", r"\\\1", text)
    return f"({escaped}) Tj" if text else ""


def cases() -> list[Case]:
    """Return every case of the table."""
    made: list[Case] = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            made.append(Case(line[2:]))
        elif line and not line.startswith("%%"):
            made[-1].add(line)
    return made
