"""Read CSV and TSV files as one table, whose first row heads its columns.

Nothing states which sign separates the cells of a CSV file, so it is told from the file, and only if one sign alone
gives every row the same number of cells: in ``2024;1,5`` both signs could. A first line such as ``sep=;``, which
spreadsheets understand, settles it.
"""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import Final

from carag.limits import MAX_TEXT
from carag.readers.grid import MAX_CELLS, Cell, Placed, data_lines
from carag.readers.outcome import Content, ProblemKind, Unreadable, broken, too_large
from carag.readers.plain import decoded

_SIGNS: Final = ",;\t|"
_STATED: Final = re.compile(r"sep=([^\r\n])(?:\r\n?|\n|$)", re.IGNORECASE)


def read_csv(content: bytes) -> Content:
    r"""Return the rows of a CSV file, each as a line; quotes are those of RFC 4180.

    Raises ``Unreadable`` if the file is not UTF-8 (or UTF-16 with a byte order mark), its rows have different numbers
    of cells, or the sign between the cells is not certain.

    Examples
    --------
    >>> read_csv(b'Year;"Sales; net"\n2024;1,5').text
    'Year | Sales; net\n2024 | 1,5'
    """
    text = decoded(content)
    if stated := _STATED.match(text):
        return _table(text[stated.end() :], stated[1])
    fitting, errors = [], []
    for sign in filter(text.__contains__, _SIGNS):
        try:
            found = _table(text, sign)
        except Unreadable as error:
            if error.kind is ProblemKind.TOO_LARGE:
                raise
            errors.append(str(error))
        else:
            fitting += [found] * (" | " in found.text)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and not errors:  # no sign separates anything: one column
        return _table(text, ",")
    raise broken(
        "it is not certain which of comma, semicolon, tab and | separates its cells: one alone must give every row the"
        f" same number ({'; '.join(errors) if not fitting else 'several do'}); state it in the first line, as in sep=;"
    )


def read_tsv(content: bytes) -> Content:
    """Return the rows of a TSV file, whose cells are separated by tabs, as :func:`read_csv` does."""
    return _table(decoded(content), "\t")


def _table(text: str, sign: str) -> Content:
    csv.field_size_limit(MAX_TEXT)
    lines = csv.reader(StringIO(text, newline=""), delimiter=sign, strict=True)
    grid: list[list[Placed]] = []
    width = 0
    try:
        for row in filter(None, lines):
            width = width or len(row)
            if len(row) != width:
                raise broken(
                    f"separated by {sign!r}, row {lines.line_num} has {len(row)} cells; want {width}"
                )
            if width * len(grid) > MAX_CELLS:
                raise too_large(f"has more than {MAX_CELLS} cells; split the file")
            head = Cell(is_head=not grid)
            texts = [" ".join(one.split()) for one in row]
            grid.append([Placed(at, at + 1, one, head, is_own=True) for at, one in enumerate(texts) if one])
    except csv.Error as error:
        raise broken(f"separated by {sign!r}, line {lines.line_num} is not valid CSV: {error}") from None
    return Content("\n".join(data_lines([row for row in grid if row])))
