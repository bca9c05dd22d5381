"""Facts of a circular come from its fields, or else from its text, each with its source; doubt closes it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from carag.errors import InvalidArgument
from carag.labelling.declared import label_facts
from carag.policy import Profile, bit_names
from carag.profiles.circulars.facts import CLASSES, READ, circular_of
from carag.profiles.circulars.reader import document_of
from carag.readers import ReadDocument

LETTER = """BANKING AUTHORITY OF EREWHON
BAE/2023-24/88
DPSS.POLC.No.7/02.14.003/2023-24

February 12, 2024

All Commercial Banks (excluding Regional Rural Banks)

Dear Sir / Madam,
Small Wallets - Higher Limit

1. The limit is 20,000 crowns.

2. This circular shall come into force with effect from April 1, 2024.

Yours faithfully,
"""
STATED = {"entity_classes": "small_bank", "internal": False, "status": "issued"}
"""Values of the fields that do not take any text."""
VOCABULARY = Profile.open("circulars").vocabulary


def document(text: str = "Text.", **facts: Any) -> Any:
    return document_of(ReadDocument("c/1", text, facts, (), "c.txt", str(facts.get("title", ""))))


def label(text: str = "Text.", **facts: Any) -> tuple[tuple[str, ...], str | None]:
    """The bits of a circular, and the reason of its quarantine."""
    given = label_facts(document(text, **facts).facts, VOCABULARY)
    return bit_names(given.word, VOCABULARY.flags), given.quarantine and given.quarantine.text


def test_a_letter_states_all_of_its_facts_and_where() -> None:
    one = circular_of({}, LETTER)
    assert (one.number, one.reference) == ("BAE/2023-24/88", "DPSS.POLC.No.7/02.14.003/2023-24")
    assert (one.issued, one.effective) == (date(2024, 2, 12), date(2024, 4, 1))
    assert (one.title, one.issued_by) == ("Small Wallets - Higher Limit", "payments")
    assert one.entity_classes == ("commercial_bank",)
    places = {source.split(":")[0]: source for source in one.sources}
    start, end = map(int, places["number"].rsplit(" ", 1)[1].split("-"))
    assert LETTER[start:end] == "BAE/2023-24/88"


def test_a_field_is_preferred_and_named_as_source() -> None:
    one = circular_of({"title": "Limits", "circular_number": "BAE/2023-24/88"}, LETTER)
    assert (one.title, one.trouble) == ("Limits", [])
    assert "number: field circular_number" in one.sources


@pytest.mark.parametrize(
    "field",
    [{"circular_number": "BAE/2023-24/89"}, {"date": "2024-02-13"}, {"date": "soon"}, {"effective": "soon"}],
)
def test_what_contradicts_the_text_or_is_no_date_is_quarantined_with_the_reason(
    field: dict[str, str],
) -> None:
    _, reason = label(LETTER, **field)
    assert reason is not None
    assert next(iter(field.values())) in reason


def test_a_circular_without_its_day_is_quarantined() -> None:
    _, reason = label("The limit is raised.", title="Limits", meant_for="All Small Finance Banks")
    assert reason is not None
    assert "day of issue" in reason


def test_the_day_of_another_circular_is_not_its_own() -> None:
    assert circular_of({}, "Please refer to circular BAE/2022-23/14 dated June 1, 2022.").issued is None


@pytest.mark.parametrize(
    ("addressees", "classes"),
    [
        ("All Small Finance Banks", {"small_bank"}),
        ("All Commercial Banks (excluding Regional Rural Banks)", {"commercial_bank"}),
        ("All Banks", {"commercial_bank", "small_bank", "co_operative_bank"}),
        ("The Chairpersons/ CEOs of all the Regulated Entities", set(CLASSES)),
        ("All Non-Banking Financial Companies (including Housing Finance Companies)", {"nbfc"}),
        ("All Authorised Dealers in Foreign Exchange", {"authorised_person"}),
        ("All Asset Reconstruction Companies (ARCs)", {"other_entity"}),
        ("All-India Financial Institutions (Exim Bank, NABARD)", {"financial_institution"}),
        ("The Chairman/ Managing Director/ Chief Executive Officer", {"unknown"}),
        ("", {"unknown"}),
    ],
)
def test_addressees_are_classes_and_what_they_exclude_is_none(addressees: str, classes: set[str]) -> None:
    one = circular_of({"date": "2024-02-12", "meant_for": addressees}, "Text.")
    assert set(one.entity_classes) == classes


def test_unknown_addressees_are_a_bit_that_only_those_who_see_all_may_meet() -> None:
    bits, reason = label(date="2024-02-12", title="Limits")
    assert reason is None
    assert "ADDRESSEES_UNKNOWN" in bits
    word = label_facts(document(date="2024-02-12", title="Limits").facts, VOCABULARY).word
    admitting = {cell.role for cell in Profile.open("circulars").table.cells if cell.policy.admits(word)}
    assert admitting == {"compliance"}


@pytest.mark.parametrize(
    ("facts", "bit"),
    [
        ({"title": "Draft Circular - Fees"}, "DRAFT"),
        ({"status": "draft"}, "DRAFT"),
        ({"status": "Withdrawn"}, "WITHDRAWN"),
        ({"internal": True}, "INTERNAL"),
        ({"internal": "yes"}, "INTERNAL"),
        ({"department": "Department of Supervision"}, "SUPERVISION"),
        ({"department_number": "FED.No.3/02.14.003/2023-24"}, "FOREIGN_EXCHANGE"),
    ],
)
def test_a_fact_sets_its_bit(facts: dict[str, Any], bit: str) -> None:
    bits, reason = label(date="2024-02-12", meant_for="All Banks", **facts)
    assert reason is None
    assert bit in bits


@pytest.mark.parametrize(
    "facts", [{"status": "valid"}, {"internal": "perhaps"}, {"entity_classes": "banks"}, {"statsu": "draft"}]
)
def test_an_unreadable_value_or_a_misspelt_field_quarantines(facts: dict[str, Any]) -> None:
    _, reason = label(date="2024-02-12", meant_for="All Banks", **facts)
    assert reason is not None


def test_a_draft_does_nothing_to_others() -> None:
    text = "The circular BAE/2022-23/14 dated June 1, 2022 shall stand withdrawn."
    assert document(text, date="2024-02-12", title="Fees").acts
    assert not document(text, date="2024-02-12", title="Draft Circular - Fees").acts


def test_acts_that_a_field_states_are_those_of_the_circular() -> None:
    one = document(date="2024-02-12", supersedes=["BAE/2022-23/14", "old-id"], title="Fees")
    assert {(act.kind.value, act.name) for act in one.acts} == {
        ("replaces", "number BAE222314"),
        ("replaces", "old-id"),
    }


@pytest.mark.parametrize("facts", [{"supersedes": 7}, {"entities": ["x"]}, {"public_at": 3}])
def test_a_field_of_another_kind_is_refused_with_its_name(facts: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(facts))):
        document(date="2024-02-12", **facts)


@pytest.mark.parametrize("name", sorted(READ))
def test_no_field_that_is_read_is_taken_for_a_slip_of_the_pen(name: str) -> None:
    """Every field that the reader reads works under its name: `issued` is not a misspelt `issued_by`."""
    value = STATED.get(name, "2024-05-02" if {"issued", "date"} & {name} or "effective" in name else "DOR/1")
    assert label(**{"issued": "2024-05-02", name: value})[1] is None


@pytest.mark.parametrize("name", ["issued", "date"])
def test_the_words_for_a_missing_day_of_issue_name_the_fields_that_work(name: str) -> None:
    """Doing what the message says ends the quarantine."""
    missing = label()[1] or ""
    assert f"`{name}`" in missing
    assert label(**{name: "2024-05-02"})[1] is None
