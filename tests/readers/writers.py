"""Write the files that the tests read, with libraries that know nothing of the readers, or byte by byte."""

from __future__ import annotations

import io
import zipfile
import zlib

import docx
from fpdf import FPDF

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELATIONSHIP = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PAGES = b"<< /Type /Catalog /Pages 2 0 R >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf(pages: list[list[str]], *, title: str = "", password: str = "") -> bytes:
    """A PDF file with these lines on each page."""
    made = FPDF()
    made.set_font("Helvetica", size=11)
    if title:
        made.set_title(title)
    if password:
        made.set_encryption(owner_password=password + "o", user_password=password)
    for lines in pages:
        made.add_page()
        for line in lines:
            made.cell(0, 6, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(made.output())


def pdf_table(rows: list[list[str]]) -> bytes:
    made = FPDF()
    made.set_font("Helvetica", size=11)
    made.add_page()
    with made.table() as table:
        for row in rows:
            line = table.row()
            for cell in row:
                line.cell(cell)
    return bytes(made.output())


def pdf_of(objects: list[bytes], trailer: bytes = b"") -> bytes:
    """A PDF file of these objects, the first of which is the catalogue."""
    out, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n"
    return out + table + end % (len(places) + 1, trailer, len(out))


def stream(data: bytes, entries: bytes = b"", *, packed: bool = False) -> bytes:
    if packed:
        data, entries = zlib.compress(data, 9), entries + b" /Filter /FlateDecode"
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def pdf_page(content: bytes, *more: bytes, resources: bytes = b"", entries: bytes = b"") -> bytes:
    """A PDF file of one page with this content stream; further objects begin at number 6."""
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R %s" % entries
    page += b" /Resources << /Font << /F 5 0 R >> %s >> >>" % resources
    return pdf_of([_PAGES, b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, content, _FONT, *more])


def pdf_tree(node: bytes, *more: bytes) -> bytes:
    """A PDF file whose page tree has this root."""
    return pdf_of([_PAGES, node, *more])


def form(content: bytes, uses: int = 0) -> bytes:
    """A form XObject, which may draw the one with a given number."""
    entries = b"/Type /XObject /Subtype /Form /BBox [0 0 1 1]"
    if uses:
        entries += b" /Resources << /XObject << /X %d 0 R >> >>" % uses
    return stream(content, entries, packed=True)


def docx_of(
    paragraphs: list[str], rows: list[list[str]] | None = None, *, title: str = "", header: str = ""
) -> bytes:
    """A DOCX file of paragraphs and then a table, by python-docx."""
    made = docx.Document()
    made.core_properties.title = title
    if header:
        made.sections[0].header.paragraphs[0].text = header
    for paragraph in paragraphs:
        made.add_paragraph(paragraph)
    if rows:
        table = made.add_table(len(rows), len(rows[0]))
        for line, row in zip(table.rows, rows, strict=True):
            for cell, text in zip(line.cells, row, strict=True):
                cell.text = text
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def docx_package(body: str, *, before: str = "", related: dict[str, str] | None = None) -> bytes:
    """A DOCX file with this XML; related parts by the last segment of their type, each with its XML."""
    document = f"{before}<w:document {WORD}><w:body>{body}</w:body></w:document>"
    parts = {"word/document.xml": document, "_rels/.rels": _listed({"officeDocument": "word/document.xml"})}
    names = {kind: f"{kind}.xml" for kind in related or {}}
    parts["word/_rels/document.xml.rels"] = _listed(names)
    parts |= {f"word/{names[kind]}": f"<w:x {WORD}>{xml}</w:x>" for kind, xml in (related or {}).items()}
    return zipped(parts)


def zipped(parts: dict[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _listed(parts: dict[str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="r{number}" Type="{RELATIONSHIP}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(parts.items())
    )
    return f"<Relationships>{rows}</Relationships>"


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
