"""Columns of PDF pages, by the places of their words."""

from __future__ import annotations

from carag.readers.pdf.columns import in_columns
from carag.readers.pdf.lines import Line, Run


def test_what_lines_share_is_found_in_time_whatever_their_order() -> None:
    """Words that overlap and go back, on each line of a page, do not multiply its gaps."""
    row = [
        Run("word", True, float(start), start + 20.0, 0.0, 9.0)
        for start in [*range(0, 600, 40), *range(10, 600, 60)]
    ]
    lines = [Line(run._replace(height=-12.0 * at) for run in row) for at in range(40)]
    assert lines == in_columns(lines)
