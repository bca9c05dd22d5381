"""Turn the shapes of a slide, or those drawn on a sheet, into text: paragraphs and tables, as they are shown.

Struck text and hidden shapes do not count as text; numbers and bullets that the program counts are not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lxml import etree

from carag.readers.blocks import Blocks
from carag.readers.office.docx_styles import attribute, child, name_of
from carag.readers.office.package import TRUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml.etree import _Element


_NOT_SHOWN: Final = {"Fallback", "endParaRPr", "pPr", "rPr", "tblPr"}
_UNREAD: Final = {"chart": "a chart", "diagram": "a diagram"}


def shapes_text(shapes: Iterable[_Element]) -> tuple[str, list[str]]:
    """Return the text of shapes, and what they show in a form that is not read.

    Raises ``Unreadable`` if tables are nested too deep, or the text is too long.
    """
    blocks, unread = Blocks(), list[str]()
    for shape in shapes:
        walk = etree.iterwalk(shape, events=("start", "end"))
        for event, element in walk:
            name = name_of(element)
            if event == "end":
                _end(blocks, name)
            elif name in _NOT_SHOWN or _is_hidden(element):
                walk.skip_subtree()
            elif name == "graphicData" and child(element, "tbl") is None:
                unread.append(_UNREAD.get(attribute(element, "uri").rpartition("/")[2], "an embedded object"))
                walk.skip_subtree()
            else:
                _start(blocks, element, name)
    return blocks.text(), unread


def _is_hidden(element: _Element) -> bool:
    """Tell whether a shape is hidden, or a cell is the rest of the cell beside it."""
    named = next((one for group in element for one in group.iterchildren("{*}cNvPr")), None)
    return attribute(element, "hMerge") in TRUE or (named is not None and attribute(named, "hidden") in TRUE)


def _start(blocks: Blocks, element: _Element, name: str) -> None:
    if name == "t":
        _write(blocks, element.text or "", child(element.getparent(), "rPr"))
    elif name == "tbl":
        blocks.start_table()
    elif name == "tc":
        across = attribute(element, "gridSpan")
        blocks.start_cell(
            across=int(across[:4]) if across.isdecimal() else 1, goes_on=attribute(element, "vMerge") in TRUE
        )


def _write(blocks: Blocks, text: str, properties: _Element | None) -> None:
    look = {} if properties is None else properties.attrib
    shift = look.get("baseline", "0")
    if look.get("strike", "noStrike") != "noStrike":
        return
    if shift.strip("-0%"):
        blocks.mark(text, is_raised=not shift.startswith("-"))
    else:
        blocks.write(text)


def _end(blocks: Blocks, name: str) -> None:
    if name in {"p", "br"}:
        blocks.end_line(blank=name == "p" and not blocks.in_table)
    elif name == "tr":
        blocks.end_row()
    elif name == "tbl":
        blocks.end_table()
