"""The past is a right: a cell states it, the host's session or a token uses it, and nothing else does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import Refused
from carag.policy import PolicyTable, Session, as_of_minutes, infer
from carag.policy.compare import Direction, compare
from carag.policy.lint import lint

TEXT = files("carag.policy").joinpath("roles.toml").read_text("utf-8")
SHIPPED = PolicyTable.from_toml(TEXT)
FIRST_SCHEMA = PolicyTable.from_toml(
    "".join(line for line in TEXT.splitlines(keepends=True) if not line.startswith("past =")).replace(
        "schema = 2", "schema = 1"
    )
)
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ALL = ["none", "as_of", "as_of+known_at"]


def table(past: str) -> PolicyTable:
    return PolicyTable.from_toml(
        'schema = 2\n[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\n'
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
    """What is not earlier than the question asks nothing of the past, and is open to everybody."""
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
    """The end of a day that is not over, and the minute of the question."""
    for as_of in (None, date(2026, 11, 23), NOW, NOW + timedelta(seconds=59)):
        assert code(table(past), as_of=as_of) is None
    assert code(table("none"), as_of=date(2026, 11, 22)) == "PAST_NOT_GRANTED"


def test_every_cell_may_ask_of_a_day_and_three_of_an_instant_of_knowledge() -> None:
    """Labels that were withdrawn since come back to those alone who supervise or audit."""
    rights = {(cell.role, cell.purpose): cell.past for cell in SHIPPED.cells}
    assert {name for name, past in rights.items() if past == "as_of+known_at"} == {
        ("compliance", "surveil"),
        ("counsel", "surveil"),
        ("auditor", "assure"),
    }
    assert set(rights.values()) == {"as_of", "as_of+known_at"}


def test_a_table_from_before_the_right_is_read_as_it_was_meant() -> None:
    """Records name it and are judged by it; the linter tells that it says nothing, and the shipped one is tighter."""
    assert {cell.past for cell in FIRST_SCHEMA.cells} == {"as_of+known_at"}
    assert [one.code for one in lint(FIRST_SCHEMA)] == ["UNSTATED_PAST"]
    changes = compare(FIRST_SCHEMA, SHIPPED)
    assert {change.direction for change in changes} == {Direction.TIGHTENS}
    assert {change.notes for change in changes} == {("past: as_of+known_at is now as_of",)}
    assert len(changes) == len(SHIPPED.cells) - 3
