"""Asking about the past is a right that a cell grants and only the host's session or a token can use."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, Refused
from carag.policy import PolicyTable, Session, as_of_minutes, infer
from carag.policy.diff import Direction, compare

TEXT = files("carag").joinpath("profiles/edgar/roles.toml").read_text("utf-8")
SHIPPED = PolicyTable.from_toml(TEXT)
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ALL = ["none", "as_of", "as_of+known_at"]


def table(past: str) -> PolicyTable:
    return PolicyTable.from_toml(
        'schema = 1\n[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\n'
        f'past = "{past}"\nmasks = [{{}}]\n'
    )


def code(found: PolicyTable, **when: object) -> str | None:
    cell = found.cells[0]
    try:
        infer(Session(role=cell.role, purpose=cell.purpose, **when), found, now=NOW)  # type: ignore[arg-type]
    except Refused as refusal:
        return refusal.code
    return None


ages = st.timedeltas(timedelta(days=-400), timedelta(days=9_000))


@given(st.sampled_from(ALL), st.none() | ages, st.none() | ages)
def test_a_past_instant_is_refused_exactly_where_the_cell_does_not_grant_it(
    past: str, as_of: timedelta | None, known_at: timedelta | None
) -> None:
    """An instant that is not earlier than the question needs no right."""
    when = {name: NOW - age for name, age in (("as_of", as_of), ("known_at", known_at)) if age is not None}
    asks = set()
    if "as_of" in when and as_of_minutes(when["as_of"]) < as_of_minutes(NOW):
        asks.add("as_of")
    if "known_at" in when and when["known_at"] < NOW:
        asks.add("known_at")
    granted = {"none": set(), "as_of": {"as_of"}, "as_of+known_at": {"as_of", "known_at"}}[past]
    assert ("PAST_NOT_GRANTED" if asks - granted else None) == code(table(past), **when)


@pytest.mark.parametrize("past", ALL)
def test_today_is_not_the_past(past: str) -> None:
    """Neither the end of the current day nor the minute of the question."""
    for as_of in (None, date(2026, 11, 23), NOW, NOW + timedelta(seconds=59)):
        assert code(table(past), as_of=as_of) is None
    assert code(table("none"), as_of=date(2026, 11, 22)) == "PAST_NOT_GRANTED"


def test_every_cell_may_ask_of_a_day_and_three_of_an_instant_of_knowledge() -> None:
    """Labels withdrawn since then are visible only to supervisors and auditors."""
    rights = {(cell.role, cell.purpose): cell.past for cell in SHIPPED.cells}
    assert {name for name, past in rights.items() if past == "as_of+known_at"} == {
        ("compliance", "surveil"),
        ("counsel", "surveil"),
        ("auditor", "assure"),
    }
    assert set(rights.values()) == {"as_of", "as_of+known_at"}


def test_a_table_that_does_not_state_the_past_grants_nothing() -> None:
    """A table from before the right is refused, and the error names what it lacks."""
    unstated = "".join(line for line in TEXT.splitlines(keepends=True) if not line.startswith("past ="))
    for text in (unstated, unstated.replace("schema = 1", "schema = 2")):
        with pytest.raises(InvalidArgument, match="past"):
            PolicyTable.from_toml(text)


def test_more_of_the_past_is_a_wider_table() -> None:
    """A change of the right is reported with its direction."""
    for old, new, direction in (("none", "as_of", "WIDENS"), ("as_of+known_at", "as_of", "TIGHTENS")):
        (change,) = compare(table(old), table(new))
        assert (Direction[direction], (f"past: {old} is now {new}",)) == (change.direction, change.notes)
