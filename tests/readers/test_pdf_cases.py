"""The table of PDF files, by the text that their pages show."""

from __future__ import annotations

from tests.readers.pdf_cases import cases


def test_each_case_of_the_table_says_what_is_right() -> None:
    """Either a text or a problem, under a name of its own."""
    table = cases()
    assert 36 <= len(table) == len({case.name for case in table})
    assert [] == [case.name for case in table if bool(case.lines) == bool(case.problem)]
