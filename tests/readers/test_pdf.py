"""PDF files: every page in its place, and half a document never passes for a whole one."""

from __future__ import annotations

import io
import logging
import random
import tracemalloc
from itertools import pairwise

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.readers.outcome import Unreadable
from carag.readers.pdf import reader
from carag.readers.pdf.reader import read_pdf
from tests.readers.writers import form, pdf, pdf_of, pdf_page, pdf_table, pdf_tree, stream

HELLO = stream(b"BT /F 12 Tf 50 700 Td (hello) Tj ET")
lines = st.lists(
    st.from_regex(r"[A-Za-z0-9.,;]{1,12}( [A-Za-z0-9.,;]{1,12}){0,5}", fullmatch=True), max_size=6
)


def kind(content: bytes) -> str:
    with pytest.raises(Unreadable) as refused:
        read_pdf(content)
    return refused.value.kind.value


@given(st.lists(lines, min_size=1, max_size=5))
def test_each_page_begins_where_it_is_said_to(pages: list[list[str]]) -> None:
    """Exactly, also next to pages without text; the offsets ascend and the pages are the whole text."""
    read = read_pdf(pdf(pages))
    bounds = [*read.pages, len(read.text)]
    assert [read.text[a:b] for a, b in pairwise(bounds)] == ["\n".join(page) + "\n" for page in pages]
    assert 0 == bounds[0]
    assert bounds == sorted(set(bounds))


def test_a_table_is_read_row_by_row() -> None:
    rows = [["year", "sales"], ["2023", "5.1"], ["2024", "6.2"]]
    assert "year sales\n2023 5.1\n2024 6.2\n" == read_pdf(pdf_table(rows)).text


def test_what_is_filled_in_and_noted_on_a_page_is_text_of_it() -> None:
    """A form's values and free text are not part of the page's own contents."""
    notes = b"/Annots [<< /Subtype /Widget /FT /Tx /V (Jane) >> << /Subtype /FreeText /Contents (urgent) >>"
    notes += b" << /Subtype /Link >> << /Subtype /Widget /FT /Btn /V /Yes >>"
    notes += b" << /Subtype /Widget /FT /Ch /V [(a) (b)] >>"
    notes += b" << /Subtype /Widget /Parent << /FT /Tx /V (above) >> >> << /Subtype /Widget /FT /Tx >>]"
    assert "hello\nJane\nurgent\na\nb\nabove\n" == read_pdf(pdf_page(HELLO, entries=notes)).text


def test_a_file_that_asks_for_a_password_is_told_apart() -> None:
    """So is a protected file that opens without one: it was protected for a reason."""
    assert "encrypted" == kind(pdf([["a"]], password="of the user"))  # noqa: S106
    made = pypdf.PdfWriter(clone_from=pypdf.PdfReader(io.BytesIO(pdf([["a"]]))))
    made.encrypt("", "of the owner", algorithm="RC4-128")
    out = io.BytesIO()
    made.write(out)
    assert "encrypted" == kind(out.getvalue())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.7",
        b"\0" * 10_000,
        b"hello",
        pdf_tree(b"<< /Type /Pages /Kids [] /Count 1000000000 >>"),
        pdf_tree(b"<< /Type /Pages /Kids [3 0 R 9 0 R] /Count 2 >>", b"<< /Type /Page /Parent 2 0 R >>"),
        pdf_tree(b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
        pdf_page(stream(b"/X Do"), form(b"/X Do", 6), resources=b"/XObject << /X 6 0 R >>"),
        pdf_page(stream(b"[" * 100_000)),
        pdf_page(b"<< /Length 5 /Filter /FlateDecode >>\nstream\nhello\nendstream"),
        pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"], b"/Prev 9"),
    ],
)
def test_what_is_damaged_or_goes_in_circles_is_broken(content: bytes) -> None:
    """Also where the library goes on and drops a part."""
    assert "broken" == kind(content)


def test_a_file_cut_anywhere_is_never_half_a_document() -> None:
    """It is whole, or it is refused."""
    whole = pdf([["one", "two"], ["three"], ["four"]])
    for end in range(0, len(whole) - 8, 7):
        assert "broken" == kind(whole[:end])


def test_a_file_with_a_byte_changed_is_refused_or_reads_as_before() -> None:
    """Never without a page, a line or a word, whatever the byte belongs to."""
    whole, source = pdf([["one", "two"], ["three"], ["four"]]), random.Random(1)  # noqa: S311
    text = read_pdf(whole).text
    refused = 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[source.randrange(len(changed))] = source.randrange(256)
        try:
            assert text == read_pdf(bytes(changed)).text
        except Unreadable:
            refused += 1
    assert 100 < refused < 280


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (b"/Contents 4 0 R", b"/Cont?nts 4 0 R"),
        (b"4 0 obj", b"4 0 obx"),
        (b"/Contents 4 0 R", b"/Contents 9 0 R"),
    ],
)
def test_a_page_that_lost_its_contents_is_not_blank(entry: bytes, named: bytes) -> None:
    """For each case, one of the libraries shows a blank page."""
    assert "broken" == kind(pdf_page(HELLO).replace(entry, named))


@pytest.mark.parametrize(
    "content",
    [
        pdf_page(stream(b"q Q " * 5_000_000, packed=True)),
        pdf_page(stream(b"q " * 60_000, packed=True)),
        pdf_page(stream(b"[" + b"(a)1 " * 30_000 + b"] TJ", packed=True)),
        pdf_tree(
            b"<< /Type /Pages /Kids [" + b"3 0 R " * 5001 + b"] /Count 5001 >>",
            b"<< /Type /Page /Parent 2 0 R >>",
        ),
        pdf_tree(
            b"<< /Type /Pages /Kids [" + b"3 0 R " * 30_000 + b"] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R >>",
        ),
        pdf_page(
            stream(b"/X Do"),
            *(form(b"/X Do " * 10, number) for number in range(7, 12)),
            form(b"q Q"),
            resources=b"/XObject << /X 6 0 R >>",
        ),
        pdf_page(stream(b"BT /F 12 Tf (" + b"a" * 40_000 + b") Tj ET", packed=True)),
    ],
    ids=["bytes", "operators", "array", "pages", "entries", "forms", "string"],
)
def test_a_bomb_costs_no_more_than_the_limit_it_exceeds(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a few kilobytes, and asks for gigabytes or for days; a tenth of the operators does for the test."""
    work = "stream_parsing_work_maximum_count"
    monkeypatch.setitem(reader._LIMITS, work, reader._LIMITS[work] // 10)
    assert len(content) < 200_000
    assert "too_large" == kind(content)


def test_a_stream_that_is_cut_or_altered_is_noticed() -> None:
    """By its checksum, which the library does not verify: it would read the rest, or something else.

    One bit in the last byte before the checksum is unused, so its file reads as before.
    """
    sound = pdf_page(stream(b"BT /F 12 Tf 50 700 Td (hello) Tj ET", packed=True))
    assert "hello\n" == read_pdf(sound).text
    start = sound.index(b"stream\n") + 7
    end = sound.index(b"\nendstream")
    unharmed = 0
    for at in range(start, end):
        try:
            assert "hello\n" == read_pdf(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :]).text
            unharmed += 1
        except Unreadable as refused:
            assert "broken" == refused.kind  # noqa: PT017 - or the text is unharmed
    assert 1 >= unharmed


@pytest.mark.release
def test_what_was_unpacked_does_not_pile_up() -> None:
    """A hundred forms of 256 KB each on one page, or on a hundred pages: only a few are in memory at a time."""
    large = b" " * (1 << 18)
    names = b" ".join(b"/X%d %d 0 R" % (number, number) for number in range(6, 106))
    drawn = b" ".join(b"/X%d Do" % number for number in range(6, 106))
    forms = [form(large, 4)] * 100
    content = pdf_page(stream(drawn), *forms, resources=b"/XObject << %s >>" % names)
    kids = b" ".join(b"%d 0 R" % number for number in range(3, 203, 2))
    pages = [
        one
        for number in range(3, 203, 2)
        for one in (
            b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << >> >> >>" % (number + 1),
            stream(large, packed=True),
        )
    ]
    tree = pdf_tree(b"<< /Type /Pages /Kids [%s] /Count 100 >>" % kids, *pages)
    for one in (content, tree):
        tracemalloc.start()
        try:
            read_pdf(one)
            assert tracemalloc.get_traced_memory()[1] < 12 << 20
        finally:
            tracemalloc.stop()


def test_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_TEXT", 10)
    assert "too_large" == kind(pdf([["12345"], ["12345"]]))


def test_warnings_of_others_go_where_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning about a file being read becomes a problem and is not logged, because it may quote the file."""
    said: list[str] = []
    listener = logging.Handler()
    monkeypatch.setattr(listener, "emit", lambda record: said.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [listener])
    assert "broken" == kind(
        pdf_page(stream(b"/X Do"), form(b"/X Do", 6), resources=b"/XObject << /X 6 0 R >>")
    )
    assert [] == said
    logging.getLogger("pypdf.elsewhere").warning("said by somebody else")
    assert ["said by somebody else"] == said


def test_no_file_is_read_while_its_warnings_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are how damage is noticed."""
    logger = logging.getLogger("pypdf")
    monkeypatch.setattr(logger, "level", logging.ERROR)
    logger.manager._clear_cache()
    try:
        assert "failed" == kind(pdf_page(HELLO))
    finally:
        monkeypatch.undo()
        logger.manager._clear_cache()
