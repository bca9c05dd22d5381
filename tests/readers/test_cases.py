"""The text that is read is what the document shows: a table of inputs and their texts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.readers.word import word_of

CASES = Path(__file__).with_name("cases")


class Case(NamedTuple):
    name: str
    only: str
    """The only format it applies to; empty if it applies to all."""
    given: str
    wanted: str


def cases(file: str) -> list[Case]:
    found = []
    _, _, text = (CASES / file).read_text("utf-8").partition("\n\n")
    for block in text.split("\n--\n"):
        if block.strip():
            head, _, wanted = block.partition("\n->\n")
            name, _, given = head.partition("\n")
            only = ""
            if name.startswith("@ "):
                only, (name, _, given) = name[2:], given.partition("\n")
            found.append(Case(name, only, given, wanted))
    return found


MARKUP = cases("html.txt")


@pytest.mark.parametrize(
    "case", [one for one in MARKUP if one.only in {"", "html"}], ids=lambda one: one.name
)
def test_html_is_read_as_it_is_seen(case: Case) -> None:
    from carag.readers.html import read_html

    assert read_html(case.given.encode()).text == case.wanted


@pytest.mark.parametrize(
    "case", [one for one in MARKUP if one.only in {"", "edgar"}], ids=lambda one: one.name
)
def test_the_markup_of_filings_is_read_alike(case: Case) -> None:
    from carag.profiles.edgar.reading.markup import html_text

    assert html_text(case.given)[0] == case.wanted


@pytest.mark.parametrize("case", cases("docx.txt"), ids=lambda one: one.name)
def test_docx_is_read_as_word_shows_it(case: Case) -> None:
    from carag.readers.office.docx import read_docx

    assert read_docx(word_of(case.given)).text == case.wanted
