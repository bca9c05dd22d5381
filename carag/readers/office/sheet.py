"""Place the shown cells of a sheet in tables, in which each figure stands below the names of its column."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from carag.limits import quoted
from carag.readers.grid import MAX_CELLS, Cell, Placed
from carag.readers.outcome import broken, too_large

if TYPE_CHECKING:
    from collections.abc import Collection


MAX_COLUMNS: Final = 16384
Area: TypeAlias = tuple[int, int, int, int]
"""First row and column, last row and column."""
_CELL: Final = re.compile(r"\$?([A-Z]{1,3})\$?([1-9]\d{0,6})", re.ASCII)


def area_of(reference: str) -> Area:
    """Return the area of a reference.

    Raises ``Unreadable`` if it is not valid.

    Examples
    --------
    >>> area_of("A1:AB7"), area_of("C2")
    ((1, 1, 7, 28), (2, 3, 2, 3))
    """
    start, _, end = reference.partition(":")
    ends = []
    for one in (start, end or start):
        if (found := _CELL.fullmatch(one)) is None:
            raise broken(f"the reference {quoted(reference)} is not valid; save the file again")
        column = 0
        for letter in found[1]:
            column = 26 * column + ord(letter) - 64
        ends += [int(found[2]), column]
    return ends[0], ends[1], ends[2], ends[3]


def tables_of(
    cells: dict[int, dict[int, str]],
    merged: list[Area],
    hidden_rows: Collection[int],
    hidden_columns: Collection[int],
) -> list[list[list[Placed]]]:
    """Return the shown rows of a sheet between empty ones, given its texts by row and column.

    Raises ``Unreadable`` if there are too many cells, or merged areas overlap.
    """
    tables: list[list[list[Placed]]] = []
    last = 0
    for number, row in sorted(_placed(cells, merged, hidden_rows, hidden_columns).items()):
        if not tables or any(one not in hidden_rows for one in range(last + 1, number)):
            tables.append([])
        tables[-1].append(row)
        last = number
    return tables


def _placed(
    cells: dict[int, dict[int, str]],
    merged: list[Area],
    hidden_rows: Collection[int],
    hidden_columns: Collection[int],
) -> dict[int, list[Placed]]:
    """Return what each row shows; merged cells show the text of their first one, hidden or not."""
    found: dict[int, list[Placed]] = defaultdict(list)
    numbers, left = sorted(cells), MAX_CELLS
    _check_apart(merged)
    for top, first, bottom, last in merged:
        text = cells.get(top, {}).get(first, "")
        covered = numbers[bisect_left(numbers, top) : bisect_right(numbers, bottom)]
        for number in covered:
            for at in [one for one in cells[number] if first <= one <= last]:
                del cells[number][at]
        row = next((one for one in range(top, bottom + 1) if one not in hidden_rows), 0)
        at = next((one for one in range(first, last + 1) if one not in hidden_columns), 0)
        if text and row and at:
            shown = {row, *(one for one in covered if one > row and one not in hidden_rows and cells[one])}
            left -= len(shown)
            for number in shown if left >= 0 else ():
                cell = Cell(across=last + 1 - at)
                found[number].append(Placed(at, last + 1, text, cell, is_own=number == row))
    for number, row_cells in cells.items():
        if number not in hidden_rows:
            texts = [(at, text) for at, text in row_cells.items() if text and at not in hidden_columns]
            left -= len(texts)
            found[number] += [Placed(at, at + 1, text, Cell(), is_own=True) for at, text in texts]
    if left < 0:
        raise too_large(f"a sheet has more than {MAX_CELLS} cells; split it")
    return {number: sorted(row, key=itemgetter(0)) for number, row in found.items() if row}


def _check_apart(areas: list[Area]) -> None:
    above: list[Area] = []
    for area in sorted(areas):
        above = [one for one in above if one[2] >= area[0]]
        if any(one[1] <= area[3] and area[1] <= one[3] for one in above):
            raise broken("two areas of merged cells overlap; save the file again")
        above.append(area)
