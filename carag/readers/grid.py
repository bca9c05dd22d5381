"""Place a table's cells in columns, and write rows so that each figure stands with the names of its row and column.

Filers put a currency sign, a bracket or a note mark in cells of their own, and leave columns empty to set off others:
these do not count as columns of the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from carag.readers.outcome import Unreadable, too_large
from carag.readers.raised import NOTE

MAX_CELLS: Final = 1 << 22
"""Greatest number of places in one table's grid, whose columns need not line up between rows."""
_MOST_ACROSS: Final = 1000
"""Greatest number of columns that a cell spans, as in browsers."""
_LONGEST_NAME: Final = 160
"""Greatest number of characters of a text that is repeated as the name of columns or rows."""
_OPENS: Final = re.compile(r"[A-Z]{0,3}[$€£¥₹]\s?\(?|\(")
_CLOSES: Final = re.compile(r"\)?\s?%|\)")
_MARKS: Final = re.compile(rf"(?:{NOTE})+")
_BEGINS_FIGURE: Final = re.compile(r"[(-]?\s?[$€£¥₹]?\(?\s?(?:[\d.]*\d|[-–—])")
_ENDS_FIGURE: Final = re.compile(
    rf"(?<![\d.,^_])(?!(?:19|20)\d\d$)(?:(?=[.,]*+\d)[\d.,]++|[-–—])\s?\)?(?:{NOTE})*+$"
)
"""Not a year: a percent sign next to a year heads a column of its own."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
FIGURE: Final = re.compile(rf"[$€£¥₹(\s-]*\d[\d.,]*[\s)%]*(?:{NOTE})?")


@dataclass(slots=True)
class Cell:
    """The stated properties of a cell."""

    across: int = 1
    down: int = 1
    """The number of rows that the cell spans; 0 for all rows that follow."""
    is_head: bool = False
    goes_on: bool = False
    """Whether the cell continues the cell above it."""


class Placed(NamedTuple):
    """A cell in its row of the grid: the columns from ``at`` up to ``end``."""

    at: int
    end: int
    text: str
    cell: Cell
    is_own: bool
    """Whether the cell begins in this row."""
    is_joined: bool = False
    """Whether the text comes from several cells."""


def grid_of(rows: list[list[tuple[Cell, str]]]) -> list[list[Placed]]:
    """Place the cells of each row in columns; a cell that spans rows is placed in each (HTML Standard, 4.9.12.1)."""
    grid: list[list[Placed]] = []
    going: list[tuple[Placed, int]] = []
    """Cells from the rows above, each with the number of rows that it still spans; 0 for all."""
    left = MAX_CELLS
    for row in rows:
        placed = [one for one, _ in going]
        left -= len(placed) + len(row)
        if left < 0:
            raise _too_large()
        taken = sorted((one.at, one.end) for one in placed)
        passed = 0
        above_at = {one.at: one for one in grid[-1]} if grid and any(cell.goes_on for cell, _ in row) else {}
        at = 0
        begun: list[tuple[Placed, int]] = []
        for cell, text in row:
            while passed < len(taken) and taken[passed][0] <= at:
                at = max(at, taken[passed][1])
                passed += 1
            end = at + min(cell.across, _MOST_ACROSS)
            above = above_at.get(at) if cell.goes_on else None
            if above is not None:
                placed.append(above._replace(is_own=False))
                at = max(end, above.end)
                continue
            one = Placed(at, end, text, cell, is_own=True)
            placed.append(one)
            if cell.down != 1:
                begun.append((one._replace(is_own=False), max(0, cell.down - 1)))
            at = end
        going = [
            (one, rows_left - 1 if rows_left else 0) for one, rows_left in going if rows_left != 1
        ] + begun
        grid.append(sorted(placed, key=itemgetter(0)))
    return grid


def joined(row: list[Placed]) -> list[Placed]:
    """Join a currency sign, bracket or note mark in a cell of its own to its figure or name."""
    found: list[Placed] = []
    for one in row:
        last = found[-1] if found else None
        if last is not None and one.text and _are_one(last.text, one.text):
            end = last.end if _MARKS.fullmatch(one.text) else one.end
            found[-1] = last._replace(end=end, text=last.text + one.text, is_joined=True)
        elif one.text or last is None or not _OPENS.fullmatch(last.text):
            found.append(one)
    return found


def _are_one(left: str, right: str) -> bool:
    if _MARKS.fullmatch(right):
        return bool(left) and _MARKS.fullmatch(left) is None
    if _OPENS.fullmatch(left):
        return _BEGINS_FIGURE.match(right) is not None
    return _CLOSES.fullmatch(right) is not None and (
        left.count("(") > left.count(")") or _ENDS_FIGURE.search(left) is not None
    )


def columns_of(grid: list[list[Placed]]) -> list[int]:
    """Return where columns begin; columns that never both hold text in one row are merged, as are mere gaps.

    Raises ``Unreadable`` if there are more places than ``MAX_CELLS``.
    """
    edges = sorted({one.at for row in grid for one in row})
    if len(edges) * len(grid) > MAX_CELLS:
        raise _too_large()
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


def _held(row: list[Placed], edges: list[int]) -> list[int]:
    found = [-1] * len(edges)
    for number, one in enumerate(row):
        if one.text:
            first, last = bisect_left(edges, one.at), bisect_left(edges, one.end)
            found[first:last] = [number] * (last - first)
    return found


def body_of(grid: list[list[Placed]]) -> int:
    """Return the number of the first row with a figure after its first cell; the rows above are headings."""
    for number, row in enumerate(grid):
        if any(
            FIGURE.fullmatch(one.text) and not _YEAR.fullmatch(one.text) and not one.cell.is_head
            for one in row[1:]
        ):
            return number
    return 1


def data_text(grids: list[list[list[Placed]]]) -> str:
    """Write tables of data that share their columns; each column with text is one. A title above figures stands alone.

    Raises ``Unreadable`` if there are more places than ``MAX_CELLS``.
    """
    starts = sorted({one.at for grid in grids for row in grid for one in row})
    if len(starts) * sum(map(len, grids)) > MAX_CELLS:
        raise _too_large()
    texts = []
    for grid in grids:
        body = body_of(grid)
        lines = (
            [row[0].text]
            if len(row) == 1
            and (row[0].at == starts[0] or (number < body and not FIGURE.fullmatch(row[0].text)))
            else columned(row, starts, in_body=number >= body)
            for number, row in enumerate(grid)
        )
        texts.append("\n".join(map(" | ".join, lines)))
    return "\n\n".join(texts)


def columned(row: list[Placed], starts: list[int], *, in_body: bool) -> list[str]:
    """Return a row's texts by column; a name that spans columns is repeated in each, a figure or a passage is not."""
    texts = [""] * len(starts)
    for one in row:
        if not one.text:
            continue
        columns = range(max(0, bisect_right(starts, one.at) - 1), bisect_left(starts, one.end))
        is_name = len(one.text) <= _LONGEST_NAME
        if not (one.is_own or is_name) and 0 not in columns:
            continue
        spans = one.cell.across > 1 and is_name and not (in_body and FIGURE.fullmatch(one.text))
        for number in columns if spans else columns[:1]:
            texts[number] = f"{texts[number]} {one.text}".strip()
    return texts


def _too_large() -> Unreadable:
    return too_large(f"a table has more than {MAX_CELLS} places; split it")
