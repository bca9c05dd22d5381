"""Raised and lowered text: a note mark never becomes a digit of its figure, and a power never becomes a note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.readers.raised import lowered, raised


@pytest.mark.parametrize(
    ("before", "mark", "noted", "written"),
    [
        ("Rs. 2,500", "1", {"1"}, "[^1]"),
        ("Rs. 2,500", "1", set(), "[^1]"),
        ("Rs. 2,500", "(3)", set(), "[^3]"),
        ("Rs. 2,500", "1, 2", set(), "[^1][^2]"),
        ("income", "*", set(), "[^*]"),
        ("1 January", "a", set(), "[^a]"),
        ("a line\n", "1", {"1"}, "[^1] "),
        ("3.2 × 10", "6", {"6"}, "^6"),
        ("3.2 x10", "−3", {"3"}, "^-3"),
        ("40 m", "2", {"2"}, "^2"),
        ("40m", "2", {"2"}, "^2"),
        ("kg/m", "3", set(), "^3"),
        ("40 m", "4", {"4"}, "[^4]"),
        ("2 W m", "−2", set(), "^-2"),
        ("the company's", "2", set(), "[^2]"),
        ("9 a.m", "2", set(), "[^2]"),
        ("10", "6", set(), "^6"),
        ("10", "6", {"6"}, "[^6]"),
        ("10", "1", set(), "[^1]"),
        ("2,510", "6", set(), "[^6]"),
        ("1.10", "6", set(), "[^6]"),
        ("x", "n", set(), "^n"),
        ("E", "2", {"2"}, "[^2]"),
        ("ions of H", "+", set(), "^+"),
        ("U.S", "2", set(), "[^2]"),
        ("on the 1", "st", {"st"}, "st"),
        ("le 2", "e", set(), "e"),
        ("Rs. 2", "e", {"e"}, "[^e]"),
        ("Acme", "®", {"®"}, "®"),
        ("Acme", "TM", set(), "™"),
        ("the bank", "set in the line", set(), " set in the line"),
        ("the bank", " ", set(), ""),
        ("30", "°", set(), "°"),
        ("", "•", set(), "•"),
    ],
)
def test_what_a_raised_text_means_depends_on_what_it_stands_behind(
    before: str, mark: str, noted: set[str], written: str
) -> None:
    """It is a power, an ordinal or a sign where its base says so, and otherwise a note mark."""
    assert written == raised(before, mark, noted=noted)


def test_a_link_is_a_note_mark_and_the_numerator_of_a_fraction_is_not() -> None:
    """A power is not a link; and the figure before a fraction does not grow by a digit."""
    assert "[^2]" == raised("40 m", "2", noted=(), linked=True)
    assert " 1" == raised("notes of 6", "1", noted=(), after="/4 per cent")
    assert "4" == lowered("notes of 6 1/", "4")


@given(st.from_regex(r"[0-9]{1,3}(,[0-9]{3}){0,2}", fullmatch=True), st.from_regex(r"[0-9]", fullmatch=True))
def test_no_raised_digit_is_read_as_a_digit_of_its_figure(figure: str, mark: str) -> None:
    """Whichever rule decides."""
    assert raised(figure, mark, noted=()).startswith(("[^", "^"))


def test_lowered_text_joins_but_not_the_digits_of_a_figure() -> None:
    assert ["2", "_2", " and this is"] == [
        lowered("CO", "2"),
        lowered("10", "2"),
        lowered("bank", "and this is"),
    ]
