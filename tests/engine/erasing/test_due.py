"""What is due is erased at its minute, and no sooner; what is held or must be kept stays, is reported and on record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Engine
from carag.audit import Denial, DocumentErasure
from carag.errors import InvalidArgument
from tests.engine.documents import Clock, Counting
from tests.engine.erasing.test_holds import memo
from tests.warm import Child

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit import AuditLog

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
DUE, LATER = NOW + timedelta(hours=1), NOW + timedelta(days=9)
PEOPLE = {"by": "officer", "approver": "chief"}


def whys(log: AuditLog, since: int) -> list[str]:
    events = [log.record(seq).event for seq in range(since, log.size)]
    return [one.why if isinstance(one, Denial) else type(one).__name__ for one in events]


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 4), st.booleans()), min_size=1, max_size=8),
    st.integers(0, 4),
)
def test_what_is_due_is_what_states_it(
    tmp_path_factory: pytest.TempPathFactory, stated: list[tuple[int | None, bool]], hour: int
) -> None:
    """For any documents, each with an hour or none, some of them removed, and an hour of now."""
    clock = Clock(NOW)
    with Engine.open(
        tmp_path_factory.mktemp("s"), profile="generic", embedder=Counting(), clock=clock
    ) as engine:
        hours = {f"memo/{number}": hour for number, (hour, _) in enumerate(stated)}
        engine.add(
            memo(number, erase_after=None if at is None else NOW + timedelta(hours=at))
            for number, (at, _) in enumerate(stated)
        )
        if gone := [f"memo/{number}" for number, (_, removed) in enumerate(stated) if removed]:
            engine.remove(gone)
        clock.now = NOW + timedelta(hours=hour, seconds=30)
        due = {one for one, at in hours.items() if at is not None and at <= hour}
        assert {one.document for one in engine.erasures.due()} == due
        assert {*engine.erasures.erase_due(**PEOPLE).erased} == due
        assert {*engine._collection.store.documents.content_hashes([*hours])} == {*hours} - due
        size = engine.log.size
        assert engine.erasures.erase_due(**PEOPLE) == ((), (), None)
        assert engine.log.size == size


def test_it_is_due_at_its_minute(tmp_path: Path) -> None:
    clock = Clock(NOW)
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), clock=clock) as engine:
        engine.add([memo(1, retain_until=DUE, erase_after=DUE)])
        clock.now = DUE - timedelta(seconds=30)
        assert engine.erasures.due() == []
        clock.now = DUE
        assert [(one.document, one.refusal) for one in engine.erasures.due()] == [("memo/1", "")]
        assert engine.erasures.erase_due(**PEOPLE).erased == ("memo/1",)


def test_what_is_held_or_kept_stays_and_is_on_record_once(tmp_path: Path) -> None:
    """The rest is erased. What an earlier version must be kept for is not due before that is over."""
    clock = Clock(NOW)
    with Engine.open(tmp_path, profile="generic", embedder=Counting(), clock=clock) as engine:
        engine.add([memo(1, retain_until=LATER), memo(2), memo(3), memo(4)])
        engine.add(memo(number, erase_after=NOW) for number in range(1, 5))
        placed = engine.erasures.holds.place("M-1", ids=["memo/2", "memo/3"]).seq
        size = engine.log.size
        due = engine.erasures.due()
        assert engine.log.size == size
        assert [(one.document, one.refusal, one.held) for one in due] == [
            ("memo/1", "RETENTION", ()),
            ("memo/2", "LEGAL_HOLD", (placed,)),
            ("memo/3", "LEGAL_HOLD", (placed,)),
            ("memo/4", "", ()),
        ]
        done = engine.erasures.erase_due(**PEOPLE)
        assert (done.erased, done.stayed) == (("memo/4",), tuple(due[:3]))
        assert done.report is not None
        assert engine.log.record(done.report.receipts[0].seq).event.basis == "GDPR_5_1_E"  # type: ignore[union-attr]
        found = whys(engine.log, size)
        assert [one for one in found if one != "Ingest"] == ["DocumentErasure", "LEGAL_HOLD", "RETENTION"]


@pytest.mark.parametrize("people", [{}, {"by": "officer", "approver": "Officer "}])
def test_one_person_erases_nothing(tmp_path: Path, people: dict[str, str]) -> None:
    """Not even if nothing is due, so that a run that will fail each night fails at once."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        for documents in ([], [memo(1, erase_after=NOW)]):
            engine.add(documents)
            size = engine.log.size
            with pytest.raises(InvalidArgument, match="person"):
                engine.erasures.erase_due(**people)
            assert engine.log.size == size


KILLED = """
import os, signal, sys
from carag import Engine
from carag.audit import AuditLog
from tests.engine.documents import Counting

append = AuditLog.append
def killed(self, event, **given):
    receipt = append(self, event, **given)
    if type(event).__name__ == "DocumentErasure":
        os.kill(os.getpid(), signal.SIGKILL)
    return receipt
AuditLog.append = killed
with Engine.open(sys.argv[1], embedder=Counting()) as engine:
    engine.erasures.erase_due(by="officer")
"""


def test_a_run_killed_after_its_record_is_finished_at_the_next_opening(tmp_path: Path) -> None:
    """By one person, where the profile says so."""
    from tests.engine.erasing.test_persons import profile

    own = profile(tmp_path / "profile", "[erasure]\ntwo_persons = false")
    with Engine.open(tmp_path / "s", profile=own, embedder=Counting()) as engine:
        engine.add([memo(1, erase_after=NOW - timedelta(days=900)), memo(2)])
    with Child(KILLED, tmp_path / "s") as child:
        assert child.wait() == -9
    with Engine.open(tmp_path / "s", embedder=Counting()) as engine:
        assert {*engine._collection.store.documents.content_hashes(["memo/1", "memo/2"])} == {"memo/2"}
        events = [engine.log.record(seq).event for seq in range(engine.log.size)]
        assert sum(isinstance(one, DocumentErasure) for one in events) == 1
