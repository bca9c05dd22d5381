"""Narrowing by metadata: values have one form, all conditions must be met, and malformed ones are refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy import Vocabulary, Where, in_one_form
from carag.policy.shipped import shipped_text

if TYPE_CHECKING:
    from carag.policy import FieldKind

KINDS: dict[str, FieldKind] = {"team": "text", "year": "number", "dated": "date", "final": "boolean"}
years = st.integers(2019, 2026)


def test_nothing_asked_for_narrows_nothing() -> None:
    """None and an empty mapping are not conditions."""
    for given_ in (None, {}):
        where = Where.of(given_, KINDS)
        assert not where
        assert where.admits({})


@given(st.sets(years, min_size=1), years, years, years | st.none())
def test_conditions_read_as_plain_comparisons(
    listed: set[int], low: int, high: int, year: int | None
) -> None:
    """A document without the field meets none."""
    said = {} if year is None else {"year": year}
    assert Where.of({"year": list(listed)}, KINDS).admits(said) == (year in listed)
    for bound, holds in (("gt", int.__gt__), ("gte", int.__ge__), ("lt", int.__lt__), ("lte", int.__le__)):
        assert Where.of({"year": {bound: low}}, KINDS).admits(said) == (year is not None and holds(year, low))
    between = Where.of({"year": {"gte": low, "lt": high}}, KINDS)
    assert between.admits(said) == (year is not None and low <= year < high)


def test_values_or_ranges_alone_are_a_narrowing_and_ranges_of_several_fields_all_hold() -> None:
    """Numbers and dates have ranges; a thousand values may be listed."""
    assert Where.of({"team": "risk"}, KINDS)
    assert Where.of({"year": {"gte": 2024}}, KINDS)
    assert len(Where.of({"year": range(1000)}, KINDS).one_of[0][1]) == 1000
    both = Where.of({"dated": {"lt": date(2025, 5, 1)}, "year": {"gt": 2023}}, KINDS)
    said = {"dated": "2025-04-30", "year": 2024}
    assert both.admits(said)
    assert not both.admits({**said, "dated": "2025-05-01"})
    assert not both.admits({**said, "year": 2023})


@given(st.lists(st.sampled_from(["risk", "treasury"]), min_size=1), years, st.booleans(), st.booleans())
def test_every_further_condition_tightens(teams: list[str], year: int, has_team: bool, final: bool) -> None:
    """Two conditions admit what each of them admits."""
    said: dict[str, Any] = {"year": 2024, "final": final, **({"team": "risk"} if has_team else {})}
    one, other = {"team": teams}, {"year": {"gte": year}, "final": True}
    both = Where.of({**one, **other}, KINDS).admits(said)
    assert both == (Where.of(one, KINDS).admits(said) and Where.of(other, KINDS).admits(said))


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        ("text", ["Treasury", " treasury ", "TREASURY"]),
        ("number", [2024, 2024.0, "2024", " +2024 ", "2024.0"]),
        ("number", [-1.5, "-1.5"]),
        ("date", ["2025-05-01", date(2025, 5, 1), "20250501"]),
        ("boolean", [True, "true", "Yes"]),
        ("boolean", [False, "FALSE", "no"]),
    ],
)
def test_values_that_mean_the_same_have_one_form(kind: FieldKind, same: list[Any]) -> None:
    """Spreadsheets write numbers as text, and people use capitals."""
    forms = [in_one_form("it", value, kind) for value in same]
    assert len({(type(form), form) for form in forms}) == 1
    assert forms == [in_one_form("it", form, kind) for form in forms]


def test_a_number_keeps_its_value() -> None:
    """None of eighteen digits is lost, and no fraction."""
    assert in_one_form("it", "123456789012345678", "number") == 123456789012345678
    assert [in_one_form("it", value, "number") for value in (1.5, "-0.25", 7.0)] == [1.5, -0.25, 7]
    assert in_one_form("it", -(2**63), "number") == -(2**63)
    assert [type(in_one_form("it", sign * 2.0**63, "number")) for sign in (1, -1)] == [float, float]


@pytest.mark.parametrize("kind", ["text", "number", "date", "boolean"])
def test_what_is_not_stated_has_no_form(kind: FieldKind) -> None:
    """An empty cell states nothing."""
    assert [in_one_form("it", value, kind) for value in (None, "", "  ")] == [None] * 3


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [1, True, ["a"], "a" * 1001, "\0"]),
        ("number", [True, "1e3", "twelve", "0x10", "1" * 400, float("nan"), "inf", "१२", [1]]),
        ("number", [10**400, -(10**400), 1 << 63]),
        ("date", ["May 2025", "2025-13-01", 20250501, datetime(2025, 5, 1, tzinfo=UTC)]),
        ("boolean", [1, 0, 1.0, "1", "maybe"]),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: FieldKind, values: list[Any]) -> None:
    """The error names the field and what is wanted."""
    for value in values:
        with pytest.raises(InvalidArgument, match="it"):
            in_one_form("it", value, kind)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("team", "where is 'team'"),
        ([("team", "risk")], "want a mapping of fields to values"),
        ({"taem": "risk"}, "did you mean 'team'"),
        ({3: "risk"}, "where asks for 3"),
        ({"team": None}, "leave the field out"),
        ({"team": ""}, "leave the field out"),
        ({"team": []}, "lists 0 values of team"),
        ({"year": list(range(1001))}, "lists 1001 values of year"),
        ({"year": "recent"}, "year in where is 'recent'; want a finite number"),
        ({"year": [2024, "recent"]}, "year in where is 'recent'; want a finite number"),
        ({"year": {"lt": "recent"}}, "year in where is 'recent'; want a finite number"),
        ({"year": {}}, "nothing as a bound of year"),
        ({"year": {"over": 2}}, "'over' as a bound of year; want one of gt, gte, lt, lte"),
        ({"year": {"gte": None}}, "leave the field out"),
        ({"team": {"gte": "a"}}, "a range for team, which is a text"),
        ({"final": {"gte": True}}, "a range for final, which is a boolean"),
    ],
)
def test_a_malformed_condition_is_refused(where: Any, message: str) -> None:
    """A mistake must not silently narrow to nothing, nor widen."""
    with pytest.raises(InvalidArgument, match=message):
        Where.of(where, KINDS)


def test_a_profile_without_metadata_says_so() -> None:
    """As EDGAR's, for what does not read what every document states."""
    with pytest.raises(InvalidArgument, match="declares no metadata"):
        Where.of({"form": "10-K"}, Vocabulary.shipped().metadata, stated={})


def test_the_text_to_commit_to_is_canonical_and_no_repr_shows_a_value() -> None:
    """Equal conditions give the same text, in any order."""
    where = Where.of({"year": {"lt": 2026, "gte": 2024}, "team": {"B", "a"}}, KINDS)
    again = Where.of({"team": ["a", "b", "a"], "year": {"gte": "2024", "lt": 2026.0}}, KINDS)
    assert where == again
    assert where.text == again.text == '{"team":["a","b"],"year":{"gte":2024,"lt":2026}}'
    assert json.loads(where.text) == {"team": ["a", "b"], "year": {"gte": 2024, "lt": 2026}}
    assert (repr(where), where.fields) == ("Where(team, year)", ("team", "year"))


def test_a_profile_declares_kinds_and_no_others() -> None:
    """At most 64 fields, each of a known kind."""
    text = shipped_text("generic", "profile.toml").partition("[metadata]")[0]
    assert Vocabulary.from_toml(f'{text}\n[metadata]\nteam = "text"\n').metadata == {"team": "text"}
    many = "\n".join(f'f{number} = "text"' for number in range(65))
    for wrong in ('team = "list"', 'Team = "text"', 'team = ["text"]', many):
        with pytest.raises(InvalidArgument, match="metadata"):
            Vocabulary.from_toml(f"{text}\n[metadata]\n{wrong}\n")
