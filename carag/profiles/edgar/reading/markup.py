"""Convert HTML and XML documents to plain text, and extract the ``dei`` cover-page facts tagged in them.

Real filings have unclosed cells, tables inside tables, and inline XBRL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from carag.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.readers.child import Child


ReadsHtml: TypeAlias = "Callable[[str], tuple[str, tuple[DeiFact, ...]]]"
"""A function that returns the text and facts of an HTML document."""

_HTML: Final = re.compile(r"<(?:!doctype html|html|body|div|font|table [^>]*=|p\b|br\b)", re.IGNORECASE)
_TABLE: Final = re.compile(r"<(/?)table>", re.IGNORECASE)
_COLUMN: Final = re.compile(r"</?(?:S|C|CAPTION)>(?=\s)", re.IGNORECASE)
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
        """The fact as a Boolean, or None.

        The transformation decides: ``booleanfalse`` over a ticked *No* box gives False. A box without a transformation
        gives None.
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
    """Tell whether a document begins with HTML tags (``<TABLE>`` and ``<PAGE>`` also occur in ASCII filings)."""
    return _HTML.search(text[:4000]) is not None


def html_text(markup: str) -> tuple[str, tuple[DeiFact, ...]]:
    r"""Convert an HTML document to plain text and its ``dei`` facts, in the order in which their elements end.

    Raises ``Unreadable`` if elements are nested too deep, or the text is too long. Raises ``MissingExtra`` if lxml is
    not installed.

    Examples
    --------
    >>> html_text("<p>Sales</p><table><tr><td>2023<td>$<td>5.1</tr></table>")[0]
    'Sales\n\n2023 | $5.1'
    """
    require("reading HTML filings", "engine")
    from carag.readers.html import read_markup

    page = read_markup(_with_ascii_tables_kept(markup), collect={"ix:nonnumeric"})
    facts = []
    for _, stated, text in page.collected:
        prefix, _, name = stated.get("name", "").partition(":")
        if prefix == "dei":
            facts.append(DeiFact(name, " ".join(text.split()), stated.get("format", "")))
    return page.text, tuple(facts)


def _with_ascii_tables_kept(markup: str) -> str:
    """Mark the tables of an ASCII filing as preformatted.

    Their tags ``<S>`` and ``<C>`` mark columns (EDGAR Filer Manual, volume II, 5.2.1); in HTML, ``<S>`` strikes text.
    """
    pieces, done, start = [], 0, None
    for tag in _TABLE.finditer(markup):
        if not tag[1]:
            start = tag
        elif start is not None:
            inside = markup[start.end() : tag.start()]
            if _COLUMN.search(inside):
                pieces += [markup[done : start.start()], "<pre>", _COLUMN.sub("", inside), "</pre>"]
                done = tag.end()
            start = None
    return "".join(pieces) + markup[done:]


def html_text_in(child: Child, markup: str) -> tuple[str, tuple[DeiFact, ...]]:
    """Do what :func:`html_text` does, in a child process with limits on time and memory."""
    require("reading HTML filings", "engine")
    found = child.call(_text_and_facts, markup.encode("utf-8", "surrogatepass"))
    return found["text"], tuple(DeiFact(*fact) for fact in found["facts"])


def _text_and_facts(content: bytes) -> dict[str, Any]:
    text, facts = html_text(content.decode("utf-8", "surrogatepass"))
    return {"text": text, "facts": [(fact.name, fact.text, fact.format) for fact in facts]}


def xml_text(markup: str) -> str:
    """Convert an XML form (ownership, 13F, Schedule 13D/G) to one line ``name: value`` per non-empty element."""
    leaves = ((name, unescape(value).strip()) for name, value in _XML_LEAF.findall(markup))
    return "\n".join(f"{name}: {value}" for name, value in leaves if value)
