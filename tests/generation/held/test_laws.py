"""Laws of the guard on figures, over drawn tables: a cell said exactly passes, and no single change does."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from carag.generation.figures.entries import entries_of
from carag.generation.figures.quoting import said
from carag.generation.generator import Draft
from carag.generation.held import held
from tests.generation.conftest import build_passage

LABELS = (
    *("Revenue", "Cost of revenue", "Gross profit", "Operating income", "Income taxes", "Inventories"),
    *("Accounts receivable", "Long-term debt", "Goodwill", "Dividends declared"),
)
SCALES = {"thousands": "thousand", "millions": "million"}


class Drawn(NamedTuple):
    """A table in which every cell has its own value, and one of its cells."""

    labels: tuple[str, ...]
    years: tuple[int, ...]
    cells: tuple[tuple[int, ...], ...]
    scale: str
    row: int
    column: int

    @property
    def text(self) -> str:
        head = f"(in {self.scale}) | {' | '.join(map(str, self.years))}"
        rows = (
            f"{label} | {' | '.join(f'$ {one:,}' for one in row)}"
            for label, row in zip(self.labels, self.cells, strict=True)
        )
        return "\n".join([head, *rows])

    @property
    def value(self) -> int:
        return self.cells[self.row][self.column]

    def said(self, *, label: str = "", year: int = 0, value: int = 0, unit: str = "") -> str:
        """The sentence of the cell, with what is given changed."""
        number = f"${value or self.value:,} {unit or SCALES[self.scale]}"
        return f"{label or self.labels[self.row]} was {number} in {year or self.years[self.column]} [1]."


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    labels = tuple(draw(st.lists(st.sampled_from(LABELS), min_size=2, max_size=6, unique=True)))
    years = tuple(draw(st.sampled_from([(2023, 2022), (2022, 2021, 2020), (2019, 2018)])))
    count = len(labels) * len(years)
    drawn = draw(st.lists(st.integers(101, 99_999), min_size=count, max_size=count, unique=True))
    cells = tuple(tuple(drawn[at : at + len(years)]) for at in range(0, count, len(years)))
    row, column = draw(st.integers(0, len(labels) - 1)), draw(st.integers(0, len(years) - 1))
    return Drawn(labels, years, cells, draw(st.sampled_from([*SCALES])), row, column)


def passes(table: Drawn, text: str) -> bool:
    """Whether a sentence that cites the table leaves."""
    found = held("", Draft(text, (0,)), [build_passage(table.text)])
    assert (text, ()) == found or ("" == found.text and len(found.left_out) == 1)
    return not found.left_out


@given(tables())
def test_a_cell_that_is_said_exactly_passes(table: Drawn) -> None:
    """In the unit of the table, or in ones."""
    assert passes(table, table.said())
    ones = table.value * {"thousands": 10**3, "millions": 10**6}[table.scale]
    assert passes(table, f"{table.labels[table.row]} was ${ones:,} in {table.years[table.column]} [1].")


@given(tables(), st.data())
def test_the_value_of_another_cell_does_not(table: Drawn, data: st.DataObject) -> None:
    """Of the same row or any other."""
    other = data.draw(st.sampled_from([one for row in table.cells for one in row if one != table.value]))
    assert not passes(table, table.said(value=other))


@given(tables(), st.data())
def test_another_label_does_not(table: Drawn, data: st.DataObject) -> None:
    """Though both rows are in the passage."""
    others = [one for one in table.labels if one != table.labels[table.row]]
    assert not passes(table, table.said(label=data.draw(st.sampled_from(others))))


@given(tables(), st.data())
def test_another_year_does_not(table: Drawn, data: st.DataObject) -> None:
    """Of the same table, or of none of its columns."""
    others = [one for one in (*table.years, 2005) if one != table.years[table.column]]
    assert not passes(table, table.said(year=data.draw(st.sampled_from(others))))


@given(tables(), st.sampled_from(["thousand", "million", "billion", "crore", "per cent"]))
def test_another_unit_does_not(table: Drawn, unit: str) -> None:
    """A scale, or a share instead of an amount."""
    assume(unit != SCALES[table.scale])
    sentence = table.said(unit=unit)
    assert not passes(table, sentence.replace("$", "") if unit == "per cent" else sentence)


@given(tables(), tables())
def test_what_is_left_is_what_holds(one: Drawn, other: Drawn) -> None:
    """Of two sentences, whichever holds stays with its mark, and the other leaves no trace but a reason."""
    assume(other.said() != one.said() and not passes(one, other.said()))
    for text in (f"{one.said()} {other.said()}", f"{other.said()} {one.said()}"):
        found = held("", Draft(text, (0,)), [build_passage(one.text)])
        assert (one.said(), 1) == (found.text, len(found.left_out))


@given(tables())
def test_cells_that_the_extractive_generator_looks_up_pass(table: Drawn) -> None:
    """With label, head and unit, as it writes them."""
    for one in entries_of(0, table.text):
        assert passes(table, f"{said(one)} [1]")


@given(tables(), st.integers(0, 9))
def test_rows_word_for_word_pass(table: Drawn, seed: int) -> None:
    """As the extractive generator quotes them."""
    lines = table.text.split("\n")
    line = lines[seed % len(lines)]
    assert passes(table, f"{line} [1]")
