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
from carag.readers.grid import MAX_CELLS, Cell, Placed, data_text
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
        return _written(_rows(text[stated.end() :], stated[1]))
    fitting, errors = [], []
    for sign in filter(text.__contains__, _SIGNS):
        try:
            fitting.append(_rows(text, sign))
        except Unreadable as error:
            if error.kind is ProblemKind.TOO_LARGE:
                raise
            errors.append(str(error))
    several = [rows for rows in fitting if len(rows[0]) > 1]
    if len(several) != 1 and (several or errors):
        raise broken(
            "it is not certain which of comma, semicolon, tab and | separates its cells: one alone must give every row"
            f" the same number ({'several do' if several else '; '.join(errors)}); state it in line 1, as in sep=;"
        )
    return _written(several[0] if several else _rows(text, ","))


def read_tsv(content: bytes) -> Content:
    """Return the rows of a TSV file, whose cells are separated by tabs, as :func:`read_csv` does."""
    return _written(_rows(decoded(content), "\t"))


def _rows(text: str, sign: str) -> list[list[str]]:
    """Return the rows that are not blank, all of one width."""
    csv.field_size_limit(MAX_TEXT)
    lines = csv.reader(StringIO(text, newline=""), delimiter=sign, strict=True)
    rows: list[list[str]] = []
    try:
        for row in filter(None, lines):
            rows.append(row)
            if len(row) != len(rows[0]):
                raise broken(
                    f"separated by {sign!r}, line {lines.line_num} has {len(row)} cells; want {len(rows[0])}"
                )
            if len(row) * len(rows) > MAX_CELLS:
                raise too_large(f"has more than {MAX_CELLS} cells; split the file")
    except csv.Error as error:
        raise broken(f"separated by {sign!r}, line {lines.line_num} is not valid CSV: {error}") from None
    return rows


def _written(rows: list[list[str]]) -> Content:
    grid = [
        [
            Placed(at, at + 1, text, Cell(is_head=not number), is_own=True)
            for at, one in enumerate(row)
            if (text := " ".join(one.split()))
        ]
        for number, row in enumerate(rows)
    ]
    return Content(data_text([[row for row in grid if row]]))
