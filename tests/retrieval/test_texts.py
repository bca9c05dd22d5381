"""Passages are joined to the texts that they are from, and sections and headings are found where they are certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.chunking import chunk
from carag.retrieval.listing.texts import headings_of, runs_of, section_span, table_span
from carag.retrieval.reading import Section
from carag.retrieval.reading.collective import title_words
from carag.store.values import StoredChunk

RULES = (
    "Contents\n1 Scope 3\n2 Terms 4\n\n1 Scope\nAll branches.\n2 Terms\nThese apply:\n1. Cash\n2. Gold\n3 Limits\n"
    "Ten.\n3\n"
    "Annex I\nForms."
)


def passages(text: str, *, without: frozenset[int] = frozenset()) -> list[StoredChunk]:
    return [
        StoredChunk(
            document="text", start=one.start, end=one.end, text=one.text, word=0, public_at=0, number=number
        )
        for number, one in enumerate(chunk(text, target=40, limit=60))
        if number not in without
    ]


@given(st.text(alphabet="ab .\n", max_size=400), st.sets(st.integers(0, 9), max_size=3))
def test_a_run_is_the_text_between_two_gaps(text: str, missing: set[int]) -> None:
    """Word for word but for white space; a passage that is missing ends a run, and each piece is its passage's."""
    chunks = passages(text, without=frozenset(missing))
    runs = runs_of(chunks)
    assert [one for run in runs for one in run.chunks] == chunks
    for run in runs:
        first, last = run.chunks[0], run.chunks[-1]
        assert run.text.split() == text[first.start : last.end].split()
        assert [one.number for one in run.chunks] == list(range(first.number, last.number + 1))
        assert [(one, said.strip()) for one, said in run.pieces(0, len(run.text))] == [
            (one, one.text) for one in run.chunks
        ]


@pytest.mark.parametrize(
    ("kind", "number", "said"),
    [
        ("section", "1", None),  # it may be an item of the list
        ("clause", "3", "3 Limits\nTen.\n3\n"),
        ("section", "2", None),
        ("section", "4", None),
        ("article", "1", None),
        ("annex", "i", "Annex I\nForms."),
    ],
)
def test_a_section_ends_where_the_next_begins(kind: str, number: str, said: str | None) -> None:
    """A line of the table of contents is not a section, nor is a page number; what is not certain is not found."""
    span = section_span(RULES, Section(kind, number))
    assert (None if span is None else RULES[slice(*span)]) == said


def test_the_headings_of_a_text_are_those_it_marks() -> None:
    """In Markdown, or else by their form; each with the first sentence below it, and the end of what is under it."""
    text = "# One\nFirst. Second.\n## Two\nThird.\n# Three\n"
    found = [(one.text, one.sentence, text[one.start : one.end]) for one in headings_of(text)]
    assert found == [
        ("One", "First.", "# One\nFirst. Second.\n## Two\nThird.\n"),
        ("Two", "Third.", "## Two\nThird.\n"),
        ("Three", "", "# Three\n"),
    ]
    assert headings_of("Only prose.\nAnd more.") == []


def test_a_table_is_found_by_the_lines_above_it() -> None:
    """Whole, from those lines to its last row; another statement with more words in its name is not taken for it."""
    text = (
        "Consolidated Statements of Comprehensive Income\nYear | 2022 | 2021\nGain | 1 | 2\nLoss | 3 | 4\nAll | 5 | 6\n"
        "Some prose that is long enough to end the table above, and says nothing about any of its figures at all.\n\n"
        "Consolidated Statements of Income\nYear | 2022 | 2021\nSales | 7 | 8\nCosts | 9 | 10\n"
    )
    span = table_span(text, title_words("income statement"), title_words)
    assert span is not None
    assert text[slice(*span)].split("\n")[0] == "Consolidated Statements of Income"
    assert text[slice(*span)].endswith("Costs | 9 | 10")
    assert table_span(text, title_words("balance sheet"), title_words) is None


def test_a_list_inside_a_section_does_not_end_it_unless_it_may_be_the_next() -> None:
    """Item 3 after items 1 and 2 may be of the list, or the section after 2."""
    text = "Terms\nSection 2 Terms\n1. Cash\n2. Gold\n{}. Silver\nNone.\n"
    assert section_span(text.format(4), Section("section", "2")) is None  # "2. Gold" may be meant
    text = text.replace("2. Gold\n", "")
    span = section_span(text.format(4), Section("section", "2"))
    assert span is not None
    assert text.format(4)[slice(*span)].endswith("None.\n")
