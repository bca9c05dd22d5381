r"""Lay out a document's text: a blank line between paragraphs, one line a table row, its cells joined by ``" | "``."""

from __future__ import annotations

import re
from typing import Final

from carag.limits import MAX_TEXT
from carag.readers.outcome import ProblemKind, Unreadable

__all__ = ["Flow"]

MAX_TABLES: Final = 64
"""Greatest depth of tables in cells of one another: each moves the text within once more. E-mails have 15."""
_SPACES: Final = re.compile(r"[ \t\n\r\f]+")
"""White space of HTML; not U+00A0, which an author put there to be seen."""


class Flow:
    r"""Takes text and the boundaries of lines, paragraphs and tables in the order of the document.

    A row of which one cell alone holds text is layout: the lines of that cell stay lines. In any other row each cell
    is one line, whatever it holds.

    Examples
    --------
    >>> flow = Flow()
    >>> flow.write("Sales"); flow.end_line(blank=True); flow.start_table()
    >>> for cell in ("2024", "5.1"):
    ...     flow.start_cell(); flow.write(cell); flow.end_cell()
    >>> flow.end_table(); flow.text()
    'Sales\n\n2024 | 5.1'
    """

    def __init__(self) -> None:
        self._cells = [_Lines()]
        """The document, and each cell that is open, the innermost last."""
        self._rows: list[list[str]] = []
        """The cells that ended of each table's row, the innermost last."""
        self._open: list[bool] = []
        """Whether a cell is open in each table."""
        self._written = 0

    @property
    def in_table(self) -> bool:
        """Whether a table is open."""
        return bool(self._rows)

    def write(self, text: str) -> None:
        """Add text to the line.

        Raises
        ------
        Unreadable
            If it is more than a document may hold.
        """
        self._written += len(text)
        if self._written > MAX_TEXT:
            raise Unreadable(ProblemKind.TOO_LARGE, f"more than {MAX_TEXT} characters of text; want fewer")
        self._cells[-1].pieces.append(text)

    def end_line(self, *, blank: bool = False, kept: bool = False) -> None:
        """End the line, if it holds anything, with a blank line after it or not; its spaces are kept or made one."""
        self._cells[-1].end_line(blank=blank, kept=kept)

    def start_table(self) -> None:
        """Begin a table, which may stand in a cell of another.

        Raises
        ------
        Unreadable
            If they are nested deeper than ``MAX_TABLES``.
        """
        if len(self._rows) == MAX_TABLES:
            raise Unreadable(ProblemKind.TOO_LARGE, f"tables nested more than {MAX_TABLES} deep; want fewer")
        self.end_line(blank=True)
        self._rows.append([])
        self._open.append(False)

    def end_table(self) -> None:
        """End the innermost table."""
        self.end_row()
        self._rows.pop()
        self._open.pop()
        self.end_line(blank=True)

    def start_cell(self) -> None:
        """Begin a cell of the innermost table."""
        self.end_cell()
        self.end_line()
        self._open[-1] = True
        self._cells.append(_Lines())

    def end_cell(self) -> None:
        """End the cell that is open in the innermost table, if one is."""
        if self._open[-1]:
            self._open[-1] = False
            self._rows[-1].append(self._cells.pop().text())

    def end_row(self) -> None:
        """End the row of the innermost table, if it has cells."""
        self.end_cell()
        row, self._rows[-1] = self._rows[-1], []
        filled = [cell for cell in row if cell]
        self.end_line()
        if len(filled) == 1:
            self._cells[-1].lines += filled[0].split("\n")
        elif filled:
            self._cells[-1].lines.append(" | ".join(_SPACES.sub(" ", cell) for cell in row))

    def text(self) -> str:
        """Return all of it, with what is still open ended."""
        while self._rows:
            self.end_table()
        return self._cells[0].text()


class _Lines:
    """The lines of the document or of a cell; a blank one is empty."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pieces: list[str] = []

    def end_line(self, *, blank: bool, kept: bool) -> None:
        line = "".join(self.pieces)
        self.pieces.clear()
        if kept:
            self.lines += line.split("\n") if line else []
        elif line := _SPACES.sub(" ", line).strip(" "):
            self.lines.append(line)
        if blank and self.lines and self.lines[-1]:
            self.lines.append("")

    def text(self) -> str:
        self.end_line(blank=False, kept=False)
        return "\n".join(self.lines).strip("\n")
