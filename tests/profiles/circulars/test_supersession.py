"""What a circular says that it does to others is read, with the other and the day; what it says of others is not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.circulars.supersession import in_force_from, statements

NUMBER = "DOR.REC.20/16.05.000/2013-14"
ISSUED = date(2024, 2, 9)


def read(text: str) -> list[tuple[str, tuple[str, ...], str | None]]:
    """Kind, numbers and day of what is read."""
    return [
        (one.kind.value, one.other.numbers if one.other else (), one.effective and one.effective.isoformat())
        for one in statements(text, issued=ISSUED)
    ]


@pytest.mark.parametrize(
    ("text", "kind", "day"),
    [
        (f"The circular {NUMBER} dated June 1, 2015 stands repealed.", "withdraws", None),
        (
            f"Circular {NUMBER} dated June 1, 2015 is hereby withdrawn with immediate effect.",
            "withdraws",
            "2024-02-09",
        ),
        (f"These Directions shall supersede the circular {NUMBER} dated June 1, 2015.", "replaces", None),
        (
            f"With effect from April 1, 2024, this circular supersedes circular {NUMBER}.",
            "replaces",
            "2024-04-01",
        ),
        (f"Circular {NUMBER} dated June 1, 2015 has been modified as given in the Annex.", "amends", None),
        (
            f"Please refer to circular {NUMBER}. 2. On a review, it has been decided to revise the above limit.",
            "amends",
            None,
        ),
        (
            f"Please refer to the Master Circular {NUMBER} dated April 1, 2023. Attached is the revised Master "
            "Circular, updated to reflect all instructions.",
            "replaces",
            None,
        ),
    ],
)
def test_an_act_is_read_with_whom_it_concerns_and_from_when(text: str, kind: str, day: str | None) -> None:
    assert read(text) == [(kind, (NUMBER,), day)]


@pytest.mark.parametrize(
    "text",
    [
        f"Please refer to circular {NUMBER} as amended from time to time.",
        f"The annex was amended vide circular {NUMBER} dated April 28, 2023.",
        "The Prevention of Money Laundering Rules have been amended by the Government.",
        "This circular does not replace or supersede any existing government instructions on the matter.",
        "All exemptions allowed for the computation of unsecured advances stand withdrawn.",
        "Notwithstanding such repeal, any action taken under the repealed Directions shall continue.",
        "Branches report monthly.",
    ],
)
def test_what_is_no_act_of_this_circular_is_not_read(text: str) -> None:
    assert read(text) == []


def test_several_numbers_of_one_sentence_are_each_acted_on() -> None:
    text = (
        "Instructions issued vide circulars A.P. (DIR Series) Circular No. 36 dated April 04, 2008 and A.P. (DIR "
        "Series) Circular No. 11 dated December 22, 2023 stand withdrawn with immediate effect."
    )
    assert [one.other.date for one in statements(text) if one.other] == [date(2008, 4, 4), date(2023, 12, 22)]


def test_the_actor_that_a_sentence_names_is_not_what_it_acts_on() -> None:
    text = f"With the issue of these Directions, earlier ones stand repealed, as communicated vide {NUMBER}."
    assert all(one.other is None for one in statements(text))


def test_a_list_of_what_is_repealed_is_read_and_a_paragraph_of_it_is_an_amendment() -> None:
    text = (
        "1. These Directions come into force at once.\n\nAppendix\nList of circulars repealed\n"
        "1. DOR.REC.1/16.05.000/2013-14 May 4, 2013\n2. DOR.REC.2/16.05.000/2013-14 May 5, 2013\n"
        "3. DOR.REC.3/16.05.000/2013-14 – Paragraph 2(b) May 6, 2013\n"
    )
    assert [kind for kind, *_ in read(text)] == ["withdraws", "withdraws", "amends"]
    first = statements(text)[0].other
    assert first is not None
    assert first.date == date(2013, 5, 4)


def test_what_is_only_compiled_is_told_apart_from_what_is_replaced() -> None:
    text = (
        "1. Text.\n\nAppendix\nList of circulars consolidated in the Master Circular\n"
        "1. DOR.REC.1/16.05.000/2013-14 May 4, 2013\n"
    )
    (one,) = statements(text)
    assert one.consolidates


def test_what_its_list_lost_is_read_as_an_act_on_nobody_known() -> None:
    assert read("The circulars listed in the Annex stand withdrawn with immediate effect.") == [
        ("withdraws", (), "2024-02-09")
    ]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("These instructions shall be effective from January 1, 2025.", date(2025, 1, 1)),
        ("This circular shall come into force with immediate effect.", ISSUED),
        (
            "These Directions shall come into force immediately except for para 6, which shall come into effect from "
            "November 1, 2025.",
            ISSUED,
        ),
        ("Interest is due with effect from April 1, 2024.", None),
    ],
)
def test_the_day_from_which_the_whole_is_in_force_is_read(text: str, day: date | None) -> None:
    found = in_force_from(text, ISSUED)
    assert (found and found[0]) == day


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(0 <= one.start < one.end <= len(text) for one in statements(text, issued=ISSUED))
