"""Find the tables in a text: rows, column heads and the lines above, all as spans of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from carag.retrieval.tables.number import NOTES, figure_in, is_nil, is_year

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Span: TypeAlias = tuple[int, int]
"""Start and end, in characters of the text that was read."""

_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
PERIOD_WORDS: Final = re.compile(
    rf"\b(?:19|20)\d\d\b|\bf(?:y|iscal)?\s?['’]?\d\d\b|\b(?:years?|quarters?|months?|weeks?|fiscal|q[1-4])\b"
    rf"|\b(?:{_MONTHS})\w{{0,6}}\.?\s\d",
    re.IGNORECASE,
)
"""Names of times in a head."""
UNIT_WORDS: Final = re.compile(
    r"\b(?:thousands?|millions?|billions?)\b|[$€£¥]\s?['’]?(?:0{3}s?|m\b|mn\b|bn\b|k\b|millions?\b)|['’]0{3}s?\b|^\W*[$€£¥%]+\W*$",
    re.IGNORECASE,
)
"""Names of units or scales in a head."""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_PIPE: Final = re.compile(r"\|(?<!\S\|)(?!\S)")
_FIGURE: Final = re.compile(
    r"(?<!\S)(?:[$€£¥]\s?)?(?:\(\s?)?(?:[$€£¥]\s?)?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,15}(?:\.\d{1,9})?|\.\d{1,9})"
    r"(?:\s?\))?(?:\s?%)?(?!\S)|(?<!\S)(?:[$€£¥]\s?)?[-–—](?!\S)"
)
_PERIOD: Final = re.compile(
    rf"(?<!\S)(?:(?:fiscal|FY)\s?)?(?:(?:{_MONTHS})[a-z]{{0,6}}\.?\s\d{{1,2}},?\s)?(?:19|20)\d\d{NOTES}(?!\S)",
    re.IGNORECASE,
)
_LAST: Final = frozenset(")%-–—*†‡§¹²³⁴⁵⁶⁷⁸⁹⁰")
"""Last characters of figures and periods that do not end in a digit. Most lines are prose and end in none of these."""
_LONE_SIGN: Final = re.compile(r"(?:US)?[$€£¥(]{1,3}")
_CLOSING: Final = re.compile(r"\)?\s?%?")
_GOES_ON: Final = re.compile(r"(?:,|\b(?:and|or|of|to|for|in|by|from|at|the|net|shares))$", re.IGNORECASE)
_CAPTIONS: Final = 4
"""Lines above a table that are read with it."""
_PROSE: Final = 160
"""A line without cells and at least this number of characters is prose, and ends a table."""
_SENTENCE: Final = 60
"""A line that ends in a full stop and has at least this number of characters is prose."""
_LABEL_LINES: Final = 3
"""The most lines of a label before its row."""
_TOP: Final = 8
"""Lines at the top of a passage that may have the first row of a torn table."""


class Cell(NamedTuple):
    """A cell behind the label of a row."""

    at: int
    """Its place in the row, from 0; blank cells count if the table keeps them."""
    span: Span


class Row(NamedTuple):
    """A row with figures."""

    label: Span
    cells: tuple[Cell, ...]
    """Without blank ones."""
    section: Span | None
    """The line without figures that heads it."""


@dataclass(slots=True)
class Table:
    """A table: the lines above it, its heads and its rows."""

    captions: list[Span] = field(default_factory=list)
    heads: list[tuple[Cell, ...]] = field(default_factory=list)
    """Rows of heads from the top. In a grid, the cell at -1 is above the labels; else cells count from 0."""
    rows: list[Row] = field(default_factory=list)
    is_grid: bool = True
    """Whether blank cells are kept, so that a cell is below the head at the same place."""
    width: int = 0


class _Line(NamedTuple):
    start: int
    end: int
    cells: tuple[Span, ...]
    """Label first, blank ones included; empty for a line of text."""


def tables_of(text: str) -> list[Table]:
    r"""Find the tables of a text, in its order."""
    builder = _Builder(text)
    for line in _lines(text):
        builder.line(line)
    builder.close()
    return [table for table in builder.tables if table.rows]


def torn_row(text: str) -> Span | None:
    r"""Return the line of a text's first row, if it is among the first lines and has no heads before it."""
    if not any(
        _may_have_cells(line.rstrip()) for line in text.split("\n", _TOP)[:_TOP]
    ):  # as in most passages, which are prose
        return None
    builder = _Builder(text)
    for line in islice(_lines(text), _TOP):
        builder.line(line)
        if builder.table.heads or builder.table.rows:  # heads stay until the first row
            return None if builder.table.heads else (line.start, line.end)
    return None


class _Builder:
    """Reads the lines of a text from the top."""

    def __init__(self, text: str) -> None:
        self.tables: list[Table] = []
        self.table = Table()
        """The open one."""
        self._text = text
        self._above: list[Span] = []
        """Lines without cells since the last row."""
        self._adjacent = 0
        """How many of them are directly above the next line."""
        self._raw: set[int] = set()

    def line(self, line: _Line) -> None:

        if line.start == line.end:
            self.blank()
        elif not line.cells:
            self.text_line((line.start, line.end))
        else:
            self.cells_line(line)

    def blank(self) -> None:
        self._adjacent = 0

    def text_line(self, span: Span) -> None:
        if (
            self.table.rows
            and (self._is_prose(span) or len(self._above) >= _CAPTIONS)
            and not self._may_be_label(span)
        ):
            self.close()
        self._above.append(span)
        self._adjacent += 1

    def cells_line(self, line: _Line) -> None:
        texts = [self._text[slice(*cell)] for cell in line.cells]
        if not any(texts):
            return
        if not any(texts[1:]):
            self.text_line(line.cells[0])
            return
        kind = self._kind(texts)
        if kind == "section":
            self.text_line(next(cell for cell, one in zip(line.cells, texts, strict=True) if one))
            return
        if kind == "head":
            if self.table.rows:
                self.close(keep_above=True)
            self._take_captions(self._above)
            cells = [Cell(at - 1, span) for at, span in enumerate(line.cells) if span[0] < span[1]]
            self.table.heads.append(tuple(cells))
            self._raw.add(len(line.cells))
        elif kind == "unclear":
            self.close()
        else:
            self._row(line, texts)
        self._above, self._adjacent = [], 0

    def close(self, *, keep_above: bool = False) -> None:
        """End the open table."""
        if self.table.rows:
            self.table.is_grid = len(self._raw) == 1 and not any(
                map(self._begins_with_year, self.table.heads)
            )
            if not self.table.is_grid:
                _count_places(self.table)
            self.table.width = 1 + max(cell.at for row in self.table.rows for cell in row.cells)
            self.tables.append(self.table)
        self.table, self._raw = Table(), set()
        if not keep_above:
            self._above, self._adjacent = [], 0

    def _begins_with_year(self, head: tuple[Cell, ...]) -> bool:
        """Tell whether the first of several cells with years is above the labels: then blank cells were dropped."""
        with_year = [cell.at for cell in head if _YEAR.search(self._text, *cell.span)]
        return len(with_year) > 1 and with_year[0] < 0

    def _kind(self, texts: list[str]) -> str:
        values = texts[1:]
        if any(map(figure_in, values)) or figure_in(texts[0]):
            return "row"
        if any(is_nil(one) for one in values):
            return "row" if texts[0] else "section"
        named = [one for one in values if one]
        if not self.table.rows:
            return "head"
        own = texts[0]
        is_named = bool(own) and not (PERIOD_WORDS.search(own) or UNIT_WORDS.search(own))
        if is_named and all(is_year(one) for one in named):
            return "unclear"
        if any(PERIOD_WORDS.search(one) or UNIT_WORDS.search(one) for one in named):
            return "head"
        if not own and len(named) == 1:
            return "section"
        return "head" if not own else "unclear"

    def _row(self, line: _Line, texts: list[str]) -> None:
        has_label = not figure_in(texts[0]) and not is_nil(texts[0])
        self._raw.add(len(line.cells) + (not has_label))
        label = line.cells[0] if has_label else (line.cells[0][0], line.cells[0][0])
        values = line.cells[1:] if has_label else line.cells
        label = self._whole_label(label)
        cells = _merged(self._text, [Cell(at, span) for at, span in enumerate(values)])
        if not self.table.rows:
            self._take_captions(
                self._above
                if not self.table.heads
                else [one for one in self._above if self._tells_units_or_time(one)]
            )
        section = (
            self._above[-1] if self._above else (self.table.rows[-1].section if self.table.rows else None)
        )
        if any(figure_in(self._text[slice(*cell.span)].replace("|", "")) for cell in cells):
            self.table.rows.append(Row(label, tuple(cells), section))

    def _whole_label(self, label: Span) -> Span:
        """Add the lines above that begin the label, and remove them from the lines above."""
        start, end = label
        for _ in range(min(_LABEL_LINES, self._adjacent)):
            before = self._text[slice(*self._above[-1])]
            own = self._text[start:end]
            goes_on = not own or own[0].islower() or _GOES_ON.search(before) is not None
            if (
                not goes_on
                or before.endswith((":", "."))
                or self._tells_units_or_time(self._above[-1], whole=True)
            ):
                break
            start = self._above.pop()[0]
            if start == end:
                break
        return (start, end) if start < end and self._text[start:end].strip() else (end, end)

    def _tells_units_or_time(self, span: Span, *, whole: bool = False) -> bool:
        text = self._text[slice(*span)]
        found = UNIT_WORDS.search(text) or PERIOD_WORDS.search(text)
        return found is not None and (not whole or len(text) <= _SENTENCE)

    def _take_captions(self, lines: Sequence[Span]) -> None:
        self.table.captions += lines[-_CAPTIONS:]

    def _is_prose(self, span: Span) -> bool:
        text = self._text[slice(*span)]
        return len(text) >= _PROSE or (len(text) >= _SENTENCE and text.endswith("."))

    def _may_be_label(self, span: Span) -> bool:
        """Tell whether one of the next two lines is a row whose label continues in lower case."""
        below = self._text[span[1] + 1 :].split("\n", 2)[:2]
        return any(one[:1].islower() and _PIPE.search(one) is not None for one in below)


def _count_places(table: Table) -> None:
    """Count the places of cells without the blank ones, which were dropped."""
    table.rows = [
        row._replace(cells=tuple(Cell(at, cell.span) for at, cell in enumerate(row.cells)))
        for row in table.rows
    ]
    table.heads = [tuple(Cell(at, cell.span) for at, cell in enumerate(head)) for head in table.heads]


def _merged(text: str, cells: Sequence[Cell]) -> list[Cell]:
    """Drop blank cells and cells with a sign alone, and join the closing part of a figure to it: ``(12 | )``."""
    kept: list[Cell] = []
    for cell in cells:
        said = text[slice(*cell.span)]
        if not said or _LONE_SIGN.fullmatch(said):
            continue
        if _CLOSING.fullmatch(said) and kept and "\n" not in text[kept[-1].span[0] : cell.span[1]]:
            kept[-1] = Cell(kept[-1].at, (kept[-1].span[0], cell.span[1]))
        else:
            kept.append(cell)
    return kept


def _lines(text: str) -> Iterator[_Line]:
    at = 0
    for line in text.split("\n"):
        start, end = _trimmed(text, at, at + len(line))
        yield _Line(start, end, _cells(text, start, end) if _may_have_cells(text[start:end]) else ())
        at += len(line) + 1


def _may_have_cells(line: str) -> bool:
    """Tell a line with a bar, or with a last character that a figure or a period may have: prose has neither."""
    return "|" in line or line[-1:] in _LAST or line[-1:].isdigit()


def _cells(text: str, start: int, end: int) -> tuple[Span, ...]:
    if bars := [match.span() for match in _PIPE.finditer(text, start, end)]:
        edges = [start, *(edge for bar in bars for edge in bar), end]
        cells = [_trimmed(text, *edges[at : at + 2]) for at in range(0, len(edges), 2)]
        return (cells[0], *(one for cell in cells[1:] for one in _apart(text, cell)))
    for pattern in (_FIGURE, _PERIOD):
        found = [match.span() for match in pattern.finditer(text, start, end)]
        many, last = len(found), end
        while many and not text[found[many - 1][1] : last].strip():
            many -= 1
            last = found[many][0]
        run = found[many:]
        if len(run) >= 2:
            return (_trimmed(text, start, run[0][0]), *run)
    return ()


def _apart(text: str, cell: Span) -> tuple[Span, ...]:
    """Split a cell with several figures, which some readers leave together."""
    said = text[slice(*cell)]
    if not _may_have_cells(said) or len(said.split(None, 1)) == 1:
        return (cell,)
    found = tuple(match.span() for match in _FIGURE.finditer(text, *cell))
    is_apart = len(found) > 1 and all(figure_in(text[slice(*one)]) for one in found)
    return found if is_apart and not _FIGURE.sub("", said).strip() else (cell,)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Leave out blanks at both ends; what is all blank becomes the empty span at its end."""
    piece = text[start:end]
    kept = piece.strip()
    left = start + piece.find(kept) if kept else end
    return (left, left + len(kept))
