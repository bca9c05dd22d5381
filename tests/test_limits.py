"""Limits on input: one rule for readers, public API and records."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Index, Mask, Session
from carag.audit import Recovery
from carag.audit.records import _fields
from carag.audit.tlog import encoding
from carag.errors import InvalidArgument
from carag.limits import (
    MAX_ID,
    MAX_LABEL,
    MAX_QUESTION,
    MAX_TEXT,
    check_form,
    check_id,
    check_label,
    check_minutes,
    check_name,
    check_question,
    check_text,
    document_of_chunk,
    quoted,
    shown,
)
from carag.policy import parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = [
    *map(chr, (*range(32), *range(0x7F, 0xA0))),  # controls
    *map(chr, (0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)),
    *"\u2028\u2029\ud800\udfff",
]
COUNT = 2**63 - 1


def without_escapes(value: object) -> str:
    """Name a test's value without a backslash, which pytest escapes again where one process collects twice (mutmut)."""
    return quoted(value).replace("\\", "")


def passes(check: object, value: object) -> bool:
    try:
        check("it", value)  # type: ignore[operator]
    except InvalidArgument:
        return False
    return True


@pytest.mark.parametrize("character", HIDDEN, ids=without_escapes)
def test_nothing_that_is_named_holds_what_cannot_be_seen(character: str) -> None:
    """Neither controls, bidi and format marks, line separators nor half surrogates."""
    for check in (check_id, check_label, check_name, check_form):
        assert passes(check, "10-K")
        assert not passes(check, f"10{character}K")


LONGEST = {
    check_id: 159,
    check_label: 200,
    check_name: 200,
    check_form: 40,
    check_question: 8192,
    check_text: 1 << 25,
}


@pytest.mark.parametrize(("check", "most"), LONGEST.items(), ids=[check.__name__ for check in LONGEST])
def test_each_text_has_a_longest(check: Callable[[str, object], None], most: int) -> None:
    """The reference states it as a number."""
    assert [True, False] == [passes(check, "a" * length) for length in (most, most + 1)]


@pytest.mark.parametrize("value", ["a.v2b", ".v2.a", "a.v", "v2"])
def test_what_only_resembles_a_version_is_an_id(value: str) -> None:
    """A version ends it."""
    assert passes(check_id, value)


def test_a_form_is_what_edgar_s_look_like() -> None:
    """It begins with a letter or a digit."""
    assert all(passes(check_form, form) for form in ("10-K/A", "SC 13D", "X&(Y)_z.1"))
    assert not any(passes(check_form, form) for form in ("", None, " 10-K", "/A", "-K"))


@given(
    st.text("a:.v2/", max_size=12) | st.text(max_size=MAX_ID), st.integers(2, COUNT), st.integers(0, COUNT)
)
def test_a_passage_s_id_names_its_document_and_version(text: str, version: int, number: int) -> None:
    """Whatever the document's id looks like; an id without a number, which only a caller makes up, is a document's."""
    if passes(check_id, text):
        assert (text, 1) == document_of_chunk(f"{text}:{number:05d}")
        assert (text, version) == document_of_chunk(f"{text}.v{version}:{number:05d}")
    assert ("memo", 1) == document_of_chunk("memo")


@given(st.text(max_size=MAX_ID + 5))
def test_a_passage_of_whatever_may_be_an_id_is_a_label_of_a_record(text: str) -> None:
    """In every version and at every number that a store can count to."""
    if passes(check_id, text):
        assert passes(_fields.label, f"{text}:00000")
        assert passes(_fields.label, f"{text}.v{COUNT}:{COUNT:05d}")


def test_the_longest_id_still_names_its_last_passage_in_a_record() -> None:
    """The room left is exactly enough."""
    assert passes(check_id, "a" * MAX_ID)
    assert not passes(check_id, "a" * (MAX_ID + 1))
    assert MAX_LABEL == len(f"{'a' * MAX_ID}.v{COUNT}:{COUNT}")


@pytest.mark.parametrize("value", ["", None, 7, b"a", "a.v2", "a.v12", "a.v٣"])
def test_an_id_is_a_text_that_no_version_can_be_mistaken_for(value: object) -> None:
    """It is a string, not empty, and does not end in a version."""
    assert not passes(check_id, value)


def test_a_name_is_one_line_however_wide_its_spaces() -> None:
    """At most as long as a label; unlike a label it may be empty."""
    assert all(passes(check_name, name) for name in ("", "a\u00a0b\u3000plc", "a" * MAX_LABEL))
    assert not any(passes(check_name, name) for name in (None, "a\u2028b", "a" * (MAX_LABEL + 1)))
    assert [False, True] == [passes(check_label, label) for label in ("", "a")]


@given(st.text(string.printable, min_size=1, max_size=50))
def test_a_form_holds_neither_markup_nor_controls(text: str) -> None:
    """Whatever passes means nothing to a terminal, a page or a log."""
    if passes(check_form, text):
        assert set() == set(text) & set("<>[]{}$%\\`'\"\x1b\n\r\t;|*=")


@pytest.mark.parametrize("minutes", [-1, 2**32, 1.0, True, None, "7", 10**5000], ids=quoted)
def test_a_time_is_minutes_that_32_bits_hold(minutes: object) -> None:
    """Nothing else is accepted, whatever it compares equal to."""
    assert passes(check_minutes, 0)
    assert passes(check_minutes, 2**32 - 1)
    assert not passes(check_minutes, minutes)


@pytest.mark.parametrize(
    "text", ["a\ud800", "\udfff", "a\0b", b"a", None, "a" * (MAX_TEXT + 1)], ids=without_escapes
)
def test_a_text_is_what_every_database_can_hold(text: object) -> None:
    """No half surrogate pair, no NUL, no more than a stated length; line breaks and marks are its own."""
    assert passes(check_text, "\n\t\u202e\U0010ffff")
    assert not passes(check_text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\0b", "a NUL at character 1"), ("ab\udfff", "half of a surrogate pair at character 2")],
    ids=["NUL", "surrogate"],
)
def test_what_no_text_holds_is_named_with_its_place(text: str, expected: str) -> None:
    """A reader who looks for either cannot see it."""
    with pytest.raises(InvalidArgument, match=f"it holds {expected}; remove it"):
        check_text("it", text)


@pytest.mark.parametrize(
    "question", ["", "\n \t", 7, "a\0", "a\ud800", "a" * (MAX_QUESTION + 1)], ids=without_escapes
)
def test_a_question_is_a_text_with_words(question: object) -> None:
    """Neither blank nor longer than the limit; it may have several lines."""
    assert passes(check_question, "a\n\t".ljust(MAX_QUESTION, "a"))
    assert not passes(check_question, question)


ENDLESS = "\x1b[31m" + "a" * 100_000
REFUSING = {
    "a session's role": lambda: Session(role=ENDLESS, purpose="invest"),
    "a session's intents": lambda: Session(role="buy_side", purpose="invest", intents=ENDLESS),  # type: ignore[arg-type]
    "a list of companies": lambda: Session(role="buy_side", purpose="invest", restricted=ENDLESS),  # type: ignore[arg-type]
    "a company": lambda: Session(role="buy_side", purpose="invest", restricted={10**5000}),  # type: ignore[arg-type]
    "a mask": lambda: Mask(required=10**5000),
    "a bit": lambda: Mask(required=ENDLESS),
    "a moment": lambda: parse_moment(ENDLESS),
    "a code of a record": lambda: Recovery(ENDLESS),
    "a key of a record": lambda: encoding.encode({ENDLESS: 1}),
    "a number of rows": lambda: Index(8).search(np.ones(8, np.float32), 10**5000, Mask()),
}


@pytest.mark.parametrize("refusing", REFUSING.values(), ids=REFUSING)
def test_whoever_refuses_quotes_on_one_line_and_bounded(refusing: Callable[[], object]) -> None:
    """Every room quotes what it was given in the same way, whatever it was given."""
    with pytest.raises(InvalidArgument) as refused:
        refusing()
    assert str(refused.value).isprintable()
    assert 1000 > len(str(refused.value))


@given(
    st.text()
    | st.binary()
    | st.integers()
    | st.just(10**5000)
    | st.text(st.characters(categories=["Cs", "Cc"]), min_size=500)
)
def test_what_came_is_quoted_on_one_line_and_bounded(value: object) -> None:
    """No error message carries a control character or a long value into a log."""
    assert quoted(value).isprintable()
    assert 1000 > len(quoted(value))


def test_what_is_short_is_quoted_whole() -> None:
    """A text of 80 characters and anything else that is written in 160; of a longer text both ends, and its length."""
    begin, end = "a" * 40, "z" * 40
    assert repr(begin + end) == quoted(begin + end)
    assert f"'{begin}...{end}' (81 characters)" == quoted(f"{begin}b{end}")
    longest, longer = b"a" * 157, b"a" * 158
    assert (160, repr(longest)) == (len(repr(longest)), quoted(longest))
    assert f"b'{'a' * 158}..." == quoted(longer)


@pytest.mark.parametrize("text", ["", "a.txt", "a\x1b[31m.txt", "a" * 1000, "a" * 1001], ids=without_escapes)
def test_a_text_is_shown_as_it_is_or_quoted(text: str) -> None:
    """Quoted where it is long or cannot be printed."""
    assert (text if text.isprintable() and 1000 >= len(text) else quoted(text)) == shown(text)
