"""Convert HTML and XML documents to plain text, and extract the ``dei`` cover-page facts tagged in them.

A table row becomes one line, its cells joined by ``" | "``; blocks are separated by a blank line; hidden parts are
omitted. Real filings have unclosed cells, tables inside tables, and inline XBRL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Final

__all__ = ["DeiFact", "html_text", "is_html", "xml_text"]

_BLOCKS: Final = {
    "address", "article", "blockquote", "body", "center", "dd", "div", "dl", "dt", "fieldset", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "html", "li", "ol", "p", "pre", "section", "table", "tbody",
    "tfoot", "thead", "tr", "ul",
}  # fmt: skip
_SPACED: Final = {"h1", "h2", "h3", "h4", "h5", "h6", "hr", "p", "table", "ul", "ol"}
_DROPPED: Final = {"script", "style", "title", "ix:header"}
_HIDEABLE: Final = {"div", "span", "table", "tr", "td"}
_HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_SPACES: Final = re.compile(r"\s+")
_HTML: Final = re.compile(r"<(?:!doctype html|html|body|div|font|table [^>]*=|p\b|br\b)", re.IGNORECASE)
_XML_LEAF: Final = re.compile(r"<([\w:.-]+)(?:[\s/][^<>]*)?>([^<>]+)</\1\s*>")


@dataclass(frozen=True, slots=True)
class DeiFact:
    """One inline XBRL fact of the ``dei`` taxonomy."""

    name: str
    """Name of the element without its prefix, such as ``EntityShellCompany``."""
    text: str
    format: str
    """The transformation that gives the value, such as ``ixt:booleanfalse``; empty if none is named."""

    @property
    def truth(self) -> bool | None:
        """The fact as a Boolean; None if it is not one.

        The transformation decides: ``booleanfalse`` over a ticked *No* box is false. A box without a transformation
        is None.
        """
        transformation = self.format.rpartition(":")[2].lower().replace("-", "")
        if transformation in {"booleantrue", "fixedtrue"}:
            return True
        if transformation in {"booleanfalse", "fixedfalse"}:
            return False
        if transformation == "boolballotbox":
            return {"☐": False, "☒": True, "☑": True}.get(self.text)
        return {"true": True, "false": False}.get(self.text.lower())


def is_html(text: str) -> bool:
    """Tell whether a document's beginning has HTML tags (``<TABLE>`` and ``<PAGE>`` also occur in ASCII filings)."""
    return _HTML.search(text[:4000]) is not None


def html_text(markup: str) -> tuple[str, tuple[DeiFact, ...]]:
    r"""Convert an HTML document to plain text and ``dei`` facts.

    Returns
    -------
    text : str
    facts : tuple of DeiFact
        Cover-page facts in document order.

    Examples
    --------
    >>> html_text("<p>Sales</p><table><tr><td>2023<td>$<td>5.1</tr></table>")[0]
    'Sales\n\n2023 | $5.1'
    """
    parser = _Document()
    parser.feed(markup)
    parser.close()
    return parser.text(), tuple(parser.facts)


def xml_text(markup: str) -> str:
    """Convert an XML form (ownership, 13F, Schedule 13D/G) to one ``name: value`` line per non-empty element."""
    leaves = ((name, unescape(value).strip()) for name, value in _XML_LEAF.findall(markup))
    return "\n".join(f"{name}: {value}" for name, value in leaves if value)


@dataclass(slots=True)
class _Table:
    cells: list[str] = field(default_factory=list)
    cell: list[str] | None = None


class _Document(HTMLParser):
    """Turn parser events into lines. Line breaks in a cell are kept until its row is known to be data or layout."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.facts: list[DeiFact] = []
        self._lines: list[str] = []
        self._line: list[str] = []
        self._tables: list[_Table] = []
        self._hidden = ""
        self._hidden_depth = 0
        self._open_facts: list[tuple[str, str, list[str]]] = []

    def text(self) -> str:
        while self._tables:
            self.handle_endtag("table")
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "ix:nonnumeric":
            named = dict(attrs)
            self._open_facts.append((named.get("name") or "", named.get("format") or "", []))
        if self._hidden:
            self._hidden_depth += tag == self._hidden
        elif tag in _DROPPED or (
            tag in _HIDEABLE and any(k == "style" and v and _HIDDEN_STYLE.search(v) for k, v in attrs)
        ):
            self._hidden, self._hidden_depth = tag, 1
        elif tag == "table":
            self._break(blank=True)
            self._tables.append(_Table())
        elif self._tables and tag in {"tr", "td", "th"}:
            (self._end_row if tag == "tr" else self._start_cell)()
        elif tag == "br" or tag in _BLOCKS:
            self._break(blank=tag in _SPACED)

    def handle_endtag(self, tag: str) -> None:
        if tag == "ix:nonnumeric" and self._open_facts:
            name, transformation, pieces = self._open_facts.pop()
            prefix, _, local = name.partition(":")
            if prefix == "dei":
                self.facts.append(DeiFact(local, _squeeze("".join(pieces)), transformation))
        if self._hidden:
            self._hidden_depth -= tag == self._hidden
            if not self._hidden_depth:
                self._hidden = ""
        elif tag == "table" and self._tables:
            self._end_row()
            self._tables.pop()
            self._break(blank=True)
        elif self._tables and tag in {"tr", "td", "th"}:
            (self._end_row if tag == "tr" else self._end_cell)()
        elif tag in _BLOCKS:
            self._break(blank=tag in _SPACED)

    def handle_data(self, data: str) -> None:
        for _, _, pieces in self._open_facts:
            pieces.append(data)
        if not self._hidden:
            self._target().append(data.replace("\n", " "))

    def _target(self) -> list[str]:
        if self._tables and self._tables[-1].cell is not None:
            return self._tables[-1].cell
        return self._line

    def _break(self, *, blank: bool = False) -> None:
        if self._tables and self._tables[-1].cell is not None:
            self._tables[-1].cell.append("\n")
            return
        if line := _squeeze("".join(self._line)):
            self._lines.append(line)
        self._line.clear()
        if blank and self._lines and self._lines[-1]:
            self._lines.append("")

    def _start_cell(self) -> None:
        self._end_cell()
        self._tables[-1].cell = []

    def _end_cell(self) -> None:
        table = self._tables[-1]
        if table.cell is not None:
            table.cells.append("".join(table.cell))
            table.cell = None

    def _end_row(self) -> None:
        self._end_cell()
        cells = [cell for cell in self._tables[-1].cells if not cell.isspace() and cell]
        self._tables[-1].cells = []
        nested = any("\v" in cell for cell in cells)
        if len(cells) == 1 or nested:  # layout, not data: its lines are kept apart
            lines = [line for cell in cells for line in re.split(r"[\n\v]", cell)]
        else:
            lines = [_join_row([_squeeze(cell) for cell in cells])]
        self._emit([squeezed for line in lines if (squeezed := _squeeze(line))])

    def _emit(self, lines: list[str]) -> None:
        """Append a finished row to the document, or to the cell of the enclosing table."""
        if len(self._tables) > 1 and (outer := self._tables[-2].cell) is not None:
            outer.extend(f"\v{line}\v" for line in lines)
        else:
            self._lines.extend(lines)


def _squeeze(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _join_row(cells: list[str]) -> str:
    """Join cells; a currency sign or closing bracket in a cell of its own is joined to its number."""
    joined: list[str] = []
    for cell in cells:
        if joined and (joined[-1] in {"$", "€", "£", "(", "$("} or cell in {")", "%", ")%"}):
            joined[-1] += cell
        else:
            joined.append(cell)
    return " | ".join(joined)
