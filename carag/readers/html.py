"""Read the visible text and title of an HTML page in one pass; EDGAR's pages are read the same way.

The parser is lxml's, without network, DTDs or entities other than those of HTML. No tree is built: that of lxml 6.1
(libxml2 2.14) silently loses text below 2,048 elements, and old pages whose tags are never closed go deeper. Struck and
deleted text is left out, because an answer must not quote what the document withdraws. The page's own style sheets
count; linked style sheets are not available.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from lxml import etree

from carag.readers.blocks import Blocks, Number
from carag.readers.list_numbers import label_of
from carag.readers.outcome import Content, broken, too_large
from carag.readers.plain import decoded
from carag.readers.styles import INLINE, Look, StyleSheet
from carag.readers.symbols import is_symbol_font, symbol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


MAX_MARKUP: Final = 1 << 25
"""Greatest number of bytes in an HTML file; if everything is tags, reading takes half a minute."""
MAX_NESTING: Final = 10_000
"""Greatest depth of elements: browsers stop at 512, but count the unclosed tags of old pages as fewer."""
_BLOCKS: Final = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "html", "legend", "li", "main", "nav", "ol",
    "optgroup", "option", "section", "summary", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
_SPACED: Final = {
    "article", "blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol", "p", "section", "ul",
}  # fmt: skip
_KEPT: Final = {"pre", "textarea", "listing", "plaintext", "xmp"}
_CELLS: Final = {"td", "th"}
_LISTS: Final = {"ol", "ul", "menu", "dir"}
_UNSEEN: Final = {
    "annotation", "annotation-xml", "datalist", "iframe", "ix:header", "noembed", "noframes", "rp", "rt", "script",
    "style", "template", "title",
}  # fmt: skip
"""Not shown, or shown a second time, such as a formula's source or a phonetic guide."""
_BETWEEN: Final = {"msup": "^", "msub": "_", "mfrac": "/"}
"""The sign before the second part of a formula's element (MathML Core 3)."""
_OUT: Final = {Look.LEFT_OUT, Look.EMPTIED}
_SHIFTED: Final = {Look.RAISED: 1, Look.LOWERED: -1}
_BOXES: Final = {"checkbox", "radio"}
_TYPED: Final = {"", "text", "number", "date", "email", "tel", "url"}
"""Types of input fields that show their value."""
_LINKED_MARK: Final = re.compile(r"[(\[]?(?:\d{1,3}|[a-z]|[*†‡§]{1,3})[)\]]?")
_LEADS_TO_NOTE: Final = re.compile(
    r"#_?(?:sd)?(?:foot|end)?(?:n|en|fn|ftnt?|edn|note|nt(?P<from>c)|ntr|cite_note)[-_.:]?(?P<back>ref)?[-_.:]?"
    r"\d{1,4}(?:sym|(?P<anchor>anc))?(?:-[\w.-]*)?",
    re.IGNORECASE,
)
"""Links to notes and back, as editors, word processors and the Official Journal write them."""
_WHITE: Final = re.compile(r"\s+")
_CHARSET: Final = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)""", re.IGNORECASE)
_XML_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w:.-]+)""", re.IGNORECASE)
_PRESCAN: Final = 1024
"""Bytes at the beginning that may state the encoding (HTML Standard, 13.2.3.2)."""
ENCODINGS: Final = {
    **dict.fromkeys(["utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"], "utf-8"),
    **dict.fromkeys(["us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252", "cp1252"], "cp1252"),
    **{f"windows-{page}": f"cp{page}" for page in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{name: name for name in ("koi8-r", "koi8-u", "big5", "euc-jp", "euc-kr", "shift_jis", "gb18030")},
    **dict.fromkeys(["gbk", "gb2312"], "gb18030"),
}  # fmt: skip
"""Python's codecs for the labels of the Encoding Standard. As in that standard, an ASCII-compatible file that states
UTF-16 is read as UTF-8."""


class Page(NamedTuple):
    """The contents of a page."""

    text: str
    collected: list[tuple[str, dict[str, str], str]]
    """Tag, attributes and text, shown or not, of each requested element, in the order in which they end."""


def read_html(content: bytes) -> Content:
    r"""Convert an HTML file to text, without comments, scripts, styles, and hidden, struck or deleted text.

    Raises ``Unreadable`` if the file is too large, nested too deep, or not in the encoding that it states.

    Examples
    --------
    >>> read_html(b"<title>T</title><h1>Sales</h1><table><tr><td>2024<td>5.1<sup>1</sup></table>").text
    'Sales\n\n2024 | 5.1[^1]'
    """
    if len(content) > MAX_MARKUP:
        raise too_large(f"has {len(content)} bytes of HTML; want {MAX_MARKUP} at most")
    page = read_markup(decoded(content, _encoding(content)), collect={"title"})
    return Content(page.text, next((" ".join(text.split()) for _, _, text in page.collected), ""))


def read_markup(markup: str, *, collect: Collection[str] = ()) -> Page:
    """Return the visible text of a page, and the elements with the requested lower-case tags.

    Raises ``Unreadable`` if the page cannot be read, if elements or tables are nested too deep, or if the text is too
    long.
    """
    reader = _Reader(collect)
    parser = etree.HTMLParser(target=reader, encoding="utf-8")
    try:
        parser.feed(markup.encode("utf-8", "surrogatepass"))
        parser.close()
    except etree.LxmlError as error:
        if reader.began:
            raise broken(f"cannot be read as HTML: {error}") from None
        # lxml also raises for a file without elements or text.
    return Page(reader.blocks.text(), reader.collected)


def _encoding(content: bytes) -> str:
    start = content[:_PRESCAN]
    stated = _CHARSET.search(start) or _XML_ENCODING.search(start)
    if not stated:
        return "utf-8"
    label = stated[1].decode("ascii", "replace").lower()
    if label not in ENCODINGS:
        raise broken(f"states the unknown encoding {label!r}; want UTF-8")
    return ENCODINGS[label]


@dataclass(slots=True)
class _List:
    kind: str
    """The CSS type of its numbers."""
    next: int
    """The number of the next item."""
    counts_down: bool = False
    numbers: list[Number] = field(default_factory=list)
    """Numbers in a list that counts down, to be filled in when the list's length is known."""


@dataclass(slots=True)
class _Open:
    tag: str
    children: int = 0
    is_link: bool = False
    """Whether it is, or is inside, a link to a place on the page."""
    font: str = ""
    """The symbol font of its text; empty for an ordinary font."""


class _Option(NamedTuple):
    attributes: Mapping[str, str]
    pieces: list[str]

    def text(self) -> str:
        return " ".join((self.attributes.get("label") or "".join(self.pieces)).split())


@dataclass(slots=True)
class _Select:
    depth: int
    is_box: bool
    """Whether it is a list box, in which no option need be selected, rather than a menu."""
    options: list[_Option] = field(default_factory=list)

    def chosen(self) -> str:
        """Return the selected options (HTML Standard, 4.10.7); in a menu without any, the first that is enabled."""
        found = [one for one in self.options if "selected" in one.attributes]
        if not self.is_box:
            found = found[-1:] or [one for one in self.options if "disabled" not in one.attributes][:1]
        return ", ".join(one.text() for one in found)


class _Reader:
    def __init__(self, collect: Collection[str]) -> None:
        self.blocks = Blocks()
        self.collected: list[tuple[str, dict[str, str], str]] = []
        self.began = False
        self._collect = collect
        self._collecting: list[tuple[str, dict[str, str], list[str]]] = []
        self._styles = StyleSheet()
        self._sheet: list[str] = []
        self._open: list[_Open] = []
        self._unseen = 0
        """Depth of the outermost element that is left out, or 0."""
        self._kept = 0
        """Number of open elements that keep spaces."""
        self._lists: list[_List] = []
        self._select: _Select | None = None
        self._aside = _Aside()
        """Raised or lowered text, or a link that may be a note mark."""
        self._after_link = False
        """Whether the line ends with a link that was not a note mark."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.began = True
        opened = _Open(tag)
        if self._open:
            above = self._open[-1]
            above.children += 1
            opened.font, opened.is_link = above.font, above.is_link
        self._open.append(opened)
        if len(self._open) > MAX_NESTING:
            raise too_large(f"its elements are nested more than {MAX_NESTING} deep; want fewer levels")
        if tag in self._collect:
            self._collecting.append((tag, dict(attributes), []))
        if self._unseen:
            return
        if self._select is not None:
            if tag == "option":
                self._select.options.append(_Option(dict(attributes), []))
            elif tag in _UNSEEN:
                self._unseen = len(self._open)
            return
        style = self._styles.of(tag, attributes)
        if style.font is not None:
            opened.font = style.font.title() if is_symbol_font(style.font) else ""
        if style.look in _OUT or tag in _UNSEEN or "katex-html" in attributes.get("class", ""):
            if style.look is Look.EMPTIED and tag in _CELLS:
                self._start_block(tag, attributes, "")
            self._unseen = len(self._open)
            return
        if tag == "select":
            is_box = "multiple" in attributes or _count(attributes.get("size"), 1) > 1
            self._select = _Select(len(self._open), is_box)
            return
        is_link = tag == "a" and attributes.get("href", "").startswith("#")
        if is_link:
            opened.is_link = True
            self._aside.linked = True
        shift = _SHIFTED.get(style.look, 0)
        if (
            self._aside.depth
            and not self._aside.shift
            and (tag not in INLINE or (shift and self._aside.is_text()))
        ):
            self._end_aside()  # a link around a block is not a mark, and neither is the text before a mark
        if not self._aside.depth and (shift or is_link):
            self._aside = _Aside(
                len(self._open),
                shift,
                linked=opened.is_link,
                leads=_LEADS_TO_NOTE.fullmatch(attributes.get("href", "")),
            )
        elif shift and not self._aside.shift:
            self._aside.shift = shift
        else:
            self._start_block(tag, attributes, style.marker)

    def end(self, tag: str) -> None:
        depth = len(self._open)
        self._open.pop()
        if self._collecting and self._collecting[-1][0] == tag:
            name, attributes, pieces = self._collecting.pop()
            self.collected.append((name, attributes, "".join(pieces)))
        if self._unseen:
            if self._unseen == depth:
                self._unseen = 0
                self._styles.add("".join(self._sheet))
                self._sheet.clear()
        elif self._select is not None:
            if self._select.depth == depth:
                ended, self._select = self._select, None
                self._write(ended.chosen())
        elif self._aside.depth == depth:
            self._end_aside()
        else:
            self._end_block(tag)

    def data(self, text: str) -> None:
        if self._open and (font := self._open[-1].font):
            text = "".join(symbol(font, ord(one)) for one in text)
        for _, _, pieces in self._collecting:
            pieces.append(text)
        if self._unseen:
            if self._open[-1].tag == "style":
                self._sheet.append(text)
            elif text.isspace():  # a struck space still separates two words
                self._write(text)
        elif self._select is None:
            self._write(text)
        elif self._select.options:
            self._select.options[-1].pieces.append(text)

    def comment(self, text: str) -> None:
        """Leave out what is not shown."""

    def close(self) -> None:
        """Return nothing: the blocks are the result."""

    def _write(self, text: str) -> None:
        if self._aside.depth:
            self._aside.pieces.append(text)
        elif text:
            self._after_link = False
            self.blocks.write(text)

    def _end_aside(self) -> None:
        ended, self._aside = self._aside, _Aside()
        text = "".join(ended.pieces)
        if ended.shift:
            self.blocks.mark(_WHITE.sub(" ", text), is_raised=ended.shift > 0, linked=ended.linked)
        elif self._is_mark(text, ended.leads):
            self.blocks.mark(text, linked=True)
        else:
            self.blocks.write(text)
            self._after_link = bool(text)

    def _is_mark(self, link: str, leads: re.Match[str] | None) -> bool:
        """Tell whether a link is a note mark: it directly follows a word, where a sentence would have a space.

        Word processors cut one link into several, even within a word or a year, so a link after another link or a
        figure is a mark only if its target is a note. A link back from a note begins the note.
        """
        text = link.strip()
        if _LINKED_MARK.fullmatch(text) is None:
            return False
        if not self.blocks.in_line:
            return leads is not None and any(leads.groupdict().values())
        before = self.blocks.before[-1:]
        if before.isspace():  # in the Official Journal, marks stand in brackets after a space
            return leads is not None and text[0] in "(["
        if before in "([{/–—-":
            return False
        return leads is not None or not (self._after_link or before.isdigit() or text.isalpha())

    def _start_block(self, tag: str, attributes: Mapping[str, str], marker: str) -> None:
        if tag in _LISTS:
            self._boundary("ul")
            kind = marker or ("decimal" if tag == "ol" else "disc")
            self._lists.append(_List(kind, _count(attributes.get("start"), 1), "reversed" in attributes))
        elif tag == "table":
            self.blocks.start_table()
        elif tag in _CELLS and self.blocks.in_table:
            across, down = (_count(attributes.get(name), 1) for name in ("colspan", "rowspan"))
            self.blocks.start_cell(across=across, down=down, is_head=tag == "th")
        elif tag == "tr" and self.blocks.in_table:
            self.blocks.end_row()
        elif tag == "br":
            self._end_line(blank=False)
        elif tag == "input":
            self._field(attributes)
        elif tag == "q":
            self._write("“")
        else:
            self._boundary(tag)
            self._kept += tag in _KEPT
            if tag == "li" and self._lists:
                self._item(self._lists[-1], marker, attributes.get("value"))
            elif len(self._open) > 1 and self._open[-2].tag in _BETWEEN and self._open[-2].children == 2:
                self._write(_BETWEEN[self._open[-2].tag])

    def _end_block(self, tag: str) -> None:
        if tag in _LISTS and self._lists:
            ended = self._lists.pop()
            for at, number in enumerate(reversed(ended.numbers)):
                number.text = label_of(ended.kind, at + 1)
            self._boundary("ul")
        elif tag == "table" and self.blocks.in_table:
            self.blocks.end_table()
        elif tag in _CELLS and self.blocks.in_table:
            self.blocks.end_cell()
        elif tag == "tr" and self.blocks.in_table:
            self.blocks.end_row()
        elif tag == "q":
            self._write("”")
        else:
            self._boundary(tag)
            self._kept -= tag in _KEPT and self._kept > 0
            if tag == "li":
                self.blocks.drop_numbers()

    def _item(self, inside: _List, marker: str, value: str | None) -> None:
        if inside.counts_down and value is None:
            number = Number("")
            inside.numbers.append(number)
        else:
            at = _count(value, inside.next)
            inside.next = at + 1
            number = Number(label_of(marker or inside.kind, at))
        self.blocks.number(number)

    def _field(self, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("type", "").lower()
        if kind in _BOXES:
            self._write("☒" if "checked" in attributes else "☐")
        elif kind in _TYPED:
            self._write(attributes.get("value", ""))

    def _boundary(self, tag: str) -> None:
        if tag not in _SPACED and tag not in _KEPT and tag not in _BLOCKS:
            return
        if self._aside.depth:
            self._aside.pieces.append(" ")
        else:
            self._end_line(blank=tag not in _BLOCKS or tag in _SPACED)

    def _end_line(self, *, blank: bool) -> None:
        if self._aside.depth:
            self._aside.pieces.append(" ")
        else:
            self.blocks.end_line(blank=blank, kept=bool(self._kept))


@dataclass(slots=True)
class _Aside:
    """An element's text, which is kept apart from its line until the element ends."""

    depth: int = 0
    """The depth of the element, or 0."""
    shift: int = 0
    """1 for raised text, -1 for lowered text, 0 for a link in the line."""
    linked: bool = False
    """Whether it is inside a link to a place on the page, or holds one."""
    leads: re.Match[str] | None = None
    """The match of the link's target, if it is named as notes are."""
    pieces: list[str] = field(default_factory=list)

    def is_text(self) -> bool:
        """Tell whether the text is more than the opening bracket of a mark."""
        return "".join(self.pieces).strip() not in {"", "(", "["}


def _count(stated: str | None, default: int) -> int:
    found = re.match(r"\s*([-+]?\d{1,6})", stated or "")
    return int(found[1]) if found else default
