"""Groups of a store: each change is on record before it takes effect, and the record names no member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.audit import AuditLog, GroupChange
from carag.errors import AuditUnavailable, InvalidArgument
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from carag.store.store import CorpusStore
from tests.warm import Child

if TYPE_CHECKING:
    from pathlib import Path

ONE = GroupImport([GroupStatement("group:treasury", {"user:ana": ALWAYS})])


def held(home: Path) -> frozenset[str]:
    with CorpusStore.open(home / "corpus.db", create=False) as store:
        return store.groups.held_by(["user:ana"], 0)


def test_a_change_is_on_record_and_its_names_are_sealed(tmp_path: Path) -> None:
    """The record commits to the statement and to the person; both open for an auditor."""
    with Engine.open(tmp_path / "s", embedder="wordllama") as engine:
        report = engine.contents.import_groups(ONE, by="bo@bank.example")
        number = engine.log.size - 1
        record = engine.log.record(number)
        assert record.event == GroupChange(
            at=report.known_at or 0, opened=1, closed=0, added=1, why="GROUPS_IMPORTED"
        )
        assert set(record.commitments) == {"statement", "subject"}
        assert not any(
            name in record.to_bytes() for name in (b"user:ana", b"treasury", b"bo@", ONE.sha256.encode())
        )
        opened = engine.log.private.openings(number)
        assert (opened["statement"].value, opened["subject"].value) == (ONE.sha256, "bo@bank.example")
    assert held(tmp_path / "s") == {"user:ana", "group:treasury"}


def test_without_a_record_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log cannot be written: the store stays as it was, and the next import finds it so."""
    home = tmp_path / "s"
    with Engine.open(home, embedder="wordllama") as engine:

        def full(*_: object, **__: object) -> None:
            raise AuditUnavailable("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(AuditLog, "append", full)
            with pytest.raises(AuditUnavailable):
                engine.contents.import_groups(ONE)
        assert held(home) == {"user:ana"}
        assert engine.contents.import_groups(ONE).opened == 1
    assert held(home) == {"user:ana", "group:treasury"}


KILLED = """
import sys, time
from carag import Engine
from carag.engine.recorder import Recorder

def grouped(self, report, *, by=None, real=Recorder.grouped):
    real(self, report, by=by)
    print("recorded", flush=True)
    time.sleep(600)

Recorder.grouped = grouped
with Engine.open(sys.argv[1], create=False) as engine:
    engine.contents.import_groups(sys.argv[2])
"""


def test_a_run_killed_before_its_change_took_effect_is_repeated_with_its_record(tmp_path: Path) -> None:
    """The record stands, the store is as it was, and the same import then takes effect."""
    home, file = tmp_path / "s", tmp_path / "groups.jsonl"
    file.write_text('{"group": "group:treasury", "members": ["user:ana"]}')
    Engine.open(home, embedder="wordllama").close()
    with Child(KILLED, home, file) as run:
        assert run.stdout.readline() == "recorded\n"
        run.kill()
    assert held(home) == {"user:ana"}
    with Engine.open(home) as engine:
        engine.contents.import_groups(file)
        events = [engine.log.record(number).event for number in range(engine.log.size)]
    assert held(home) == {"user:ana", "group:treasury"}
    first, second = (one for one in events if isinstance(one, GroupChange))
    assert (first.opened, second.opened, first.at < second.at) == (1, 1, True)


def test_a_closed_engine_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """Before anything is read or written."""
    with Engine.open(tmp_path / "s", embedder="wordllama") as engine:
        with pytest.raises(InvalidArgument, match="cannot read"):
            engine.contents.import_groups(tmp_path / "none.jsonl")
        contents = engine.contents
    with pytest.raises(InvalidArgument):
        contents.import_groups(ONE)
