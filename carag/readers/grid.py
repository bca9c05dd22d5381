"""Place the cells of a table in columns, and write a row so that every figure stands with its row's and column's names.

Filers set a currency sign, a bracket and the mark of a note in cells of their own, and leave columns empty to set off
others: these are no columns of the table. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from carag.readers.outcome import ProblemKind, Unreadable
from carag.readers.raised import NOTE

__all__ = ["FIGURE", "Cell", "Placed", "body_of", "columned", "columns_of", "grid_of", "joined"]

MAX_CELLS: Final = 1 << 22
"""Greatest number of places of one table's grid: cells of one row need not stand below those of another."""
_MOST_ACROSS: Final = 1000
"""Greatest number of columns that a cell spans, as in browsers."""
_LONGEST_NAME: Final = 160
"""Greatest number of characters of what is repeated as the name of a column, or of rows elsewhere than before them."""
_OPENS: Final = re.compile(r"[A-Z]{0,3}[$€£¥₹]\s?\(?|\(")
_CLOSES: Final = re.compile(r"\)?\s?%|\)")
_MARKS: Final = re.compile(rf"(?:{NOTE})+")
_BEGINS_FIGURE: Final = re.compile(r"[(-]?\s?[$€£¥₹]?\(?\s?(?:[\d.]*\d|[-–—])")
_ENDS_FIGURE: Final = re.compile(
    rf"(?<![\d.,^_])(?!(?:19|20)\d\d$)(?:(?=[.,]*+\d)[\d.,]++|[-–—])\s?\)?(?:{NOTE})*+$"
)
"""Not a year, beside which a percent sign is the head of a column of its own."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
FIGURE: Final = re.compile(rf"[$€£¥₹(\s-]*\d[\d.,]*[\s)%]*(?:{NOTE})?")


@dataclass(slots=True)
class Cell:
    """What is stated of a cell."""

    across: int = 1
    down: int = 1
    """How many rows it spans; 0 is all that follow."""
    is_head: bool = False
    goes_on: bool = False
    """Whether the cell above, at the same place, goes on in it."""


class Placed(NamedTuple):
    """A cell in its row of the grid: the columns from `at` up to `end`."""

    at: int
    end: int
    text: str
    cell: Cell
    is_own: bool
    """Whether it begins in this row."""
    is_joined: bool = False
    """Whether its text is that of several cells."""


def grid_of(rows: list[list[tuple[Cell, str]]]) -> list[list[Placed]]:
    """Place the cells of each row in columns, those that span rows in each of them (HTML Standard, 4.9.12.1)."""
    grid: list[list[Placed]] = []
    going: list[tuple[Placed, int]] = []
    """Cells from rows above, each with the number of rows that it still spans; 0 is all."""
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
    """Join a currency sign, a bracket or the mark of a note in a cell of its own to its figure or name."""
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
    """Return where columns begin: columns of which no row holds two are one, as are those that only set off others.

    Raises
    ------
    Unreadable
        If there are more places than ``MAX_CELLS``.
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
    """Return for each edge the number of the cell that stands there in a row; -1 if none with text does."""
    found = [-1] * len(edges)
    for number, one in enumerate(row):
        if one.text:
            first, last = bisect_left(edges, one.at), bisect_left(edges, one.end)
            found[first:last] = [number] * (last - first)
    return found


def body_of(grid: list[list[Placed]]) -> int:
    """Return the number of the first row that holds a figure behind its first cell: the rows above hold heads."""
    for number, row in enumerate(grid):
        if any(
            FIGURE.fullmatch(one.text) and not _YEAR.fullmatch(one.text) and not one.cell.is_head
            for one in row[1:]
        ):
            return number
    return 1


def columned(row: list[Placed], starts: list[int], *, in_body: bool) -> list[str]:
    """Return a row's texts by column; what spans columns names each, but a figure or a passage stands once."""
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
    return Unreadable(ProblemKind.TOO_LARGE, f"a table of more than {MAX_CELLS} places; want fewer")
