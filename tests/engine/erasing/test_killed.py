"""An erasure that is killed, at whichever step, is whole after the next opening, or was never asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import DocumentErasure
from tests.engine.documents import Counting, document
from tests.engine.erasing.canaries import canary, found, marks
from tests.sizes import SIZE
from tests.warm import Child

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import AuditLog

WANTED = {number: marks(number) for number in range(4)}
KILLED_IN = """
import os, signal, sys
from pathlib import Path
from carag import Engine
from tests.engine.documents import Counting
from tests.engine.erasing.canaries import canary

home, wanted = Path(sys.argv[1]), int(sys.argv[2])
steps = ("append", "erase", "purge", "save", "meta_update", "delete", "consolidate", "commit")
passed = 0

def watch(frame, event, _):
    global passed
    code = frame.f_code
    if event in ("call", "return") and code.co_name in steps and "/carag/" in code.co_filename:
        passed += 1
        if passed == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

with Engine.open(home, embedder=Counting()) as engine:
    sys.setprofile(watch)
    engine.erase([canary(number).id for number in range(4)], basis="GDPR_17_1_D", by="officer", approver="chief")
    sys.setprofile(None)
print(passed)
"""
SESSION = Session(role="employee", purpose="work", principals=["group:clerks"])


def made(home: Path) -> None:
    with Engine.open(home, profile="generic", embedder=Counting()) as engine:
        engine.add([*map(canary, range(4)), document("open")])
        engine.ask("Who asked for a loan of 7001 euros?", SESSION)


def erasures(log: AuditLog) -> list[DocumentErasure]:
    events = (log.record(seq).event for seq in range(log.size))
    return [event for event in events if isinstance(event, DocumentErasure)]


def after_a_kill(home: Path, step: int) -> int:
    """Kill at a step, open again, and hold what is there against the log; return how many erasures are on record."""
    made(home)
    with Child(KILLED_IN, home, step) as child:
        assert child.wait() == -9
    with Engine.open(home, embedder=Counting()) as engine:
        recorded = len(erasures(engine.log))
        left = engine.retrieve("Who asked for a loan?", SESSION).passages
        engine._collection.check()
        if not recorded:
            engine.erase([canary(0).id], basis="GDPR_17_1_D", by="officer", approver="chief")
        engine.log.verify()
    if recorded:
        assert {one.document_id for one in left} == {"d/open"}
        assert not found(home, WANTED)
    return recorded


def steps(home: Path) -> int:
    """How many steps there are."""
    made(home)
    with Child(KILLED_IN, home, -1) as child:
        assert child.wait() == 0
        return int(child.stdout.read())


def test_killed_at_any_step(tmp_path: Path) -> None:
    """At every one in a large run; else at some, the first and the last among them."""
    count = steps(tmp_path / "whole")
    stride = 1 if SIZE != "quick" else max(1, count // 8)
    recorded = [after_a_kill(tmp_path / str(step), step) for step in range(1, count + 1, stride)]
    assert (recorded[0], recorded[-1]) == (0, 1)
    assert recorded == sorted(recorded)


def test_a_full_disk_leaves_the_erasure_to_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is there; files that could not be written again are written by the next engine."""
    made(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Engine.open(tmp_path, embedder=Counting()) as engine:
        with monkeypatch.context() as patch:
            patch.setattr("carag.engine.rows.KeptFile.forget", full)
            with pytest.raises(OSError, match="No space left"):
                engine.erase(
                    [canary(number).id for number in range(4)],
                    basis="GDPR_17_1_D",
                    by="officer",
                    approver="chief",
                )
        assert found(tmp_path, WANTED)
        assert len(erasures(engine.log)) == 1
    with Engine.open(tmp_path, embedder=Counting()) as engine:
        assert not found(tmp_path, WANTED)
