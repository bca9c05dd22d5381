#!/bin/sh
# mammoth 1.13.0, python-docx 1.2.0 and docx-parser-converter 1.0.3: hidden text (`w:vanish`) is read as text of the
# document, whether it is hidden by hand or by a character style.
#
# A good engineer guesses that hidden means hidden: Word shows such text neither on screen nor on paper. A template's style
# "Notes to the drafter" hides what the other side must not read, and the usual ways to turn a DOCX into text hand it on.
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

style = (
    '<w:style w:type="character" w:styleId="Drafter"><w:name w:val="Drafter"/><w:rPr><w:vanish/></w:rPr></w:style>'
)


def hidden(properties):
    return f"<w:p>{run('The budget is 4 million. ')}<w:r><w:rPr>{properties}</w:rPr><w:t>We would pay 6.</w:t></w:r></w:p>"


found = {}
for name, properties in (("by style", '<w:rStyle w:val="Drafter"/>'), ("by hand", "<w:vanish/>")):
    content = word(hidden(properties), styles=style)
    path = pathlib.Path(tempfile.mkdtemp(), "a.docx")
    path.write_bytes(content)
    texts = {
        "mammoth": mammoth.extract_raw_text(io.BytesIO(content)).value,
        "python-docx": docx.Document(str(path)).paragraphs[0].text,
        "docx-parser-converter": docx_to_text(str(path)),
    }
    found[name] = {library for library, text in texts.items() if "We would pay 6." in text}
    print(name, "read by", sorted(found[name]))
every = {"mammoth", "python-docx", "docx-parser-converter"}
assert found == {"by style": every, "by hand": every}, "this has changed"
PYTHON
echo "as written"
