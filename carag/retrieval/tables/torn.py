"""Find the head rows of tables that were cut into several chunks, as spans of the document."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from carag.retrieval.tables.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.tables.table import Span, Table


_MOST: Final = 600
"""Characters in the longest head that is used."""
_LINE: Final = 160
"""Characters in the longest line above the heads that is used with them; a longer one is prose."""


def torn_heads(text: str, chunks: Sequence[Span]) -> list[Span | None]:
    r"""Return for each chunk of a document the head rows of the table that it begins inside, or None.

    The span has the rows of heads, and the lines above them that belong to the table, as far as they are before the
    chunk. It depends on the document and the chunk alone.

    """
    tables = [table for table in tables_of(text) if table.heads]
    begins = [table.heads[0][0].span[0] for table in tables]
    found: list[Span | None] = []
    for start, end in chunks:
        at = bisect_left(begins, start) - 1
        found.append(_head(text, tables[at], start, end) if at >= 0 else None)
    return found


def _head(text: str, table: Table, start: int, end: int) -> Span | None:
    heads = [cell.span for head in table.heads for cell in head]
    first, last = min(span[0] for span in heads), max(span[1] for span in heads)
    if last > start or not any(start <= row.cells[0].span[0] < end for row in table.rows):
        return None
    for span in sorted((one for one in table.captions if one[1] <= first), reverse=True):
        if last - span[0] > _MOST or span[1] - span[0] > _LINE or text[span[1] - 1] == ".":
            break
        first = span[0]
    return (first, last) if last - first <= _MOST else None
