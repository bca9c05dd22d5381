"""What one engine of a shared store puts in force decides in all of them, from the next request on, on record."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine
from carag.audit import Access, Basis, Erasure, PolicyChange, disclose, erase, place_hold, release_hold
from carag.audit.auditor.examine import examine_log
from carag.audit.receipts.verify import Verdict
from carag.audit.records.custody import read_targets
from carag.errors import AuditUnavailable, CorruptFile, Refused
from tests.engine.changes import ASKER, QUESTION, SUBJECT, memo, numbered
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sharing import SharedServer

ROOT = Path(__file__).parents[2]


class Homes:
    """Three directories that share one store under a profile of its own."""

    def __init__(self, sharing: SharedServer, place: Path) -> None:
        self.places = [place / name for name in ("one", "two", "three")]
        schema = sharing.shared(self.places[0])
        with Engine.open(self.places[0], profile=numbered(0), embedder="wordllama") as engine:
            engine.add([memo("The canteen opens at noon.")])
        for other in self.places[1:]:
            sharing.joined(other, self.places[0], schema)

    @contextmanager
    def two(self) -> Iterator[tuple[Engine, Engine]]:
        with Engine.open(self.places[0]) as one, Engine.open(self.places[1]) as other:
            yield one, other

    def put_in_force(self, number: int) -> None:
        Engine.open(self.places[2], profile=numbered(number), accept={"policy"}).close()


@pytest.fixture
def homes(sharing: SharedServer, tmp_path: Path) -> Homes:
    return Homes(sharing, tmp_path)


def seen(engine: Engine) -> int:
    return len(engine.retrieve(QUESTION, ASKER).passages)


def test_a_policy_is_in_force_everywhere_once_it_is_confirmed(homes: Homes) -> None:
    """No engine is opened again, and every record after that of the change names the new table."""
    with homes.two() as engines:
        for number in range(1, 5):
            homes.put_in_force(number)
            assert [seen(engine) for engine in engines] == [1 - number % 2] * 2
            assert {engine.profile.table.sha256 for engine in engines} == {numbered(number).table.sha256}
        log, in_force = engines[0].log, b""
        for seq in range(log.verify().size):
            event = log.record(seq).event
            if isinstance(event, PolicyChange):
                assert event.before == (in_force or None)
                in_force = event.table
            elif isinstance(event, Access):
                assert event.policy.table == in_force


@pytest.mark.parametrize("step", ["record", "notes"])
def test_a_change_that_was_begun_is_finished_by_the_next_request(
    homes: Homes, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its engine ends before or after the record of the change: nobody answers by the earlier policy afterwards."""
    with homes.two() as engines:
        from carag.engine.configuration import ConfigurationLog

        def ends(self: ConfigurationLog, begun: dict[str, Any], at: int) -> None:
            if step == "notes":
                self.policy(bytes.fromhex(begun["table"]), at=at)
            raise AuditUnavailable("the process ends here")

        with monkeypatch.context() as patched:
            patched.setattr(ConfigurationLog, "_finish", ends)
            with pytest.raises(AuditUnavailable, match="ends here"):
                homes.put_in_force(1)
        assert [seen(engine) for engine in engines] == [0, 0]
        changes = [
            event
            for seq in range(engines[0].log.verify().size)
            if isinstance(event := engines[0].log.record(seq).event, PolicyChange)
        ]
        assert [one.table.hex() for one in changes] == [numbered(n).table.sha256 for n in (0, 1)]


def test_a_policy_changed_behind_the_log_answers_nothing(homes: Homes, sharing: SharedServer) -> None:
    """Notes of the store that no record commits to are refused by engines that are open, as by one that opens."""
    with homes.two() as engines:
        texts = json.dumps(numbered(2).texts).replace("'", "''")
        schema = sharing.alter(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'shared%' ORDER BY oid DESC"
        )
        (name,) = [one for (one,) in schema if not one.endswith(("_log", "_values"))][:1]
        sharing.alter(
            f"UPDATE {name}.meta SET value = '{texts}' WHERE name = 'profile_texts'",  # noqa: S608
            f"UPDATE {name}.meta SET value = 'other' WHERE name = 'configuration'",  # noqa: S608
        )
        for engine in engines:
            with pytest.raises(CorruptFile, match="not the one on record"):
                seen(engine)


def test_a_gate_is_in_force_everywhere_once_it_is_calibrated(homes: Homes, tmp_path: Path) -> None:
    """And one that was given to an engine stays with it."""
    questions = tmp_path / "questions.jsonl"
    asked = [{"question": f"{QUESTION} {n}", "documents": ["memo/7"]} for n in range(9)]
    questions.write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    with homes.two() as (one, other):
        before = other.gate
        report = one.calibrate_gate(questions, ASKER, error=Fraction(1, 5))
        assert other.gate == before
        other.ask(QUESTION, ASKER)
        assert other.gate == one.gate != before
        assert other.calibration.report == report


def test_a_hold_keeps_every_engine_from_erasing(homes: Homes) -> None:
    """Both take effect while all engines are open, and the engines go on writing and opening values."""
    with homes.two() as (one, other):
        seqs = [engine.retrieve(QUESTION, ASKER).receipt.seq for engine in (one, other)]
        held = place_hold(one.log, "MATTER-7", subject=SUBJECT, actor="counsel")
        with pytest.raises(Refused, match="legal hold"):
            erase(other.log, subject=SUBJECT, basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
        release_hold(other.log, held.seq, actor="counsel", approver="cco")
        kept = (homes.places[1] / "private.key").read_bytes()
        gone = erase(one.log, subject=SUBJECT, basis=Basis.UNLAWFUL, actor="dpo", approver="cco").seq
        for engine in (one, other):
            assert all(engine.log.private.erased_by(seq)["query"] == gone for seq in seqs)
            new = engine.retrieve(QUESTION, ASKER).receipt.seq
            for reader in (one, other):
                opened = disclose(reader.log, new, role="auditor", actor="eve", why="REVIEW")
                assert opened["query"].value == QUESTION
        keys = {(place / "private.key").read_bytes() for place in homes.places[:2]}
        assert len(keys) == 1
        assert kept not in keys


def test_a_directory_that_missed_erasures_takes_over_the_keys(homes: Homes) -> None:
    """However many there were: the key that it has leads to the next one, and it keeps only the last."""
    with homes.two() as (one, other):
        for engine in (one, other, one):
            seq = engine.retrieve(QUESTION, ASKER).receipt.seq
            erase(engine.log, records=[seq], basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
        last = one.retrieve(QUESTION, ASKER).receipt.seq
    late = homes.places[2]
    assert (late / "private.key").read_bytes() != (homes.places[0] / "private.key").read_bytes()
    with Engine.open(late) as engine:
        assert (
            disclose(engine.log, last, role="auditor", actor="eve", why="REVIEW")["query"].value == QUESTION
        )
    assert (late / "private.key").read_bytes() == (homes.places[0] / "private.key").read_bytes()


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.changes", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()  # which closes its pipe


def said(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Read a line; None at the end, which may be in the middle of one."""
    assert process.stdout is not None
    line = process.stdout.readline()
    found: dict[str, Any] | None = json.loads(line) if line.endswith("}\n") else None
    return found


def collect(process: subprocess.Popen[str], answers: list[dict[str, Any]]) -> None:
    answers += iter(partial(said, process), None)


@pytest.mark.parametrize("changes", [examples(20, least=4), pytest.param(200, marks=pytest.mark.full)])
def test_no_request_is_answered_under_an_earlier_policy_than_was_confirmed(
    homes: Homes, changes: int
) -> None:
    """Two processes ask while a third changes policy, holds and keys, and is killed at any point again and again.

    Each answer's table is the newest that was confirmed before its question, or a newer one; the log verifies.
    """
    dice, number = random.Random(7), 1  # noqa: S311 - not a secret
    lines: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    with ExitStack() as running:
        asking = [running.enter_context(started("ask", str(one))) for one in homes.places[:2]]
        for one in asking:
            assert said(one) is not None
            reading = threading.Thread(target=collect, args=(one, answers))
            running.callback(reading.join)
            running.callback(one.kill)
            reading.start()
        while number <= changes:
            with started("change", str(homes.places[2]), str(number), str(changes + 1)) as changing:
                for _ in range(dice.randrange(2, 6 + changes // 8)):  # some changes are confirmed before
                    if (told := said(changing)) is None:
                        break
                    lines = [told, *lines]
                else:
                    time.sleep(
                        dice.random()
                    )  # no event tells of every point of a change, an erasure and a hold
                    changing.kill()
                    while (told := said(changing)) is not None:
                        lines = [told, *lines]
            number = 1 + max(one["begins"] for one in lines if "begins" in one)
        after = len(answers)
        while len(answers) < after + 4:
            time.sleep(0.01)
    tables = {numbered(n).table.sha256: n for n in range(changes + 1)}
    done = [one for one in lines if "done" in one]
    assert changes // 4 < len(done) <= changes < len(answers)
    assert len(done) < changes or changes < 20  # each of a few may be confirmed before its process is killed
    for answer in answers:
        newest = max((one["done"] for one in done if one["at"] < answer["began"]), default=0)
        assert tables[answer["table"]] >= newest
        assert answer["found"] == 1 - tables[answer["table"]] % 2
    assert len({answer["table"] for answer in answers}) > len(done) // 2
    found = examine_log(homes.places[0])
    assert found.verdict is Verdict.VERIFIED, found.reason
    with Engine.open(homes.places[0]) as engine:
        log = engine.log
        for seq in range(log.verify().size):
            if isinstance(log.record(seq).event, Erasure):
                for gone in read_targets(log.private.openings(seq)["targets"].value):
                    assert gone not in log.private.of_record(gone.seq)
        last = engine.retrieve(QUESTION, ASKER).receipt.seq
        assert (
            disclose(engine.log, last, role="auditor", actor="eve", why="REVIEW")["query"].value == QUESTION
        )
