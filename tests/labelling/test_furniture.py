"""Text that is repeated on pages is distinguished from content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.labelling.furniture import furniture
from tests.labelling.linear import assert_linear


def pages(head: str, foot: str, many: int = 6) -> str:
    """Make pages of different text, with the page number in their head and foot."""
    return "\f".join(
        f"{head.format(page)}\nPage text {'abcdefghij'[page]} says this.\nIt ends so {'abcdefghij'[page]}.\n"
        f"It goes on {'abcdefghij'[page]}.\nAnd on {'abcdefghij'[page]}.\n{foot.format(page)}\n"
        for page in range(1, many + 1)
    )


@pytest.mark.parametrize(
    ("head", "foot", "found"),
    [
        ("Rules on Gifts", "{}", {"Rules on Gifts"}),
        ("/ Other rules, 2025 edition", "", {"/ Other rules, 2025 edition"}),
        ("", "- {} Staff Rules 2014", {f"- {page} Staff Rules 2014" for page in range(1, 7)}),
        ("", "Staff Rules | {}", {f"Staff Rules | {page}" for page in range(1, 7)}),
        ("Annex {}", "", set()),
        ("Table {}", "", set()),
        ("{}. Reports", "", set()),
        ("({}) Reports", "", set()),
        ("Provided that it reports", "", set()),
        ("ANNEX", "", set()),
        ("Limits | Gold | Silver", "", set()),
        ("It shall report:", "", set()),
    ],
)
def test_a_head_or_foot_is_furniture_and_what_belongs_to_a_clause_is_not(
    head: str, foot: str, found: set[str]
) -> None:
    assert furniture(pages(head, foot)) == found


def test_a_line_that_two_pages_share_is_not_furniture_and_neither_is_one_in_their_middle() -> None:
    assert furniture(pages("Rules on Gifts", "", many=2)) == frozenset()
    middle = "One.\nTwo.\nThree.\nRules on Gifts\nFour.\nFive.\nSix."
    assert furniture("\f".join([middle] * 5)) == frozenset()
    assert furniture("\n".join([middle] * 5)) == {
        "Rules on Gifts"
    }  # without pages, repetition is all there is


def test_a_number_that_does_not_rise_with_the_pages_is_not_a_page_number() -> None:
    rising = "\f".join(f"Staff rules of 20{year}\nText {year} is here." for year in (14, 15, 16, 17))
    jumping = "\f".join(f"Staff rules of 20{year}\nText {year} is here." for year in (14, 16, 19, 29))
    assert len(furniture(rising)) == 4
    assert furniture(jumping) == frozenset()


def test_letters_of_a_watermark_stand_on_half_of_the_pages() -> None:
    marked = "\f".join(
        f"Text {page}.\nIt goes on.\nCO\nAnd ends.\nPY\nSo.\nIt is.\nDone." for page in range(8)
    )
    assert furniture(marked) == {"CO", "PY"}
    assert furniture(marked + "\f" * 20) == frozenset()


@given(
    st.lists(
        st.sampled_from(["a", "Rules", "3", "- 3 Rules", "\f", "\n", "|", "\t", "Annex", "."]) | st.text()
    )
)
def test_furniture_is_lines_of_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    lines = {line.strip() for page in text.split("\f") for line in page.split("\n")}
    assert furniture(text) <= lines


@pytest.mark.parametrize("hostile", ["\f", "Rules 1\f", "1 ", "a 1\n", "I", "- 1 abc\n\f"])
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    assert_linear(furniture, lambda size: hostile * (size // len(hostile)), 10_000)
