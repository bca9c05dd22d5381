"""HTML and DOCX: the visible text is read, in lines and rows; hostile input ends within the limits."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.readers import blocks, grid
from carag.readers.child import Child
from carag.readers.html import read_html
from carag.readers.office import package
from carag.readers.office.docx import read_docx
from carag.readers.outcome import Unreadable
from tests.readers.refusing import refused
from tests.readers.writers import docx_of, docx_package, form, paragraph, pdf_page, pdf_tree, stream, zipped
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT = Path(__file__).parents[2]
words = st.from_regex(r"[A-Za-z0-9.,]{1,8}( [A-Za-z0-9.,]{1,8}){0,3}", fullmatch=True)
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(words, min_size=width, max_size=width), min_size=1, max_size=4)
)


def html(markup: str) -> str:
    return read_html(markup.encode()).text


def word(body: str, **more: dict[str, str]) -> str:
    return read_docx(docx_package(body, related=more.get("related"))).text


@given(st.lists(words, max_size=4), tables)
def test_paragraphs_are_lines_and_rows_are_lines_in_docx(
    paragraphs: list[str], rows: list[list[str]]
) -> None:
    """In documents that another library wrote."""
    laid_out = "\n\n".join([*paragraphs, "\n".join(" | ".join(row) for row in rows)])
    assert laid_out == read_docx(docx_of(paragraphs, rows)).text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>&lt;b&gt; &amp;amp; &eacute;&nbsp;&#x200b;|", "<b> &amp; é \u200b|"),
        ("<p>a\u202e\ufe0f\u00ad\U000e0041b", "a\u202e\ufe0f\U000e0041b"),
        ("<p>a&#0;b", "a\ufffdb"),
        ("", ""),
        ("<title>a</title>", ""),
    ],
)
def test_html_keeps_characters_as_a_browser_does(markup: str, text: str) -> None:
    """Of invisible characters only the soft hyphen is removed."""
    assert text == html(markup)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<p>é".encode(), "é"),
        (b"<meta charset=iso-8859-1><p>\x80\xe9", "€é"),
        (b"<meta http-equiv=Content-Type content='text/html; charset=Windows-1251'><p>\xcf", "П"),
        (b"<?xml version='1.0' encoding='Shift_JIS'?><p>\x83\x65", "テ"),
        (b"\xef\xbb\xbf<meta charset=latin1><p>\xc3\xa9", "é"),
        ("<p>é".encode("utf-16"), "é"),
    ],
)
def test_an_encoding_is_the_one_stated(content: bytes, text: str) -> None:
    """A byte order mark overrides it (HTML Standard, 13.2.3)."""
    assert text == read_html(content).text.removeprefix("?")


@pytest.mark.parametrize("content", [b"<p>\xe9", b"<meta charset=rot13><p>a", b"<meta charset=utf-7><p>a"])
def test_no_encoding_is_guessed(content: bytes) -> None:
    """Not every codec of Python is meant for untrusted files."""
    assert "broken" == refused(read_html, content).kind


RUN = "<w:r><w:t>{}</w:t></w:r>"


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            "<w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:softHyphen/><w:sym w:char='F0FC'/>",
            "a\u2011b⟨font unknown F0FC⟩",
        ),
        ("<w:instrText>PAGE</w:instrText><w:t>a\u200b\u202e</w:t>", "a\u200b\u202e"),
    ],
)
def test_docx_keeps_characters_as_word_does(run: str, text: str) -> None:
    assert text == word(f"<w:p><w:r>{run}</w:r></w:p>")


def test_headers_notes_and_footers_are_text_of_a_docx() -> None:
    """Each once, notes at their references: a header that says CONFIDENTIAL must not get lost."""
    related = {kind: paragraph(kind) for kind in ("footer", "header", "comments")}
    related |= {
        f"{kind}notes": f"<w:{kind}note w:id='2'>{paragraph(kind)}</w:{kind}note>" for kind in ("foot", "end")
    }
    references = "".join(f"<w:r><w:{kind}noteReference w:id='2'/></w:r>" for kind in ("foot", "end"))
    body = f"<w:p>{RUN.format('body')}{references}</w:p>"
    assert "header\n\nbody[^1][^i]\n\n[^1] foot\n\n[^i] end\n\nfooter" == word(body, related=related)
    assert "CONFIDENTIAL\n\nbody" == read_docx(docx_of(["body"], header="CONFIDENTIAL")).text


@pytest.mark.parametrize("kind", ["aFChunk", "subDocument", "diagramData", "chart"])
def test_a_docx_that_shows_what_is_not_read_is_refused(kind: str) -> None:
    """It is not read in part."""
    problem = refused(read_docx, docx_package(paragraph("a"), related={kind: ""}))
    assert "broken" == problem.kind
    assert "which cannot be read" in problem.reason


DTD = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "broken"),
        (b"hello" * 100, "broken"),
        (zipped({"a": "b"}), "broken"),
        (zipped({"_rels/.rels": "<Relationships/>"}), "broken"),
        (zipped({"_rels/.rels": "<Relationships>"}), "broken"),
        (docx_package(paragraph("a"), before=DTD), "broken"),
        (docx_package(paragraph("&b;"), before=DTD), "broken"),
        (docx_package(paragraph("&x;"), before=DTD), "broken"),
        (docx_package(paragraph("&undefined;")), "broken"),
        (docx_package("<w:p>"), "broken"),
        (docx_package(paragraph("a"))[:-40], "broken"),
        (docx_package("<w:p>" * 2000 + "</w:p>" * 2000), "too_large"),
        (docx_package("<w:tbl><w:tr><w:tc>" * 65 + "</w:tc></w:tr></w:tbl>" * 65), "too_large"),
        (docx_package("<w:p><w:r><w:txbxContent>" * 34 + "</w:txbxContent></w:r></w:p>" * 34), "too_large"),
        (docx_package(paragraph("a" * 40_000_000)), "too_large"),
        (zipped(dict.fromkeys(map(str, range(9000)), "")), "too_large"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 500, "broken"),
        (
            bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 500 + "EncryptedPackage".encode("utf-16-le"),
            "encrypted",
        ),
        (zipped({"_rels/.rels": "<Relationships/>"}, zipfile.ZIP_LZMA), "broken"),
    ],
)
def test_a_hostile_docx_ends_in_a_problem(content: bytes, kind: str) -> None:
    """Archives cut or packed oddly, entities, bombs of size, depth and number, other formats, encryption."""
    assert kind == refused(read_docx, content).kind


def test_a_docx_part_that_is_altered_or_encrypted_is_told() -> None:
    """By its checksum, and by its flag."""
    body = "".join(paragraph(str(number)) for number in range(100))
    sound = docx_package(body)
    at = sound.index(b"word/document.xml") + 60
    assert "broken" == refused(read_docx, sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]).kind
    altered = bytearray(sound)
    for signature, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := sound.find(signature, start + 1)) >= 0:
            altered[start + flag] |= 1
    assert "encrypted" == refused(read_docx, bytes(altered)).kind


def test_the_limit_of_a_docx_is_for_all_parts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    related = {"header": paragraph("h" * 500), "footer": paragraph("f" * 500)}
    content = docx_package(paragraph("b" * 500), related=related)
    assert 1504 == len(read_docx(content).text)
    monkeypatch.setattr(package, "MAX_UNPACKED", 1500)
    assert "too_large" == refused(read_docx, content).kind


def test_html_is_bounded_in_size_depth_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real pages do not reach the limits; pages whose tags are never closed may."""
    assert "x" == html("<div>" * 9000 + "x")
    assert "too_large" == refused(read_html, b"<div>" * 10_001).kind
    assert "x" == html("<table><tr><td>" * 64 + "x")
    assert "too_large" == refused(read_html, b"<table><tr><td>" * 65).kind
    monkeypatch.setattr(grid, "MAX_CELLS", 100)
    assert "x" == html("<table>" + "<tr><td rowspan=0>x")
    assert "too_large" == refused(read_html, b"<table>" + b"<tr><td rowspan=0>x" * 20).kind
    monkeypatch.setattr(blocks, "MAX_TEXT", 100)
    assert "too_large" == refused(read_html, b"<p>" + b"x" * 101).kind
    monkeypatch.setattr("carag.readers.html.MAX_MARKUP", 100)
    assert "too_large" == refused(read_html, b"<p >" * 30).kind


def many(release: int) -> int:
    return min(release, examples(release))


PAGES = {
    "cells that span thousands of places": "<table>"
    + ("<tr>" + "<td colspan=1000 rowspan=65534>x" * 20) * many(100),
    "many marks in a line": "<p>" + "<sup>1</sup>" * many(40_000),
    "marks deep inside": "<div>" * many(9000) + "<sup>1</sup>" * many(60_000) + "x",
    "blanks before links": "<p>" + "<b> </b>" * many(100_000) + '<a href="#a">1</a>' * many(30_000),
    "rules at the head": "<style>" + "@" * many(300_000) + "}</style>x",
    "comments that are not closed": "<style>" + "/*" * many(300_000) + "</style>x",
    "a selector without a rule": "<style>" + "a" * many(400_000) + "</style>x",
    "rules of one name": "<style>" + ".a{top:1px}" * many(150_000) + "</style>x",
    "a long rule of many elements": f"<style>.a{{top:{'1' * many(1_000_000)}</style>"
    + "<b class=a>x</b>" * many(30_000),
    "sizes of a font": f'<p style="font:{"1pt/" * many(100_000)}">x',
    "a long figure": "<table><tr><td>" + "1" * many(200_000) + "x<td>)",
}  # fmt: skip
BEGUN = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
PARTS = {
    "cells of a row": "<w:tbl><w:tr>" + "<w:tc><w:p/></w:tc>" * many(60_000) + "</w:tr></w:tbl>",
    "a control of many parts": "<w:sdt>" + "<w:sdtContent/>" * many(150_000) + "</w:sdt>",
    "a field begun in each paragraph": f"<w:p>{BEGUN}</w:p>" * many(100_000),
}


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """For a fifth of the size, a fifth of the time."""
    with Child(seconds=many(20)) as child:
        yield child


@pytest.mark.parametrize("markup", PAGES.values(), ids=PAGES)
def test_a_page_takes_time_that_grows_with_its_size(child: Child, markup: str) -> None:
    """Quadratic time would be minutes."""
    assert child.call(read_html, markup.encode())["text"]


@pytest.mark.parametrize("body", PARTS.values(), ids=PARTS)
def test_a_docx_takes_time_that_grows_with_its_size(child: Child, body: str) -> None:
    """Quadratic time would be minutes."""
    assert "end" in child.call(read_docx, docx_package(body + paragraph("end")))["text"]


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_end_in_a_text_or_a_refusal(content: bytes) -> None:
    for read in (read_html, read_docx):
        with suppress(Unreadable, zipfile.BadZipFile):
            read(content)


@pytest.mark.release
def test_a_folder_of_bombs_is_read_in_little_memory_and_time(tmp_path: Path) -> None:
    """Each has a few kilobytes; unpacked, one alone would exceed the address space of 1.5 GiB."""
    bombs = {
        "deep.docx": docx_package("<w:p>" * 100_000),
        "deep.html": b"<div><table>" * 1_000_000,
        "deep.jsonl": b"[" * 1_000_000,
        "entities.docx": docx_package(paragraph("&b;"), before=DTD),
        "forms.pdf": pdf_page(
            stream(b"/X Do"),
            *(form(b"/X Do " * 10, number) for number in range(7, 12)),
            form(b"q Q"),
            resources=b"/XObject << /X 6 0 R >>",
        ),
        "loop.pdf": pdf_tree(b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
        "size.docx": docx_package("<w:p a='" + "a" * 300_000_000 + "'/>"),
        "size.pdf": pdf_page(stream(b" " * 200_000_000, packed=True)),
        "text.docx": docx_package(paragraph("a" * 300_000_000)),
    }
    for name, content in bombs.items():
        (tmp_path / name).write_bytes(content)
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))\n"
        "from carag.readers import read_folder\n"
        "for one in read_folder(sys.argv[1]): print(one.where.partition(':')[0], one.kind)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert 0 == done.returncode, done.stderr
    kinds = dict(line.split() for line in done.stdout.splitlines())
    broken = {"deep.jsonl", "entities.docx", "loop.pdf"}
    assert {name: "broken" if name in broken else "too_large" for name in bombs} == kinds
