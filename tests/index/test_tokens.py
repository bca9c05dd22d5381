"""Terms of a text are the same for indexed texts and queries, in every script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.index.tokens import tokenize

texts = st.text(max_size=60) | st.text(alphabet="ab1209.,-/&()§ ²éक्षि日テ\u0301ß'_$%\n", max_size=40)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("1,234,567.89", ["1234567.89"]),
        ("$(1,234) million", ["1234", "million"]),
        ("1,23 12,345,67", ["1", "23", "12", "345", "67"]),
        ("1.25x 1.25", ["1.25x", "1", "25x", "1.25"]),
        ("10-K", ["10-k", "10", "k"]),
        ("2019-2021", ["2019-2021", "2019", "2021"]),
        ("§ 12(3), §12(3)", ["§12", "12(3)", "12", "3"] * 2),
        ("BRK.B or AAPL", ["brk.b", "brk", "b", "or", "aapl"]),
        ("FY2018", ["fy2018"]),
        ("long-term", ["long", "term"]),
        ("ﬁnance Ⅳ STRASSE Straße", ["finance", "iv", "strasse", "strasse"]),
        ("हिन्दी 日本 тест", ["हिन्दी", "日", "本", "тест"]),
        ("A_b\u2019s", ["a", "b", "s"]),
        ("", []),
    ],
)
def test_terms(text, terms):
    """The table of the module's docstring holds."""
    assert terms == tokenize(text)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("265595", "265,595"),
        ("10-k", "Form 10-K."),
        ("K", "10-K"),
        ("1.25", "(1.25)"),
        ("§12(3)", "see § 12(3)"),
    ],
)
def test_what_is_asked_in_another_form_matches(asked, written):
    """Every term of the query occurs in the text."""
    assert set(tokenize(asked)) <= set(tokenize(written))


@given(texts)
def test_terms_are_words_in_normal_form(text):
    """Without figures they contain only letters, marks and numbers, and splitting is idempotent."""
    for term in tokenize(text, figures=False):
        assert term
        assert all(unicodedata.category(c)[0] in "LMN" for c in term), term
        assert [term] == tokenize(term, figures=False) or unicodedata.normalize("NFKC", term) != term


@given(texts)
def test_figures_add_terms_and_take_none_of_the_words(text):
    """Every letter and number is in some term, with the switch or without."""
    plain = set("".join(tokenize(text, figures=False)))
    assert plain == {c for term in tokenize(text) for c in term if unicodedata.category(c)[0] in "LMN"}


@given(texts)
def test_spelling_that_looks_the_same_gives_the_same_terms(text):
    """Composed or decomposed."""
    assert tokenize(text) == tokenize(unicodedata.normalize("NFD", text))
    assert tokenize(text) == tokenize(unicodedata.normalize("NFC", text))


@given(st.text(alphabet="ab1209.,-/&()§ $", max_size=40))
def test_text_beside_it_in_another_script_changes_no_term(text):
    """The patterns for different scripts agree."""
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")
    assert [*tokenize(text), "日"] == tokenize(f"{text} 日")


def test_only_text_is_cut():
    """The encoding of bytes is unknown."""
    with pytest.raises(InvalidArgument, match="want a str"):
        tokenize(b"bytes")
