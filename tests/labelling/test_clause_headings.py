"""Which headings a clause belongs to: special cases found in circulars, on invented text."""

from __future__ import annotations

import pytest

from carag.labelling.clauses import _pieces
from carag.labelling.furniture import furniture

HEADED = {
    "a table of contents opens no heading": (
        "Contents\nANNEX I Forms\nANNEXURE-2 Lists\n1. Scope\n"
        + "2. A firm shall keep lists of all that it has taken. " * 8
        + "\nAnnex I\n1. A form.\nAnnexure 2\n1. A list.",
        ["clause 1", "clause 2", "Annex I", "Annex I, clause 1", "Annexure 2", "Annexure 2, clause 1"],
    ),
    "Parts belong to the Chapter in which they begin": (
        "Chapter I\n1. One.\nChapter II\nPart I\n2. Two.\nPart II\n3. Three.\nChapter III\n4. Four.",
        [
            "Chapter I",
            "Chapter I, clause 1",
            "Chapter II",
            "Chapter II, Part I",
            "Chapter II, Part I, clause 2",
            "Chapter II, Part II",
            "Chapter II, Part II, clause 3",
            "Chapter III",
            "Chapter III, clause 4",
        ],
    ),
    "Chapters and clauses continue after a schedule between them": (
        "Chapter I\n1. One.\nSchedule I\n1. A list.\nChapter II\n2. Two.",
        [
            "Chapter I",
            "Chapter I, clause 1",
            "Schedule I",
            "Schedule I, clause 1",
            "Chapter II",
            "Chapter II, clause 2",
        ],
    ),
    "a letter below a numbered title is inside it": (
        "1. Loans\n1.1 Farm loans\nA. Farmers\n(i) One.\nB. Firms that farm\n(i) Two.\n1.2 Other loans\nThree.",
        [
            "clause 1",
            "clause 1.1",
            "clause 1.1(A)",
            "clause 1.1(A)(i)",
            "clause 1.1(B)",
            "clause 1.1(B)(i)",
            "clause 1.2",
        ],
    ),
    "a letter on a line of its own is judged by the line below": (
        "A.\n\nScope\n\n1. One.\nB.\n\nRules\n\n2. Two.",
        ["A", "A, clause 1", "B", "B, clause 2"],
    ),
    "a cited section is not a heading": (
        "5.1 One.\n5.2 Power to remit\n\nSection 20A(1) of the Act says it.\n5.3 Three.",
        ["clause 5.1", "clause 5.2", "clause 5.3"],
    ),
    "a title may end in the word rules": ("85. One.\n\nNomination rules\n\n86. Two.", ["", "clause 86"]),
    "a footnote's number may stand before a clause's words": (
        "1. One.\n2. 54Deleted\n3. 55For this a bank shall see two papers.",
        ["clause 1", "clause 2", "clause 3"],
    ),
}


@pytest.mark.parametrize("case", HEADED)
def test_headings_and_titles(case: str) -> None:
    text, paths = HEADED[case]
    found = [str(one.path) for one in _pieces(text, furniture(text))]
    assert found[-len(paths) :] == paths
