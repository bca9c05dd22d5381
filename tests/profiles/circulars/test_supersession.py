"""A circular's acts on others are read, with their object and day; what it merely says about others is not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.circulars.supersession import statements

NUMBER = "DOR.REC.20/16.05.000/2013-14"
SERIES = "A.P. (DIR Series) Circular No. 17"
ISSUED = date(2024, 2, 9)


def read(text: str) -> list[tuple[str, tuple[str, ...], str | None]]:
    """Kind, numbers and day of what is read."""
    return [
        (one.kind.value, one.other.numbers if one.other else (), one.effective and one.effective.isoformat())
        for one in statements(text, issued=ISSUED)
    ]


DATED = f"circular {NUMBER} dated June 1, 2015"


@pytest.mark.parametrize(
    ("text", "kind", "day"),
    [
        (f"The {DATED} stands repealed.", "withdraws", None),
        (f"The {DATED} is hereby withdrawn with immediate effect.", "withdraws", "2024-02-09"),
        (f"These Directions shall supersede the {DATED}.", "replaces", None),
        (f"With effect from April 1, 2024, this circular supersedes circular {NUMBER}.", "replaces", "2024-04-01"),
        (f"The {DATED} has been modified as given in the Annex.", "amends", None),
        (f"Please refer to circular {NUMBER}. 2. On a review, it has been decided to revise the above limit.", "amends",
         None),
        (f"Please refer to the Master Circular {NUMBER} dated April 1, 2023. Attached is the revised Master Circular, "
         "updated to reflect all instructions.", "replaces", None),
    ],
)  # fmt: skip
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


def test_an_act_on_a_missing_list_has_no_known_object() -> None:
    assert read("The circulars listed in the Annex stand withdrawn with immediate effect.") == [
        ("withdraws", (), "2024-02-09")
    ]


OTHERS = [
    ("{0}", f"circular {NUMBER} dated June 1, 2015", (NUMBER,)),
    ("{0}", f"the instructions issued vide {SERIES} dated June 3, 2014", (SERIES,)),
    ("{0}", "the Lead Reporting Directions, 2016", ()),
    (f"Please refer to circular {NUMBER} dated June 1, 2015. 2. {{0}}", "the said circular", (NUMBER,)),
]
FORMS = {
    "withdraws": [
        "{0} stands withdrawn.", "{0} is hereby repealed.", "The Bank has decided to rescind {0}.",
        "{0} shall cease to apply.", "{0} has been revoked with immediate effect.", "{0} is no longer in force.",
    ],
    "replaces": [
        "This circular supersedes {0}.", "This is issued in supersession of {0}.", "{0} shall stand superseded.",
        "These Directions shall replace {0}.",
    ],
    "amends": [
        "In partial modification of {0}, banks shall report monthly.", "{0} stands modified as under:",
        "Paragraph 4 of {0} is substituted by the following:", "Clause (b) of {0} shall stand deleted.",
        "The Bank hereby amends {0}.", "The exemption granted vide {0} stands withdrawn.",
    ],
}  # fmt: skip


@given(
    st.sampled_from([(kind, form) for kind, forms in FORMS.items() for form in forms]),
    st.sampled_from(OTHERS),
)
def test_every_form_of_an_act_is_read_with_every_way_to_name_the_other(
    act: tuple[str, str], other: tuple[str, str, tuple[str, ...]]
) -> None:
    (kind, form), (frame, name, numbers) = act, other
    sentence = form.format(name)
    ((kind_read, numbers_read, _),) = read(frame.format(sentence[0].upper() + sentence[1:]))
    assert (kind_read, numbers_read) == (kind, numbers)


@pytest.mark.parametrize(
    "text",
    [
        "The circular {0} shall not stand withdrawn.",
        "The circular {0} was withdrawn in 2016.",
        "Circular {0} has since been withdrawn vide DOR.REC.21/16.05.000/2013-14.",
        "If circular {0} is withdrawn, banks shall report.",
        "The circular {0} applies until it is withdrawn.",
        "It is proposed to withdraw circular {0}.",
        "Nothing in this circular shall supersede the circular {0}.",
        "Without superseding the circular {0}, banks may report.",
        "Banks shall replace the cards issued under circular {0}.",
        "The licence granted under circular {0} shall be cancelled.",
        "The records shall be updated in terms of circular {0}.",
        "Please refer to circular {0}. 2. Banks shall submit the return under the said circular by June 30.",
    ],
)
def test_what_is_denied_conditional_told_or_about_another_thing_is_no_act(text: str) -> None:
    """A rule wrongly read as withdrawn would be hidden although it is in force."""
    assert [one for one in read(text.format(f"{NUMBER} dated June 1, 2015")) if one[1]] == []


ACTED_ON, ADVISED = "DOR.REC.20/16.05.000/2013-14", "DOR.REC.21/16.05.000/2014-15"


@pytest.mark.parametrize(
    "text",
    [
        "In supersession of the instructions of {0}, banks have now been advised to offer an account to all vide {1}.",
        "In supersession of {0}, as advised vide {1}, banks shall report monthly.",
        "In supersession of {0}, and as advised vide {1}, banks shall report monthly.",
        "In supersession of {0} on small accounts, banks shall follow the definition given in {1}.",
        "In supersession of {0} read with {1}, banks shall report monthly.",
        "In partial modification of {0}, the limit advised vide {1} shall be followed.",
        "In partial modification of {0}, banks shall, in terms of {1}, report weekly.",
        "This circular supersedes {0}, which was issued in terms of {1}.",
        "These Directions shall supersede {0} as defined in {1}.",
        "This circular supersedes {0} and shall be read with {1}.",
        "{0}, as advised vide {1}, stands withdrawn.",
        "{0}, read with {1}, stands withdrawn.",
        "{0}, issued under the authority of {1}, stands withdrawn.",
        "{0}, which amended {1}, stands withdrawn.",
        "{0} stands withdrawn, as communicated vide {1}.",
        "As advised vide {1}, {0} stands withdrawn.",
        "Pursuant to {1}, {0} stands withdrawn.",
        "The exemption granted vide {0}, under the powers described in {1}, stands withdrawn.",
        "It has been decided to withdraw {0} and to follow {1}.",
        "It has been decided to withdraw {0} and banks are advised to follow {1}.",
        "It has been decided to withdraw {0} and the instructions of {1} shall apply.",
        "Please refer to {0}, issued in terms of {1}. 2. The said circular stands withdrawn.",
    ],
)
def test_one_named_for_advice_authority_definition_or_reading_with_is_not_acted_on(text: str) -> None:
    """A rule that is only cited would be hidden although it is in force."""
    named = (f"the circular {ACTED_ON} dated June 1, 2013", f"the circular {ADVISED} dated July 2, 2014")
    assert [numbers for _, numbers, _ in read(text.format(*named))] == [(ACTED_ON,)]


@pytest.mark.parametrize(
    "text",
    [
        "As advised vide {0}, the earlier instructions stand withdrawn.",
        "In supersession of all earlier instructions, banks are advised to follow {0}.",
        "In supersession of earlier instructions on the subject, as advised vide {0}, banks shall report monthly.",
    ],
)
def test_one_named_for_advice_is_not_acted_on_though_no_other_is_named(text: str) -> None:
    assert [numbers for _, numbers, _ in read(text.format(f"the circular {ADVISED}")) if numbers] == []


@given(
    st.sampled_from(["In supersession of {0}, banks shall report monthly.", "{0} stand withdrawn."]),
    st.sampled_from(
        [", ", " and ", ", as well as ", " and the guidelines issued vide ", " and our circular "]
    ),
    st.sampled_from(["", " dated June 1, 2013", " dated June 1, 2013 (Lending in May, and Other Matters)"]),
)
def test_what_goes_on_in_coordination_is_acted_on_too(form: str, joint: str, rest: str) -> None:
    text = form.format(f"The circular {ACTED_ON}{rest}{joint}{ADVISED} dated July 2, 2014")
    assert [numbers for _, numbers, _ in read(text)] == [(ACTED_ON,), (ADVISED,)]


def test_the_master_directions_are_those_introduced_as_the_md_and_not_the_last_one_named() -> None:
    text = (
        "Please refer to Master Directions (MD) on Village Lending dated June 4, 2020.\n\n2. Returns are due in "
        "terms of Master Direction - Village Bank (Filing of Returns) Directions – 2024 (MD on FVR) dated May 2, "
        "2024. They are at No. 6 of the MD on FVR. Accordingly, para 27 of MD has been updated.\n\n3. The Master "
        "Directions and the answers on the website have been updated accordingly.\n"
    )
    days = {one.other.date for one in statements(text) if one.other}
    assert days == {date(2020, 6, 4)}


def test_a_list_in_columns_gives_each_number_the_day_of_its_row() -> None:
    numbers = [f"A.P. (DIR Series) Circular No. {one}" for one in (20, 11, 25)]
    days = ["November 16, 2000", "November 13, 2001", "March 6, 2006"]
    text = "1. Text.\n\nAnnex II\nList of circulars superseded\n1.\n2.\n3.\n" + "\n".join(
        [*numbers, "Date", *days]
    )
    found = [one.other for one in statements(text)]
    assert [(one.numbers, one.date) for one in found if one] == [
        ((numbers[0],), date(2000, 11, 16)),
        ((numbers[1],), date(2001, 11, 13)),
        ((numbers[2],), date(2006, 3, 6)),
    ]


def test_a_column_of_fewer_days_than_numbers_dates_none_of_them() -> None:
    text = f"List of circulars repealed\n{SERIES}\nA.P. (DIR Series) Circular No. 11\nNovember 16, 2000\n"
    assert [one.other.date for one in statements(text)[:1] if one.other] == [None]


def test_a_list_ends_before_text_that_names_others_far_below() -> None:
    far = "Banks report monthly to the Bank on what they lend. " * 40
    text = (
        f"List of circulars repealed\n1. {NUMBER} dated June 1, 2015\n{far}\nThe rate of {SERIES} applies.\n"
    )
    assert [numbers for _, numbers, _ in read(text)] == [(NUMBER,)]


def test_a_number_at_the_end_of_a_row_does_not_run_into_the_next_row() -> None:
    text = f"List of circulars repealed\n1. {NUMBER} 01-06-2015\nReports (FRMS)\n\n2. DBS.CO.No.18/23.04.011/2004-05\n"
    assert [numbers for _, numbers, _ in read(text)] == [(NUMBER,), ("DBS.CO.No.18/23.04.011/2004-05",)]


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(0 <= one.start < one.end <= len(text) for one in statements(text, issued=ISSUED))
