"""Claims about what is looked at first: a shorter way leads to the same words, endings and rows."""

from __future__ import annotations

import re
from itertools import product

import pytest

from carag.generation import quoting
from carag.generation.asked_kind import Kind
from carag.generation.words import Asked, terms
from carag.retrieval.tables import torn_row
from carag.retrieval.tables.table import tables_of

NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty seventy "
    "eighty ninety hundred thousand half"
)
RULES = "allowed cannot eligible exempted may must no not only permitted prohibited required shall without"
CHANGES = "now, hereby, stands, been, being, is, are, shall be, decided to"
RECALLS = "was, were, had, existing, extant, earlier, hitherto, previously, at present, presently, as per, in terms of"
SAID = (
    "acquired acquiring company companies company's question questions does 1,577 1577 15,77 5.2 rate rates ss STUDIES "
    "İS ſale Maßes café be : :- :–” ; ;and ;bored . .12 .” 5. ? !’2) and AND land paragraphs. paragraphs | ( /"
)


@pytest.mark.parametrize("question", SAID.split())
def test_words_asked_for_are_found_as_if_all_words_were_reduced(question: str) -> None:
    """In every text of one or two words."""
    asked = terms(f"{question} sale 1577")
    for pair in product(SAID.split(), ["", *SAID.split()]):
        assert asked & terms(" ".join(pair)) == Asked(asked).among(" ".join(pair))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (Kind.COUNT.holds, NUMBERS.split()),
        (Kind.RULE.holds, RULES.split()),
        (quoting._CHANGES, [f"{one} amended" for one in CHANGES.split(", ")]),
        (quoting._RECALLS, RECALLS.split(", ")),
    ],
)
def test_a_class_of_first_letters_leaves_no_word_out(pattern: re.Pattern[str], words: list[str]) -> None:
    """And lets no other in."""
    [letters] = re.findall(r"\(\?=\[(\w+)\]\)", pattern.pattern)
    assert set(letters) == {word[0] for word in words}
    assert all(pattern.fullmatch(one) or pattern.match(one) for word in words for one in (word, word.upper()))


def test_an_ending_is_seen_without_its_pattern() -> None:
    """Where one mark, or the last characters, decide."""
    for text in map("".join, product(SAID.split(), ["", " "], ["", *SAID.split()])):
        assert (quoting._WHOLE.search(text) is not None) == quoting._is_whole(text)
        assert (re.search(r""":\s*[-–—]*["'”’)\]]*\Z""", text) is not None) == quoting._leads_in(text)
        ending = quoting._GOES_ON.search(text)
        assert ending is None or len(ending[0]) <= quoting._LAST_WORD


@pytest.mark.parametrize("above", [0, 5, 8])
def test_the_first_row_is_that_of_the_first_table(above: int) -> None:
    """It is torn if that table has no heads, and no line after the first eight has a say."""
    assert torn_row("Words.\nIn all (5) 6%") == (7, 20)
    some = [
        "Sales | 1 | 2",
        " | 2018 | 2017",
        "Costs 3 4",
        "2018 2017",
        "In all (5) 6%",
        "Words.",
        "",
        "a | b",
        "7",
    ]
    for lines in product(some, repeat=3):
        text = "\n".join(["Words."] * above + [*lines])
        table = next(iter(tables_of("\n".join(text.split("\n")[:8]))), None)
        row = torn_row(text)
        assert (row is not None) == (table is not None and not table.heads)
        assert row is None or (table is not None and row[0] <= table.rows[0].cells[0].span[0] < row[1])
