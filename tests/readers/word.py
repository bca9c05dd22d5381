"""Write Word documents from the short form that ``cases/docx.txt`` describes."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from tests.readers.writers import docx_package

_TOGGLES = {"strike", "dstrike", "vanish"}
_SIGNS = {"tab": "tab", "br": "br", "soft": "softHyphen", "nbh": "noBreakHyphen"}
_LEVEL = re.compile(r"(\w+)(?:@(\d+))?(?:\^(\d))?(!?) ?(.*)")


def word_of(short: str) -> bytes:
    """Write a document; raises KeyError or ValueError if the short form is wrong."""
    parts: dict[str, list[str]] = {"abstract": [], "num": [], "style": [], "note": [], "endnote": []}
    body = []
    for line in short.split("\n"):
        if line.startswith("#"):
            kind, _, rest = line[1:].partition(" ")
            {"list": _list, "num": _num, "style": _style, "note": _note, "xml": _xml}[kind](rest, parts)
        else:
            body.append(_paragraph(line))
    related = {}
    if parts["num"] or parts["abstract"]:
        related["numbering"] = "".join(parts["abstract"] + parts["num"])
    if parts["style"]:
        related["styles"] = "".join(parts["style"])
    if parts["note"]:
        related["footnotes"] = "".join(parts["note"])
    if parts["endnote"]:
        related["endnotes"] = "".join(parts["endnote"])
    return docx_package("".join(body), related=related)


def _val(name: str, value: object) -> str:
    return f'<w:{name} w:val="{escape(str(value), {chr(34): "&quot;"})}"/>'


def _list(rest: str, parts: dict[str, list[str]]) -> None:
    number, *levels = rest.split(" | ")
    written = ""
    for at, level in enumerate(levels):
        kind, start, restart, legal, text = _LEVEL.fullmatch(level.rstrip("\r")).groups()  # type: ignore[union-attr]
        written += f'<w:lvl w:ilvl="{at}">{_val("start", start or 1)}{_val("numFmt", kind)}'
        written += (_val("lvlRestart", restart) if restart else "") + ("<w:isLgl/>" if legal else "")
        written += _val("lvlText", text) + "</w:lvl>"
    parts["abstract"].append(f'<w:abstractNum w:abstractNumId="{number}">{written}</w:abstractNum>')
    parts["num"].append(f'<w:num w:numId="{number}">{_val("abstractNumId", number)}</w:num>')


def _num(rest: str, parts: dict[str, list[str]]) -> None:
    number, _, other, *starts = rest.split()
    written = ""
    for one in starts:
        level, _, start = one.partition("=")
        written += f'<w:lvlOverride w:ilvl="{level}">{_val("startOverride", start)}</w:lvlOverride>'
    parts["num"].append(f'<w:num w:numId="{number}">{_val("abstractNumId", other)}{written}</w:num>')


def _style(rest: str, parts: dict[str, list[str]]) -> None:
    name, kind, *words = rest.split()
    stated = dict(word.split("=") for word in words if word.partition("=")[0] in {"based", "list", "level"})
    number = "".join(
        _val(tag, stated[key]) for tag, key in (("ilvl", "level"), ("numId", "list")) if key in stated
    )
    looks = " ".join(word for word in words if word.partition("=")[0] not in {"based", "list", "level"})
    parts["style"].append(
        f'<w:style w:type="{kind}" w:styleId="{name}">{_val("basedOn", stated["based"]) if "based" in stated else ""}'
        f"<w:pPr><w:numPr>{number}</w:numPr></w:pPr>{_looks(looks)}</w:style>".replace(
            "<w:pPr><w:numPr></w:numPr></w:pPr>", ""
        )
    )


def _xml(rest: str, parts: dict[str, list[str]]) -> None:
    kind, _, xml = rest.partition(" ")
    parts[kind].append(xml)


def _note(rest: str, parts: dict[str, list[str]]) -> None:
    number, _, text = rest.partition(" ")
    parts["note"].append(
        f'<w:footnote w:id="{number}"><w:p><w:r><w:rPr>{_val("vertAlign", "superscript")}</w:rPr><w:footnoteRef/></w:r>'
        f"{_run(' ' + text)}</w:p></w:footnote>"
    )


def _looks(words: str) -> str:
    found = ""
    for word in words.split():
        name, _, value = word.partition("=")
        if name in _TOGGLES:
            found += _val(name, value or 1)
        else:
            found += {
                "sup": _val("vertAlign", "superscript"),
                "sub": _val("vertAlign", "subscript"),
                "style": _val("rStyle", value),
                "raised": _val("position", value),
                "font": f'<w:rFonts w:ascii="{value}" w:hAnsi="{value}"/>',
            }[name]
    return f"<w:rPr>{found}</w:rPr>" if found else ""


def _run(text: str, looks: str = "", tag: str = "t") -> str:
    return f'<w:r>{_looks(looks)}<w:{tag} xml:space="preserve">{escape(text)}</w:{tag}></w:r>' if text else ""


def _paragraph(line: str) -> str:
    if line.startswith("<"):
        return _inline(line, raw=True)
    head = re.match(r"([~^]?)(?:=(\w+))? ?(?:(\d)\.(\d))?: ?", line)
    if head is None:
        return f"<w:p>{_inline(line)}</w:p>"
    mark, style, number, level = head.groups()
    stated = _val("pStyle", style) if style else ""
    if number:
        stated += f"<w:numPr>{_val('ilvl', level)}{_val('numId', number)}</w:numPr>"
    stated += {
        "": "",
        "~": '<w:rPr><w:del w:id="1"/></w:rPr>',
        "^": "<w:rPr><w:vanish/><w:specVanish/></w:rPr>",
    }[mark]
    return f"<w:p><w:pPr>{stated}</w:pPr>{_inline(line[head.end() :])}</w:p>"


def _inline(text: str, *, raw: bool = False) -> str:
    """Expand braces, the innermost first; other text is a run, or XML as it stands."""
    pieces: list[str] = []

    def keep(made: str) -> str:
        pieces.append(made)
        return f"\0{len(pieces) - 1}\0"

    while found := re.search(r"\{([^{}]*)\}", text):
        text = text[: found.start()] + keep(_braced(found[1])) + text[found.end() :]
    parts = re.split(r"(\0\d+\0|<[^>]*>)", text)
    written = "".join(one if raw or one.startswith(("\0", "<")) else _run(one) for one in parts)
    while re.search("\0", written):
        written = re.sub("\0(\\d+)\0", lambda match: pieces[int(match[1])], written)
    return written.replace('<w:t xml:space="preserve"><w:r>', "<w:r>")


def _braced(inside: str) -> str:
    looks, bar, text = inside.partition("|")
    if bar and looks in {"del", "ins", "moveFrom", "moveTo"}:
        tag = "delText" if looks in {"del", "moveFrom"} else "t"
        return f'<w:{looks} w:id="1">{text if text.startswith(chr(0)) else _run(text, tag=tag)}</w:{looks}>'
    if bar:
        return _run(text, looks)
    kind, _, rest = inside.partition(" ")
    if kind == "t":
        return _run(rest)
    if kind == "note":
        return f'<w:r>{_looks("sup")}<w:footnoteReference w:id="{rest}"/></w:r>'
    if kind == "sym":
        font, char = rest.split()
        return f'<w:r><w:sym w:font="{font}" w:char="{char}"/></w:r>'
    if kind == "box":
        box = f"<w:ffData><w:checkBox>{_val('default', rest)}</w:checkBox></w:ffData>"
        return f'<w:r><w:fldChar w:fldCharType="begin">{box}</w:fldChar></w:r>' + "".join(
            f'<w:r><w:fldChar w:fldCharType="{one}"/></w:r>' for one in ("separate", "end")
        )
    if kind == "c":
        return _cell(rest)
    return f"<w:r><w:{_SIGNS[kind]}/></w:r>"


def _cell(text: str) -> str:
    stated = ""
    if found := re.search(r" x(\d+)$", text):
        text, stated = text[: found.start()], _val("gridSpan", found[1])
    if text.endswith(" down"):
        text, stated = text.removesuffix(" down"), stated + _val("vMerge", "restart")
    elif text == "up":
        text, stated = "", stated + "<w:vMerge/>"
    return f"<w:tc><w:tcPr>{stated}</w:tcPr><w:p>{_run(text)}</w:p></w:tc>"
