"""The clinical table, compared with a plain reading of it, on every note that a hospital could write."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

from carag.labelling.declared import label_facts
from carag.policy import Policy, PolicyTable, Profile
from carag.policy.shipped import shipped_text
from tests.profiles.clinical_reading import CELLS, LISTED, PROFILE, may_use

if TYPE_CHECKING:
    from collections.abc import Iterator


def possible_notes() -> Iterator[dict[str, str]]:
    """All values that the rules tell apart, and some that they must not."""
    (kinds, sensitivities) = (required.one_of for required in PROFILE.vocabulary.required)
    yes = ("true", "false", "")
    optional = {
        "psychotherapy_note": yes[:2],
        "department": ("psychiatry", "cardiology"),
        "part_two": yes[:2],
        "part_two_consent": yes[:2],
        "self_paid": yes[:2],
        "access_denied": yes[:2],
        "research": ("authorized", "waived", "refused"),
        "deidentified": ("safe harbor", "limited data set"),
    }
    for values in product(kinds, sensitivities, *optional.values()):
        yield dict(zip(("note_type", "sensitivity", *optional), values, strict=True))


@pytest.fixture(scope="module")
def labelled() -> list[tuple[dict[str, str], int]]:
    notes = list(possible_notes())
    labels = [label_facts(note, PROFILE.vocabulary) for note in notes]
    assert not [label.quarantine for label in labels if label.quarantine]
    return [(note, label.word) for note, label in zip(notes, labels, strict=True)]


def agrees(cell: str, policy: Policy, labelled: list[tuple[dict[str, str], int]]) -> bool:
    return all(policy.admits(word) == may_use(cell, note) for note, word in labelled)


def policy_of(table: PolicyTable, cell: str) -> Policy:
    role, purpose = cell.split("/")
    found = table.get(role, purpose)
    assert found is not None
    return found.policy


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_admits_what_a_plain_reading_admits(
    cell: str, labelled: list[tuple[dict[str, str], int]]
) -> None:
    """Of ten thousand notes, all that can be stated."""
    assert agrees(cell, policy_of(PROFILE.table, cell), labelled)


@pytest.mark.parametrize("cell", CELLS)
def test_no_bit_of_the_table_is_idle(cell: str, labelled: list[tuple[dict[str, str], int]]) -> None:
    """If any bit is removed from any mask of a cell, the comparison fails."""
    masks = policy_of(PROFILE.table, cell).masks
    changed = 0
    for at, mask in enumerate(masks):
        for bit in PROFILE.vocabulary.flags:
            if not (mask.required | mask.forbidden) & bit.value:
                continue
            other = type(mask)(
                mask.required & ~bit.value, mask.forbidden & ~bit.value, flags=PROFILE.vocabulary.flags
            )
            assert not agrees(cell, Policy(*masks[:at], other, *masks[at + 1 :]), labelled), (at, bit)
            changed += 1
    assert changed


def admitted(word: int, policies: list[Policy]) -> list[bool]:
    return [policy.admits(word) for policy in policies]


def test_each_rule_is_needed(labelled: list[tuple[dict[str, str], int]]) -> None:
    """Without it, some cell finds other notes."""
    *_, last = rules = shipped_text("clinical", "profile.toml").split("[[rule]]")
    assert "DEIDENTIFIED" in last
    policies = [policy_of(PROFILE.table, cell) for cell in CELLS]
    notes = Random(1).sample(labelled, len(labelled))  # noqa: S311 - so that a note that differs comes soon
    for at in range(1, len(rules)):
        text = "[[rule]]".join([*rules[:at], *rules[at + 1 :]])
        fewer = Profile.from_texts(text, shipped_text("clinical", "roles.toml"))
        assert len(fewer.vocabulary.rules) == len(PROFILE.vocabulary.rules) - 1
        assert any(
            admitted(label_facts(note, fewer.vocabulary).word, policies) != admitted(word, policies)
            for note, word in notes
        ), rules[at]


def test_each_kind_of_note_has_a_bit_that_says_so(labelled: list[tuple[dict[str, str], int]]) -> None:
    """So the masks that the profile calls impossible match no note."""
    assert not any(mask.admits(word) for mask in PROFILE.vocabulary.impossible for _, word in labelled)


def test_the_cells_that_ask_for_patients_are_those_that_treat_and_the_patients_own() -> None:
    """All other cells see kinds of notes, whatever patient they are about."""
    assert [f"{c.role}/{c.purpose}" for c in PROFILE.table.cells if c.allow_list == "mandatory"] == LISTED


def test_only_the_privacy_officer_may_know_what_is_hidden() -> None:
    """A list of hidden notes names patients outside the treatment relationship."""
    assert [cell.role for cell in PROFILE.table.cells if cell.may_know_existence] == ["privacy_officer"]
