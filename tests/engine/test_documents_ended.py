"""What another document supersedes, and what is removed, is found no more from then on and can be replayed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import carag.engine.writer
from carag import Engine, Session
from carag.errors import InvalidArgument
from tests.engine.documents import COMPLIANCE, QUESTION, Clock, Counting, at, document, ids

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    with Engine.open(tmp_path / "store", embedder=Counting(), clock=clock) as opened:
        yield opened


# --- superseding ---


def seen(engine: Engine, day: int, known_at: datetime | None = None) -> set[str]:
    return ids(engine, Session(role="compliance", purpose="surveil", as_of=at(day), known_at=known_at))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["old first", "new first"])
@pytest.mark.parametrize("calls", [1, 2])
def test_what_is_superseded_ends_when_the_other_begins(
    engine: Engine, order: tuple[int, int], calls: int
) -> None:
    """To the minute, and whichever is named first in a call."""
    two = [document("old", public_at=at(1)), document("new", public_at=at(5), supersedes="d/old")]
    if calls == 1:
        engine.add([two[n] for n in order])
    else:
        engine.add([two[0]])
        engine.add([two[1]])
    assert {0: set(), 1: {"d/old"}, 4: {"d/old"}, 5: {"d/new"}, 9: {"d/new"}} == {
        day: seen(engine, day) for day in (0, 1, 4, 5, 9)
    }


def test_without_a_time_it_ends_at_once(engine: Engine, clock: Clock) -> None:
    """A document that was always public always took the other's place; what was known before can be replayed."""
    engine.add([document("old")])
    clock.pass_(hours=1)
    before = clock()
    clock.pass_(hours=1)
    engine.add([document("new", supersedes="d/old")])
    assert {"d/new"} == ids(engine) == seen(engine, 3)
    assert {"d/old"} == seen(engine, 3, known_at=before)
    assert engine.explain("d/old:00000", COMPLIANCE).why == "HIDDEN"


def test_a_version_that_supersedes_no_more_lets_the_other_go_on(engine: Engine) -> None:
    """A correction, and a move of the day on which it begins."""
    engine.add([document("old"), document("new", public_at=at(5), supersedes="d/old")])
    engine.add([document("new", public_at=at(7), supersedes="d/old")])
    assert {6: {"d/old"}, 7: {"d/new"}} == {day: seen(engine, day) for day in (6, 7)}
    engine.add([document("new", public_at=at(7))])
    assert {"d/old", "d/new"} == seen(engine, 7)


def test_a_new_version_of_what_is_superseded_stays_so(engine: Engine) -> None:
    engine.add([document("old"), document("new", public_at=at(5), supersedes="d/old")])
    engine.add([document("old", text="Another text.")])
    assert {4: {"d/old"}, 5: {"d/new"}} == {day: seen(engine, day) for day in (4, 5)}


def test_the_first_end_counts(engine: Engine) -> None:
    """Its own, or that of the first of several that supersede it."""
    engine.add(
        [
            document("brief", expires_at=at(3)),
            document("old"),
            *(document(n, public_at=at(n), supersedes="d/old") for n in (6, 4, 8)),
            document("late", public_at=at(5), supersedes="d/brief"),
        ]
    )
    assert {2: {"d/brief", "d/old"}, 3: {"d/old"}, 4: {"d/4"}} == {
        day: seen(engine, day) for day in (2, 3, 4)
    }


def test_what_is_superseded_before_it_begins_is_never_found_and_can_be_explained(engine: Engine) -> None:
    engine.add([document("old", public_at=at(5)), document("new", public_at=at(1), supersedes="d/old")])
    assert {4: {"d/new"}, 5: {"d/new"}, 9: {"d/new"}} == {day: seen(engine, day) for day in (4, 5, 9)}
    assert ["EXPIRED"] == [one.reason.code for one in engine.explain("d/old:00000", COMPLIANCE).reasons]


def test_removing_what_supersedes_makes_nothing_admissible(engine: Engine) -> None:
    engine.add([document("old"), document("new", supersedes="d/old")])
    engine.remove(["d/new"])
    assert set() == ids(engine)


def test_batches_do_not_matter(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain across transactions is the chain in one."""
    chain = [
        document(n, public_at=at(n), supersedes=f"d/{n - 1}" if n else None, text=f"{n} " * 700)
        for n in range(9)
    ]
    roots = []
    for size in (1, 3, 2048):
        monkeypatch.setattr(carag.engine.writer, "_EMBED_BATCH", size)
        with Engine.open(tmp_path / str(size), embedder=Counting(), clock=clock) as engine:
            engine.add(random.Random(size).sample(chain, len(chain)))  # noqa: S311 - an order, seeded
            roots.append(sorted(engine._collection.store.labels.snapshot()))
    assert roots[0] == roots[1] == roots[2]


# --- removing ---


def test_what_is_removed_is_found_no_more_and_can_be_replayed(engine: Engine, clock: Clock) -> None:
    engine.add([document(n) for n in range(4)])
    clock.pass_(hours=1)
    before = clock()
    clock.pass_(hours=1)
    assert 2 == engine.remove(["d/1", "d/2", "d/1"])
    assert {"d/0", "d/3"} == ids(engine)
    then = Session(role="compliance", purpose="surveil", known_at=before)
    assert {"d/0", "d/1", "d/2", "d/3"} == ids(engine, then)
    event = engine._log.record(engine._log.size - 3).event
    assert ("DOCUMENTS_REMOVED", 2, 0) == (event.why, event.documents, event.chunks)  # type: ignore[union-attr]


def test_what_was_removed_can_be_added_again(engine: Engine) -> None:
    """The same content, as a new version."""
    engine.add([document()])
    engine.remove(["d/0"])
    report = engine.add([document()])
    assert (1, 0, 0) == (report.added, report.changed, report.unchanged)
    assert ["d/0.v3:00000"] == [p.chunk_id for p in engine.retrieve(QUESTION, COMPLIANCE).passages]


@pytest.mark.parametrize("wrong", [["d/0", "unknown"], ["unknown"], "d/0", 7, [7], ["a\n"]], ids=repr)
def test_an_unknown_id_removes_nothing(engine: Engine, wrong: Any) -> None:
    engine.add([document()])
    size = engine._log.size
    with pytest.raises(InvalidArgument):
        engine.remove(wrong)
    assert size == engine._log.size
    assert {"d/0"} == ids(engine)


def test_removing_twice_says_so(engine: Engine) -> None:
    engine.add([document()])
    engine.remove(["d/0"])
    with pytest.raises(InvalidArgument, match="removed before"):
        engine.remove(["d/0"])
    assert 0 == engine.remove([])
