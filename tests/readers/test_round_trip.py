"""A document written as HTML, DOCX and PDF is read back: the same lines, numbers, tables and marks."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from carag.readers.html import read_html
from carag.readers.list_numbers import numeral
from carag.readers.office.docx import read_docx
from carag.readers.pdf.reader import read_pdf
from tests.readers.word import word_of
from tests.readers.writers import pdf_page, stream
from tests.sizes import examples

# No word is a unit and no figure is 10, behind which a raised 2 or 12 is a power.
word = st.from_regex(r"[A-Z][a-z]{3,6}|[2-9][0-9]{0,2}(,[0-9]{3})?", fullmatch=True)
words = st.lists(word, min_size=1, max_size=4).map(" ".join)


class Marked(NamedTuple):
    """A piece of a line: its text, the struck text after it, and the note mark after that."""

    text: str
    struck: str
    mark: str


class Cell(NamedTuple):
    text: str
    across: int
    down: int


class Item(NamedTuple):
    level: int
    pieces: list[Marked]


Block: TypeAlias = "list[Marked] | list[Item] | list[list[Cell]]"

pieces = st.lists(
    st.builds(
        Marked,
        words,
        st.one_of(st.just(""), words),
        st.one_of(st.just(""), st.sampled_from(["1", "2", "a", "12"])),
    ),
    min_size=1,
    max_size=3,
)
KINDS = [("decimal", "1", "%1."), ("lowerLetter", "a", "%2."), ("lowerRoman", "i", "%3.")]


@st.composite
def lists(draw: st.DrawFn) -> list[Item]:
    """Items, each at most one level below the one before."""
    items = [Item(0, draw(pieces))]
    for _ in range(draw(st.integers(0, 5))):
        items.append(Item(draw(st.integers(0, min(2, items[-1].level + 1))), draw(pieces)))
    return items


@st.composite
def tables(draw: st.DrawFn) -> list[list[Cell]]:
    """A grid where a heading may span two columns and a name two rows."""
    width, height = draw(st.integers(3, 4)), draw(st.integers(3, 4))
    texts = [[f"{draw(word)}x{row}y{column}" for column in range(width)] for row in range(height)]
    rows = [[Cell(text, 1, 1) for text in row] for row in texts]
    if draw(st.booleans()):
        rows[0][1:3] = [Cell(texts[0][1], 2, 1)]
    if draw(st.booleans()):
        rows[1][0] = Cell(texts[1][0], 1, 2)
        rows[2] = rows[2][1:]
    return rows


documents = st.lists(st.one_of(pieces, lists(), tables()), min_size=1, max_size=4)


def wanted(document: list[Block]) -> str:
    found = []
    for block in document:
        if isinstance(block[0], Marked):
            found.append(_said(block))
        elif isinstance(block[0], Item):
            found += [
                f"{label} {_said(item.pieces)}" for label, item in zip(_labels(block), block, strict=True)
            ]
        else:
            found.append("\n".join(_rows(block)))
    return "\n".join(found)


def _labels(items: list[Item]) -> list[str]:
    counts, found = [0, 0, 0], []
    for item in items:
        counts[item.level] += 1
        counts[item.level + 1 :] = [0] * (2 - item.level)
        kind = ("decimal", "lower-alpha", "lower-roman")[item.level]
        found.append(f"{numeral(kind, counts[item.level])}.")
    return found


def _said(line: list[Marked]) -> str:
    return " ".join(one.text + (f"[^{one.mark}]" if one.mark else "") for one in line)


def _rows(table: list[list[Cell]]) -> list[str]:
    found = []
    above = ""
    for row in table:
        cells = [above] * (len(above) > 0)
        above = row[0].text if row[0].down > 1 else ""
        cells += [cell.text for cell in row for _ in range(cell.across)]
        found.append(" | ".join(cells))
    return found


def as_html(document: list[Block]) -> bytes:
    out = ""
    for block in document:
        if isinstance(block[0], Marked):
            out += f"<p>{_html(block)}</p>"
        elif isinstance(block[0], Item):
            depth = -1
            for item in block:
                out += "</li></ol>" * (depth - item.level) + "</li>" * (depth >= item.level)
                out += "".join(f"<ol type={KINDS[one][1]}>" for one in range(depth + 1, item.level + 1))
                out += f"<li>{_html(item.pieces)}"
                depth = item.level
            out += "</li></ol>" * (depth + 1)
        else:
            rows = (
                "".join(f"<td colspan={one.across} rowspan={one.down}>{one.text}</td>" for one in row)
                for row in block
            )
            out += "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    return out.encode()


def _html(line: list[Marked]) -> str:
    return " ".join(
        escape(one.text)
        + (f"<sup>{one.mark}</sup>" if one.mark else "")
        + (f"<del>{one.struck}</del>" if one.struck else "")
        for one in line
    )


def as_docx(document: list[Block]) -> bytes:
    defined, lines, lists_ = [], [], 0
    for block in document:
        if isinstance(block[0], Marked):
            lines.append(_short(block))
        elif isinstance(block[0], Item):
            lists_ += 1
            defined.append(f"#list {lists_} | " + " | ".join(f"{kind} {text}" for kind, _, text in KINDS))
            lines += [f"{lists_}.{item.level}: {_short(item.pieces)}" for item in block]
        else:
            lines.append("<w:tbl>" + "".join(_docx_row(row, block) for row in block) + "</w:tbl>")
    return word_of("\n".join(defined + lines))


def _docx_row(row: list[Cell], table: list[list[Cell]]) -> str:
    at = table.index(row)
    up = "{c up}" if at and table[at - 1][0].down > 1 else ""
    cells = "".join(
        f"{{c {one.text}{' down' * (one.down > 1)}{f' x{one.across}' * (one.across > 1)}}}" for one in row
    )
    return f"<w:tr>{up}{cells}</w:tr>"


def _short(line: list[Marked]) -> str:
    return " ".join(
        one.text
        + (f"{{sup|{one.mark}}}" if one.mark else "")
        + (f"{{del|{one.struck}}}" if one.struck else "")
        for one in line
    )


def as_pdf(document: list[Block]) -> bytes:
    """Draw each line at its place; of a table each cell at its own. PDF has no struck text: a line is drawn over it."""
    drawn, height = [], 780
    for block in document:
        if isinstance(block[0], Marked):
            lines = [[(0, _runs("", block))]]
        elif isinstance(block[0], Item):
            lines = [
                [(0, _runs(f"{label} ", item.pieces))]
                for label, item in zip(_labels(block), block, strict=True)
            ]
        else:
            lines = [
                [(110 * at, f"({cell}) Tj") for at, cell in enumerate(row.split(" | "))]
                for row in _rows(block)
            ]
        for line in lines:
            height -= 18
            drawn += [f"BT /F 11 Tf {40 + left} {height} Td {shown} ET" for left, shown in line]
        height -= 14
    return pdf_page(stream("\n".join(drawn).encode()))


def _runs(label: str, line: list[Marked]) -> str:
    shown = f"({label}) Tj " if label else ""
    for at, one in enumerate(line):
        shown += f"({' ' * (at > 0)}{one.text}) Tj "
        shown += f"/F 6.5 Tf 4 Ts ({one.mark}) Tj 0 Ts /F 11 Tf " if one.mark else ""
    return shown


def lines_of(text: str) -> str:
    return re.sub(r"\n+", "\n", text)


@settings(max_examples=examples(200))
@given(documents)
def test_a_document_is_read_as_it_was_written(document: list[Block]) -> None:
    """2,000 of them in full."""
    assert wanted(document) == lines_of(read_html(as_html(document)).text)
    assert wanted(document) == lines_of(read_docx(as_docx(document)).text)
    assert wanted(document).replace(" | ", " ") == lines_of(read_pdf(as_pdf(document)).text).strip("\n")
