"""Turn the elements of a part of a Word document into blocks, as Word shows them.

Inserted text, field results, content controls and text boxes count as text. Deleted, hidden and struck text, comments,
and the placeholder of an empty control do not. A text box follows the paragraph that anchors it, and a note follows the
paragraph or table that refers to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lxml import etree

from carag.readers.blocks import Blocks
from carag.readers.list_numbers import numeral
from carag.readers.office.docx_lists import KINDS, Lists
from carag.readers.office.docx_styles import attribute, child, is_on, name_of, stated
from carag.readers.outcome import too_large
from carag.readers.symbols import is_symbol_font, symbol

if TYPE_CHECKING:
    from lxml.etree import _Element

    from carag.readers.office.docx_styles import RunLook, Styles


MAX_BOXES: Final = 32
"""Greatest depth of nested text boxes; Word itself never nests them."""
MAX_NESTING: Final = 1024
"""Greatest depth of elements in a part: a table inside a table inside a text box has about 40."""
_SHOWN: Final = -1
_SIGNS: Final = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "\u2011"}
_NOT_SHOWN: Final = {
    "Fallback", "cellDel", "del", "moveFrom", "numPr", "pPr", "rPr", "rt", "sdtPr", "sectPr", "tblGrid", "tblPr",
    "tcPr", "trPr",
}  # fmt: skip
"""Deleted and moved-away text, fallbacks for programs before 2010, phonetic guides, and properties, which are looked up
separately."""
_PARTS_OF_TABLES: Final = {"tc", "tr"}
_MATH: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_PARTS: Final = {"sup": "^", "sub": "_", "den": "/", "num": "", "deg": ""}
"""The sign before a part of a formula; a part longer than a word gets brackets (ECMA-376, part 1, 22.1)."""


class Notes:
    """A document's footnotes and endnotes, numbered in the order of their references."""

    def __init__(
        self, footnotes: _Element | None, endnotes: _Element | None, settings: _Element | None
    ) -> None:
        self._notes = {
            kind: {attribute(one, "id"): one for one in (root if root is not None else ())}
            for kind, root in (("footnote", footnotes), ("endnote", endnotes))
        }
        self._kind = {"footnote": "decimal", "endnote": "lower-roman"}
        self._next = {"footnote": 1, "endnote": 1}
        for kind in self._notes:
            properties = child(settings, f"{kind}Pr")
            if (start := stated(properties, "numStart")).isdecimal():
                self._next[kind] = int(start[:6])
            if (shape := child(properties, "numFmt")) is not None:
                self._kind[kind] = KINDS.get(attribute(shape, "val"), "decimal")

    def refer(self, reference: _Element) -> tuple[str, _Element | None]:
        """Return the mark of a reference, and the note it refers to."""
        kind = name_of(reference).removesuffix("Reference")
        note = self._notes[kind].get(attribute(reference, "id"))
        if attribute(reference, "customMarkFollows") not in {"", "0", "false", "off"}:
            return "", note
        number, self._next[kind] = self._next[kind], self._next[kind] + 1
        return numeral(self._kind[kind], number), note


@dataclass(slots=True)
class _Paragraph:
    style: str
    goes_on: bool
    """Whether its paragraph mark is deleted or hidden, so that the next paragraph continues its line."""
    notes: list[tuple[str, _Element]] = field(default_factory=list)
    boxes: list[_Element] = field(default_factory=list)


class Story:
    """Reads one part, and counts its lists from the part's own beginning, as the part ``numbering`` defines them."""

    def __init__(self, styles: Styles, numbering: _Element | None, notes: Notes | None = None) -> None:
        self._styles, self._lists, self._notes = styles, Lists(numbering, styles), notes
        self._blocks = Blocks()
        self._paragraphs: list[_Paragraph] = []
        self._due: list[tuple[str, _Element]] = []
        """Notes that are still to be written, each after its mark."""
        self._boxes: list[_Element] = []
        """Text boxes that are still to be written."""
        self._in_boxes = 0
        self._fields: list[int] = []
        """For each open field, the paragraph where its instruction began; ``_SHOWN`` after the instruction."""
        self._instructions = 0
        """How many instructions began in this paragraph: a field that is never closed must not hide later
        paragraphs."""
        self._ended = 0
        """The number of paragraphs that have ended so far."""
        self._looks: list[RunLook] = []
        """One for each open run: a phonetic guide is a run inside a run."""
        self._goes_on = False
        """Whether the next paragraph continues the line of the last one."""
        self._shift = 0
        self._shifted: list[str] = []
        """Raised or lowered text that is not written yet: the next run may continue it."""
        self._own_mark = ""
        """The mark of the note that is being read."""
        self._first_mark = ""
        """The mark that the next paragraph begins with, because its note does not show it."""
        self._tables: list[bool] = []
        """For each open table, whether its current row is a header row."""
        self._known: dict[tuple[object, ...], RunLook] = {}

    def text(self, root: _Element) -> str:
        """Return the text of a part.

        Raises ``Unreadable`` if elements, tables or text boxes are nested too deep, or the text is too long.
        """
        self._walk(root)
        return self._blocks.text()

    def _walk(self, root: _Element) -> None:
        depth = 0
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            depth += 1 if event == "start" else -1
            if depth > MAX_NESTING:
                raise too_large(f"its elements are nested more than {MAX_NESTING} deep; want fewer levels")
            if event == "end":
                self._end(element)
            elif not self._start(element):
                walk.skip_subtree()

    def _start(self, element: _Element) -> bool:
        name = name_of(element)
        if name in _NOT_SHOWN or (name in _PARTS_OF_TABLES and _is_deleted(element, name)):
            return False
        if name == "p":
            self._start_paragraph(element)
        elif name == "r":
            style = self._paragraphs[-1].style if self._paragraphs else ""
            self._looks.append(self._look_of(child(element, "rPr"), style))
            return not (self._looks[-1].hidden or self._looks[-1].struck)
        elif name == "txbxContent" and self._paragraphs:
            self._paragraphs[-1].boxes.append(element)
            return False
        elif name == "sdt":
            return not is_on(child(element, "sdtPr", "showingPlcHdr"))
        elif name == "tbl":
            self._flush()
            self._blocks.start_table()
            self._tables.append(False)
        elif name == "tr" and self._tables:
            self._start_row(element)
        elif name == "tc" and self._tables:
            if _goes_on_across(element):
                return False
            self._start_cell(element)
        elif element.tag.startswith(_MATH):
            self._write(_around(element, name)[0] if name != "t" else element.text or "")
        else:
            self._in_run(element, name)
        return True

    def _end(self, element: _Element) -> None:
        name = name_of(element)
        if name == "p":
            self._end_paragraph()
        elif name == "r":
            self._looks.pop()
        elif name == "tbl" and self._tables:
            self._blocks.end_table()
            self._tables.pop()
            self._write_notes()
        elif name == "tc" and self._tables and not (_is_deleted(element, name) or _goes_on_across(element)):
            self._flush()
            self._blocks.end_cell()
            self._goes_on = False
        elif name == "tr" and self._tables:
            self._blocks.end_row()
        elif name == "fldChar":
            self._field(attribute(element, "fldCharType"))
        elif element.tag.startswith(_MATH):
            self._write(_around(element, name)[1])

    def _start_paragraph(self, element: _Element) -> None:
        if not self._goes_on:
            self._end_line()
        self._goes_on = False
        self._mark(1, self._first_mark)
        self._first_mark = ""
        properties = child(element, "pPr")
        named = stated(properties, "pStyle")
        mark = child(properties, "rPr")
        deleted = child(mark, "del") is not None or child(mark, "moveFrom") is not None
        hidden = self._look_of(mark, named).hidden
        self._paragraphs.append(_Paragraph(named, goes_on=deleted or hidden))
        shown = not deleted and (not hidden or is_on(child(mark, "specVanish")))
        place = self._styles.list_of(properties) if shown else None
        if place is not None and (number := self._lists.number(place)).text:
            self._blocks.number(number)

    def _end_paragraph(self) -> None:
        if not self._paragraphs:
            return
        ended = self._paragraphs.pop()
        self._ended += 1
        self._instructions = 0
        self._due += ended.notes
        self._boxes += ended.boxes
        if ended.goes_on:
            self._goes_on = True
            return
        self._end_line(blank=True)
        self._write_boxes()
        self._write_notes()

    def _write_boxes(self) -> None:
        boxes, self._boxes = self._boxes, []
        if boxes and self._in_boxes == MAX_BOXES:
            raise too_large(f"its text boxes are nested more than {MAX_BOXES} deep; want fewer levels")
        self._in_boxes += 1
        around, self._paragraphs = self._paragraphs, []
        for one in boxes:
            for part in one:
                self._walk(part)
        self._paragraphs = around
        self._in_boxes -= 1

    def _start_row(self, element: _Element) -> None:
        self._blocks.end_row()
        properties = child(element, "trPr")
        self._tables[-1] = is_on(child(properties, "tblHeader"))
        before = stated(properties, "gridBefore")
        if before.isdecimal():
            self._blocks.start_cell(across=int(before[:4]))
            self._blocks.end_cell()

    def _start_cell(self, element: _Element) -> None:
        properties = child(element, "tcPr")
        across, merged = stated(properties, "gridSpan"), child(properties, "vMerge")
        goes_on = merged is not None and attribute(merged, "val") != "restart"
        wide = int(across[:4]) if across.isdecimal() else 1
        for beside in element.itersiblings():
            if not _goes_on_across(beside):
                break
            wide += 1
        self._blocks.start_cell(across=wide, goes_on=goes_on, is_head=self._tables[-1])

    def _in_run(self, element: _Element, name: str) -> None:
        if self._instructions:
            return
        if name == "t":
            self._write(element.text or "")
        elif not self._looks:
            return
        elif name in _SIGNS:
            self._write(_SIGNS[name])
        elif name in {"br", "cr"}:
            self._end_line()
        elif name == "sym":
            code = attribute(element, "char")
            if len(code) == 4 and all(one in "0123456789abcdefABCDEF" for one in code):
                self._write(symbol(attribute(element, "font"), int(code, 16)))
        elif name in {"footnoteReference", "endnoteReference"} and self._notes is not None:
            mark, note = self._notes.refer(element)
            self._flush()
            self._mark(1, mark)
            self._flush()
            if note is not None and self._paragraphs and not self._own_mark:
                self._paragraphs[-1].notes.append((mark, note))
        elif name in {"footnoteRef", "endnoteRef"}:
            self._mark(1, self._own_mark)
        elif name == "checkBox":
            ticked = child(element, "checked")
            ticked = child(element, "default") if ticked is None else ticked
            self._write("☒" if is_on(ticked) else "☐")
        elif name == "ddList":
            self._write(_chosen(element))

    def _field(self, kind: str) -> None:
        """Handle one of the three signs that delimit a field's instruction and its result."""
        if kind == "begin":
            self._fields.append(self._ended)
            self._instructions += 1
        elif self._fields and kind in {"separate", "end"}:
            self._instructions -= self._fields.pop() == self._ended
            if kind == "separate":
                self._fields.append(_SHOWN)

    def _look_of(self, properties: _Element | None, style: str) -> RunLook:
        key = (style, *((one.tag, *one.items()) for one in (properties if properties is not None else ())))
        if key not in self._known:
            self._known[key] = self._styles.run(properties, style)
        return self._known[key]

    def _write(self, text: str) -> None:
        look = self._looks[-1] if self._looks else None
        if look is not None and is_symbol_font(look.font):
            text = "".join(symbol(look.font, ord(one)) for one in text)
        if look is not None and look.shift and text.strip():
            self._mark(look.shift, text)
        elif text:
            self._flush()
            self._blocks.write(text)

    def _mark(self, shift: int, text: str) -> None:
        if text:
            if self._shift != shift:
                self._flush()
            self._shift = shift
            self._shifted.append(text)

    def _flush(self) -> None:
        if self._shifted:
            self._blocks.mark("".join(self._shifted), is_raised=self._shift > 0)
            self._shifted = []

    def _end_line(self, *, blank: bool = False) -> None:
        self._flush()
        self._blocks.end_line(blank=blank, kept=True)

    def _write_notes(self) -> None:
        if self._tables or self._own_mark or not self._due:
            return
        due, self._due = self._due, []
        for mark, note in due:
            self._own_mark = mark or "*"
            if not any(name_of(one) in {"footnoteRef", "endnoteRef"} for one in note.iter()):
                self._first_mark = mark
            self._walk(note)
            self._end_line(blank=True)
            self._own_mark = ""


def _around(element: _Element, name: str) -> tuple[str, str]:
    """Return the text that goes before and after a part of a formula when the formula is written on one line."""
    properties = child(element, f"{name}Pr")

    def sign(which: str, default: str) -> str:
        found = child(properties, which)
        return default if found is None else attribute(found, "val")

    if name == "d":
        return sign("begChr", "("), sign("endChr", ")")
    if name == "nary":
        return sign("chr", "∫"), ""
    if name == "rad":
        return "√(", ")"
    if name not in _PARTS:
        return "", ""
    text = "".join(element.itertext()).strip()
    brackets = ("", "") if not text or text.isalnum() else ("(", ")")
    return _PARTS[name] * bool(text) + brackets[0], brackets[1]


def _chosen(choices: _Element) -> str:
    result = child(choices, "result")
    result = child(choices, "default") if result is None else result
    at = "0" if result is None else attribute(result, "val")
    entries = [attribute(one, "val") for one in choices if name_of(one) == "listEntry"]
    return entries[int(at)] if at.isdecimal() and int(at[:6]) < len(entries) else ""


def _goes_on_across(cell: _Element) -> bool:
    """Tell whether a cell continues the one before it, as legacy documents merge cells."""
    merged = child(cell, "tcPr", "hMerge")
    return merged is not None and attribute(merged, "val") != "restart"


def _is_deleted(element: _Element, name: str) -> bool:
    if name == "tr":
        return any(child(element, "trPr", one) is not None for one in ("del", "hidden"))
    return name == "tc" and child(element, "tcPr", "cellDel") is not None
