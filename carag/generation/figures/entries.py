"""Read the cells of a passage: each figure with its label, heads, time and unit, and the positions of all of them.

A passage may come with the head rows of the table that it was cut from. They are read as if they were above it, and
every span says which of the two texts it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.generation.figures.columns import Time, heads_above, time_of
from carag.generation.figures.units import unit_of
from carag.retrieval.tables.number import read_number
from carag.retrieval.tables.table import PERIOD_WORDS, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.generation.figures.units import Unit
    from carag.retrieval.tables.number import Number
    from carag.retrieval.tables.table import Row, Span, Table


_APART: Final = " | "
"""Between heads, so that a day in one and a year in another do not make a date."""
_SHORT: Final = 100
"""Characters up to which a caption or section is read for a time; a longer one is prose and names several times."""


class Quote(NamedTuple):
    """A substring of a passage, or of the head rows that came with it."""

    position: int
    """The passage's place among those given, from 0."""
    start: int
    end: int
    in_head: bool
    """Whether it belongs to the head rows and not to the passage's text."""
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure of a table."""

    cell: Quote
    label: Quote
    section: Quote | None
    heads: tuple[Quote, ...]
    """The heads above it, from the top."""
    captions: tuple[str, ...]
    number: Number
    unit: Unit
    unit_quote: Quote | None
    """The words that state the scale."""
    time: Time
    has_dated_head: bool
    """Whether a head above it names its year."""
    time_in_section: bool
    """Whether the heads leave the year to the section."""
    table: tuple[int, int]
    """Position of the passage, and number of the table in that passage."""
    line: int
    """Number of the row in the table."""


def entries_of(position: int, text: str, head: str = "") -> Iterator[Entry]:
    """Read every figure in a passage's tables whose row has a label and whose heads can be determined.

    ``position`` is the passage's, for quotes; ``head`` has the head rows of the table that its first rows were cut
    from, or an empty string.
    """
    if head and (own := tables_of(text)) and own[0].heads:
        head = ""  # the first table is complete
    whole = f"{head}\n{text}" if head else text
    edge = len(head) + 1 if head else 0

    def quote(span: Span) -> Quote | None:
        start, end = span
        if end <= edge - 1:
            return Quote(position, start, end, True, whole[start:end])
        return Quote(position, start - edge, end - edge, False, whole[start:end]) if start >= edge else None

    for number, table in enumerate(tables_of(whole)):
        for line, row in enumerate(table.rows):
            label = quote(row.label)
            if label is None or not label.text:
                continue
            for cell in row.cells:
                figure = read_number(whole[slice(*cell.span)].replace("|", ""))
                heads = heads_above(whole, table, row, cell)
                said = quote(cell.span)
                if figure is None or heads is None or said is None:
                    continue
                over_labels = [
                    one.span
                    for each in reversed(table.heads)
                    for one in each
                    if one.at < 0 or not table.is_grid
                ]
                others = [one.span for each in reversed(table.heads) for one in each]
                over = tuple(one for span in heads if (one := quote(span)))
                unit = unit_of(
                    whole,
                    said.text,
                    label.text,
                    [*reversed(heads), *over_labels],
                    [*others, *reversed(table.captions)],
                )
                yield Entry(
                    cell=said,
                    label=label,
                    section=quote(row.section) if row.section else None,
                    heads=over,
                    captions=tuple(whole[slice(*span)] for span in table.captions),
                    number=figure,
                    unit=unit,
                    unit_quote=quote(unit.span) if unit.span else None,
                    time=_time(whole, table, row, heads),
                    has_dated_head=bool(time_of(_APART.join(one.text for one in over)).years),
                    time_in_section=_in_section(whole, row, heads),
                    table=(position, number),
                    line=line,
                )


def _in_section(text: str, row: Row, heads: tuple[Span, ...]) -> bool:
    said = _APART.join(text[slice(*span)] for span in (*heads, row.label))
    return (
        row.section is not None and not time_of(said).years and bool(time_of(text[slice(*row.section)]).years)
    )


def _time(text: str, table: Table, row: Row, heads: tuple[Span, ...]) -> Time:
    """Read the time of a cell from its heads; what they omit comes from label, section and lines above in turn."""
    time = time_of(_APART.join(text[slice(*span)] for span in heads))
    above = [row.label, *([row.section] if row.section else [])]
    above += [one.span for head in table.heads for one in head if one.at < 0]
    above += reversed(table.captions)
    for span in above:
        said = text[slice(*span)]
        if len(said) > _SHORT or not PERIOD_WORDS.search(said):
            continue
        other = time_of(said)
        time = Time(
            time.years or other.years,
            time.day or other.day,
            other.months if time.months is None else time.months,
            time.quarter or (other.quarter if span != row.label else None),
            time.is_early or (not time.years and other.is_early),
            time.compares,
            time.restates,
        )
    return time
