"""A store with a shadow: the first place answers, the second follows and is compared, and what differs is counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.audit import Record
from carag.backends import Checked, NativeBackend, Shadowed, ShadowReport
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.collection import Collection
from carag.engine.rows.moving import switch_backend
from carag.errors import BackendUnavailable, InvalidArgument
from carag.policy import policy_word
from tests.backends.worlds import EVERYTHING, World, plain_rows
from tests.engine.documents import DIM, QUESTION, document, ids
from tests.engine.test_backend import READER, REVIEW, filled, found, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def numbers(report: ShadowReport | None) -> dict[str, float]:
    """What a report counts, but for how much was asked."""
    assert report is not None
    return {name: value for name, value in report.gauges().items() if value and name != "shadow_asked"}


def shadow() -> NativeBackend:
    return NativeBackend(DIM, collection="next")


@pytest.mark.parametrize("first", ["file", "backend"])
def test_a_shadow_follows_and_nothing_differs(tmp_path: Path, first: str) -> None:
    """Whatever comes, changes and goes; the answers are those of the first place, and so is what is on record."""
    own = NativeBackend(DIM, collection="own") if first == "backend" else None
    second = shadow()
    with opened(tmp_path / "store", own, shadow=second) as engine, opened(tmp_path / "other") as other:
        for one in (engine, other):
            filled(one)
            one.add([document(0, text="Branches report on another day."), document("more")])
            one.remove(["d/3"])
        for session in (REVIEW, READER):
            assert found(other, session) == found(engine, session)
        assert {"shadow_is_level": 1.0} == numbers(engine.shadow)
        assert engine.shadow is not None
        assert engine.shadow.asked >= 2
        assert not engine.shadow.differs
        assert len(engine._collection.index) == second.state().shards[0].rows
        receipt = engine.retrieve(QUESTION, READER).receipt
        named = Record.parse(receipt.record).event.index.backend
        assert (None if own is None else "own") == (named and named.collection)


HARMS = {
    "lost": (
        lambda backend, key: backend.delete([key], batch="lost"),
        {"shadow_missing", "shadow_keys", "shadow_counts", "shadow_words"},
    ),
    "closed": (
        lambda backend, key: backend.relabel([key], [policy_word(1 << 20)], batch="closed"),
        {"shadow_words"},
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_shadow_that_differs_is_reported_by_numbers(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that it lost, or another word: the answer is right, and the log tells no key and no text."""
    second = shadow()
    with opened(tmp_path / "store", shadow=second) as engine:
        filled(engine)
        before = found(engine, REVIEW)
        do, expected = HARMS[harm]
        (key,) = engine._collection.index._first.keys()[:1].tolist()
        do(second, key)
        assert before == found(engine, REVIEW)
        differing = {name for name in numbers(engine.shadow) if name != "shadow_is_level"}
        assert expected <= differing
        assert engine.shadow is not None
        assert engine.shadow.differs
    assert "differs from what was answered" in caplog.text
    assert "Branches" not in caplog.text
    assert "d/0" not in caplog.text


class Away:
    """A backend that can be away."""

    def __init__(self, backend: NativeBackend) -> None:
        self._backend = backend
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away and name not in ("capabilities", "close"):
            raise BackendUnavailable("it is away; d/0 holds Branches")
        return getattr(self._backend, name)


def test_a_shadow_that_is_away_harms_no_answer_and_makes_up_for_what_it_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A search that it does not answer and a change that it does not follow are counted; then it is not asked."""
    second = Away(shadow())
    with opened(tmp_path / "store", shadow=second) as engine:
        filled(engine)
        found(engine, REVIEW)
        second.is_away = True
        found(engine, REVIEW)
        engine.add([document("more")])
        assert "d/more" in ids(engine, REVIEW)
        report = engine.shadow
        assert report is not None
        assert (False, 1, 1) == (report.is_level, report.changes_failed, min(report.failed, 1))
        assert report.unasked >= 1
        assert report.differs
        second.is_away = False
        engine.add([document("last")])
        found(engine, REVIEW)
        assert engine.shadow is not None
        assert (True, 0) == (engine.shadow.is_level, engine.shadow.missing)
    assert "BackendUnavailable" in caplog.text
    assert "d/0" not in caplog.text
    with opened(tmp_path / "store") as engine:
        engine.add([document("without it")])
    with opened(tmp_path / "store", shadow=second) as engine:
        assert {"shadow_is_level": 1.0} == numbers(engine.shadow)


def test_a_shadow_that_is_away_when_a_store_is_opened_is_refused(tmp_path: Path) -> None:
    """Naming a shadow demands it; to do without, leave it out."""
    second = Away(shadow())
    second.is_away = True
    with pytest.raises(BackendUnavailable):
        opened(tmp_path / "store", shadow=second)
    with opened(tmp_path / "store") as engine:
        filled(engine)


def _command(*words: str) -> Callable[[Path, Any], None]:
    def act(home: Path, backend: Any) -> None:
        assert Exit.OK == run([*words, "--store", str(home)])

    return act


def _documents(home: Path, backend: Any) -> None:
    with opened(home, backend) as engine:
        engine.add([document(0, text="Branches report on another day."), document("more")])
        engine.remove(["d/3"])


def _killed(home: Path, backend: Any) -> None:
    """Documents are stored, and their rows are not: what is opened next makes up for it."""
    with pytest.MonkeyPatch.context() as dying, opened(home, backend) as engine:
        dying.setattr(Collection, "refresh", _dies)
        with pytest.raises(RuntimeError):
            engine.add([document("more")])


def _dies(*_: object) -> None:
    raise RuntimeError


WITHOUT_IT = {
    "documents came and went": [_documents],
    "another policy": [_command("policy", "apply", "generic")],
    "a look at the gate": [_command("gate", "show")],
    "an explanation": [_command("explain", "d/0:00000", "--role", "compliance", "--purpose", "review")],
    "a run that was killed": [_killed],
    "a killed run that another policy completed": [_killed, _command("policy", "apply", "generic")],
    "a killed run that an upgrade completed": [_killed, _command("upgrade")],
    "a killed run that an explanation completed": [
        _killed,
        _command("explain", "d/0:00000", "--role", "compliance", "--purpose", "review"),
    ],
}
"""What is done to a store without naming its shadow, as most administrative commands cannot."""


@pytest.mark.parametrize("acts", WITHOUT_IT.values(), ids=WITHOUT_IT)
def test_what_was_done_without_it_is_made_up_for_when_it_is_named_again(
    tmp_path: Path, acts: list[Callable[[Path, Any], None]]
) -> None:
    """So no command has to refuse a store that has a shadow, and none need ask for it; the copy is one to the bit."""
    home, second = tmp_path / "store", shadow()
    with opened(home, shadow=second) as engine:
        filled(engine)
    for act in acts:
        act(home, None)
    with opened(home, shadow=second) as engine:
        for session in (REVIEW, READER):
            found(engine, session)
        assert {"shadow_is_level": 1.0} == numbers(engine.shadow)
    switch_backend(home, second)


CHANGED = {
    "loosened": "UPDATE labels SET word = word & ~1",
    "tightened": "UPDATE labels SET word = word | 1",
}


@pytest.mark.parametrize("script", CHANGED.values(), ids=CHANGED)
@pytest.mark.parametrize("where", ["file", "backend"])
@pytest.mark.parametrize("is_named", [False, True], ids=["shadow later", "shadow at once"])
def test_labels_that_were_accepted_are_taken_over_everywhere(
    tmp_path: Path, script: str, where: str, is_named: bool
) -> None:
    """They were changed in place, so nothing came that a place could follow: each takes all over once more."""
    home, second = tmp_path / "store", shadow()
    own = NativeBackend(DIM, collection="own") if where == "backend" else None
    with opened(home, own, shadow=second) as engine:
        filled(engine)
    with closing(sqlite3.connect(home / "corpus.db")) as sql:
        sql.executescript(script)
    (home / "index.state").unlink()
    with opened(home, own, accept_labels=True, shadow=second if is_named else None) as engine:
        engine._collection.check()
        expected = 12 if "~" in script else 0
        assert expected == len(engine.retrieve(QUESTION, READER, 20).passages)
    with opened(home, own, shadow=second) as engine:
        for session in (REVIEW, READER):
            found(engine, session)
        assert {"shadow_is_level": 1.0} == numbers(engine.shadow)
    switch_backend(home, second)


def test_only_an_empty_collection_or_the_stores_own_copy_becomes_a_shadow(tmp_path: Path) -> None:
    """Not that of another store, nor the place that is searched; and none that promises too little."""
    own, second, poor = NativeBackend(DIM, collection="own"), shadow(), shadow()
    with opened(tmp_path / "store", own, shadow=second) as engine:
        filled(engine)
    for backend, given, said in (
        (own, own, "name another collection"),
        (own, "native", "cannot be a shadow"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            opened(tmp_path / "store", backend, shadow=given)
    with pytest.raises(InvalidArgument, match="that are not from"):
        opened(tmp_path / "other", shadow=second)
    poor.capabilities = poor.capabilities._replace(read_your_writes=False)
    with pytest.raises(InvalidArgument, match="read_your_writes"):
        opened(tmp_path / "other", shadow=poor)
    opened(tmp_path / "store", "native").close()
    with pytest.raises(InvalidArgument, match="carag backend switch"):
        opened(tmp_path / "store", second)


def test_plans_that_may_miss_rows_are_compared_by_their_count_alone() -> None:
    """Two graphs need not find the same."""
    world = World.of(plain_rows(400, DIM))
    backend = NativeBackend(DIM)
    backend.add(world.rows, batch="first")
    shadowed = Shadowed(world.index, Checked(backend, world.labels, DIM), is_level=lambda: True)
    query = np.ones(DIM)
    for plan in ("graph", "exact", "certified"):
        shadowed.search(query, 5, EVERYTHING, plan=plan)
    assert {"shadow_is_level": 1.0, "shadow_approximate": 1.0} == numbers(shadowed.report())
