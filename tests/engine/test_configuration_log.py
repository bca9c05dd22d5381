"""What is in force is found by notes, and written where it differs: against a log and a store of a few lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from carag.audit import (
    Access,
    IndexChange,
    IndexState,
    Ingest,
    ModelChange,
    Models,
    Outcome,
    PolicyApplied,
    PolicyChange,
    RecordKind,
    Recovery,
    SessionSource,
)
from carag.engine.configuration import ConfigurationLog
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from carag.audit import Event

ONE, TWO, THREE = b"1" * 32, b"2" * 32, b"3" * 32
NOW = 70
"""The store's last instant."""
MODELS = Models("minilm", "extractive", "p")


class Log(list["Event"]):
    """A log that keeps events, and says where."""

    @property
    def size(self) -> int:
        return len(self)

    def append(self, event: Event) -> SimpleNamespace:  # type: ignore[override]
        super().append(event)
        return SimpleNamespace(seq=self.size - 1)

    def record(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(event=self[number])


class Store(dict[str, str]):
    """The notes of a store."""

    path = Path("home/corpus.db")
    meta_get = dict.get
    meta_set = dict.__setitem__
    meta_update = dict.update

    def known(self) -> int:
        return NOW


def state(root: bytes = ONE, **earlier: bytes) -> Any:
    """Make the present state, and those of earlier instants, which are made when asked for."""
    roots = {int(instant[1:]): root for instant, root in earlier.items()}
    return SimpleNamespace(root=root, known_at=NOW, root_at=roots.__getitem__)


def ingest(root: bytes) -> Ingest:
    counts = {"documents": 1, "chunks": 1, "quarantined": 0, "rows": 1}
    return Ingest(started=1, ended=2, **counts, snapshot=root, table=b"T" * 32, embed=None, why="INGESTED")


def access(root: bytes | None, known_at: int | None = NOW) -> Access:
    return Access(
        kind=RecordKind.RETRIEVE,
        started=1,
        ended=2,
        role="buy_side",
        purpose="invest",
        source=SessionSource.ASSERTED,
        as_of=1,
        policy=PolicyApplied(b"T" * 32, masks=((1, 0),)),
        index=None if root is None else IndexState(root, 1, "exact", known_at),
        outcome=Outcome.ANSWER if root else Outcome.REFUSE,
        why="OK",
    )


def labels(configuration: ConfigurationLog, state: Any, *, accept: bool = False) -> None:
    configuration.labels(state, accept=accept, rows=9, at=5)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def configuration(log: Log, store: Store) -> ConfigurationLog:
    return ConfigurationLog(log, store)  # type: ignore[arg-type]


def test_a_table_is_on_record_once_and_again_when_it_changes(
    configuration: ConfigurationLog, log: Log
) -> None:
    """Whatever stands between: the note leads to the last one."""
    for at, table in enumerate((ONE, ONE, TWO, TWO, ONE)):
        configuration.policy(table, at=at)
        log.append(Recovery("DRILL"))
    assert [one for one in log if isinstance(one, PolicyChange)] == [
        PolicyChange(at=0, table=ONE, before=None, why="FIRST_TABLE"),
        PolicyChange(at=2, table=TWO, before=ONE, why="TABLE_CHANGED"),
        PolicyChange(at=4, table=ONE, before=TWO, why="TABLE_CHANGED"),
    ]


def test_a_table_that_no_command_put_in_force_is_refused(configuration: ConfigurationLog, log: Log) -> None:
    """The first is recorded, and the one on record goes on; another is not recorded either."""
    for at in (0, 1):
        configuration.policy(ONE, at=at, accept=False)
    with pytest.raises(CorruptFile, match="carag policy apply"):
        configuration.policy(TWO, at=2, accept=False)
    assert [ONE] == [one.table for one in log if isinstance(one, PolicyChange)]


def test_models_and_gate_are_on_record_once_and_again_when_either_changes(
    configuration: ConfigurationLog, log: Log
) -> None:
    """With what was in force before."""
    for at, (models, gate) in enumerate([(MODELS, 7), (MODELS, 7), (MODELS, 8), (Models("b"), 8)]):
        configuration.models(models, gate=gate, at=at)
        configuration.policy(ONE, at=at)
    assert [one for one in log if isinstance(one, ModelChange)] == [
        ModelChange(at=0, models=MODELS, gate=7, before=None, before_gate=None, why="FIRST_MODELS"),
        ModelChange(at=2, models=MODELS, gate=8, before=MODELS, before_gate=7, why="MODELS_CHANGED"),
        ModelChange(at=3, models=Models("b"), gate=8, before=MODELS, before_gate=8, why="MODELS_CHANGED"),
    ]


@pytest.mark.parametrize("note", ["2", "99", "-1", "two", "1"])
def test_a_note_that_leads_to_no_record_of_its_kind_costs_a_record(
    configuration: ConfigurationLog, log: Log, store: Store, note: str
) -> None:
    """The number of the next record, one past it, none at all, and that of another kind."""
    configuration.policy(ONE, at=0)
    log.append(Recovery("DRILL"))
    store["recorded_policy"] = note
    configuration.policy(ONE, at=1)
    assert [0, 1] == [one.at for one in log if isinstance(one, PolicyChange)]
    assert "2" == store["recorded_policy"]


def test_labels_of_which_nothing_is_on_record_are_taken(configuration: ConfigurationLog, log: Log) -> None:
    """An empty log, a record without an answer and a question about the past name no state."""
    labels(configuration, state())
    log += [Recovery("DRILL"), access(None), access(TWO, known_at=NOW - 1)]
    labels(configuration, state())
    assert 3 == log.size


@pytest.mark.parametrize(
    "last", [ingest(ONE), IndexChange(at=1, snapshot=ONE, before=TWO, rows=1, why="X"), access(ONE)]
)
def test_labels_that_the_newest_state_on_record_names_are_taken(
    configuration: ConfigurationLog, log: Log, store: Store, last: Event
) -> None:
    """By whichever kind of record; no earlier state is made for it."""
    store["recorded_known"] = "60"
    log += [ingest(TWO), last, Recovery("DRILL"), access(None), access(TWO, known_at=NOW - 1)]
    labels(configuration, state(ONE))
    assert 5 == log.size


def test_a_run_that_was_killed_is_told_by_the_instant_of_its_note(
    configuration: ConfigurationLog, log: Log, store: Store
) -> None:
    """The record names the state of then; without a note that is a number, of now."""
    log.append(ingest(TWO))
    store["recorded_known"] = "60"
    labels(configuration, state(ONE, _60=TWO))
    for note in ({}, {"recorded_known": ""}, {"recorded_known": "-60"}):
        store.clear()
        store |= note
        labels(configuration, state(ONE, _70=TWO))
        with pytest.raises(CorruptFile):
            labels(configuration, state(ONE, _70=THREE))
    log.append(access(TWO))
    store["recorded_known"] = "60"
    labels(configuration, state(ONE, _60=THREE, _70=TWO))


def test_other_labels_are_refused_or_put_on_record(
    configuration: ConfigurationLog, log: Log, store: Store
) -> None:
    """The refusal names the record and the command; what is accepted is named, and noted with its instant."""
    log += [Recovery("DRILL"), ingest(TWO), Recovery("DRILL")]
    other = state(ONE, _70=THREE)
    with pytest.raises(CorruptFile, match=r"those that record 1 names.*accept --labels --store home$"):
        labels(configuration, other)
    assert (3, {}) == (log.size, store)
    labels(configuration, other, accept=True)
    assert IndexChange(at=5, snapshot=ONE, before=TWO, rows=9, why="LABELS_ACCEPTED") == log[-1]
    assert {
        "recorded_index": "3",
        "recorded_snapshot": ONE.hex(),
        "recorded_known": str(NOW),
        "configuration": "record 3",
    } == store
    labels(configuration, other)
    assert 4 == log.size


def test_a_state_is_recorded_once_it_is_noted(configuration: ConfigurationLog) -> None:
    """It alone, until another one is."""
    assert not configuration.is_recorded(state(ONE))
    for root, other in ((ONE, TWO), (TWO, ONE)):
        configuration.recorded(state(root))
        assert configuration.is_recorded(state(root))
        assert not configuration.is_recorded(state(other))
