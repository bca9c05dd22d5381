#!/bin/sh
# pypdfium2 5.15.2, pypdf 7.1.1 and pdfminer.six 20260107: text on a layer that the document switches off is part of the
# extracted text, in its place between the other words, and nothing shows that it is off.
#
# A good engineer guesses that the extracted text is what the page shows: no viewer draws that layer, and no printer prints
# it. Drafts, translations and the other party's figures stand on such layers; "the limit is 25 million 40 million" is what
# a model is given.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check pypdfium2==5.15.2 pypdf==7.1.1 pdfminer.six==20260107 2>/dev/null
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


import pdfminer.high_level
import pypdf
import pypdfium2

content = b"BT /F 12 Tf 50 700 Td (The limit is) Tj ET /OC /Off BDC BT /F 12 Tf 150 700 Td (25) Tj ET EMC "
content += b"BT /F 12 Tf 200 700 Td (40 million.) Tj ET"
made = pdf(
    content,
    b"/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] /Order [6 0 R] >> >>",
    b"/Properties << /Off 6 0 R >>",
)
found = {
    "pypdfium2": pypdfium2.PdfDocument(made)[0].get_textpage().get_text_bounded(),
    "pypdf": pypdf.PdfReader(io.BytesIO(made)).pages[0].extract_text(),
    "pdfminer.six": pdfminer.high_level.extract_text(io.BytesIO(made)),
}
found = {name: " ".join(text.split()) for name, text in found.items()}
print(found)
assert all("25" in text and "40 million." in text for text in found.values()), "this has changed"
PYTHON
echo "as written"
