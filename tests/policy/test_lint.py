"""The linter finds likely mistakes in a valid table; comparing tables tells exactly what a change admits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.policy import Mask, PolicyBit, PolicyTable
from carag.policy.diff import Direction, compare, covers
from carag.policy.lint import lint, users_of

SHIPPED = PolicyTable.shipped()


def cell(masks: str, role: str = "r", purpose: str = "p", more: str = "") -> str:
    return (
        f'[[cell]]\nrole = "{role}"\npurpose = "{purpose}"\nregulation = "x"\nmay_know_existence = false\n'
        f'past = "as_of"\n{more}\nmasks = [{masks}]\n'
    )


def table(*cells: str, top: str = "") -> PolicyTable:
    return PolicyTable.from_toml("schema = 1\n" + top + "\n" + "".join(cells))


def codes(found: PolicyTable) -> list[tuple[str, str]]:
    return [(one.code, one.where) for one in lint(found) if one.code != "UNREACHABLE_BIT"]


def test_the_shipped_table_is_clean() -> None:
    """Every bit is tested by something."""
    assert lint(SHIPPED) == ()
    assert all(users_of(bit, SHIPPED) for bit in PolicyBit)


def test_a_bit_that_nothing_tests_is_found() -> None:
    """Sessions and intents test their bits whatever the table says."""
    unreachable = {one.where for one in lint(table(cell("{}"))) if one.code == "UNREACHABLE_BIT"}
    assert {"OFFERING", "SHELL", "EGC", "CONF_TREAT"} <= unreachable
    assert not {"J_EU", "MATERIAL", "FPI", "PD_COMP", "FS_AUDITED"} & unreachable
    used = {
        one.where for one in lint(table(cell('{ forbidden = ["SHELL"] }'))) if one.code == "UNREACHABLE_BIT"
    }
    assert unreachable - used == {"SHELL"}


def test_a_role_or_purpose_without_a_cell_is_found() -> None:
    """Such a role is declared and refused everything."""
    top = 'roles = ["r", "s"]\npurposes = ["p", "q"]'
    assert codes(table(cell("{}"), top=top)) == [("UNUSED_ROLE", "s"), ("UNUSED_PURPOSE", "q")]


ALL_PLACES = '"J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"'


@pytest.mark.parametrize(
    ("masks", "found"),
    [
        (f"{{ forbidden = [{ALL_PLACES}] }}", "ALWAYS_EMPTY"),
        ('{ required = ["SUPERSEDED"], forbidden = ["AMENDED"] }', "ALWAYS_EMPTY"),
        (f"{{ forbidden = [{ALL_PLACES}] }}, {{}}", "EMPTY_MASK"),
        ("{}, {}", "SUPERFLUOUS_MASK"),
        ('{ forbidden = ["EGC"] }, { forbidden = ["EGC", "SHELL"] }', "SUPERFLUOUS_MASK"),
        ('{ required = ["EGC"] }, { forbidden = ["EGC"] }, { required = ["SHELL"] }', "SUPERFLUOUS_MASK"),
        ('{ required = ["EGC"] }, { forbidden = ["EGC"] }', None),
        ('{ forbidden = ["EGC"] }, { forbidden = ["SHELL"] }', None),
        ('{ required = ["SUPERSEDED"] }', None),
    ],
)
def test_masks_that_do_nothing_are_found_once(masks: str, found: str | None) -> None:
    """Masks that no labelled passage can meet, and masks whose words the others already admit."""
    assert codes(table(cell(masks))) == ([(found, "r/p")] if found else [])


def test_a_conditional_mask_does_not_make_a_plain_one_superfluous() -> None:
    """A conditional mask does not always admit."""
    masks = '{ forbidden = ["OFFERING"] }, { required = ["OFFERING"], when = "not_participating" }'
    assert codes(table(cell(masks))) == []


pairs = st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda pair: Mask(pair[0] & ~pair[1], pair[1]))


@given(st.lists(pairs, max_size=6), pairs)
def test_covering_is_what_it_is_over_every_word(masks: list[Mask], part: Mask) -> None:
    """Compared with all words of five bits."""
    words = [1 << 27 | bits for bits in range(32)]
    expected = all(any(mask.admits(word) for mask in masks) for word in words if part.admits(word))
    assert covers(masks, part) == expected


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        (cell("{}"), cell('{ forbidden = ["EGC"] }'), Direction.TIGHTENS),
        (cell('{ forbidden = ["EGC"] }'), cell("{}"), Direction.WIDENS),
        (cell('{ forbidden = ["EGC"] }'), cell('{ forbidden = ["SHELL"] }'), Direction.BOTH),
        (cell("{}"), cell('{ required = ["EGC"] }, { forbidden = ["EGC"] }'), Direction.SAME),
        (cell("{}"), cell("{}", more="personal_data = true"), Direction.WIDENS),
        (cell("{}"), cell("{}", more='allow_list = "mandatory"'), Direction.TIGHTENS),
        (cell("{}"), cell("{}").replace("= false", "= true"), Direction.WIDENS),
        (cell("{}"), cell("{}", more="break_glass = true"), Direction.TIGHTENS),
        (
            cell("{}", more="break_glass = true"),
            cell("{}", more="break_glass = { minutes = 61 }"),
            Direction.WIDENS,
        ),
        (
            cell("{}", more="break_glass = { two_persons = true }"),
            cell("{}", more="break_glass = true"),
            Direction.WIDENS,
        ),
        (cell("{}"), cell("{}").replace('"as_of"', '"as_of+known_at"'), Direction.WIDENS),
        (cell("{}"), cell("{}").replace('"as_of"', '"none"'), Direction.TIGHTENS),
        (
            cell('{ forbidden = ["OFFERING"] }'),
            cell('{ forbidden = ["OFFERING"] }, { required = ["OFFERING"], when = "not_participating" }'),
            Direction.WIDENS,
        ),
        (cell("{}"), cell("{}") + cell("{}", "s"), Direction.WIDENS),
        (cell("{}") + cell("{}", "s"), cell("{}"), Direction.TIGHTENS),
    ],
)
def test_the_direction_of_a_change_is_exact(old: str, new: str, direction: Direction) -> None:
    """It is judged by what is admitted, not by what is written."""
    (change,) = compare(table(old), table(new))
    assert change.direction is direction
    assert change.notes


def test_a_table_equals_itself() -> None:
    """No cell differs."""
    assert compare(SHIPPED, SHIPPED) == ()
