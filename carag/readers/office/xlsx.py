"""Read an XLSX file sheet by sheet, each cell as the sheet shows it.

Formulas are read by the values that the program that saved the file stored. A formula without one, or any in a
file that asks for its values to be computed when it is opened, was not calculated: no value is guessed, and the cell is
named as left out. Hidden sheets, rows and columns and struck text do not count as text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.limits import quoted
from carag.readers.grid import data_text
from carag.readers.office.docx_styles import child, is_on, name_of, stated
from carag.readers.office.number_format import BUILT_IN, number_shown
from carag.readers.office.package import TRUE, Package, related_id
from carag.readers.office.shapes import shapes_text
from carag.readers.office.sheet import MAX_COLUMNS, Area, area_of, tables_of
from carag.readers.outcome import Content, broken
from carag.readers.raised import lowered, raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

    from carag.readers.grid import Placed


_ASIDE: Final = {"sharedStrings", "styles"}
NOT_CALCULATED: Final = "⟨not calculated⟩"
"""What is written for a formula without a value."""
_ESCAPE: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MARGIN_CODE: Final = re.compile(r'&(?:"[^"]*"|\d+|K[\dA-Fa-f+-]{6}|.)', re.DOTALL)


class _Style(NamedTuple):
    code: str
    """The number format."""
    struck: bool
    shift: str
    """Empty, ``superscript`` or ``subscript``."""


def read_xlsx(content: bytes) -> Content:
    """Return the text of an XLSX file and its title.

    Formulas that were not calculated and charts are named as left out. Raises ``Unreadable`` if the file is encrypted,
    too large or not an XLSX file. Raises ``BadZipFile`` or ``zlib.error`` if the archive is damaged.
    """
    package = Package(content, "XLSX")
    try:
        book = _Workbook(package)
        return Content("\n\n".join(book.texts()), package.title(), left_out=(*book.left_out,))
    except (IndexError, ValueError):
        raise broken("a number in it is not valid; save the file again") from None


class _Workbook:
    def __init__(self, package: Package) -> None:
        self.left_out: list[str] = []
        self._package, self._root = package, package.root("workbook")
        self._related = {one.id: one for one in package.related(package.main)}
        parts = {one.kind: package.parsed(one.part) for one in self._related.values() if one.kind in _ASIDE}
        self._strings = [_text(one) for one in parts.get("sharedStrings", ()) if name_of(one) == "si"]
        self._styles = _styles(parts["styles"]) if "styles" in parts else []
        self._since_1904 = _flag(child(self._root, "workbookPr"), "date1904")
        self._is_stale = _flag(child(self._root, "calcPr"), "fullCalcOnLoad")

    def texts(self) -> Iterator[str]:
        """Yield the text of each sheet that is shown."""
        for listed in self._root.iterfind("{*}sheets/{*}sheet"):
            name, found = listed.get("name", ""), self._related.get(related_id(listed))
            if listed.get("state", "visible") != "visible":
                continue
            if found is None or found.kind != "worksheet":
                self.left_out.append(f"sheet {name}: not a sheet of cells")
                continue
            yield name
            root = self._package.parsed(found.part)
            margins = (_MARGIN_CODE.sub(" ", one.text or "") for one in root.iterfind("{*}headerFooter/*"))
            yield from dict.fromkeys(filter(None, (" ".join(one.split()) for one in margins)))
            yield from filter(None, [data_text(self._tables(name, root))])
            for one in self._package.related(found.part):
                if one.kind == "drawing":
                    text, unread = shapes_text([self._package.parsed(one.part)])
                    self.left_out += [f"sheet {name}: {what}" for what in unread]
                    yield from filter(None, [text])

    def _tables(self, name: str, root: _Element) -> list[list[list[Placed]]]:
        hidden_rows: set[int] = set()
        hidden_columns = {
            at
            for one in root.iterfind("{*}cols/{*}col")
            if _flag(one, "hidden") or one.get("width") == "0"
            for at in range(int(one.get("min", "1")), min(int(one.get("max", "1")), MAX_COLUMNS) + 1)
        }
        cells: dict[int, dict[int, str]] = {}
        filled: list[Area] = []
        row = 0
        for line in root.iterfind("{*}sheetData/{*}row"):
            above, row = row, area_of(f"A{line.get('r', row + 1)}")[0]
            if row <= above:
                raise broken("its rows are not in order; save the file again")
            if _flag(line, "hidden") or line.get("ht") == "0":
                hidden_rows.add(row)
            cells[row], column = {}, 0
            for cell in line.iterchildren("{*}c"):
                before, stated_at = column, cell.get("r")
                place = (row, column + 1) if stated_at is None else area_of(stated_at)[:2]
                column = place[1]
                if place[0] != row or not before < column <= MAX_COLUMNS:
                    raise broken(f"the cell {quoted(stated_at)} is not in its place; save the file again")
                cells[row][column] = text = self._value(cell, place, filled)
                if text == NOT_CALCULATED and row not in hidden_rows and column not in hidden_columns:
                    self.left_out.append(
                        f"sheet {name}: a formula in row {row}, column {column} was not calculated"
                    )
        merged = [area_of(one.get("ref", "")) for one in root.iterfind("{*}mergeCells/{*}mergeCell")]
        return tables_of(cells, merged, hidden_rows, hidden_columns)

    def _value(self, cell: _Element, place: tuple[int, ...], filled: list[Area]) -> str:
        """Return what a cell shows; ``filled`` are the areas of formulas with several values, if those are stale."""
        formula, value = child(cell, "f"), child(cell, "v")
        kind, said = cell.get("t", "n"), (value is not None and value.text) or ""
        if self._is_stale and formula is not None and formula.get("t") in {"array", "dataTable"}:
            filled.append(area_of(formula.get("ref", "")))
        if formula is not None and (self._is_stale or value is None or not (said or kind == "str")):
            return NOT_CALCULATED
        if any(one[0] <= place[0] <= one[2] and one[1] <= place[1] <= one[3] for one in filled):
            return NOT_CALCULATED
        style = self._styles[int(cell.get("s", "0"))] if self._styles else _Style("General", False, "")
        if style.struck or style.code.startswith(";;;"):
            return ""
        if kind == "n":
            said = said and number_shown(said, style.code, since_1904=self._since_1904)
        elif kind == "s":
            said = self._strings[int(said)]
        elif kind == "inlineStr":
            said = "".join(map(_text, cell.iterchildren("{*}is")))
        elif kind == "b":
            said = {"0": "FALSE", "1": "TRUE"}.get(said, said)
        else:  # an error as it is shown, a formula's text, a date in ISO 8601
            said = _unescaped(said)
        return " ".join(_shifted("", said, style.shift).split())


def _flag(element: _Element | None, name: str) -> bool:
    return element is not None and element.get(name) in TRUE


def _unescaped(text: str | None) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text or "")


def _text(runs: _Element) -> str:
    """Return the text of the runs that are shown; phonetic guides are not among them."""
    said = ""
    for one in runs:
        if name_of(one) == "t":
            said += _unescaped(one.text)
        elif name_of(one) == "r" and not is_on(child(one, "rPr", "strike")):
            text = "".join(_unescaped(part.text) for part in one.iterchildren("{*}t"))
            said += _shifted(said, text, stated(child(one, "rPr"), "vertAlign"))
    return said


def _shifted(before: str, text: str, shift: str) -> str:
    if shift == "superscript":
        return raised(before, text, noted=())
    return lowered(before, text) if shift == "subscript" else text


def _styles(root: _Element) -> list[_Style]:
    """Return the cells' styles in the order of their numbers."""
    codes = BUILT_IN | {
        int(one.get("numFmtId", "0")): one.get("formatCode", "")
        for one in root.iterfind("{*}numFmts/{*}numFmt")
    }
    fonts = [
        (is_on(child(one, "strike")), stated(one, "vertAlign")) for one in root.iterfind("{*}fonts/{*}font")
    ]
    return [
        _Style(
            codes.get(code := int(one.get("numFmtId", "0")), f"[{code}]"), *fonts[int(one.get("fontId", "0"))]
        )
        for one in root.iterfind("{*}cellXfs/{*}xf")
    ]
