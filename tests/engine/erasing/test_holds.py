"""A document that is held, or must still be kept, is not erased; the refusal is on record and changes nothing."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Document, Engine
from carag.audit import Basis, Denial, DocumentErasure, Hold, HoldScope, place_hold, release_hold
from carag.errors import InvalidArgument, Refused
from tests.engine.documents import Clock, Counting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = {"actor": "officer", "approver": "chief"}
TEAMS, YEARS = ("desk", "legal", ""), (2023, 2025, "unknown")
"""The empty team is not stated, and an unknown year cannot be read, so that the document is quarantined."""
WORDS = ("loan", "Ana Ruiz", "canteen")


def memo(number: int, **changes: Any) -> Document:
    return Document(
        **{
            "id": f"memo/{number}",
            "text": f"Memo {number}.",
            "facts": {"classification": "public"},
            **changes,
        }
    )


def made(number: int) -> Document:
    """One of 36 documents, each with its own combination of what holds can name."""
    team, year, word = TEAMS[number % 3], YEARS[number // 3 % 3], WORDS[number // 9 % 3]
    text = (
        f"A note.\n\n{'x' * 1490}\n\n{word.upper()} stands at the end of it."
        if number % 2
        else f"On {word}: none."
    )
    metadata = {"department": team, "year": year}
    return memo(number, text=text, metadata=metadata, entities=[number % 4] if number % 5 else [])


def erase(engine: Engine, *ids: str, basis: str = "GDPR_17_1_D") -> object:
    return engine.erase(ids, basis=basis, by="officer", approver="chief")


ALL = range(36)
IDS = [made(number).id for number in ALL]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine.open(tmp_path_factory.mktemp("s"), profile="generic", embedder=Counting()) as engine:
        engine.add(map(made, ALL[::2]))
        yield engine


def held(engine: Engine, **given: Any) -> set[int]:
    """Place a hold, add and find what it covers, and release it again."""
    placed = engine.erasures.holds.place("M-1", by="counsel", **given).seq
    assert dict.fromkeys(engine.erasures.holds.on(IDS), (placed,)) == engine.erasures.holds.on(IDS)
    found = {IDS.index(one) for one in engine.erasures.holds.on(IDS)}
    release_hold(engine.log, placed, **PEOPLE)
    assert not engine.erasures.holds.on(IDS)
    return found


@given(st.sets(st.sampled_from(ALL[::2]), min_size=1))
def test_a_hold_on_ids_covers_these(engine: Engine, numbers: set[int]) -> None:
    assert held(engine, ids=[IDS[one] for one in numbers]) == numbers


@given(st.sets(st.sampled_from(range(len(WORDS))), min_size=1))
def test_a_hold_on_words_covers_what_has_one_of_them(engine: Engine, words: set[int]) -> None:
    """In any case, also in the last passage of several."""
    expected = {one for one in ALL[::2] if one // 9 % 3 in words}
    assert held(engine, words=[WORDS[one].casefold() for one in words]) == expected


@given(
    st.none() | st.integers(0, 4),
    st.none() | st.sets(st.sampled_from(TEAMS[:2]), min_size=1),
    st.none() | st.integers(2022, 2026),
)
def test_a_hold_on_entity_and_metadata_covers_what_states_them(
    engine: Engine, entity: int | None, teams: set[str] | None, since: int | None
) -> None:
    """And what does not let it be told: a year that cannot be read."""
    where: dict[str, Any] = {} if teams is None else {"department": [one.upper() for one in teams]}
    where |= {} if since is None else {"year": {"gte": since}}
    if entity is None and not where:
        return
    expected = {
        one
        for one in ALL[::2]
        if YEARS[one // 3 % 3] == "unknown"
        or (
            (entity is None or (one % 5 and one % 4 == entity))
            and (teams is None or TEAMS[one % 3] in teams)
            and (since is None or int(YEARS[one // 3 % 3]) >= since)
        )
    }
    assert held(engine, entity=entity, where=where) == expected


def test_what_is_added_later_is_held_by_entity_and_metadata_alone(tmp_path: Path) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([memo(1, text="A loan.", entities=[7], metadata={"department": "desk"})])
        seqs = [
            engine.erasures.holds.place("M-1", **one).seq
            for one in ({"words": ["loan"]}, {"entity": 7}, {"where": {"department": "desk"}})
        ]
        engine.add([memo(2, text="A loan.", entities=[7, 9], metadata={"department": "desk"})])
        assert engine.erasures.holds.on(["memo/1", "memo/2"]) == {"memo/1": (*seqs,), "memo/2": (*seqs[1:],)}


def test_filings_are_held_by_company(small_corpus: Path, tmp_path: Path) -> None:
    """By what their passages are about, since a filing states no entities by itself."""
    first, second = (
        small_corpus / f"{name}.txt" for name in ("9990000102-24-000005", "0000002488-23-000047")
    )
    with Engine.open(tmp_path, embedder="wordllama") as engine:
        for one in (first, second):
            engine.ingest(one)
        companies = [engine._collection.store.chunk(f"{one.stem}:00000").subjects for one in (first, second)]
        assert not {*companies[0]} & {*companies[1]}
        engine.erasures.holds.place("M-1", entity=companies[0][0])
        assert [*engine.erasures.holds.on([first.stem, second.stem])] == [first.stem]


def test_an_earlier_version_keeps_its_document_held(tmp_path: Path) -> None:
    """A new version that no longer states the entity, and a removal, release nothing."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([memo(1, entities=[7], metadata={"department": "desk"})])
        engine.erasures.holds.place("M-1", entity=7)
        engine.add([memo(1, text="Another text.")])
        assert engine.erasures.holds.on(["memo/1"])
        engine.remove(["memo/1"])
        assert engine.erasures.holds.on(["memo/1"])


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("scope", ["ids", "all"])
@pytest.mark.parametrize("basis", list(Basis))
def test_a_held_document_is_not_erased_whatever_the_basis(
    tmp_path: Path, scope: str, basis: str, *, reopened: bool
) -> None:
    """Nor are others beside it; once it is released by two people, it is. Reopened, as if killed after the record."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add(map(memo, range(3)))
        if scope == "all":
            placed = place_hold(engine.log, "M-1", actor="counsel").seq
        else:
            placed = engine.erasures.holds.place("M-1", by="counsel", ids=["memo/1"]).seq
        if reopened:
            engine.log.private.release(placed)
            with engine.log.private._writing() as db:
                db.execute("UPDATE state SET settled = 0")
    with Engine.open(tmp_path, embedder=Counting()) as engine:
        others = {"memo/2"} if scope == "all" else set[str]()
        assert {*engine.erasures.holds.on(["memo/1", "memo/2"])} == {"memo/1"} | others
        size, root = engine.log.size, engine._collection.state.root
        with pytest.raises(Refused, match=f"placed by record {placed}") as refused:
            erase(engine, "memo/0", "memo/1", basis=basis)
        assert refused.value.code == "LEGAL_HOLD"
        events = [engine.log.record(seq).event for seq in range(size, engine.log.size)]
        assert [(type(one), getattr(one, "why", None)) for one in events] == [(Denial, "LEGAL_HOLD")]
        assert engine._collection.state.root == root
        release_hold(engine.log, placed, **PEOPLE)
        erase(engine, "memo/0", "memo/1", basis=basis)
    with Engine.open(tmp_path, embedder=Counting()) as engine:
        assert not engine._collection.store.documents.content_hashes(["memo/0", "memo/1"])


def test_a_hold_on_documents_holds_no_value(tmp_path: Path) -> None:
    """The record names none of them: it commits to the person and to what is held."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([memo(1)])
        seq = engine.erasures.holds.place("M-1", by="counsel", ids=["memo/1"]).seq
        event = engine.log.record(seq).event
        assert isinstance(event, Hold)
        assert (event.scope, event.first, event.last) == (HoldScope.DOCUMENTS, None, None)
        opened = engine.log.private.openings(seq)
        assert {name: one.value for name, one in opened.items()} == {
            "actor": "counsel",
            "targets": '{"ids": ["memo/1"]}',
        }
        assert engine.log.private.holds_on([*engine.log.private.of_record(seq)]) == []
        with pytest.raises(InvalidArgument, match="cannot approve"):
            release_hold(engine.log, seq, actor="officer", approver="Officer")
        assert engine.erasures.holds.on(["memo/1"])


def test_a_hold_whose_documents_cannot_be_told_holds_all(tmp_path: Path) -> None:
    """Its sealed values are lost, or a field that it names is no longer declared."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add(map(memo, range(2)))
        seq = engine.erasures.holds.place("M-1", ids=["memo/1"]).seq
        with engine.log.private._writing() as db:
            db.execute("DELETE FROM value WHERE seq = ?", (seq,))
        assert {*engine.erasures.holds.on(["memo/0", "memo/1"])} == {"memo/0", "memo/1"}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "give one of the three"),
    "two things": ({"ids": ["memo/1"], "entity": 7}, "give one of the three"),
    "an unknown id": ({"ids": ["memo/1", "memo/9"]}, "'memo/9' is not in the store; nothing was held"),
    "words that nothing has": ({"words": ["zebra"]}, "no document has these words; nothing was held"),
    "words without a letter": ({"words": ["loan", "..."]}, "has no letter or digit"),
    "an unknown field": ({"where": {"color": "red"}}, "where asks for 'color'"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
def test_a_hold_that_would_hold_nothing_is_not_placed(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([memo(1, text="A loan.")])
        size = engine.log.size
        with pytest.raises(InvalidArgument, match=said):
            engine.erasures.holds.place("M-1", **given)
        assert engine.log.size == size


@pytest.mark.parametrize("basis", list(Basis))
def test_what_must_be_kept_is_erased_before_its_time_by_law_alone(tmp_path: Path, basis: Basis) -> None:
    """Until the minute at which its time ends; a new version does not shorten it, and neither does a removal."""
    clock = Clock()
    end = clock.now.date() + timedelta(days=2)
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), clock=clock) as engine:
        engine.add([memo(1, retain_until=end), memo(2)])
        engine.add([memo(1, text="Another text.")])
        engine.remove(["memo/1"])
        size = engine.log.size
        if basis.waits:
            clock.now = clock.now.replace(hour=23, minute=58, second=50) + timedelta(days=2)
            with pytest.raises(Refused, match=f"kept until {end} 23:59 UTC, as with 1 of the 2") as refused:
                erase(engine, "memo/2", "memo/1", basis=basis)
            assert refused.value.code == "RETENTION"
            assert [engine.log.record(seq).event.why for seq in range(size, engine.log.size)] == ["RETENTION"]  # type: ignore[union-attr]
            clock.pass_(seconds=10)
        erase(engine, "memo/2", "memo/1", basis=basis)
        assert isinstance(engine.log.record(engine.log.size - 1).event, DocumentErasure)


def test_a_document_that_states_no_time_keeps_its_content_hash(tmp_path: Path) -> None:
    """And one that does is new content."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([memo(1), memo(2)])
        assert (
            engine._collection.store.documents.content_hash("memo/1")
            == "0ad90872db5c1e82db89cda3ef94a30bb25ed225fa92bdc8824f3b878105be4e"
        )
        assert engine.add([memo(1), memo(2, erase_after=date(2030, 1, 1))]).changed == 1
