"""Hold what a document shows as blocks (lines and tables), and write them as text, the same way for every format.

Lines carry their list or clause number, raised and lowered characters, and a blank line after a paragraph. A table row
becomes one line, its cells joined by ``" | "``; a cell that spans rows or columns is repeated in each, so that every
figure stands with the names of its row and its column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from carag.limits import MAX_TEXT
from carag.readers.grid import FIGURE, Cell, body_of, columned, columns_of, grid_of, joined
from carag.readers.outcome import too_large
from carag.readers.raised import NOTE, bare, lowered, raised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


MAX_TABLES: Final = 64
"""Greatest depth of tables nested in cells: each level copies the text inside it once more. E-mails have up to 15."""
_WIDE: Final = "\xa0\u2000-\u200a\u202f\u205f\u3000"
_SPACES: Final = re.compile(rf"[ \t\n\r\f\v]+|(?<!\d)[{_WIDE}]|[{_WIDE}](?!\d)")
"""White space. A no-break or thin space is kept between digits, where it groups them."""
_RUNS: Final = re.compile(r" {2,}")
_BLANK: Final = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]*")
"""Text that shows nothing: filers fill the cells between columns with zero-width spaces."""
_POINT: Final = re.compile(
    r"\(?(?:\d{1,3}(?:\.\d{1,3})*[a-z]?|[a-z]{1,2}|[ivxl]{1,6}|[A-Z]|[IVXL]{1,6})[.)]|[•▪·–—-]|[*†‡§]{1,4}"
    rf"|{NOTE}"
)
"""Text of a cell that numbers the cell next to it."""


class _Mark(NamedTuple):
    text: str
    is_raised: bool
    linked: bool = False
    """Whether the characters link to another place in the document."""


@dataclass(slots=True)
class Number:
    """A number that a list gives to a line; the number may be set after the line is written."""

    text: str
    is_apart: bool = True
    """Whether a space or a tab follows the number."""


@dataclass(slots=True)
class _Line:
    numbers: list[Number]
    pieces: list[str | _Mark]
    blank: bool
    """Whether a blank line follows the line."""
    kept: bool
    """Whether its spaces are kept."""


@dataclass(slots=True)
class _Cell(Cell):
    blocks: list[_Block] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list)
    is_open: bool = False
    """Whether its last cell is open."""


_Block: TypeAlias = _Line | _Table


class Blocks:
    r"""Collects text and the boundaries of lines, paragraphs and tables in document order, and writes them as text.

    Examples
    --------
    >>> blocks = Blocks()
    >>> blocks.number(Number("1.")); blocks.write("Fees of Rs. 40"); blocks.mark("2"); blocks.end_line(blank=True)
    >>> blocks.start_table(); blocks.start_cell(); blocks.write("2024"); blocks.start_cell(); blocks.write("5.1")
    >>> blocks.text()
    '1. Fees of Rs. 40[^2]\n\n2024 | 5.1'
    """

    def __init__(self) -> None:
        self._document: list[_Block] = []
        self._tables: list[_Table] = []
        self._pieces: list[str | _Mark] = []
        self._in_line = False
        self._numbers: list[Number] = []

    @property
    def in_table(self) -> bool:
        """Whether a table is open."""
        return bool(self._tables)

    @property
    def in_line(self) -> bool:
        """Whether the open line shows anything so far."""
        return self._in_line

    @property
    def before(self) -> str:
        """The last piece of the open line; empty at its beginning."""
        last = self._pieces[-1] if self._pieces else ""
        return last.text if isinstance(last, _Mark) else last

    def write(self, text: str) -> None:
        """Add text to the line."""
        if text:
            self._pieces.append(text)
            self._in_line = self._in_line or _BLANK.fullmatch(text) is None

    def mark(self, text: str, *, is_raised: bool = True, linked: bool = False) -> None:
        """Add raised or lowered characters; linked characters lead to another place in the document, such as a note."""
        bare_text = text.strip()
        self.write(text[: len(text) - len(text.lstrip())] if bare_text else text)
        if bare_text:
            self._pieces.append(_Mark(bare_text, is_raised, linked))
            self._in_line = True
            self.write(text[len(text.rstrip()) :])

    def number(self, number: Number) -> None:
        """Set the number of the next line with text; a list that begins inside an item gives it two numbers."""
        self._numbers.append(number)

    def drop_numbers(self) -> None:
        """Forget the numbers of items that ended without text."""
        self._numbers = []

    def end_line(self, *, blank: bool = False, kept: bool = False) -> None:
        """End the line, and keep its spaces or collapse them.

        With ``kept``, a number without text is a line too.
        """
        shows = self.in_line or (kept and any(one.text.strip("•") for one in self._numbers))
        pieces, self._pieces, self._in_line = self._pieces, [], False
        if not shows and self._tables and not self._tables[-1].is_open:
            return
        blocks = self._blocks()
        if shows:
            blocks.append(_Line(self._numbers, pieces, blank, kept))
            self._numbers = []
        elif blank and blocks and isinstance(blocks[-1], _Line):
            blocks[-1].blank = True

    def start_table(self) -> None:
        """Begin a table, which may be nested in a cell of another.

        Raises ``Unreadable`` if tables are nested deeper than ``MAX_TABLES``.
        """
        if len(self._tables) == MAX_TABLES:
            raise too_large(f"tables nested more than {MAX_TABLES} deep; want fewer")
        self.end_line(blank=True)
        table = _Table()
        self._blocks().append(table)
        self._tables.append(table)

    def end_table(self) -> None:
        """End the innermost table."""
        self.end_row()
        self._tables.pop()

    def start_cell(
        self, *, across: int = 1, down: int = 1, goes_on: bool = False, is_head: bool = False
    ) -> None:
        """Begin a cell of the innermost table; ``down=0`` spans all rows below, ``goes_on`` continues the one above."""
        table = self._tables[-1]
        self.end_cell()
        if not table.rows:
            table.rows.append([])
        table.rows[-1].append(_Cell(max(1, across), max(0, down), is_head, goes_on))
        table.is_open = True

    def end_cell(self) -> None:
        """End the open cell of the innermost table, if there is one."""
        self.end_line()
        self._tables[-1].is_open = False

    def end_row(self) -> None:
        """End the row of the innermost table, if it has cells."""
        self.end_cell()
        rows = self._tables[-1].rows
        if not rows or rows[-1]:
            rows.append([])

    def text(self) -> str:
        """Close what is still open, and return the whole text.

        Raises ``Unreadable`` if it is longer than a document may be.
        """
        while self._tables:
            self.end_table()
        self.end_line()
        first = (line.pieces[0] for line in _lines_of(self._document) if line.pieces)
        noted = {bare(one.text) for one in first if isinstance(one, _Mark)}
        return "\n".join(_Writer(noted).lines(self._document)).strip("\n")

    def _blocks(self) -> list[_Block]:
        """Return the list that a new block goes to; text in a table but outside the table's cells becomes a row."""
        if not self._tables:
            return self._document
        table = self._tables[-1]
        if table.is_open:
            return table.rows[-1][-1].blocks
        loose = _Cell()
        table.rows += [[loose], []]
        return loose.blocks


def _lines_of(blocks: Sequence[_Block]) -> Iterator[_Line]:
    for one in blocks:
        if isinstance(one, _Line):
            yield one
        else:
            for row in one.rows:
                for cell in row:
                    yield from _lines_of(cell.blocks)


class _Writer:
    def __init__(self, noted: Collection[str]) -> None:
        self._noted = noted
        """The marks at the beginning of the document's notes."""
        self._left = MAX_TEXT

    def lines(self, blocks: Sequence[_Block]) -> list[str]:
        found: list[str] = []
        for one in blocks:
            if isinstance(one, _Line):
                said = self._line(one)
                found += said.split("\n") if one.kept else [said]
                if one.blank:
                    found.append("")
            else:
                if found and found[-1]:
                    found.append("")
                found += self._rows(one)
                if found and found[-1]:
                    found.append("")
        return found

    def _line(self, line: _Line) -> str:
        said = ""
        for piece, after in zip_longest(line.pieces, line.pieces[1:], fillvalue=""):
            if isinstance(piece, str):
                said += piece.lstrip() if said.endswith("] ") else piece
            elif piece.is_raised:
                following = after if isinstance(after, str) else ""
                said += raised(said, piece.text, noted=self._noted, linked=piece.linked, after=following)
            else:
                said += lowered(said, piece.text)
        said = said.replace("\xad", "")
        if not line.kept:
            said = _RUNS.sub(" ", _SPACES.sub(" ", said)).strip(" ")
        if numbers := [one for one in line.numbers if one.text]:
            label = " ".join(one.text for one in numbers)
            # A tab separates a number without a stop from the first word of a sentence, as it does on paper.
            between = ("\t" if label.isdecimal() else " ") * bool(said.strip())
            said = f"{label}{between}{said.lstrip()}" if numbers[-1].is_apart else label + said
        self._count(said)
        return said

    def _count(self, said: str) -> None:
        self._left -= len(said)
        if self._left < 0:
            raise too_large(f"more than {MAX_TEXT} characters of text; want fewer")

    def _rows(self, table: _Table) -> list[str]:
        rows = [row for row in table.rows if row]
        texts = {id(cell): self.lines(cell.blocks) for row in rows for cell in row}
        if _numbers_points(rows, texts):
            return [line for row in rows for line in _point([texts[id(one)] for one in row])]
        grid = [
            joined(row)
            for row in grid_of([[(one, _one_line(texts[id(one)])) for one in row] for row in rows])
        ]
        edges = columns_of(grid)
        body = body_of(grid)
        holds_table = {
            id(cell) for row in rows for cell in row if any(isinstance(one, _Table) for one in cell.blocks)
        }
        found: list[str] = []
        for number, row in enumerate(grid):
            filled = [one for one in row if one.text]
            if not any(one.is_own for one in filled):
                continue
            nested = any(id(one.cell) in holds_table for one in filled)
            if len(filled) == 1 or nested:
                for one in filled:
                    found += [one.text] if one.is_joined else _without_edges(texts[id(one.cell)])
                    if nested and found and found[-1]:
                        found.append("")
                continue
            found.append(" | ".join(columned(row, edges, in_body=number >= body)))
            self._count(found[-1])
        return _without_edges(found)


def _without_edges(lines: list[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and not lines[start]:
        start += 1
    while end > start and not lines[end - 1]:
        end -= 1
    return lines[start:end]


def _numbers_points(rows: list[list[_Cell]], texts: dict[int, list[str]]) -> bool:
    """Tell whether each row is a number and its text, as in the Official Journal and in notes below tables."""
    seen = False
    for row in rows:
        filled = [one for one in (texts[id(cell)] for cell in row) if any(one)]
        if not filled:
            continue
        if len(filled) != 2 or not _POINT.fullmatch("".join(filled[0])):
            return False
        if FIGURE.fullmatch(" ".join(filled[1]).strip()) or any(cell.is_head for cell in row):
            return False
        seen = True
    return seen


def _point(row: list[list[str]]) -> list[str]:
    filled = [_without_edges(one) for one in row if any(one)]
    if not filled:
        return []
    label, lines = filled
    return [
        " ".join(label) + " " + lines[0],
        *lines[1:],
        *([""] if len(lines) > 1 or row[-1][-1:] == [""] else []),
    ]


def _one_line(lines: list[str]) -> str:
    return _RUNS.sub(" ", _SPACES.sub(" ", " ".join(lines))).strip()
