"""Convert an HTML file to its visible text and title.

The parser is lxml's, used without building a tree: events in, lines out, so memory grows with the text and not with the
markup. It opens no network, loads no DTD and expands no entity but those of HTML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lxml import etree

from carag.readers.flow import Flow
from carag.readers.outcome import Content, ProblemKind, Unreadable
from carag.readers.plain import decoded

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ENCODINGS", "read_html"]

MAX_MARKUP: Final = 1 << 25
"""Greatest number of bytes of an HTML file: of nothing but tags, they take half a minute."""
MAX_NESTING: Final = 10_000
"""Greatest depth of elements: browsers stop at 512, but count old pages' tags that are never closed as fewer."""
_BLOCKS: Final = {
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "html", "legend", "li", "main", "nav", "ol",
    "optgroup", "option", "section", "summary", "ul", "caption",
}  # fmt: skip
_SPACED: Final = {
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "p",
    "ol",
    "ul",
    "dl",
    "blockquote",
    "section",
    "article",
}
_KEPT: Final = {"pre", "textarea", "listing", "plaintext", "xmp"}
_CELLS: Final = {"td", "th"}
_UNSEEN: Final = {"script", "style", "template", "title", "datalist", "noembed", "noframes", "iframe"}
_HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
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
"""Python's codecs for the labels of the Encoding Standard that say what text files are in; a file in ASCII that states
UTF-16 is UTF-8, as there."""


def read_html(content: bytes) -> Content:
    r"""Convert an HTML file to text.

    Scripts, styles and what is marked as hidden are left out; comments too. Invisible characters stay.

    Raises
    ------
    Unreadable
        If it is too large, nested too deep, or not in the encoding that it states.

    Examples
    --------
    >>> read_html(b"<title>T</title><h1>Sales</h1><table><tr><td>2024<td>5.1</table><script>x</script>").text
    'Sales\n\n2024 | 5.1'
    """
    if len(content) > MAX_MARKUP:
        raise Unreadable(ProblemKind.TOO_LARGE, f"{len(content)} bytes of HTML; want {MAX_MARKUP} at most")
    markup = decoded(content, _encoding(content))
    target = _Target()
    parser = etree.HTMLParser(target=target, encoding="utf-8")
    try:
        parser.feed(markup.encode("utf-8"))
        parser.close()
    except etree.LxmlError as error:
        if target.began:
            raise Unreadable(ProblemKind.BROKEN, f"no HTML ({error})") from None
        # lxml says so of a file without an element or a text.
    return Content(target.flow.text(), " ".join("".join(target.title).split()))


def _encoding(content: bytes) -> str:
    start = content[:_PRESCAN]
    stated = _CHARSET.search(start) or _XML_ENCODING.search(start)
    if not stated:
        return "utf-8"
    label = stated[1].decode("ascii", "replace").lower()
    if label not in ENCODINGS:
        raise Unreadable(ProblemKind.BROKEN, f"states the encoding {label!r}, which is not known; want UTF-8")
    return ENCODINGS[label]


class _Target:
    """Turns the parser's events into lines."""

    def __init__(self) -> None:
        self.flow = Flow()
        self.title: list[str] = []
        self.began = False
        self._depth = 0
        self._unseen_from = 0
        """Depth of the outermost element that is not shown; 0 if none."""
        self._kept_from = 0
        """Depth of the outermost element whose spaces are kept; 0 if none."""
        self._in_title = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.began = True
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unreadable(
                ProblemKind.TOO_LARGE, f"elements nested more than {MAX_NESTING} deep; want fewer"
            )
        if self._unseen_from:
            return
        if tag in _UNSEEN or "hidden" in attributes or _HIDDEN_STYLE.search(attributes.get("style", "")):
            self._unseen_from = self._depth
            self._in_title = tag == "title" and not self.title
        elif tag == "table":
            self.flow.start_table()
        elif tag in _CELLS and self.flow.in_table:
            self.flow.start_cell()
        elif tag == "tr" and self.flow.in_table:
            self.flow.end_row()
        elif tag == "br":
            self._end_line(blank=False)
        else:
            self._boundary(tag)
            if tag in _KEPT and not self._kept_from:
                self._kept_from = self._depth

    def end(self, tag: str) -> None:
        if self._unseen_from:
            if self._unseen_from == self._depth:
                self._unseen_from, self._in_title = 0, False
        elif tag == "table" and self.flow.in_table:
            self.flow.end_table()
        elif tag in _CELLS and self.flow.in_table:
            self.flow.end_cell()
        elif tag == "tr" and self.flow.in_table:
            self.flow.end_row()
        else:
            self._boundary(tag)
            if self._kept_from == self._depth:
                self._kept_from = 0
        self._depth -= 1

    def data(self, text: str) -> None:
        if self._in_title:
            self.title.append(text)
        elif not self._unseen_from:
            self.flow.write(text)

    def comment(self, text: str) -> None:
        """Leave out what is not shown."""

    def close(self) -> None:
        """Return nothing: the flow is the result."""

    def _boundary(self, tag: str) -> None:
        if tag in _SPACED or tag in _KEPT:
            self._end_line(blank=True)
        elif tag in _BLOCKS or tag in {"td", "th", "tr"}:
            self._end_line(blank=False)

    def _end_line(self, *, blank: bool) -> None:
        self.flow.end_line(blank=blank, kept=bool(self._kept_from))
