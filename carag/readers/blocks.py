r"""Hold what a document shows as blocks, and write them as text: one way for every format.

A block is a line or a table. Lines have the number that a list or clause gives them, raised and lowered characters, and
a blank line behind a paragraph. A table row is one line, its cells joined by ``" | "``; a cell that spans rows or
columns names each of them, so that every figure stands with its row's and its column's names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from carag.limits import MAX_TEXT
from carag.readers.outcome import ProblemKind, Unreadable
from carag.readers.raised import bare, lowered, raised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

__all__ = ["Blocks", "Number"]

MAX_TABLES: Final = 64
"""Greatest depth of tables in cells of one another: each moves the text within once more. E-mails have 15."""
MAX_CELLS: Final = 1 << 22
"""Greatest number of places of one table's grid: cells of one row need not stand below those of another."""
_MOST_ACROSS: Final = 1000
"""Greatest number of columns that a cell spans, as in browsers."""
_WIDE: Final = "\xa0\u2000-\u200a\u202f\u205f\u3000"
_SPACES: Final = re.compile(rf"[ \t\n\r\f\v]+|(?<!\d)[{_WIDE}]|[{_WIDE}](?!\d)")
"""White space. A space that does not break, or is thin, stays between digits, where it groups them."""
_RUNS: Final = re.compile(r" {2,}")
_BLANK: Final = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]*")
"""What shows nothing: filers fill the cells between columns with spaces of no width."""
_POINT: Final = re.compile(
    r"\(?(?:\d{1,3}(?:\.\d{1,3})*[a-z]?|[a-z]{1,2}|[ivxl]{1,6}|[A-Z]|[IVXL]{1,6})[.)]|[•▪·–—-]"
)
"""What a cell holds that numbers the cell beside it."""
_OPENS: Final = {"$", "€", "£", "¥", "₹", "(", "$("}
_CLOSES: Final = {")", "%", ")%"}
_FIGURE: Final = re.compile(r"[$€£¥₹(\s-]*\d[\d.,]*[\s)%]*(?:\[\^[^\]]*\])?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")


class _Mark(NamedTuple):
    """Characters that are raised or lowered."""

    text: str
    is_raised: bool
    linked: bool = False
    """Whether they lead to another place of the document."""


@dataclass(slots=True)
class Number:
    """The number that a list gives to a line; it may be set after the line is."""

    text: str


@dataclass(slots=True)
class _Line:
    numbers: list[Number]
    pieces: list[str | _Mark]
    blank: bool
    """Whether a blank line stands behind it."""
    kept: bool
    """Whether its spaces are kept."""


@dataclass(slots=True)
class _Cell:
    across: int = 1
    down: int = 1
    is_head: bool = False
    goes_on: bool = False
    blocks: list[_Block] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list)
    is_open: bool = False
    """Whether its last cell is open."""


_Block: TypeAlias = _Line | _Table


class Blocks:
    r"""Takes text and the boundaries of lines, paragraphs and tables in the order of the document.

    Examples
    --------
    >>> blocks = Blocks()
    >>> blocks.number(Number("1.")); blocks.write("Fees of Rs. 40"); blocks.mark("2"); blocks.end_line(blank=True)
    >>> blocks.start_table()
    >>> for cell in ("2024", "5.1"):
    ...     blocks.start_cell(); blocks.write(cell); blocks.end_cell()
    >>> blocks.end_table(); blocks.text()
    '1. Fees of Rs. 40[^2]\n\n2024 | 5.1'
    """

    def __init__(self) -> None:
        self._document: list[_Block] = []
        self._tables: list[_Table] = []
        self._pieces: list[str | _Mark] = []
        self._numbers: list[Number] = []

    @property
    def in_table(self) -> bool:
        """Whether a table is open."""
        return bool(self._tables)

    @property
    def before(self) -> str:
        """What the open line ends with; empty at its beginning."""
        last = self._pieces[-1] if self._pieces else ""
        return last.text if isinstance(last, _Mark) else last

    def write(self, text: str) -> None:
        """Add text to the line."""
        if text:
            self._pieces.append(text)

    def mark(self, text: str, *, is_raised: bool = True, linked: bool = False) -> None:
        """Add raised or lowered characters; linked ones lead to another place of the document, as a note's do."""
        bare_text = text.strip()
        self.write(text[: len(text) - len(text.lstrip())] if bare_text else text)
        if bare_text:
            self._pieces.append(_Mark(bare_text, is_raised, linked))
            self.write(text[len(text.rstrip()) :])

    def number(self, number: Number) -> None:
        """Set the number of the next line with text, which has two where a list begins in the item of another."""
        self._numbers.append(number)

    def drop_numbers(self) -> None:
        """Forget the numbers of items that ended without text."""
        self._numbers = []

    def end_line(self, *, blank: bool = False, kept: bool = False) -> None:
        """End the line, with a blank line after it or not; its spaces are kept or made one."""
        shows = any(_shows(piece) for piece in self._pieces)
        if not shows and self._tables and not self._tables[-1].is_open:
            self._pieces = []
            return
        blocks = self._blocks()
        if shows:
            blocks.append(_Line(self._numbers, self._pieces, blank, kept))
            self._numbers = []
        elif blank and blocks and isinstance(blocks[-1], _Line):
            blocks[-1].blank = True
        self._pieces = []

    def start_table(self) -> None:
        """Begin a table, which may stand in a cell of another.

        Raises
        ------
        Unreadable
            If they are nested deeper than ``MAX_TABLES``.
        """
        if len(self._tables) == MAX_TABLES:
            raise Unreadable(ProblemKind.TOO_LARGE, f"tables nested more than {MAX_TABLES} deep; want fewer")
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
        """Begin a cell of the innermost table.

        Parameters
        ----------
        across, down : int
            How many columns and rows it spans; 0 rows are all that follow.
        goes_on : bool
            Whether the cell above, at the same place, goes on in it.
        is_head : bool
            Whether it is a head, whatever it holds.
        """
        table = self._tables[-1]
        self.end_cell()
        if not table.rows:
            table.rows.append([])
        table.rows[-1].append(_Cell(max(1, across), max(0, down), is_head, goes_on))
        table.is_open = True

    def end_cell(self) -> None:
        """End the cell that is open in the innermost table, if one is."""
        self.end_line()
        self._tables[-1].is_open = False

    def end_row(self) -> None:
        """End the row of the innermost table, if it has cells."""
        self.end_cell()
        rows = self._tables[-1].rows
        if not rows or rows[-1]:
            rows.append([])

    def text(self) -> str:
        """Return all of it, with what is still open ended.

        Raises
        ------
        Unreadable
            If it is more than a document may hold.
        """
        while self._tables:
            self.end_table()
        self.end_line()
        first = (line.pieces[0] for line in _lines_of(self._document))
        noted = {bare(one.text) for one in first if isinstance(one, _Mark)}
        return "\n".join(_Writer(noted).lines(self._document)).strip("\n")

    def _blocks(self) -> list[_Block]:
        """Return the blocks that a new one is added to; what stands in a table outside of its cells is a row."""
        if not self._tables:
            return self._document
        table = self._tables[-1]
        if table.is_open:
            return table.rows[-1][-1].blocks
        loose = _Cell()
        table.rows += [[loose], []]
        return loose.blocks


def _shows(piece: str | _Mark) -> bool:
    return isinstance(piece, _Mark) or _BLANK.fullmatch(piece) is None


def _lines_of(blocks: Sequence[_Block]) -> Iterator[_Line]:
    for one in blocks:
        if isinstance(one, _Line):
            yield one
        else:
            for row in one.rows:
                for cell in row:
                    yield from _lines_of(cell.blocks)


class _Placed(NamedTuple):
    """A cell in its row of the grid: the columns from `at` up to `end`."""

    at: int
    end: int
    text: str
    cell: _Cell
    is_own: bool
    """Whether it begins in this row."""
    is_joined: bool = False
    """Whether its text is that of several cells."""


class _Writer:
    """Writes blocks as lines."""

    def __init__(self, noted: Collection[str]) -> None:
        self._noted = noted
        """The marks with which notes of the document begin."""
        self._left = MAX_TEXT

    def lines(self, blocks: Sequence[_Block]) -> list[str]:
        """Return the lines of blocks; a blank one is empty."""
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
        for piece in line.pieces:
            if isinstance(piece, str):
                said += piece.lstrip() if said.endswith("] ") else piece
            elif piece.is_raised:
                said += raised(said, piece.text, noted=self._noted, linked=piece.linked)
            else:
                said += lowered(said, piece.text)
        said = said.replace("\xad", "")
        if not line.kept:
            said = _RUNS.sub(" ", _SPACES.sub(" ", said)).strip(" ")
        if label := " ".join(one.text for one in line.numbers if one.text):
            # A tab tells a number without a stop from the first word of a sentence, as it does on paper.
            between = "\t" if label.isdecimal() else " "
            said = label + between + said.lstrip()
        self._left -= len(said)
        if self._left < 0:
            raise Unreadable(ProblemKind.TOO_LARGE, f"more than {MAX_TEXT} characters of text; want fewer")
        return said

    def _rows(self, table: _Table) -> list[str]:
        rows = [row for row in table.rows if row]
        texts = {id(cell): self.lines(cell.blocks) for row in rows for cell in row}
        if _numbers_points(rows, texts):
            return [line for row in rows for line in _point([texts[id(one)] for one in row])]
        grid = [_joined(row) for row in _grid(rows, texts)]
        edges = _columns(grid)
        body = _body(grid)
        found: list[str] = []
        for number, row in enumerate(grid):
            filled = [one for one in row if one.text]
            if not any(one.is_own for one in filled):
                continue
            nested = any(isinstance(block, _Table) for one in filled for block in one.cell.blocks)
            if len(filled) == 1 or nested:
                for one in filled:
                    found += [one.text] if one.is_joined else _without_edges(texts[id(one.cell)])
                    if nested and found and found[-1]:
                        found.append("")
                continue
            found.append(" | ".join(_columned(row, edges, in_body=number >= body)))
            self._left -= len(found[-1])
        return _without_edges(found)


def _without_edges(lines: list[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and not lines[start]:
        start += 1
    while end > start and not lines[end - 1]:
        end -= 1
    return lines[start:end]


def _numbers_points(rows: list[list[_Cell]], texts: dict[int, list[str]]) -> bool:
    """Tell whether each row is a number and what it numbers, as in the Official Journal and in notes below tables."""
    seen = False
    for row in rows:
        filled = [one for one in (texts[id(cell)] for cell in row) if any(one)]
        if not filled:
            continue
        if len(filled) != 2 or not _POINT.fullmatch("".join(filled[0])):
            return False
        if _FIGURE.fullmatch(" ".join(filled[1]).strip()) or any(cell.is_head for cell in row):
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


def _grid(rows: list[list[_Cell]], texts: dict[int, list[str]]) -> list[list[_Placed]]:
    """Place the cells of each row in columns, those that span rows in each of them (HTML Standard, 4.9.12.1)."""
    grid: list[list[_Placed]] = []
    going: list[tuple[_Placed, int]] = []
    """Cells from rows above, each with the number of rows that it still spans; 0 is all."""
    for row in rows:
        placed = [one._replace(is_own=False) for one, _ in going]
        taken = [(one.at, one.end) for one in placed]
        at = 0
        begun: list[tuple[_Placed, int]] = []
        for cell in row:
            while at_end := next((end for start, end in taken if start <= at < end), 0):
                at = at_end
            end = at + min(cell.across, _MOST_ACROSS)
            above = next((one for one in grid[-1] if one.at == at), None) if cell.goes_on and grid else None
            if above is not None:
                placed.append(above._replace(is_own=False))
                at = max(end, above.end)
                continue
            one = _Placed(
                at,
                end,
                _RUNS.sub(" ", _SPACES.sub(" ", " ".join(texts[id(cell)]))).strip(),
                cell,
                is_own=True,
            )
            placed.append(one)
            if cell.down != 1:
                begun.append((one, max(0, cell.down - 1)))
            at = end
        going = [(one, left - 1 if left else 0) for one, left in going if left != 1] + begun
        grid.append(sorted(placed, key=itemgetter(0)))
    return grid


def _joined(row: list[_Placed]) -> list[_Placed]:
    """Join a currency sign or a bracket in a cell of its own to its figure."""
    found: list[_Placed] = []
    for one in row:
        if found and one.text and (found[-1].text in _OPENS or one.text in _CLOSES):
            last = found[-1]
            found[-1] = last._replace(end=one.end, text=last.text + one.text, is_joined=True)
        elif one.text or not (found and found[-1].text in _OPENS):
            found.append(one)
    return found


def _columns(grid: list[list[_Placed]]) -> list[int]:
    """Return where columns begin: columns of which no row holds two are one, as are those that only set off others.

    Raises
    ------
    Unreadable
        If there are more places than ``MAX_CELLS``.
    """
    edges = sorted({one.at for row in grid for one in row})
    if len(edges) * len(grid) > MAX_CELLS:
        raise Unreadable(ProblemKind.TOO_LARGE, f"a table of more than {MAX_CELLS} places; want fewer")
    cells = [_held(row, edges) for row in grid]
    starts: list[int] = []
    held: list[int] = []
    for place, edge in enumerate(edges):
        here = [row[place] for row in cells]
        if not starts or any(
            old >= 0 and new >= 0 and old != new for old, new in zip(held, here, strict=True)
        ):
            starts.append(edge)
            held = here
        else:
            held = [old if new < 0 else new for old, new in zip(held, here, strict=True)]
    return starts


def _held(row: list[_Placed], edges: list[int]) -> list[int]:
    """Return for each edge the number of the cell that stands there in a row; -1 if none with text does."""
    found = [-1] * len(edges)
    for number, one in enumerate(row):
        if one.text:
            first, last = bisect_left(edges, one.at), bisect_left(edges, one.end)
            found[first:last] = [number] * (last - first)
    return found


def _body(grid: list[list[_Placed]]) -> int:
    """Return the number of the first row that holds a figure behind its first cell: the rows above hold heads."""
    for number, row in enumerate(grid):
        if any(
            _FIGURE.fullmatch(one.text) and not _YEAR.fullmatch(one.text) and not one.cell.is_head
            for one in row[1:]
        ):
            return number
    return 1


def _columned(row: list[_Placed], starts: list[int], *, in_body: bool) -> list[str]:
    """Return a row's texts by column; what spans columns names each, but a figure stands once."""
    texts = [""] * len(starts)
    for one in row:
        if not one.text:
            continue
        columns = [
            number for number, start in enumerate(starts) if one.at < _end(starts, number) and start < one.end
        ]
        spans = one.cell.across > 1 and not (in_body and _FIGURE.fullmatch(one.text))
        for number in columns if spans else columns[:1]:
            texts[number] = f"{texts[number]} {one.text}".strip()
    return texts


def _end(starts: list[int], number: int) -> int:
    return starts[number + 1] if number + 1 < len(starts) else 1 << 62
