"""Audiences have numbers in a store: those that admit a session are found, and none is lost or taken for everybody."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import CaragError, CorruptFile, InvalidArgument
from carag.policy import NO_LISTS, Audience, Identity
from carag.policy.audience import MAX_AUDIENCE
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from carag.store._audiences import Audiences, number_of
from carag.store.store import CorpusStore
from tests.sizes import SIZE, examples
from tests.store.filings import a_filing, contents, some_chunks, some_vectors

if TYPE_CHECKING:
    from pathlib import Path

PRINCIPALS = ["user:ana", "user:bo", "group:a", "group:b", "group:c"]
some = st.frozensets(st.sampled_from(PRINCIPALS))
audiences = st.builds(Audience, st.none() | some, some)
ONE, OTHER = Audience(["group:a"], ["user:bo"]), Audience(deny=["group:c"])


def share(store: CorpusStore, *several: Audience) -> list[int]:
    """Store a document of one passage for each audience; return the numbers."""
    for n, one in enumerate(several):
        lists = {"audience": {"allow": one.allow, "deny": one.deny}} if one else {}
        filing = a_filing(f"d{n}")
        store.put(replace(filing, facts={**filing.facts, **lists}), some_chunks("text"), some_vectors(1))
    return store.labels.of(store.labels.open()[-len(several) :]).audiences.tolist()  # type: ignore[no-any-return]


def admitted(store: CorpusStore, identity: Identity) -> tuple[int, ...]:
    with store._reading() as sql:
        return Audiences(store.path).admitted(sql, identity).numbers


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(audiences, max_size=6), max_size=4), some, some, some)
def test_a_session_belongs_to_the_audiences_that_admit_it(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[Audience]],
    kept: frozenset[str],
    stated: frozenset[str],
    groups: frozenset[str],
) -> None:
    """Whenever they came; equal ones have one number, and everybody has 0."""
    identity = Identity(kept & stated, stated, groups)
    numbers: dict[Audience, int] = {NO_LISTS: 0}
    with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db") as store, store._reading() as sql:
        found = Audiences(store.path)
        for batch in batches:
            for one in batch:
                assert numbers.setdefault(one, number_of(sql, one)) == number_of(sql, one)
            wanted = sorted(number for one, number in numbers.items() if one and identity.admits(one))
            assert [*found.admitted(sql, identity).numbers] == wanted
    assert sorted(numbers.values()) == [*range(len(numbers))]


def test_thousands_of_audiences_are_told_apart_by_principal(store: CorpusStore) -> None:
    count = 10_000 if SIZE == "full" else 1000
    with store._reading() as sql:
        for n in range(count):
            number_of(sql, Audience([f"group:g{n % 300}", f"user:u{n}"], [f"user:u{n + 1}"]))
    everyone = frozenset(f"group:g{n}" for n in range(300))
    assert admitted(store, Identity(everyone, everyone)) == (*range(1, count + 1),)
    one = everyone | {"user:u7"}
    assert admitted(store, Identity(one, one)) == tuple(n for n in range(1, count + 1) if n != 7)
    assert admitted(store, Identity(frozenset({"user:u7"}), one)) == (8,)


def test_what_is_stored_comes_back_with_its_audience(store: CorpusStore) -> None:
    """By passage and by label, open or past; the number stands in the labels of an index."""
    assert share(store, NO_LISTS, ONE, ONE, OTHER) == [0, 1, 1, 2]
    expected = [NO_LISTS, ONE, ONE, OTHER]
    assert [one.audience for one in store.chunks([0, 1, 2, 3])] == expected
    assert [one.audience for one in store.labels.as_of([0, 1, 2, 3], 2000)] == expected
    _, beside = store.chunks_and_labels([0], [1, 3], 2000, closed_by=None, known_at=store.known())
    assert (beside[1].audience, beside[3].audience) == (ONE, OTHER)
    assert [store.labels.history(f"d{n}:00000")[0].audience for n in range(4)] == expected
    texts = ["", ONE.text, ONE.text, OTHER.text]
    assert [row[5] for row in store.labels.snapshot()] == texts
    assert [row[6] for row in store.labels.changes(-1, store.known())] == texts


def test_a_principal_has_the_spelling_in_which_it_came_first(store: CorpusStore) -> None:
    """Whether a document or an import of groups named it; nothing of the other document is stored."""
    share(store, Audience(["user:ana"]))
    store.groups.import_(GroupImport([GroupStatement("group:Treasury", {"user:ana": ALWAYS})]))
    was = contents(store)
    for wrong, known in (("user:Ana", "user:ana"), ("group:treasury", "group:Treasury")):
        with pytest.raises(InvalidArgument, match=f"'{wrong}' is known by another spelling, '{known}'"):
            share(store, Audience(deny=[wrong]))
    assert contents(store) == was


def test_no_number_is_given_beyond_the_last(store: CorpusStore) -> None:
    """The store then says what to do, and stores nothing."""
    with store._writing() as sql:
        sql.execute("INSERT INTO audiences VALUES (?, ?)", (MAX_AUDIENCE, ONE.text))
    was = contents(store)
    with pytest.raises(CaragError, match="no numbers left for audiences"):
        share(store, OTHER)
    assert contents(store) == was
    with pytest.raises(CorruptFile, match="are lost"):  # and no room is made for all between
        admitted(store, Identity(frozenset({"user:ana"}), frozenset({"user:ana"})))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audiences SET stated = '{}'",
        "UPDATE audiences SET stated = ''",
        'UPDATE audiences SET stated = \'{"allow":null,"deny":[]}\'',
        'UPDATE audiences SET stated = \'{"allow":["ana"],"deny":[]}\'',
        "DELETE FROM audiences",
    ],
)
def test_an_audience_that_was_lost_or_altered_is_not_taken_for_everybody(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "corpus.db"
    with CorpusStore.open(path) as store:
        share(store, ONE)
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute(statement)
    with CorpusStore.open(path) as store:
        for reading in (
            lambda: store.chunk("d0:00000"),
            lambda: store.labels.as_of([0], 2000),
            lambda: store.labels.history("d0:00000"),
        ):
            with pytest.raises(CorruptFile, match="restore a backup"):
                reading()
        if statement.startswith("UPDATE"):
            with pytest.raises(CorruptFile, match="restore a backup"):
                admitted(store, Identity(frozenset({"user:x"}), frozenset({"user:x"})))
        else:
            assert admitted(store, Identity(frozenset({"user:x"}), frozenset({"user:x"}))) == ()
