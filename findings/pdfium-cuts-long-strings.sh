#!/bin/sh
# pypdfium2 5.15.2 (PDFium 159.0.8149): a string in a content stream ends after 32,767 bytes; what follows in the same string
# is neither drawn nor extracted, and there is no error. pypdf 7.1.1 reads all of it.
#
# A good engineer guesses that a string may have any length, or that a string that is too long is an error: ISO 32000-1 names
# 32,767 as one viewer's limit (annex C), and ISO 32000-2 has no limit. Reports written by a program, with one string per page
# or a table dumped in a single operator, lose their end.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check pypdfium2==5.15.2 pypdf==7.1.1 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import io


def pdf(content, catalog=b"", resources=b""):
    """Write a PDF of one page with a content stream."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        b"/Resources << /Font << /F 5 0 R >> %s >> >>" % resources,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /OCG /Name (Draft) >>",
    ]
    out, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    return out + head + table + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(places) + 1,
        len(out),
    )


import pypdf
import pypdfium2

text = b"0123456789" * 4000
made = pdf(b"BT /F 1 Tf 50 700 Td (" + text + b") Tj ET")
page = pypdfium2.PdfDocument(made)[0].get_textpage()
read = page.count_chars()
whole = len(pypdf.PdfReader(io.BytesIO(made)).pages[0].extract_text().strip())
print(f"of {len(text)} characters PDFium has {read}, pypdf {whole}")
assert 32767 <= read <= 32768, "this has changed"
assert whole == len(text), "this has changed"
PYTHON
echo "as written"
