"""The day from which a circular says it is in force is read; if the text does not tell it, the circular is closed."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.circulars.facts import circular_of
from carag.profiles.circulars.supersession import in_force_from, statements

ISSUED = date(2024, 2, 29)


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
        ("(2) They shall come into force on the 1st day of April, 2030.", date(2030, 4, 1)),
        ("The revised norms shall be applicable from the financial year 2023-24.", date(2023, 4, 1)),
        ("It shall take effect from FY 2030-2031.", date(2030, 4, 1)),
        ("This circular shall come into force after ninety days from the date of issue.", date(2024, 5, 30)),
        ("These Directions take effect 30 (thirty) days from the date of this circular.", date(2024, 3, 30)),
        ("These Directions shall be effective six months from the date of issuance.", date(2024, 8, 29)),
        (
            "This scheme shall become operative one hundred and twenty days after its issue.",
            date(2024, 6, 28),
        ),
        ("The instructions shall apply with effect from the quarter ending June 30, 2030.", date(2030, 4, 1)),
        ("This Order shall be implemented from April 2030.", date(2030, 4, 1)),
        ("Commencement: shall come into force on the date of issue.", ISSUED),
        (
            "These directions shall come into effect on the day they are placed on the official website of the Bank.",
            ISSUED,
        ),
        (
            "The directions at para 3(b) above shall be effective six months from the date of this circular.",
            date(2024, 8, 29),
        ),
    ],
)
def test_a_day_that_can_be_told_is_read(text: str, day: date) -> None:
    """Dates, financial years, and periods from the day of issue; "after" a period is the day after its end."""
    one = circular_of({"issued": ISSUED.isoformat()}, text)
    assert (one.effective, one.trouble) == (day, [])


NOT_TOLD = [
    "on the date of its publication in the Official Gazette",
    "from the date of notification",
    "on such date as the Government may, by notification, appoint",
    "six months from the date of publication in the Gazette",
    "after ninety working days from the date of issue",
    "from a date to be notified separately",
    "on the date of publication in the Gazette or on April 1, 2020, whichever is later",
    "as and when the portal is ready",
    "from the first day of the month after next",
    "from the 31st day of April, 2030",
    "from the financial year 2023-29",
]
SUBJECTS = [
    "This circular shall come into force",
    "These Directions will take effect",
    "(2) They shall come into operation",
    "The Authority (Returns) Regulations, 2030 shall be deemed to be operative",
    "This circular is issued under Section 18 of the Act (Act 51 of 2007), and shall come into effect",
]


@pytest.mark.parametrize("words", NOT_TOLD)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_day_that_is_not_told_closes_the_circular_and_says_so(subject: str, words: str) -> None:
    """No answer comes from a text that may not have begun; a field that states the day opens it."""
    text = f"1. Banks report.\n\n2. {subject} {words}.\n\n3. The fee shall be effective from May 1, 2024."
    one = circular_of({"issued": ISSUED.isoformat()}, text)
    assert one.effective is None
    assert [trouble.split(" in ")[0] for trouble in one.trouble] == ["the day from which it is"]
    assert "state it in the field `effective`" in one.trouble[0]
    stated = circular_of({"issued": ISSUED.isoformat(), "effective": "2030-04-01"}, text)
    assert (stated.effective, stated.trouble) == (date(2030, 4, 1), [])


@pytest.mark.parametrize(
    "text",
    [
        "Interest is due with effect from April 1, 2024.",
        "The provisions of paragraph 6.3.1 above will be applicable from the date the rate becomes floating.",
        "These changes shall be effective only prospectively.",
        "These Directions shall be applicable to all banks.",
        "The guidelines apply from time to time.",
    ],
)
def test_what_does_not_speak_of_the_beginning_closes_nothing(text: str) -> None:
    one = circular_of({"issued": ISSUED.isoformat()}, text)
    assert (one.effective, one.trouble) == (None, [])


@pytest.mark.parametrize("status", ["draft", "draft for comment"])
def test_a_draft_begins_nowhere(status: str) -> None:
    one = circular_of({"issued": "2024-02-29", "status": status}, f"{SUBJECTS[0]} {NOT_TOLD[0]}.")
    assert one.trouble == []


def test_an_act_after_a_period_is_not_done_at_once() -> None:
    """The old circular holds until its repeal does."""
    text = (
        "Circular UBD.PCB.No.20/16.05.000/2013-14 stands repealed six months from the date of this circular."
    )
    assert [said.effective for said in statements(text, issued=ISSUED)] == [date(2024, 8, 29)]


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*NOT_TOLD, *SUBJECTS, "999 years after its issue."])).map(" ".join)
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = in_force_from(text, ISSUED)
    assert found is None or 0 <= found.start < found.end <= len(text)
