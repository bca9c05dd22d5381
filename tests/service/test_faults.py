"""Whatever fails below a stream, no byte of an answer or passage is sent before its record or without one."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from bench.service.office import Office
from carag import Engine
from carag.audit import Access, AuditLog, Verdict
from carag.audit.auditor.examine import examine_log
from carag.audit.auditor.reader import LogReader
from carag.audit.log import log as log_module
from carag.audit.records.record import Record
from carag.engine.sharing import move
from carag.errors import AuditUnavailable
from carag.service.problems import TITLES
from tests.audit.log.disk import environment
from tests.service.conftest import token
from tests.service.test_client import QUESTIONS, Served
from tests.service.test_record import passage_words
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.sharing import SharedServer

CLIENTS = 4
Pieces = list[tuple[float, bytes]]


@dataclass
class Wire:
    """What was received in many streams, and when each record was durable."""

    words: frozenset[bytes]
    committed: dict[int, float] = field(default_factory=dict)
    """By sequence number, when the log confirmed it."""
    statuses: Counter[int] = field(default_factory=Counter)
    early: int = 0
    """Bytes of responses with text that arrived before the record was durable."""
    bare: int = 0
    """Responses with a word of a passage or an answer, but without a record."""
    texts: list[int] = field(default_factory=list)
    """The records of the answers that arrived."""

    def take(self, pieces: Pieces) -> None:
        """Judge one response."""
        data = b"".join(piece for _, piece in pieces)
        if not data:
            self.statuses[0] += 1
            return
        self.statuses[int(data.split(b" ", 2)[1])] += 1
        if not any(word in data for word in self.words):
            return
        first = data.partition(b"event: record\n")[2].partition(b"data: ")[2].partition(b"\n")[0]
        seq = json.loads(first or b"{}").get("record")
        if seq not in self.committed or seq in self.texts:
            self.bare += 1
            return
        self.early += sum(len(piece) for at, piece in pieces if at < self.committed[seq])
        self.texts.append(seq)


def streamed(port: int, bearer: str, question: str, *, upto: int | None = None) -> Pieces:
    """Ask for one stream; return each piece with its time of arrival; hang up after ``upto`` pieces."""
    body = json.dumps({"question": question}).encode()
    head = (
        f"POST /v1/ask/stream HTTP/1.1\r\nHost: carag\r\nConnection: close\r\nAuthorization: Bearer {bearer}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    pieces: Pieces = []
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 30) as line:
        line.sendall(head.encode() + body)
        while (upto is None or len(pieces) < upto) and (piece := line.recv(4096)):
            pieces.append((time.monotonic(), piece))
    return pieces


class Wrapped:
    """A connection to SQLite whose commits are replaced."""

    def __init__(self, real: sqlite3.Connection, commit: Callable[[sqlite3.Connection], Any]) -> None:
        self._real, self._commit = real, commit

    def execute(self, statement: str, *values: Any) -> Any:
        return self._commit(self._real) if statement == "COMMIT" else self._real.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextlib.contextmanager
def running(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    """Serve, and stop at the end in any case."""
    served = Served(engine, home, files)
    try:
        yield served
    finally:
        served.stop()


def telling(home: Path, files: Path) -> frozenset[bytes]:
    """Return words of passages that no refusal or header has, so that each reveals one."""
    with Engine.open(home) as engine:
        words = passage_words(engine)
        with running(engine, home, files) as served:
            silent = b"".join(piece for _, piece in streamed(served.ports[0], "a.b.c", QUESTIONS[0])).decode()
    silent += " ".join(title for _, title in TITLES.values())
    found = frozenset(word.encode() for word in words if word not in silent)
    assert len(found) > 100
    return found


def raising(error: Exception) -> Callable[..., Any]:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    return fails


def full() -> sqlite3.OperationalError:
    return sqlite3.OperationalError("database or disk is full")


@contextlib.contextmanager
def no_room(store: Any) -> Iterator[None]:
    """SQLite itself refuses another page of the file."""
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count={pages}")
    yield
    store._db.execute("PRAGMA max_page_count=1073741823")


@contextlib.contextmanager
def at_commit(store: Any, commit: Callable[[sqlite3.Connection], Any]) -> Iterator[None]:
    """Replace SQLite's COMMIT; afterwards the store can be written again, as if it had been reopened."""
    real = store._db
    store._db = Wrapped(real, commit)
    yield
    store._db, store._broken = real, None


def slow(db: sqlite3.Connection) -> None:
    time.sleep(0.05)
    db.execute("COMMIT")


def unsure(db: sqlite3.Connection) -> None:
    """Write, and report that the disk is full."""
    db.execute("COMMIT")
    raise full()


@contextlib.contextmanager
def nothing_after(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The record is durable, and then its receipt cannot be made."""
    with patch.context() as within:
        within.setattr(log_module, "BatchPaths", raising(MemoryError()))
        yield


def healing(log: AuditLog, patch: pytest.MonkeyPatch) -> dict[str, Callable[[], Any]]:
    """Faults after which the log continues, at each step of writing a record."""

    @contextlib.contextmanager
    def guarded(target: Any, name: str) -> Iterator[None]:
        with patch.context() as within:
            within.setattr(target, name, raising(AuditUnavailable("the window is exceeded")))
            yield

    return {
        "before the draft": lambda: guarded(log, "_guard"),
        "at the queue": lambda: guarded(log._appender, "submit"),
        "no room": lambda: no_room(log._backend.link),
        "not committed": lambda: at_commit(log._backend.link, raising(full())),
        "committed late": lambda: at_commit(log._backend.link, slow),
        "after the commit": lambda: nothing_after(patch),
    }


def ending(log: AuditLog) -> Any:
    """A fault after which no record is written until the log is opened again."""
    return at_commit(log._backend.link, unsure)


def watched(log: AuditLog, wire: Wire, patch: pytest.MonkeyPatch) -> None:
    """Note when each record became durable: at the end of its turn."""
    append, turn = log._backend.append, log._backend.turn
    written: list[int] = []

    def appended(batch: Any) -> None:
        append(batch)
        written.extend(range(batch.first, batch.size))

    @contextlib.contextmanager
    def committed(*end: Any) -> Iterator[Any]:
        written.clear()
        with turn(*end) as tip:
            yield tip
        wire.committed |= dict.fromkeys(written, time.monotonic())

    patch.setattr(log._backend, "append", appended)
    patch.setattr(log._backend, "turn", committed)


def episode(
    home: Path,
    files: Path,
    wire: Wire,
    dice: random.Random,
    patch: pytest.MonkeyPatch,
    pool: ThreadPoolExecutor,
) -> int:
    """Stream during one fault after another, and after one that the log does not survive; return the number."""
    count = 0
    with (
        contextlib.suppress(AuditUnavailable),  # what the engine cannot write when it closes
        Engine.open(home) as engine,
        patch.context() as within,
        running(engine, home, files) as served,
    ):
        watched(engine.log, wire, within)
        faults = [*healing(engine.log, within).values()]
        dice.shuffle(faults)
        for fault in [*faults, lambda: ending(engine.log), contextlib.nullcontext]:
            asking = [(dice.choice(QUESTIONS), dice.random() < 0.1) for _ in range(CLIENTS)]
            with fault():
                sent = [
                    pool.submit(streamed, served.ports[0], token(), question, upto=1 if gone else None)
                    for question, gone in asking
                ]
                for one in sent:
                    wire.take(one.result())
            count += CLIENTS
    found = examine_log(home)
    assert found.verdict is Verdict.VERIFIED, found.reason
    return count


@pytest.mark.parametrize("streams", [examples(400), pytest.param(10_000, marks=pytest.mark.full)])
def test_no_text_is_sent_before_its_record_or_without_one(
    home: Path, files: Path, monkeypatch: pytest.MonkeyPatch, streams: int
) -> None:
    """The client's raw bytes have words of a passage or an answer only after the commit of its record."""
    wire = Wire(telling(home, files))
    dice, done = random.Random(7), 0  # noqa: S311
    with ThreadPoolExecutor(CLIENTS) as pool:
        while done < streams:
            done += episode(home, files, wire, dice, monkeypatch, pool)
    assert (wire.early, wire.bare) == (0, 0)
    assert {*wire.statuses} <= {0, 200, 500, 503}, wire.statuses
    assert wire.statuses[503] > done // 3
    assert len(wire.texts) > done // 40
    with LogReader(home) as reader:
        on_record = {seq for seq, body in reader.bodies() if isinstance(Record.parse(body).event, Access)}
    assert {*wire.texts} <= on_record


@pytest.mark.parametrize("fault", ["unrecorded", "hasty"])
def test_the_count_finds_a_service_that_answers_without_waiting(
    home: Path, files: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """One that names an earlier record when the log failed, and one that answers while the record is being written."""
    wire = Wire(telling(home, files))
    with Engine.open(home) as engine, running(engine, home, files) as served:
        watched(engine.log, wire, monkeypatch)
        recorder, log = engine.requests.recorder, engine.log
        real, receipts, writing = recorder.access, [], []

        def first(*told: Any, **begun: Any) -> Any:
            receipts.append(real(*told, **begun))
            return receipts[0]

        def unrecorded(*told: Any, **begun: Any) -> Any:
            with contextlib.suppress(AuditUnavailable):
                return real(*told, **begun)
            return receipts[0]

        def hasty(*told: Any, **begun: Any) -> Any:
            seq = log.size
            writing.append(threading.Thread(target=real, args=told, kwargs=begun))
            writing[0].start()
            return replace(receipts[0], seq=seq)

        monkeypatch.setattr(recorder, "access", first)
        wire.take(streamed(served.ports[0], token(), QUESTIONS[0]))
        assert (len(wire.texts), wire.bare, wire.early) == (1, 0, 0)
        monkeypatch.setattr(recorder, "access", {"unrecorded": unrecorded, "hasty": hasty}[fault])
        with at_commit(log._backend.link, raising(full()) if fault == "unrecorded" else slow):
            pieces = streamed(served.ports[0], token(), QUESTIONS[0])
            for one in writing:
                one.join()
        wire.take(pieces)
    assert (wire.bare > 0, wire.early > 0) == (fault == "unrecorded", fault == "hasty")


@pytest.mark.release
@pytest.mark.parametrize("fault", [{"fail_sync": 40}, {"full_after": 600_000}], ids=["EIO", "ENOSPC"])
def test_no_text_leaves_a_process_whose_disk_fails_without_its_record(
    home: Path, files: Path, tmp_path: Path, fault: dict[str, int]
) -> None:
    """After some sync or byte the kernel refuses; every earlier text is in the remaining log."""
    words = telling(home, files)
    (tmp_path / "office").mkdir()
    office = Office(tmp_path / "office")
    bearer, answers, refused = office.token(), [], 0
    with office.served(environment(office.home, **fault)) as served:
        for number in range(200):
            data = b"".join(p for _, p in streamed(served.port, bearer, QUESTIONS[number % len(QUESTIONS)]))
            if any(word in data for word in words):
                answers.append(json.loads(data.partition(b"data: ")[2].partition(b"\n")[0])["record"])
            refused += data.startswith(b"HTTP/1.1 503 ")
            if refused >= 20:
                break
    assert answers
    assert refused == 20
    with AuditLog.open(office.home) as log:
        assert log.verify().size == log.size
        assert all(isinstance(log.record(seq).event, Access) for seq in answers)
        assert len({*answers}) == len(answers)


@pytest.mark.release
def test_no_text_leaves_while_the_server_of_a_shared_log_is_gone(
    home: Path, files: Path, tmp_path: Path, sharing: SharedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL is cut off during streams and comes back, repeatedly: any text has its commit."""
    wire, dice = Wire(telling(home, files)), random.Random(7)  # noqa: S311
    shared = tmp_path / "shared"
    move(home, shared, sharing.address(sharing.a_schema()), admin=sharing.url)
    with (
        Engine.open(shared) as engine,
        running(engine, shared, files) as served,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        watched(engine.log, wire, monkeypatch)
        try:
            for number in range(60):
                sent = [pool.submit(streamed, served.ports[0], token(), QUESTIONS[0]) for _ in range(CLIENTS)]
                if number % 10 == 4:
                    time.sleep(dice.uniform(0, 0.05))
                    sharing.database.kill()
                if number % 10 == 9:
                    sharing.database.start()
                for one in sent:
                    wire.take(one.result())
        finally:
            sharing.database.start()
    assert (wire.early, wire.bare) == (0, 0)
    assert wire.statuses[503] > 20
    assert len(wire.texts) > 20
