#!/bin/sh
# python-docx 1.2.0, `Paragraph.text`, and docx-parser-converter 1.0.3 leave out text that was inserted while changes were
# tracked, and the deleted text too: "at least 10 [deleted] 15 [inserted] per cent" becomes "at least  per cent".
# mammoth 1.13.0 reads 15.
#
# A good engineer guesses that a reader shows the document as it stands (the insertion in, the deletion out), or both with
# their marks. A contract is sent round with tracked changes more often than not; these readers lose what was agreed last.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check python-docx==1.2.0 docx-parser-converter==1.0.3 mammoth==1.13.0 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def word(body, **parts):
    """Write the smallest sound DOCX with a body and the parts given."""
    names = {"document": f"<w:document {W}><w:body>{body}</w:body></w:document>"}
    names |= {name: f"<w:{name} {W}>{xml}</w:{name}>" for name, xml in parts.items()}
    kind = {name: "document.main" if name == "document" else name for name in names}
    types = "".join(f'<Override PartName="/word/{one}.xml" ContentType="{KIND}.{kind[one]}+xml"/>' for one in names)
    rels = "".join(f'<Relationship Id="r{one}" Type="{OFFICE}/{one}" Target="{one}.xml"/>' for one in parts)
    first = f'<Relationship Id="r" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    default = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types">{default}{types}</Types>')
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{first}</Relationships>')
        archive.writestr(
            "word/_rels/document.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{rels}</Relationships>'
        )
        for name, xml in names.items():
            archive.writestr(f"word/{name}.xml", xml)
    return out.getvalue()


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


import pathlib
import tempfile

import docx
import mammoth
from docx_parser_converter import docx_to_text

who = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'
deleted = f"<w:del {who}><w:r><w:delText>10</w:delText></w:r></w:del>"
content = word(f"<w:p>{run('at least ')}{deleted}<w:ins {who}>{run('15')}</w:ins>{run(' per cent')}</w:p>")
path = pathlib.Path(tempfile.mkdtemp(), "a.docx")
path.write_bytes(content)
found = {
    "python-docx": docx.Document(str(path)).paragraphs[0].text,
    "docx-parser-converter": docx_to_text(str(path)).strip(),
    "mammoth": mammoth.extract_raw_text(io.BytesIO(content)).value.strip(),
}
print(found)
assert found["python-docx"] == found["docx-parser-converter"] == "at least  per cent", "this has changed"
assert found["mammoth"] == "at least 15 per cent", "this has changed"
PYTHON
echo "as written"
