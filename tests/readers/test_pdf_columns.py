"""Columns of PDF pages, by the places of their words."""

from __future__ import annotations

import pytest

from carag.readers.child import Child
from carag.readers.pdf.columns import in_columns
from carag.readers.pdf.lines import Line, Run
from tests.readers.jobs import join


def test_what_lines_share_is_found_in_time_whatever_their_order() -> None:
    """Words that overlap and go back, on each line of a page, do not multiply its gaps."""
    row = [
        Run("word", True, float(start), start + 20.0, 0.0, 9.0)
        for start in [*range(0, 600, 40), *range(10, 600, 60)]
    ]
    lines = [Line(run._replace(height=-12.0 * at) for run in row) for at in range(40)]
    assert lines == in_columns(lines)


@pytest.mark.parametrize(
    ("lines", "joined"),
    [("a" * 200_000 + "\nb", 2), ("\n".join(["ab-"] * 20_000), 200), ("Self-re-\ngister", 1)],
)
def test_broken_words_are_joined_in_time_that_grows_with_the_page(lines: str, joined: int) -> None:
    """Quadratic time would be minutes; no joined word is longer than 200 characters."""
    with Child(seconds=20) as child:
        assert joined == len(child.call(join, lines.encode()))
