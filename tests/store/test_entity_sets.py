"""What passages are about: CIKs and metadata under numbers, and lists and narrowings put into those numbers."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CaragError, CorruptFile
from carag.policy import MAX_ENTITY, MAX_LISTED, FieldKind, Mask, Policy, Value, Where
from carag.profiles.edgar.facts.filing import Filing
from carag.profiles.edgar.reading.dataset import filing_of_row
from carag.profiles.edgar.reading.sidecar_headers import with_header
from carag.store._entity_sets import FIRST_SET, EntitySets, about, number_of
from carag.store._schema import TABLES

# Few CIKs, so that sets and lists meet; EDGAR's, one beyond 32 bits, and the edges of what numbers them.
CIKS = [0, 1, 2, 3, 320_193, FIRST_SET - 1, FIRST_SET, FIRST_SET + 1, MAX_ENTITY, 9_990_000_101, MAX_LISTED]
ciks_sets = st.frozensets(st.sampled_from(CIKS), max_size=3)
KINDS: dict[str, FieldKind] = {"team": "text", "year": "number"}
stated_metadata = st.fixed_dictionaries(
    {}, optional={"team": st.sampled_from(["risk", "treasury"]), "year": st.integers(2020, 2024)}
)
abouts = st.tuples(ciks_sets, stated_metadata.map(lambda one: tuple(sorted(one.items()))))
wheres = st.fixed_dictionaries(
    {},
    optional={
        "team": st.lists(st.sampled_from(["risk", "treasury", "audit"]), min_size=1, max_size=2),
        "year": st.fixed_dictionaries({"gte": st.integers(2019, 2024)}),
    },
)
lists = st.frozensets(st.sampled_from(CIKS), max_size=5)


def a_database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in TABLES:
        connection.execute(statement)
    return connection


About = tuple[frozenset[int], tuple[tuple[str, Value], ...]]


def numbered(sql: sqlite3.Connection, one: About) -> int:
    return number_of(sql, one[0], dict(one[1]))


def stated(sql: sqlite3.Connection, number: int) -> tuple[str | None, str | None]:
    row = sql.execute("SELECT ciks, metadata FROM entity_sets WHERE number = ?", (number,)).fetchone()
    return row or (None, None)


@given(st.lists(abouts, max_size=12))
def test_every_set_has_one_number_for_good(sets: list[About]) -> None:
    """And gives everything back: an empty set stays empty, and one CIK of EDGAR's is its own number."""
    sql = a_database()
    numbers = {one: numbered(sql, one) for one in sets}
    assert numbers == {one: numbered(sql, one) for one in reversed(sets)}
    for (ciks, metadata), number in numbers.items():
        assert 0 <= number <= MAX_ENTITY
        again = about(number, *stated(sql, number))
        assert (set(again.ciks) or {0}) == (set(ciks) or {0})
        assert again.metadata == dict(metadata)
        if len(ciks) == 1 and max(ciks) < FIRST_SET and not metadata:
            assert {number} == ciks
    # With metadata, an unnamed party and no party have two numbers; every list reads both alike.
    told_apart = {(ciks if metadata else ciks or frozenset({0}), metadata) for ciks, metadata in sets}
    assert len(told_apart) == len(set(numbers.values()))


@given(
    st.lists(st.lists(abouts, max_size=6), min_size=1, max_size=3),
    st.none() | lists,
    lists,
    st.booleans(),
    wheres,
)
def test_lists_and_narrowings_in_numbers_read_as_they_stand(
    portions: list[list[About]],
    allowed: frozenset[int] | None,
    denied: frozenset[int],
    any_is_enough: bool,
    wanted: dict[str, Any],
) -> None:
    """As sets keep coming in: one test of one number says what a plain reading says of CIKs and metadata."""
    sql, known = a_database(), EntitySets(Path("corpus.db"))
    policy = Policy(Mask(), allow_entities=allowed, deny_entities=denied, allow_if_any=any_is_enough)
    where = Where.of(wanted, KINDS)
    seen: list[About] = []
    for portion in portions:
        numbers = {one: numbered(sql, one) for one in [*seen, *portion]}
        seen += portion
        expanded = known.expanded(sql, policy, where)
        for (ciks, metadata), number in numbers.items():
            whom, said = ciks or {0}, dict(metadata)
            fits = allowed is None or (whom & allowed if any_is_enough else whom <= allowed)
            is_within = said.get("team") in wanted.get("team", [said.get("team")]) and (
                "year" not in wanted or said.get("year", 0) >= wanted["year"]["gte"]
            )
            admitted = bool(fits) and not whom & denied and is_within
            assert expanded.admits_entity(number) == admitted, (ciks, metadata, number)
        listed = (*(expanded.allow_entities or ()), *expanded.deny_entities)
        assert all(number <= MAX_ENTITY for number in listed)  # what an index can be asked


def test_a_list_of_a_cik_is_not_the_number_of_a_set() -> None:
    """2,147,483,648 is the first set's number, and might be somebody's CIK: neither is taken for the other."""
    sql, known = a_database(), EntitySets(Path("corpus.db"))
    of_two, of_one = number_of(sql, (1, 2)), number_of(sql, (FIRST_SET,))
    assert (of_two, of_one) == (FIRST_SET, FIRST_SET + 1)
    denied = known.expanded(sql, Policy(Mask(), deny_entities=[FIRST_SET]))
    assert [denied.admits_entity(one) for one in (of_two, of_one)] == [True, False]


def test_a_policy_without_lists_stays_as_it_is() -> None:
    """Nothing is read for it."""
    policy = Policy(Mask(1, 2))
    assert EntitySets(Path("corpus.db")).expanded(a_database(), policy) is policy


def test_numbers_run_out_loudly() -> None:
    """No number is used twice, and none that an index cannot hold."""
    sql = a_database()
    sql.execute("INSERT INTO entity_sets VALUES (?, '[5, 6]', '{}')", (MAX_ENTITY,))
    assert number_of(sql, (5, 6)) == MAX_ENTITY
    with pytest.raises(CaragError, match="no numbers left"):
        number_of(sql, (7, 8))


@pytest.mark.parametrize(
    ("ciks", "metadata"),
    [("[]", "{}"), ("no JSON", "{}"), ('["1", "2"]', "{}"), ("[1,", "{}"), ("[1]", "[]"), ("[1]", "{")],
)
def test_a_set_that_was_changed_outside_is_refused(ciks: str, metadata: str) -> None:
    """Before any list is read with it."""
    sql = a_database()
    sql.execute("INSERT INTO entity_sets VALUES (?, ?, ?)", (FIRST_SET, ciks, metadata))
    with pytest.raises(CorruptFile, match=r"corpus\.db"):
        EntitySets(Path("corpus.db")).expanded(sql, Policy(Mask(), deny_entities=[1]))
    with pytest.raises(ValueError, match="lost"):
        about(FIRST_SET, None, None)


ROW = {"accession": "0009999999-24-000007", "form": "4", "text": "x", "cik": 7}


@pytest.mark.parametrize(
    ("more", "whom"),
    [
        ({}, (7,)),
        ({"n_parties": 1, "roles": ["FILER"]}, (7,)),
        ({"n_parties": 2, "roles": ["FILER"]}, (0, 7)),
        ({"roles": ["ISSUER", "REPORTING-OWNER"]}, (0, 7)),
        ({"cik": None, "n_parties": 2}, (0,)),
        ({"cik": None}, ()),
    ],
)
def test_a_row_that_counts_more_parties_than_it_names_is_about_somebody_unstated(
    more: dict[str, object], whom: tuple[int, ...]
) -> None:
    """The unstated party may be on a list."""
    assert filing_of_row({**ROW, **more}).subjects == whom


@pytest.mark.parametrize("count", [-1, 10_001, "two"])
def test_a_count_of_parties_that_no_filing_has_is_refused(count: object) -> None:
    """EDGAR's filings have hundreds at the most."""
    with pytest.raises(CorruptFile, match="n_parties"):
        filing_of_row({**ROW, "n_parties": count})


@pytest.mark.parametrize(
    ("counted", "header", "whom"),
    [
        (2, (7, 9), (7, 9)),
        (0, (7, 9), (7, 9)),
        (3, (7, 9), (0, 7, 9)),  # a header that was cut off
        (0, (9,), (7, 9)),
        (0, (7, 0), (0, 7)),
        (2, (7, 7), (7,)),  # one company in two blocks
        (0, (), (7,)),
    ],
)
def test_a_header_beside_a_row_names_whom_the_row_counts(
    counted: int, header: tuple[int, ...], whom: tuple[int, ...]
) -> None:
    """And what it was cut off before stays unstated."""
    row = filing_of_row({**ROW, "n_parties": counted})
    stated_there = Filing(accession_number="a", form="4", ciks=tuple(filter(None, header)), parties=header)
    assert with_header(row, stated_there).subjects == whom
