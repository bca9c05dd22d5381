"""Claims about finding documents by the numbers that a question names."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.circulars import references
from carag.retrieval.reading import (
    Described,
    Documents,
    Names,
    Numbers,
    absent,
    is_void,
    number_key,
    read_question,
    tiers,
)

OWN, REFERENCE, SERIES = (
    "RBI/2024-25/93",
    "DOR.STR.REC.54/21.04.048/2024-25",
    "A.P. (DIR Series) Circular No.12",
)
ROWS = [((OWN, REFERENCE), 1), ((SERIES,), 2), (("RBI/2024-25/9",), 3), (("7",), 4), (("Circular",), 5)]


def numbers() -> Numbers:
    table = Numbers()
    table.add(ROWS)
    return table


def found(question: str, said: tuple[int, ...] = (0, 1, 2, 3, 4)) -> list[tuple[str, tuple[int | str, ...]]]:
    places = numbers().find(question, said.__contains__)
    return [(one.mention.text, one.mention.keys) for one in places]


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("RBI/2024-25/93", 1),
        ("rbi/2024-2025/93", 1),
        ("RBI / 2024-25 / 93", 1),
        ("RBI/2024–25/093", 1),
        ("DOR. STR. REC. No. 54 / 21.04.048/2024-2025", 1),
        ("DoR.STR.REC.No.54/21-04-048/2024-25", 1),
        ("A. P. (DIR Series) Circular No 12", 2),
        ("RBI/2024-25/9", 3),
    ],
)
def test_a_number_is_found_in_every_spelling(said: str, key: int) -> None:
    assert found(f"What does {said} say?") == [(said, (key,))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DoR.SPE.REC.No.05/13.03.00/2024-2025", "DOR. SPE.REC.5/ 13-03.00/2024-25"),
        ("RBI/2023-24/098", "RBI/2023-2024/98"),
        ("A. P. (DIR Series) Circular No.05", "A.P.(DIR Series) Circular No. 5"),
    ],
)
def test_spellings_that_the_links_of_circulars_know_are_known_here(one: str, other: str) -> None:
    assert references.number_key(one) == references.number_key(other)
    assert number_key(one) == number_key(other)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("RBI/2024-25/94", "RBI/2024-25/94"),
        ("RBI/2024-25/931", "RBI/2024-25/931"),
        ("the limit. RBI/2024-25/95", "RBI/2024-25/95"),
        ("DoR.AML.REC.111/2023-24", "DoR.AML.REC.111/2023-24"),
    ],
)
def test_what_is_written_like_a_number_and_no_document_s_is_named_without_one(said: str, text: str) -> None:
    assert found(f"What is said of {said}?") == [(text, ())]


@pytest.mark.parametrize(
    "said",
    [
        "7 circulars and/or 24/7",
        "1/2/2024",
        "Form 15G/15H",
        "12/2024 in 2024-25",
        "income/expense/ratio",
        "FY2024-25/FY2025-26",
        "https://x.example/2024/25/3",
        "the circular on wallets",
    ],
)
def test_what_is_no_number_is_none(said: str) -> None:
    assert found(f"What is said of {said}?") == []


def test_a_number_of_a_document_that_is_not_given_is_as_one_of_none() -> None:
    """A row that is not given says nothing: neither its number nor that of a shorter one is found by it."""
    without = Numbers()
    without.add(row for row in ROWS if row[1] != 1)
    for question in (
        f"What does {OWN} say?",
        f"{REFERENCE} and RBI/2024-25/9",
        "RBI/2024-25/93 or RBI/2024-25/99",
    ):
        assert found(question, (1, 2, 3, 4)) == [
            (one.mention.text, one.mention.keys) for one in without.find(question, lambda _: True)
        ]


def read(question: str) -> tuple[list[float], list[str], bool]:
    documents = Documents(
        [Described(1, "a", period=date(2024, 12, 4)), Described(3, "b", period=date(2024, 5, 1))]
    )
    reading = read_question(question, numbers=lambda text: numbers().find(text, lambda row: row in (0, 2)))
    missing = absent(reading, documents)
    return tiers(reading, documents).tolist(), [one.described() for one in missing], is_void(reading, missing)


def test_the_document_named_comes_first_and_its_years_are_no_period() -> None:
    assert read(f"What does {OWN} say?") == ([1.0, 0.0], [], False)
    assert read("What does RBI/2024-25/94 say?") == ([0.0, 0.0], ["RBI/2024-25/94"], True)
    assert read(f"What do {OWN} and RBI/2024-25/94 say?") == ([1.0, 0.0], ["RBI/2024-25/94"], False)
    assert read_question(f"What does {OWN} say?", numbers=lambda _: ()).periods != ()
    reading = read_question(
        f"What does {OWN} say?", numbers=lambda text: numbers().find(text, lambda _: True)
    )
    assert (reading.periods, reading.described()) == ((), OWN)


def test_a_title_that_several_bear_means_the_one_whose_number_stands_with_it() -> None:
    titles = Names.of_titles([("Review of the Scheme", 1), ("Review of the Scheme", 3)])

    def meant(question: str) -> tuple[int | str, ...]:
        read = read_question(
            question, titles=titles, numbers=lambda text: numbers().find(text, lambda _: True)
        )
        return read.titles[0].keys

    assert meant("What does Review of the Scheme say?") == (1, 3)
    assert meant(f"What does {OWN}, Review of the Scheme, say?") == (1,)
    assert meant(f"What do {SERIES} and Review of the Scheme say?") == (1, 3)


@given(st.text(alphabet="RBI/2024-25 .9()Nno", max_size=80) | st.text(max_size=120))
def test_no_text_is_too_strange(text: str) -> None:
    places = numbers().find(text, lambda _: True)
    assert all(0 <= one.start < one.end <= len(text) for one in places)
    assert all(one.end <= other.start for one, other in pairwise(places))


@pytest.mark.parametrize("piece", ["RBI/2024-25/", "A.", "DOR. ", "/ ", "9/"])
def test_a_long_question_takes_no_long_time(piece: str) -> None:
    text = (piece * 8000)[:8000]
    assert len(numbers().find(text, lambda _: True)) < len(text)
