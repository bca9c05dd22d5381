"""Clauses that Word or the Official Journal number are found, and cited by the number that is shown."""

from __future__ import annotations

import pytest

from carag.labelling.clauses import chunk_by_clauses
from carag.readers.html import read_html
from carag.readers.office.docx import read_docx
from tests.readers.word import word_of

DUTIES = """0: The party w0w shall keep all of its records, and shall also, for each of the sites named, as follows:
1: The party w1w shall pay the fee that is due within 30 days of notice, and shall also, for each site, as follows:
2: The party w2w shall insure the goods at each of the sites named within 60 days of notice to it;
2: The party w3w shall report each loss at each of the sites named within 10 days of its discovery;
1: The party w4w shall return all copies of the records within 90 days of the end of the agreement.
0: The party w5w shall name a delegate for all of the sites named within 14 days of the agreement."""
CONTRACTS = {
    "decimal": (
        "#list 1 | decimal %1. | decimal %1.%2 | lowerLetter (%3)",
        ["clause 1", "clause 1.1", "clause 1.1(a)", "clause 1.1(b)", "clause 1.2", "clause 2"],
    ),
    "decimal with stops": (
        "#list 1 | decimal %1. | decimal %1.%2. | decimal %1.%2.%3.",
        ["clause 1", "clause 1.1", "clause 1.1.1", "clause 1.1.2", "clause 1.2", "clause 2"],
    ),
    "styles": (
        "#list 1 | decimal %1 | decimal %1.%2 | lowerLetter (%3)\n"
        + "\n".join(f"#style C{level} paragraph list=1 level={level}" for level in range(3)),
        ["clause 1", "clause 1.1", "clause 1.1(a)", "clause 1.1(b)", "clause 1.2", "clause 2"],
    ),
    "articles": (
        "#list 1 | upperRoman ARTICLE %1 – | decimal!%1.%2 | lowerLetter (%3)",
        [
            "Article I", "Article I, clause 1.1", "Article I, clause 1.1(a)", "Article I, clause 1.1(b)",
            "Article I, clause 1.2", "Article II",
        ],
    ),
    "letters": (
        "#list 1 | decimal %1. | lowerLetter (%2) | lowerRoman (%3)",
        ["clause 1", "clause 1(a)", "clause 1(a)(i)", "clause 1(a)(ii)", "clause 1(b)", "clause 2"],
    ),
    "brackets": (
        "#list 1 | decimal %1) | lowerLetter %2) | lowerRoman %3)",
        ["clause 1", "clause 1(a)", "clause 1(a)(i)", "clause 1(a)(ii)", "clause 1(b)", "clause 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRACTS)
def test_each_clause_is_cited_by_its_number(name: str) -> None:
    defined, paths = CONTRACTS[name]
    mark = "=C" if name == "styles" else "1."
    lines = [f"{mark}{line}" for line in DUTIES.split("\n")]
    text = read_docx(word_of("\n".join([defined, "Agreement on services", "", *lines]))).text
    found = chunk_by_clauses(text, target=1, limit=130)
    cited = [{one.part for one in found if f"w{number}w" in one.text} for number in range(len(paths))]
    assert [any(part.endswith(path) for part in parts) for path, parts in zip(paths, cited, strict=True)] == [
        True
    ] * len(paths), cited


POINTS = """<p>Article 6</p><p>Duties of importers</p><p>1.   An importer shall:</p>
<table><tr><td><p>(a)</p></td><td><p>check the label;</p></td></tr></table>
<table><tr><td><p>(b)</p></td><td><p>tell the authority, within:</p>
<table><tr><td><p>(i)</p></td><td><p>two days in an emergency;</p></td></tr></table>
<table><tr><td><p>(ii)</p></td><td><p>ten days otherwise.</p></td></tr></table></td></tr></table>
<p>2.   Paragraph 1 does not bind hobbyists<a href="#n1"><span class="oj-super">1</span></a>.</p>"""


def test_points_of_the_official_journal_are_cited_by_their_number() -> None:
    """The points are tables of two cells, nested in one another."""
    found = chunk_by_clauses(read_html(POINTS.encode()).text, target=1, limit=70)
    cited = {one.part.removeprefix("Article 6, clause "): one.text for one in found}
    assert cited["1(a)"] == "(a) check the label;"
    assert cited["1(b)(i)"].endswith("(i) two days in an emergency;")
    assert cited["1(b)(ii)"] == "(ii) ten days otherwise."
    assert cited["2"] == "2. Paragraph 1 does not bind hobbyists[^1]."
