"""A circular is recognised by its number, its title and day, or a word defined for it, in any spelling."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.circulars.references import (
    DATE,
    date_of,
    levelled,
    names_of,
    number_key,
    references,
    title_key,
)

NUMBERS = [
    "RBI/2024-25/100",
    "DOR.STR.REC.54/21.04.048/2024-25",
    "CO.DPSS.POLC.No.S528/02-14-003/2024-25",
    "UBD.CO.BPD(PCB).No.20/16.05.000/2013-14",
    "DBOD No.Leg.BC.21/09.07.006/2014-15",
    "DBOD.No.Sch.BC.666/C.96Z-67",
    "A.P. (DIR Series) Circular No. 17",
    "AP DIR Series Circular No. 17",
    "DNBS (PD-SC/RC). CC. No. 23/26.03.001/2010-11",
    "DCBR.BPD (PCB/RCB) Cir.No.2/14.01.062/2015-16",
    "Master Direction No.7/2015-16",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_sentence_is_found_whole(number: str) -> None:
    (found,) = references(f"Instructions were issued vide {number} dated June 3, 2024.")
    assert (found.numbers, found.date) == ((number,), date(2024, 6, 3))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RBI/2024-25/04", "RBI/2024-2025/4"),
        ("DOR.REC.05/13.03.00/2024-25", "DoR. REC.No.5/13-03-00/2024-2025"),
        ("A. P. (DIR Series) Circular No.05", "A.P. (DIR Series) Circular No. 5"),
        (
            "DOR.RRC.REC.302/33-01-010/2025-26",
            "DOR.RRC.REC.302/33-01010/2025-26",
        ),  # a hyphen lost at a line's end
    ],
)
def test_two_spellings_of_one_number_are_one(one: str, other: str) -> None:
    assert number_key(one) == number_key(other)


@given(st.integers(1, 999), st.integers(1, 999), st.integers(10, 98))
def test_serial_numbers_are_never_confused(one: int, other: int, year: int) -> None:
    keys = {number_key(f"DOR.REC.{serial}/21.04.048/20{year}-{year + 1}") for serial in (one, other)}
    assert (len(keys) == 1) == (one == other)


@given(st.dates(date(1960, 1, 1), date(2049, 12, 31)))
def test_a_day_is_read_in_every_form_it_is_written_in(day: date) -> None:
    month = day.strftime("%B")
    for text in (
        f"{month} {day.day}, {day.year}",
        f"{month} {day.day:02},{day.year}",
        f"{day.day}th {month} {day.year}",
        f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.day:02}-{day.month:02}-{day.year}",
    ):
        (found,) = DATE.finditer(text)
        assert date_of(found) == day


def test_a_day_that_no_calendar_has_is_none() -> None:
    (found,) = DATE.finditer("February 30, 2024")
    assert date_of(found) is None


def test_a_series_needs_its_day_because_its_numbers_restart() -> None:
    assert names_of(("A.P. (DIR Series) Circular No. 7",), "", None) == ()
    assert names_of(("A.P. (DIR Series) Circular No. 7",), "", date(2024, 1, 2)) != names_of(
        ("A.P. (DIR Series) Circular No. 7",), "", date(2023, 1, 2)
    )


def test_a_title_without_day_or_year_names_nothing() -> None:
    """Master circulars bear the same title year after year."""
    assert names_of((), "Master Circular - Housing Finance for Branches", None) == ()


def test_a_title_and_its_kind_are_one_however_it_is_introduced() -> None:
    assert title_key("Master Direction – Know Your Customer (KYC) Directions, 2016") == title_key(
        "Know Your Customer (KYC) Direction, 2016"
    )


def test_a_defined_word_stands_for_what_it_was_defined_for() -> None:
    text = (
        "Please refer to Master Directions DPSS.POLC.No.9/02.14.006/2021-22 dated August 27, 2021 on Prepaid "
        "Instruments (MD-PPIs). The MD-PPIs has been updated."
    )
    first, second = references(text)
    assert second.word == "MD-PPIs"
    assert (second.numbers, second.date) == (first.numbers, first.date)


@pytest.mark.parametrize("text", ["", "/", "RBI/2024", "A" * 5000, "DOR." * 800, "(" * 600, "‘" * 2000])
def test_odd_texts_name_nothing_and_cost_little(text: str) -> None:
    assert references(text) == []


@given(st.text(alphabet="ADORBI./()-–0123456789 Circular\n‘’,", max_size=300))
def test_references_lie_in_their_text_and_in_order(text: str) -> None:
    found = references(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert [one.start for one in found] == sorted(one.start for one in found)


@given(st.text(alphabet="aWith.\n\f \u00a0\u2011\u00ad12Pageof", max_size=200))
def test_a_levelled_text_keeps_its_length_so_that_offsets_hold(text: str) -> None:
    assert len(levelled(text)) == len(text)


def test_an_authoritys_and_a_departments_number_are_one_circular_and_two_departments_are_two() -> None:
    one, two = "DOR.REC.20/16.05.000/2013-14", "DOR.REC.21/16.05.000/2013-14"
    assert [found.numbers for found in references(f"RBI/2013-14/100\n{one}\n{two}")] == [
        ("RBI/2013-14/100", one),
        (two,),
    ]


def test_a_financial_year_broken_at_a_lines_end_is_read_as_one() -> None:
    (found,) = references("the circular DOR.STR.REC.13/13.03.00/20\n24-25 dated April 15, 2024")
    assert number_key(found.numbers[0]) == number_key("DOR.STR.REC.13/13.03.00/2024-25")
