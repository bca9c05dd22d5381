"""Accept documents as jobs, which are kept in a durable queue, run one at a time, and visible to their sender."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from carag.audit._sqlite import SqliteLink
from carag.errors import AuditUnavailable, CaragError, CorruptFile, InvalidArgument, type_and_place
from carag.service.problems import Problem, problem_of
from carag.service.requests import IngestBody
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.engine import Engine
    from carag.service.admission import Person


_logger = logger(__name__)

State = Literal["queued", "running", "done", "failed"]
_KEPT_SECONDS: Final = 24 * 3600
"""How long after its end a job can still be asked for, and its key still refers to it."""
_MICROSECONDS: Final = 1_000_000
_COUNTS: Final = ("added", "changed", "unchanged", "quarantined", "chunks", "embedded", "reused", "removed")
"""What is counted for a job: documents by what became of them, and passages."""
_KEPT_REPORTS: Final = 16
"""Jobs of which it is remembered what could not be found: the newest ones, in memory, because this names documents."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its sender may see it, without any text."""

    id: str
    state: State
    code: str | None = None
    """The problem code of its failure."""
    counts: dict[str, int] = field(default_factory=dict)
    """The counts from the run that ended the job."""
    problems: list[str] | None = None
    """Documents that are stored but cannot be found, with the reason; None if that is no longer known."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``/v1/jobs/ID`` answers."""
        counts = {**dict.fromkeys(_COUNTS, 0), **self.counts}
        return {"id": self.id, "state": self.state, "code": self.code, **counts, "problems": self.problems}


class _QueuedJob(NamedTuple):
    number: int
    id: str
    text: str
    """The body, as JSON."""
    subject: str
    has_begun: bool
    """Whether an earlier run was interrupted."""


_TABLES: Final = (
    "CREATE TABLE job (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, person BLOB NOT NULL, "
    "key BLOB NOT NULL, body_hash BLOB NOT NULL, state TEXT NOT NULL, code TEXT, counts TEXT NOT NULL, "
    "ended INTEGER, UNIQUE (person, key)) STRICT",
    # Bodies have a table of their own, so that the text can be deleted, and overwritten, when the job has ended.
    "CREATE TABLE work (number INTEGER PRIMARY KEY REFERENCES job, body TEXT NOT NULL, "
    "subject TEXT NOT NULL) STRICT",
)


class _Journal(SqliteLink):
    def __init__(self, path: Path) -> None:
        super().__init__(path, _TABLES, create=True)
        with self.reading():
            (count,) = self._db.execute("SELECT count(*) FROM work").fetchone()
        self.waiting = int(count)
        """Jobs that have not ended."""

    def accept(self, person: Person, key: str, body: IngestBody, *, most: int, now: int) -> tuple[Job, bool]:
        """Queue a job, or find the job that has this key; also return whether it is new."""
        text = json.dumps(body.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        who, named, digest = _person(person), _hash(key), _hash(text)
        with self.turn() as db:
            ended = now - _KEPT_SECONDS * _MICROSECONDS
            db.execute("DELETE FROM job WHERE ended < ?", (ended,))
            known = db.execute(
                "SELECT id, state, code, counts, body_hash FROM job WHERE person = ? AND key = ?",
                (who, named),
            ).fetchone()
            if known is not None:
                if known[-1] != digest:
                    raise Problem("IDEMPOTENCY_KEY_REUSED")
                return _job(known[:-1]), False
            if self.waiting >= most:
                raise Problem("QUEUE_FULL", retry_after=30)
            job = Job(secrets.token_hex(16), "queued")
            row = db.execute(
                "INSERT INTO job (id, person, key, body_hash, state, counts) VALUES (?, ?, ?, ?, 'queued', '{}')",
                (job.id, who, named, digest),
            )
            db.execute("INSERT INTO work VALUES (?, ?, ?)", (row.lastrowid, text, person[1]))
            self.waiting += 1
        return job, True

    def job(self, person: Person, id_: str, *, now: int) -> Job | None:
        """Find a person's own job."""
        with self.mutex, self.reading():
            row = self._db.execute(
                "SELECT id, state, code, counts FROM job WHERE id = ? AND person = ? AND (ended IS NULL OR ended >= ?)",
                (id_, _person(person), now - _KEPT_SECONDS * _MICROSECONDS),
            ).fetchone()
        return None if row is None else _job(row)

    def next(self) -> _QueuedJob | None:
        """Return the oldest waiting job, and mark it as running."""
        with self.mutex:
            with self.reading():
                row = self._db.execute(
                    "SELECT number, id, body, subject, state FROM work JOIN job USING (number) ORDER BY number LIMIT 1"
                ).fetchone()
            if row is None:
                return None
            number, id_, body, subject, state = row
            with self.turn() as db:
                db.execute("UPDATE job SET state = 'running' WHERE number = ?", (number,))
        return _QueuedJob(number, id_, body, subject, state == "running")

    def end(self, number: int, counts: dict[str, int], code: str | None, *, now: int) -> None:
        """Note how a job ended, and erase its text from the file and the write-ahead log."""
        with self.mutex:
            with self.turn() as db:
                db.execute(
                    "UPDATE job SET state = ?, code = ?, counts = ?, ended = ? WHERE number = ?",
                    ("done" if code is None else "failed", code, json.dumps(counts), now, number),
                )
                db.execute("DELETE FROM work WHERE number = ?", (number,))
            self.waiting -= 1
            with self.reading():
                # While a backup reads the file, old pages stay in the log until the next job overwrites them.
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


class Jobs:
    """Run the jobs of a service in a thread of their own, while questions are answered.

    - ``home``: the engine's store.
    - ``most``: jobs that may wait or run at once.
    - ``clock``: microseconds since 1970 UTC.
    """

    def __init__(
        self,
        engine: Engine,
        home: Path,
        *,
        most: int,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._engine, self._most, self._clock = engine, most, clock
        self._journal = _Journal(home / "jobs.db")
        self._wake, self._ended = threading.Event(), threading.Event()
        self._problems: dict[str, list[str]] = {}
        self._thread = threading.Thread(target=self._run, name="carag-jobs", daemon=True)
        self._thread.start()

    def accept(self, person: Person, key: str, body: IngestBody) -> tuple[Job, bool]:
        """Queue a job durably, or find the job that was sent with this key before; also return whether it is new."""
        found, is_new = self._journal.accept(person, key, body, most=self._most, now=self._clock())
        self._wake.set()
        return replace(found, problems=self._problems.get(found.id)), is_new

    def job(self, person: Person, id_: str) -> Job:
        """Return one of a person's own jobs; raise Problem ``NOT_FOUND`` for any other."""
        found = self._journal.job(person, id_, now=self._clock())
        if found is None:
            raise Problem("NOT_FOUND")
        return replace(found, problems=self._problems.get(id_))

    @property
    def waiting(self) -> int:
        """How many jobs have not ended."""
        return self._journal.waiting

    def close(self) -> None:
        """Stop after the current document; the next service does the rest. Idempotent."""
        self._ended.set()
        self._wake.set()
        self._thread.join()
        self._journal.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                waiting = self._journal.next()
                if waiting is None:
                    self._wake.wait()
                    self._wake.clear()
                else:
                    self._do(waiting)
            except (AuditUnavailable, CorruptFile) as error:
                # Nothing more can be accepted now; the jobs wait for the next service.
                _logger.error("jobs.db: %s", type_and_place(error))  # noqa: TRY400 - a traceback quotes it
                return

    def _do(self, waiting: _QueuedJob) -> None:
        code: str | None = None
        counts: dict[str, int] = {}
        try:
            counts = self._brought(waiting)
        except Exception as error:  # noqa: BLE001 - reported by its code, type and place
            code = problem_of(error).code
            if not isinstance(error, CaragError):
                _logger.error("a job failed: %s", type_and_place(error))  # noqa: TRY400 - a traceback quotes it
        if self._ended.is_set() and code is None:
            return  # it was possibly interrupted halfway
        self._journal.end(waiting.number, counts, code, now=self._clock())
        _logger.info("job %d: %s", waiting.number, code or "done")

    def _brought(self, waiting: _QueuedJob) -> dict[str, int]:
        body = IngestBody.model_validate_json(waiting.text)
        if body.remove:
            return {"removed": self._removed(body.remove, waiting)}
        documents = [one.document() for one in body.documents]
        done = self._engine.add(documents, by=waiting.subject, stop=self._ended.is_set)
        kept = [*self._problems.items(), (waiting.id, done.problems)]
        self._problems = dict(kept[-_KEPT_REPORTS:])
        return {name: getattr(done, name) for name in _COUNTS if name != "removed"}

    def _removed(self, ids: list[str], waiting: _QueuedJob) -> int:
        try:
            return self._engine.remove(ids, by=waiting.subject)
        except InvalidArgument:
            if not waiting.has_begun:
                raise
        # Removal is one transaction, so the interrupted run has removed them all.
        return len(set(ids))


def _job(row: tuple[Any, ...]) -> Job:
    id_, state, code, counts = row
    return Job(id_, state, code, json.loads(counts))


def _person(person: Person) -> bytes:
    return _hash(json.dumps(person))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
