"""Slides and e-mails: each shown text is read once, in order; what is not read is named."""

from __future__ import annotations

import io
from email.message import EmailMessage
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import openpyxl
import pptx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from carag.readers import Problem, ReadDocument, read_folder
from carag.readers.mail import MAX_NESTING, read_eml
from carag.readers.office.pptx import read_pptx
from tests.readers.refusing import refused
from tests.readers.test_sheets import filled
from tests.readers.writers import docx_of, docx_package, paragraph, pdf
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

word = st.from_regex(r"[A-Z][a-z]{2,8}( [a-z]{1,8}){0,2}", fullmatch=True)


def saved(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(
        st.tuples(word, st.lists(word, min_size=1, max_size=3), word, st.booleans()), min_size=1, max_size=4
    )
)
def test_slides_are_pages_in_order(slides: list[tuple[str, list[str], str, bool]]) -> None:
    """The title, the text, then the notes, stated as notes; a hidden slide is an empty page."""
    made = pptx.Presentation()
    wanted = []
    for title, lines, notes, is_hidden in slides:
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.placeholders[1].text = "\n".join(lines)
        slide.shapes.title.text = title
        slide.notes_slide.notes_text_frame.text = notes
        if is_hidden:
            slide._element.set("show", "0")
        wanted.append("" if is_hidden else "\n\n".join([title, *lines, f"Notes: {notes}"]))
    found = read_pptx(saved(made))
    bounds = [*found.pages, len(found.text)]
    assert wanted == [found.text[start:end].removesuffix("\n") for start, end in pairwise(bounds)]
    assert () == found.left_out


def test_tables_marks_hidden_shapes_and_what_the_master_draws() -> None:
    """A merged cell names each of its columns; struck text and hidden shapes are not shown; a chart is named."""
    made = pptx.Presentation()
    first, second = (made.slides.add_slide(made.slide_layouts[6]) for _ in range(2))
    stamp = first.shapes.add_textbox(0, 0, 9, 9)
    stamp.text_frame.text = "CONFIDENTIAL"
    made.slide_master.shapes._spTree.append(stamp._element)
    table = first.shapes.add_table(3, 3, 0, 0, 9, 9).table
    for at, text in enumerate(["Kind", "Euros", "", "", "2024", "2023", "Rent", "5", "4"]):
        table.cell(*divmod(at, 3)).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    runs = second.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    for text, look, value in (("2,500", "", ""), ("1", "baseline", "30000"), (" old", "strike", "sngStrike")):
        run = runs.add_run()
        run.text = text
        if look:
            run._r.get_or_add_rPr().set(look, value)
    hidden = second.shapes.add_textbox(0, 0, 9, 9)
    hidden.text_frame.text = "hidden"
    hidden._element.nvSpPr.cNvPr.set("hidden", "1")
    data = CategoryChartData()
    data.categories = ["a"]
    data.add_series("b", [1])
    second.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 9, 9, data)
    found = read_pptx(saved(made))
    assert "CONFIDENTIAL\n\nKind | Euros | Euros\n | 2024 | 2023\nRent | 5 | 4\n2,500[^1]\n" == found.text
    assert ("slide 2: a chart",) == found.left_out


@pytest.mark.parametrize("content", [b"", saved(pptx.Presentation())[:-50], filled(["a"]), docx_of(["a"])])
def test_what_is_no_presentation_is_refused(content: bytes) -> None:
    assert "broken" == refused(read_pptx, content).kind


def mail(text: str = "Hello", *, subject: str = "Rent", **heads: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in {"From": "Ana Sá <ana@b.org>", "To": "x@y.org", "Subject": subject, **heads}.items():
        made[name] = value
    made.set_content(text)
    return made


HEADS = "From: Ana Sá <ana@b.org>\nTo: x@y.org\nSubject: "


@settings(max_examples=examples(50), deadline=None)
@given(word, st.lists(st.tuples(st.sampled_from("abé"), word), max_size=4))
def test_attachments_are_read_by_their_own_readers_in_order(
    subject: str, attached: list[tuple[str, str]]
) -> None:
    """Text, Word and tables, whatever the letters of their names; the subject is the title."""
    made, wanted = mail(subject=subject), f"{HEADS}{subject}\n\nHello"
    for at, (letter, text) in enumerate(attached):
        ending, content = ((".txt", text.encode()), (".docx", docx_of([text])), (".csv", text.encode()))[
            at % 3
        ]
        name = f"{letter}{at}{ending}"
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
        wanted += f"\n\nAttachment: {name}\n\n{text}"
    found = read_eml(bytes(made))
    assert (wanted, subject, ()) == (found.text, found.title, found.left_out)


def test_of_two_forms_of_a_text_one_is_read_and_what_is_not_read_is_named() -> None:
    """Plain before HTML, unless it is blank; pictures, other formats, broken files, own metadata, signatures."""
    made = mail()
    made.add_alternative("<p>Hello in <b>HTML</b>", subtype="html")
    for name, content in {
        "a.png": b"\x89PNG",
        "b.zip": b"PK",
        "c.docx": docx_of(["x"])[:-40],
        "d.md": b"---\nclassification: secret\n---\nText",
        "e.xlsx": filled(["Sum", "=1+1"]),
        "f.pdf": pdf([["x"]], password="a word"),  # noqa: S106 - of no other file
    }.items():
        kind = ("image", "png") if name == "a.png" else ("application", "octet-stream")
        made.add_attachment(content, maintype=kind[0], subtype=kind[1], filename=name)
    made.add_attachment(b"0", maintype="application", subtype="pkcs7-mime", filename="smime.p7m")
    made.add_attachment(b"0", maintype="application", subtype="pgp-signature", filename="s.asc")
    found = read_eml(bytes(made))
    assert f"{HEADS}Rent\n\nHello\n\nAttachment: e.xlsx\n\nS\n\nSum | ⟨not calculated⟩" == found.text
    reasons = [
        "a picture",
        "ends in '.zip'",
        "not a zip file",
        "metadata of its own",
        "not calculated",
        "is encrypted",
    ]
    reasons += ["hides its text", "not checked"]
    for reason, left_out in zip(reasons, found.left_out, strict=True):
        assert reason in left_out
    blank = mail(" ")
    blank.add_alternative("<p>Hello in <b>HTML</b>", subtype="html")
    assert read_eml(bytes(blank)).text.endswith("\n\nHello in HTML")


def nested(depth: int) -> bytes:
    made = mail("innermost")
    for _ in range(depth):
        outer = mail()
        outer.add_attachment(made)
        made = outer
    return bytes(made)


def test_an_email_in_an_email_is_read_down_to_a_depth() -> None:
    """Each adds a part that holds it, and one for itself."""
    assert "innermost" in read_eml(nested(MAX_NESTING // 3)).text
    assert "too_large" == refused(read_eml, nested(MAX_NESTING)).kind
    assert "too_large" == refused(read_eml, b"Subject: a\nContent-Type: message/rfc822\n\n" * 5000).kind


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "broken"),
        (b"just text", "broken"),
        (b"Subject: a\nContent-Type: text/plain; charset=rot13\n\nb", "broken"),
        (b"Subject: a\nContent-Type: text/plain; charset=utf-8\n\n\xe9", "broken"),
        (b"Subject: a\nContent-Transfer-Encoding: base64\n\n!!!", "broken"),
        (b"Subject: a\nContent-Transfer-Encoding: x-uuencode\n\nb", "broken"),
        (b"Subject: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nhalf", "broken"),
        (b"Subject: a\nContent-Type: multipart/mixed\n\n--x\n\nhalf", "broken"),
    ],
)
def test_a_damaged_email_is_refused(content: bytes, kind: str) -> None:
    """Encodings that are unknown or not kept, and parts that do not end."""
    assert kind == refused(read_eml, content).kind


def test_heads_are_decoded_and_text_of_all_kinds_too() -> None:
    """RFC 2047 and 2231; the heads state no metadata."""
    raw = (
        b"From: =?iso-8859-1?q?Andr=E9?= <a@b.org>\r\nSubject: =?utf-8?b?RsOkbGxpZw==?=\r\n =?utf-8?q?_heute?=\r\n"
        b"Date: Fri, 01 Mar 2024 10:00:00 +0100\r\nclassification: public\r\n"
        b"Content-Type: text/html; charset=windows-1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=80 5"
    )
    found = read_eml(raw)
    date = "Date: Fri, 01 Mar 2024 10:00:00 +0100"
    assert f"From: André <a@b.org>\n{date}\nSubject: Fällig heute\n\n€ 5" == found.text
    assert ("Fällig heute", {}) == (found.title, found.facts)


def test_forty_files_of_the_new_kinds_are_read_with_nothing_lost(tmp_path: Path) -> None:
    """Each cell and paragraph is there once; among them are four bombs and broken files, and the run goes on."""
    for at in range(40):
        marks = [f"m{at}x{one}" for one in range(6)]
        if at % 4 == 0:
            content = filled(marks[:3], marks[3:])
        elif at % 4 == 1:
            made = pptx.Presentation()
            slide = made.slides.add_slide(made.slide_layouts[1])
            slide.shapes.title.text, slide.placeholders[1].text = marks[0], "\n".join(marks[1:])
            content = saved(made)
        elif at % 4 == 2:
            content = f"{','.join(marks[:3])}\n{','.join(marks[3:])}\n".encode()
        else:
            letter = mail(" ".join(marks[:3]), subject=f"s{at}")
            letter.add_attachment(filled(marks[3:]), maintype="a", subtype="b", filename="a.xlsx")
            content = bytes(letter)
        (tmp_path / f"{at:02}{('.xlsx', '.pptx', '.csv', '.eml')[at % 4]}").write_bytes(content)
    bomb = docx_package(paragraph("a" * 40_000_000))
    for name, content in {
        "a.xlsx": bomb,
        "b.pptx": bomb,
        "c.csv": b'"',
        "d.eml": nested(MAX_NESTING),
    }.items():
        (tmp_path / name).write_bytes(content)
    found = list(read_folder(tmp_path))
    documents = [one for one in found if isinstance(one, ReadDocument)]
    assert 40 == len(documents)
    for at, one in enumerate(documents):
        assert f"{at:02}" == one.id[:2]
        assert [1] * 6 == [one.text.count(f"m{at}x{mark}") for mark in range(6)]
    assert ["too_large", "too_large", "broken", "too_large"] == [
        one.kind for one in found if isinstance(one, Problem)
    ]


def test_what_was_left_out_is_reported_beside_the_document(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(filled(["Sum", "=1+1"]))
    document, problem = read_folder(tmp_path)
    assert ("xlsx/1", "left_out") == (document.read_by, problem.kind)  # type: ignore[union-attr]
    assert "sheet S: a formula in row 1, column 2 was not calculated" in problem.reason  # type: ignore[union-attr]


def test_a_book_of_many_cells_is_refused_or_read_within_its_budget(tmp_path: Path) -> None:
    """In full a million cells, whose XML is larger than a file may unpack to."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("S")
    for row in range(examples(10_000)):
        sheet.append([f"r{row}", *range(9)])
    (tmp_path / "a.xlsx").write_bytes(saved(book))
    (found,) = read_folder(tmp_path)
    assert (
        "too_large" == found.kind if isinstance(found, Problem) else examples(10_000) == found.text.count("r")
    )
