#!/bin/sh
# mammoth 1.13.0 and docx-parser-converter 1.0.3: a paragraph that gets its number from its style, as headings and clauses of
# contracts do, loses it; a list that starts at 5 starts at 1. mammoth makes clause 1.1 the first item of a list in a list.
#
# A good engineer guesses that a numbered clause keeps the number that Word shows, or loses it wherever the number comes from.
# Here it depends on how the author set the number: numbers set by hand are there, numbers set by a style are not, and a list
# that was set to go on at 5 begins again.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check docx-parser-converter==1.0.3 mammoth==1.13.0 2>/dev/null
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

import mammoth
from docx_parser_converter import docx_to_text


def level(number, start, text):
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="decimal"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


lists = (
    f'<w:abstractNum w:abstractNumId="1">{level(0, 1, "%1.")}{level(1, 1, "%1.%2")}</w:abstractNum>'
    f'<w:abstractNum w:abstractNumId="2">{level(0, 5, "%1.")}</w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>'
)
style = (
    '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/>'
    '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
)


def numbered(text, number, at=0):
    return f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="{number}"/></w:numPr></w:pPr>{run(text)}</w:p>'


bodies = {
    "by hand": numbered("Pay", 1) + numbered("In time", 1, 1),
    "by style": f'<w:p><w:pPr><w:pStyle w:val="Clause"/></w:pPr>{run("Pay")}</w:p>',
    "from 5": numbered("Pay", 2),
}
found = {}
for name, body in bodies.items():
    content = word(body, numbering=lists, styles=style)
    path = pathlib.Path(tempfile.mkdtemp(), "a.docx")
    path.write_bytes(content)
    found[name] = (docx_to_text(str(path)).split(), mammoth.convert_to_html(io.BytesIO(content)).value)
    print(name, found[name])
assert found["by hand"] == (
    ["1.", "Pay", "1.1", "In", "time"],
    "<ol><li>Pay<ol><li>In time</li></ol></li></ol>",
), "this has changed"
assert found["by style"] == (["Pay"], "<p>Pay</p>"), "this has changed"
assert found["from 5"][0][0] == "1." and "start" not in found["from 5"][1], "this has changed"
PYTHON
echo "as written"
