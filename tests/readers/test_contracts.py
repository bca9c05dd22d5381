"""Contracts whose clauses Word numbers: each clause is found, and cited by the number that Word shows."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from carag.labelling.clauses import chunk_by_clauses
from carag.readers.docx import read_docx
from carag.readers.list_numbers import numeral
from tests.readers.word import word_of


@dataclass(frozen=True)
class Scheme:
    """How a contract numbers its levels, and how its citations name them."""

    levels: tuple[str, ...]
    """As ``#list`` states them."""
    labels: tuple[str, ...]
    """Of each level in a clause's path; empty where it is a heading."""
    by_style: bool = False
    restarts: bool = False
    """Whether a second list of the same definition begins half way, at 1."""


SCHEMES = {
    "decimal": Scheme(
        ("decimal %1.", "decimal %1.%2", "lowerLetter (%3)", "lowerRoman (%4)"), ("1", "1.1", "(a)", "(i)")
    ),
    "decimal with stops": Scheme(
        ("decimal %1.", "decimal %1.%2.", "decimal %1.%2.%3."), ("1", "1.1", "1.1.1")
    ),
    "styles": Scheme(("decimal %1", "decimal %1.%2", "lowerLetter (%3)"), ("1", "1.1", "(a)"), by_style=True),
    "articles": Scheme(
        ("upperRoman ARTICLE %1 –", "decimal!%1.%2", "lowerLetter (%3)"), ("ARTICLE", "1.1", "(a)")
    ),
    "letters": Scheme(("decimal %1.", "lowerLetter (%2)", "lowerRoman (%3)"), ("1", "(a)", "(i)")),
    "brackets": Scheme(("decimal %1)", "lowerLetter %2)", "lowerRoman %3)"), ("1", "a", "i")),
    "restarted": Scheme(("decimal %1.", "lowerLetter (%2)"), ("1", "(a)"), restarts=True),
}
DUTIES = [
    "pay the fee",
    "keep the records",
    "insure the goods",
    "name a delegate",
    "report each loss",
    "return all copies",
]


@dataclass
class Clause:
    text: str
    path: str


def contract(scheme: Scheme, random: Random) -> tuple[str, list[Clause]]:
    """Draw a contract; return its short form, and its clauses with the paths by which they are to be cited."""
    defined = ["#list 1 | " + " | ".join(scheme.levels)]
    if scheme.by_style:
        defined += [f"#style C{level} paragraph list=1 level={level}" for level in range(len(scheme.levels))]
    if scheme.restarts:
        defined.append("#num 2 = 1 0=1")
    lines, clauses = ["Agreement on services", ""], []
    counts: list[int] = []

    def add(level: int, number: int, top: int) -> None:
        counts[level:] = [number]
        text = f"The party w{len(clauses)}w shall {random.choice(DUTIES)} within {random.randint(2, 90)} days of notice"
        last = level == len(scheme.levels) - 1 or random.random() < 0.3
        text += (
            ";"
            if last and level > 1
            else "."
            if last
            else " and shall also, for each of the sites named, as follows:"
        )
        lists = 2 if scheme.restarts and top > 3 else 1
        lines.append(f"=C{level}: {text}" if scheme.by_style else f"{lists}.{level}: {text}")
        clauses.append(Clause(f"w{len(clauses)}w", path(scheme, counts)))
        if not last:
            many = random.randint(2, 11 if "Letter" in scheme.levels[level + 1] else 4)
            for one in range(1, many + 1):
                add(level + 1, one, top)

    for top in range(1, random.randint(5, 8)):
        if scheme.restarts and top == 4:
            lines.append("Schedule 1")
        add(0, top - 3 if scheme.restarts and top > 3 else top, top)
    return "\n".join(defined + lines), clauses


def path(scheme: Scheme, counts: list[int]) -> str:
    """Write a clause's path, such as ``clause 2.1(a)``."""
    headings, labels = "", ""
    for level, number in enumerate(counts):
        shape = scheme.labels[level]
        if shape == "ARTICLE":
            headings = f"Article {numeral('upper-roman', number)}"
        elif "." in shape:
            labels = ".".join(map(str, counts[: level + 1]))
        else:
            kind = {"a": "lower-letter", "i": "lower-roman"}.get(shape.strip("()"), "decimal")
            labels += f"({numeral(kind, number)})" if labels else numeral(kind, number)
    return ", ".join(filter(None, (headings, f"clause {labels}" if labels else "")))


@pytest.mark.parametrize("seed", range(25))
def test_each_clause_is_cited_by_its_number(seed: int) -> None:
    name = list(SCHEMES)[seed % len(SCHEMES)]
    short, clauses = contract(SCHEMES[name], Random(seed))  # noqa: S311 - a seeded draw
    text = read_docx(word_of(short)).text
    found = chunk_by_clauses(text, target=1, limit=130)
    cited = {one.text: [chunk.part for chunk in found if one.text in chunk.text] for one in clauses}
    wrong = {
        one.path: cited[one.text]
        for one in clauses
        if not any(part.endswith(one.path) for part in cited[one.text])
    }
    assert not wrong, name


POINTS = """<p>Article 6</p><p>Duties of importers</p><p>1.   An importer shall:</p>
<table><tr><td><p>(a)</p></td><td><p>check the label;</p></td></tr></table>
<table><tr><td><p>(b)</p></td><td><p>tell the authority, within:</p>
<table><tr><td><p>(i)</p></td><td><p>two days in an emergency;</p></td></tr></table>
<table><tr><td><p>(ii)</p></td><td><p>ten days otherwise.</p></td></tr></table></td></tr></table>
<p>2.   Paragraph 1 does not bind hobbyists<a href="#n1"><span class="oj-super">1</span></a>.</p>"""


def test_points_of_the_official_journal_are_cited_by_their_number() -> None:
    """They stand in tables of two cells, in one another."""
    from carag.readers.html import read_html

    found = chunk_by_clauses(read_html(POINTS.encode()).text, target=1, limit=70)
    cited = {one.part.removeprefix("Article 6, clause "): one.text for one in found}
    assert cited["1(a)"] == "(a) check the label;"
    assert cited["1(b)(i)"].endswith("(i) two days in an emergency;")
    assert cited["1(b)(ii)"] == "(ii) ten days otherwise."
    assert cited["2"] == "2. Paragraph 1 does not bind hobbyists[^1]."
