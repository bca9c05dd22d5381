"""Workbooks and delimited files: each shown cell is read once, below its heads; what is not known is named."""

from __future__ import annotations

import csv
import io
from collections import Counter
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font

from carag.readers import grid
from carag.readers.delimited import read_csv, read_tsv
from carag.readers.office.number_format import number_shown
from carag.readers.office.xlsx import read_xlsx
from carag.readers.outcome import Unreadable
from tests.readers.refusing import refused
from tests.readers.writers import zipped
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from openpyxl.worksheet.worksheet import Worksheet

word = st.from_regex(r"[A-Za-z]{1,8}( [A-Za-z]{1,8})?", fullmatch=True)
cell = st.one_of(st.just(None), word, st.integers(-(10**9), 10**9))
sheets = st.lists(st.lists(cell, min_size=1, max_size=6), max_size=8)


def xlsx(fill: Callable[[Worksheet], object]) -> bytes:
    """A workbook of one sheet, ``S``, by openpyxl."""
    book = openpyxl.Workbook()
    book.active.title = "S"  # type: ignore[union-attr]
    fill(book.active)  # type: ignore[arg-type]
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def filled(*rows: list[object]) -> bytes:
    return xlsx(lambda sheet: [sheet.append(row) for row in rows])


def lines(content: bytes) -> list[str]:
    title, *found = read_xlsx(content).text.split("\n")
    assert title == "S"
    return [one for one in found if one]


@settings(max_examples=examples(200))
@given(sheets, st.sets(st.integers(1, 8), max_size=3), st.sets(st.integers(1, 6), max_size=3))
def test_each_shown_cell_is_read_once_in_the_column_of_its_head(
    rows: list[list[object]], hidden_rows: set[int], hidden_columns: set[int]
) -> None:
    """The columns are those in which any shown cell has text."""
    rows = [[f"head{at}x" for at in range(6)], *rows]

    def fill(sheet: Worksheet) -> None:
        for at, row in enumerate(rows, 1):
            for column, value in enumerate(row, 1):
                sheet.cell(at, column, value)
        for at in hidden_rows:
            sheet.row_dimensions[at + 1].hidden = True
        for column in hidden_columns:
            sheet.column_dimensions["ABCDEF"[column - 1]].hidden = True

    shown = [
        ["" if one is None else str(one) for column, one in enumerate(row, 1) if column not in hidden_columns]
        for at, row in enumerate(rows)
        if at not in hidden_rows
    ]
    content = xlsx(fill)
    assert Counter(one for row in shown for one in row if one) == Counter(
        one.strip() for line in lines(content) for one in line.split("|") if one.strip()
    )
    for row, line in zip([row for row in shown if any(row)], lines(content), strict=True):
        if " | " in line:
            assert row + [""] * (6 - len(hidden_columns) - len(row)) == [
                one.strip() for one in line.split("|")
            ]


def test_a_merged_name_stands_in_each_row_and_column_that_it_names() -> None:
    """Also if its first row and column are hidden; what merged cells cover is not shown."""

    def fill(sheet: Worksheet) -> None:
        for row in (
            ["x", "x", "Sales", None, None],
            [None, None, "Q1", "Q2", "Q3"],
            ["EU", "North", 1, 2, 3],
        ):
            sheet.append(row)
        sheet.append([None, "South", 4, 5, 6])
        sheet.append(["covered", "East", 7, 8, 9])
        sheet.merge_cells("C1:E1")
        sheet.merge_cells("A3:A5")
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["C"].hidden = True

    assert [
        "x | x | Sales | Sales",
        " |  | Q2 | Q3",
        "EU | South | 5 | 6",
        "EU | East | 8 | 9",
    ] == lines(xlsx(fill))


def test_tables_apart_share_their_columns_and_a_total_without_a_name_keeps_its_place() -> None:
    rows = (["Fees"], ["", "Kind", "Euros"], ["", "Rent", 5], [], ["", "", 5], [], ["", "See", "below"])
    assert (
        "S\n\nFees\n | Kind | Euros\n | Rent | 5\n\n |  | 5\n\n | See | below"
        == read_xlsx(filled(*rows)).text
    )


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1234567.891, "General", "1234567.891"),
        (0.1 + 0.2, "General", "0.3"),
        (1e21, "General", "1E+21"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (1234567.891, "#,##0,", "1,235"),
        (1234567.891, "0.0,,", "1.2"),
        (-5, "#,##0_);(#,##0)", "(5)"),
        (-5, "0", "-5"),
        (-0.2, "0", "0"),
        (2.5, "0", "3"),
        (0, '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', "-"),
        (7, "[$€-407] #,##0.00;[Red]-[$€-407] #,##0.00", "€ 7.00"),
        (0.1235, "0.0%", "12.4%"),
        (3, '0" days"', "3 days"),
        (5, ";;;", ""),
        (5, "000", "005"),
        (0.5, "#.##", ".5"),
        (15000000, "0.00E+00", "15000000"),
        (1.5, "[h]:mm", "1.5⟨[h]:mm⟩"),
        (0.5, "# ?/?", "0.5⟨# ?/?⟩"),
        (5, "[>3]0;0", "5⟨[>3]0;0⟩"),
        (5, '000"-"00', '5⟨000"-"00⟩'),
        (45382, "dd/mm/yyyy", "2024-03-31"),
        (45382.75, "m/d/yy h:mm AM/PM", "2024-03-31 18:00"),
        (45382, "[$-409]mmmm yyyy;@", "March 2024"),
        (45382, "d-mmm", "31 March"),
        (45382, "yyyy", "2024"),
        (45382, '"FY"yyyy', '45382⟨"FY"yyyy⟩'),
        (0.75, "h:mm:ss", "18:00:00"),
        (0.75, "mm:ss", "0.75⟨mm:ss⟩"),
        (60, "yyyy-mm-dd", "60⟨yyyy-mm-dd⟩"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (-1, "yyyy-mm-dd", "-1⟨yyyy-mm-dd⟩"),
        (9e9, "yyyy-mm-dd", "9000000000⟨yyyy-mm-dd⟩"),
    ],
)
def test_a_number_is_written_as_its_format_shows_it(value: float, code: str, text: str) -> None:
    """A format that is not known is written behind the number, never guessed."""

    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = value
        sheet["A1"].number_format = code

    assert [text] * bool(text) == lines(xlsx(fill))


@given(st.integers(-(10**12), 10**12), st.integers(0, 4))
def test_a_format_with_groups_rounds_as_decimal_figures_do(units: int, places: int) -> None:
    """Half away from zero, against whole numbers."""
    written = f"{units}E-{places + 1}"
    tens = (abs(units) + 5) // 10
    whole, part = divmod(tens, 10**places)
    wanted = f"{whole:,}" + (f".{part:0{places}}" if places else "")
    code = "#,##0" + "." * bool(places) + "0" * places
    assert ("-" if units < 0 and tens else "") + wanted == number_shown(written, code)


def test_dates_and_truths_and_errors_are_read_as_shown() -> None:
    """Dates also from 1904 on."""
    row = [date(2024, 3, 31), datetime(2024, 3, 31, 18), time(9, 30), True, "#N/A", "a\nb", "_x0041_"]  # noqa: DTZ001
    shown = "2024-03-31 | 2024-03-31 18:00:00 | 09:30:00 | TRUE | #N/A | a b | A"
    assert [shown] == lines(filled(row))
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"date_1904": True}) as book:
        book.add_worksheet("S").write_datetime(0, 0, date(2024, 3, 31), book.add_format({"num_format": 14}))
    assert ["2024-03-31"] == lines(out.getvalue())


def test_struck_text_is_left_out_and_a_raised_mark_is_a_note() -> None:
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet, high = book.add_worksheet("S"), book.add_format({"font_script": 1})
        struck = book.add_format({"font_strikeout": True})
        sheet.write_rich_string(0, 0, "2,500", high, "1", " per day")
        sheet.write_rich_string(1, 0, "old", struck, " gone", " new")
        sheet.write(2, 0, "gone", struck)
    assert ["2,500[^1] per day", "old new"] == lines(out.getvalue())
    assert "gone" not in read_xlsx(xlsx(lambda sheet: setattr(sheet["A1"], "font", Font(strike=True)))).text


def test_a_formula_without_a_trusted_value_is_named_and_never_guessed() -> None:
    """XlsxWriter stores 0 for all that it does not compute, and asks for a computation at the next opening."""
    content = read_xlsx(filled(["Sum", "=1+1"]))
    assert "S\n\nSum | ⟨not calculated⟩" == content.text
    assert ("sheet S: a formula in row 1, column 2 was not calculated",) == content.left_out
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet = book.add_worksheet("S")
        sheet.write_formula("A1", "=7+7")
        sheet.write_array_formula("A2:B3", "{=C1:D2}")
        sheet.write_number("A4", 5)
    found = read_xlsx(out.getvalue())
    assert 5 == len(found.left_out)
    assert ["⟨not calculated⟩", *["⟨not calculated⟩ | ⟨not calculated⟩"] * 2, "5"] == lines(out.getvalue())


def book_of(cells: str, *, before: str = "", after: str = "", calc: str = "", strings: str = "") -> bytes:
    """A workbook with this XML in its only sheet."""
    base, kind = (
        'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"',
        "officeDocument/2006/relationships",
    )
    names = f'xmlns:r="http://schemas.openxmlformats.org/{kind}"'
    listed = '<Relationships><Relationship Id="r1" Type="a/{}" Target="{}"/>{}</Relationships>'
    more = '<Relationship Id="r2" Type="a/sharedStrings" Target="strings.xml"/>'
    return zipped(
        {
            "_rels/.rels": listed.format("officeDocument", "book.xml", ""),
            "book.xml": f'<workbook {base} {names}><sheets><sheet name="S" r:id="r1"/></sheets>{calc}</workbook>',
            "_rels/book.xml.rels": listed.format("worksheet", "s.xml", more),
            "s.xml": f"{before}<worksheet {base}><sheetData>{cells}</sheetData>{after}</worksheet>",
            "strings.xml": f"<sst {base}>{strings}</sst>",
        }
    )


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("<c><f>1+1</f><v>2</v></c>", "2"),
        ("<c><f>1+1</f></c>", "⟨not calculated⟩"),
        ("<c><f>1+1</f><v/></c>", "⟨not calculated⟩"),
        ('<c t="str"><f>A2</f><v>said</v></c>', "said"),
        ('<c t="str"><f>A2</f><v/></c>', ""),
        ('<c t="e"><f>1/0</f><v>#DIV/0!</v></c>', "#DIV/0!"),
        ('<c t="b"><f>1=1</f><v>1</v></c>', "TRUE"),
        ('<c t="d"><v>2024-03-31</v></c>', "2024-03-31"),
        ('<c t="s"><v>0</v></c>', "once"),
        ('<c t="inlineStr"><is><t>in</t><rPh sb="0" eb="1"><t>guide</t></rPh></is></c>', "in"),
    ],
)
def test_a_cell_is_read_by_its_kind(cell: str, text: str) -> None:
    """A formula's stored value counts, unless the file says that it must be computed again."""
    strings = "<si><t>once</t></si>"
    assert [text] * bool(text) == lines(book_of(f"<row>{cell}</row>", strings=strings))
    stale = book_of(f"<row>{cell}</row>", strings=strings, calc='<calcPr fullCalcOnLoad="1"/>')
    assert (["⟨not calculated⟩"] if "<f>" in cell else [text]) == lines(stale)


def test_what_merged_cells_cover_is_not_shown() -> None:
    """Programs may leave values there, which the sheet no longer shows."""
    after = '<mergeCells><mergeCell ref="A1:B2"/></mergeCells>'
    rows = "<row><c><v>1</v></c><c><v>2</v></c><c><v>3</v></c></row><row><c><v>4</v></c><c/><c><v>5</v></c></row>"
    assert ["1 | 3", "1 | 5"] == lines(book_of(rows, after=after))


def test_hidden_sheets_are_not_read_and_heads_and_charts_are() -> None:
    """What is said at the head of each printed page counts; a chart is named."""

    def fill(sheet: Worksheet) -> None:
        sheet.append(["Kind", 5])
        sheet.oddHeader.center.text = "CONFIDENTIAL"
        for state in ("hidden", "veryHidden"):
            hidden = sheet.parent.create_sheet(state)  # type: ignore[union-attr]
            hidden["A1"], hidden.sheet_state = "secret", state
        chart = BarChart()
        chart.add_data(Reference(sheet, min_col=2, min_row=1))
        sheet.add_chart(chart)

    found = read_xlsx(xlsx(fill))
    assert ("S\n\nCONFIDENTIAL\n\nKind | 5", ("sheet S: a chart",)) == (found.text, found.left_out)


def test_a_sheet_as_wide_as_a_sheet_can_be_is_read() -> None:
    text = read_xlsx(
        xlsx(lambda sheet: [sheet.cell(1, 1, "a"), sheet.cell(1, 16384, "z"), sheet.cell(2, 9, 3)])
    ).text
    assert "S\n\na |  | z\n | 3 | " == text


DTD = '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"no archive", "broken"),
        (filled(["a"])[:-60], "broken"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (book_of('<row r="2"><c r="A3"><v>1</v></c></row>'), "broken"),
        (book_of('<row r="2"/><row r="1"/>'), "broken"),
        (book_of('<row><c r="B1"><v>1</v></c><c r="A1"><v>1</v></c></row>'), "broken"),
        (book_of('<row><c r="XFE1"><v>1</v></c></row>'), "broken"),
        (book_of("<row><c><v>one</v></c></row>"), "broken"),
        (book_of("<row><c><v>NaN</v></c></row>"), "broken"),
        (book_of('<row><c t="s"><v>7</v></c></row>'), "broken"),
        (book_of('<row r="x"><c><v>1</v></c></row>'), "broken"),
        (
            book_of(
                "<row><c><v>1</v></c></row>",
                after='<mergeCells><mergeCell ref="A1:B2"/><mergeCell ref="B2:C3"/></mergeCells>',
            ),
            "broken",
        ),
        (book_of('<row><c t="inlineStr"><is><t>&x;</t></is></c></row>', before=DTD), "broken"),
        (book_of(f"<row><c><v>{'1' * 40_000_000}</v></c></row>"), "too_large"),
        (book_of("<row>" * 3000 + "</row>" * 3000), "too_large"),
    ],
)
def test_a_hostile_workbook_ends_in_a_problem(content: bytes, kind: str) -> None:
    """Cut, encrypted, with cells out of place, entities, bombs of size and depth."""
    assert kind == refused(read_xlsx, content).kind


def test_sheets_and_tables_have_a_greatest_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells and places: two far corners make four places."""
    monkeypatch.setattr(grid, "MAX_CELLS", 3)
    monkeypatch.setattr("carag.readers.office.sheet.MAX_CELLS", 3)
    monkeypatch.setattr("carag.readers.delimited.MAX_CELLS", 3)
    assert "too_large" == refused(read_xlsx, filled(["a"], ["", "b"])).kind
    assert "too_large" == refused(read_xlsx, filled(["a"] * 4)).kind
    assert "too_large" == refused(read_csv, b"a,b\nc,d\ne,f").kind


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r|"), max_size=6)


@settings(max_examples=examples(200))
@given(
    st.integers(2, 4).flatmap(
        lambda wide: st.lists(st.lists(texts, min_size=wide, max_size=wide), min_size=1)
    )
)
def test_what_is_written_as_csv_is_read_or_refused(rows: list[list[str]]) -> None:
    """With its sign stated, it is read always."""
    for sign in ",;\t":
        out = io.StringIO()
        csv.writer(out, delimiter=sign).writerows(rows)
        wanted = sorted(filter(None, (" ".join(one.split()) for row in rows for one in row)))
        stated = read_csv(f"sep={sign}\r\n{out.getvalue()}".encode()).text
        assert wanted == sorted(
            filter(None, (one.strip() for line in stated.split("\n") for one in line.split("|")))
        )
        with suppress(Unreadable):
            assert stated == read_csv(out.getvalue().encode()).text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'Name,Text\r\na,"b, ""c"""\r\n', 'Name | Text\na | b, "c"'),
        (b"Jahr;Umsatz\n2024;1,5\n2023;2,5", "Jahr | Umsatz\n2024 | 1,5\n2023 | 2,5"),
        (b"\xef\xbb\xbfa\tb\n1\t2", "a | b\n1 | 2"),
        ("a,b\n1,ä".encode("utf-16"), "a | b\n1 | ä"),
        (b"Name\nAna\nBea", "Name\nAna\nBea"),
        (b"a,b\n\n1,\n", "a | b\n1"),
        (b"2024;1,5", None),
        (b"a,b\n1,2,3", None),
        (b'a,b\n"1,2', None),
        (b"caf\xe9,b", None),
    ],
)
def test_the_sign_between_cells_is_certain_or_asked_for(content: bytes, text: str | None) -> None:
    """As is the encoding; quotes that are not closed are no cell."""
    if text is None:
        assert "broken" == refused(read_csv, content).kind
    else:
        assert text == read_csv(content).text


def test_tsv_has_tabs_whatever_else_it_holds() -> None:
    assert "a;x | b,y\n1 | 2" == read_tsv(b"a;x\tb,y\n1\t2\n").text
    assert "want 2" in refused(read_tsv, b"a\tb\n1\n").reason
