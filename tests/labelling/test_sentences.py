"""Where sentences end, by a table of invented legal prose in English, Indian English, German and French."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.chunking import Boundary, boundaries
from carag.labelling.sentences import sentence_ends, sentences
from tests.sizes import examples

PARAGRAPHS = [
    line.split(" ¦ ")
    for line in Path(__file__).with_name("sentences.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
PIECES = [
    "Rs. ",
    "No. ",
    "z. B. ",
    "J. ",
    "c.-à-d. ",
    "Ltd. ",
    "3. ",
    "(a) ",
    "[...] ",
    "…",
    "? ",
    "。",
    "\n",
    ": ",
    "“",
    "The",
]


def test_every_sentence_of_the_table_is_cut_whole() -> None:
    """No figure is separated from its unit, currency or citation, and no two sentences are joined."""
    assert sum(map(len, PARAGRAPHS)) == 495
    assert PARAGRAPHS == [
        [text[start:end] for start, end in sentences(text)] for text in map(" ".join, PARAGRAPHS)
    ]


def test_passages_are_cut_where_sentences_end() -> None:
    """A passage may end after each sentence of the table, and never at a full stop inside one."""
    for paragraph in PARAGRAPHS:
        text = " ".join(paragraph)
        cuts = [at for at, kind in boundaries(text) if kind in (Boundary.SENTENCE, Boundary.CLAUSE)]
        assert paragraph == [text[a:b].strip() for a, b in pairwise([0, *cuts, len(text)])]


@pytest.mark.parametrize(
    ("text", "whole", "each"),
    [
        ("A fine of Rs.\n500 is due.", 1, 2),
        ("One.\n\nTwo", 2, 2),
        ("Banks keep:\n- books;\n- files.", 2, 3),
        ("---\n\n...", 0, 0),
    ],
)
def test_a_sentence_may_go_on_in_the_next_line(text: str, whole: int, each: int) -> None:
    """In wrapped text, a blank line or a colon ends a sentence; otherwise every line end does."""
    assert (whole, each) == (len(sentences(text, wrapped=True)), len(sentences(text)))


@given(
    st.lists(st.sampled_from([*PIECES, "\n", ": ", "“", "The"]) | st.text(max_size=9), max_size=30).map(
        "".join
    ),
    st.booleans(),
)
def test_no_word_is_lost_or_doubled(text: str, wrapped: bool) -> None:
    """Sentences are in order, disjoint and trimmed, and contain every letter and digit."""
    found = sentences(text, wrapped=wrapped)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in found)
    assert all(left[1] <= right[0] for left, right in pairwise(found))
    assert [*filter(str.isalnum, text)] == [
        *filter(str.isalnum, "".join(text[start:end] for start, end in found))
    ]


@pytest.mark.parametrize("unit", ["a. ", "1. ", "(A.) ", "Rs. ", "[x ", ".”", "!? ", "§ 1. ", "“"])
def test_odd_text_takes_no_longer_than_other(unit: str) -> None:
    """Each of thousands of full stops is examined with only a few characters around it."""
    text = unit * examples(20_000)
    assert len(list(sentence_ends(text))) <= len(text)
