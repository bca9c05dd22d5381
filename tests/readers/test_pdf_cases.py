"""The table of PDF files, by the text that their pages show."""

from __future__ import annotations

import pytest

from carag.readers.outcome import Unreadable
from carag.readers.pdf.reader import read_pdf
from tests.readers.pdf_cases import Case, cases


def test_each_case_of_the_table_says_what_is_right() -> None:
    """It gives either a text or a problem, under a unique name."""
    table = cases()
    assert 36 <= len(table) == len({case.name for case in table})
    assert [] == [case.name for case in table if bool(case.lines) == bool(case.problem)]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_file_is_read_as_its_pages_show_it_or_refused(case: Case) -> None:
    """Line by line; a refusal names the page and the reason."""
    if not case.problem:
        assert case.text == read_pdf(case.built()).text
        return
    kind, _, words = case.problem.partition(" ")
    with pytest.raises(Unreadable, match=words) as refused:
        read_pdf(case.built())
    assert kind == refused.value.kind
