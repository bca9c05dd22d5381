"""People with the duty bring documents as jobs: durable, run one at a time and once each, visible to their sender."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.audit import Ingest
from carag.engine.backup import back_up, restore
from carag.errors import InvalidArgument
from carag.service.app import application
from carag.service.jobs import Jobs
from carag.service.problems import Problem
from carag.service.requests import DocumentBody, IngestBody
from carag.service.service import Service
from tests.service.conftest import Asked, token
from tests.service.conftest import settings as stated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRANTS = """\
schema = 1

[[grant]]
group = "staff"
cells = ["employee/work"]

[[grant]]
group = "editors"
duties = ["operate"]

[[grant]]
group = "auditors"
duties = ["audit"]
"""
EDITOR = {"groups": ["editors"], "sub": "ed@bank.example"}
WORKER = Session(role="employee", purpose="work")
WORDS = "Only the store may keep these words."


def memo(number: int = 1, text: str = WORDS) -> dict[str, Any]:
    return {"id": f"memo/{number}", "text": text, "bits": ["INTERNAL"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(home, profile="generic", embedder="wordllama") as opened:
        yield opened


@pytest.fixture
def files(files: Path) -> Path:
    (files / "grants.toml").write_text(GRANTS)
    return files


class Bringer:
    """Send documents, and ask for jobs, as a person."""

    def __init__(self, asked: Asked, **person: Any) -> None:
        self._asked, self._bearer = asked, token(**{**EDITOR, **person})

    def send(self, body: Any, key: str | None = "k1", **more: Any) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._asked("POST", "/v1/ingest", json=body, bearer=self._bearer, headers=headers, **more)

    def job(self, id_: str) -> Any:
        return self._asked("GET", f"/v1/jobs/{id_}", bearer=self._bearer)

    def ended(self, sent: Any) -> dict[str, Any]:
        assert sent.status_code in (200, 202), sent.text
        for _ in range(2000):
            found = self._asked("GET", sent.headers["location"], bearer=self._bearer).json()
            if found["state"] in ("done", "failed"):
                return dict(found)
            time.sleep(0.005)
        raise AssertionError(found)


@pytest.fixture
def editor(asked: Asked) -> Bringer:
    return Bringer(asked)


def found(engine: Engine) -> set[str]:
    return {one.chunk_id for one in engine.retrieve("Who may keep words?", WORKER, 50).passages}


def test_documents_are_brought_replaced_and_removed(editor: Bringer, engine: Engine) -> None:
    """Each job reports what became of its documents; unchanged ones are skipped."""
    sent = editor.send({"documents": [memo(1), memo(2)]})
    assert (sent.status_code, sent.json()["state"]) == (202, "queued")
    assert sent.headers["location"] == f"/v1/jobs/{sent.json()['id']}"
    done = editor.ended(sent)
    assert (done["state"], done["code"], done["added"], done["chunks"]) == ("done", None, 2, 2)
    assert found(engine) == {"memo/1:00000", "memo/2:00000"}
    done = editor.ended(editor.send({"documents": [memo(1), memo(2, "Other words.")]}, "k2"))
    assert (done["added"], done["changed"], done["unchanged"]) == (0, 1, 1)
    done = editor.ended(editor.send({"remove": ["memo/1"]}, "k3"))
    assert (done["state"], done["removed"]) == ("done", 1)
    assert len(found(engine)) == 1


def test_the_person_who_brought_documents_is_recorded(editor: Bringer, engine: Engine) -> None:
    """The record commits to the person, as for a question."""
    editor.ended(editor.send({"documents": [memo()]}))
    seq = max(seq for seq in range(engine.log.size) if isinstance(engine.log.record(seq).event, Ingest))
    assert engine.log.record(seq).event.documents == 1
    assert engine.log.private.openings(seq)["subject"].value == "ed@bank.example"


def test_a_key_stands_for_one_body_of_one_person(asked: Asked, editor: Bringer, engine: Engine) -> None:
    """The same body is the same job, however it is written; another body is refused; keys of others are separate."""
    sent = editor.send({"documents": [memo()]})
    editor.ended(sent)
    records = engine.log.size
    again = editor.send({"documents": [dict(reversed(memo().items()))]}, '"k1"')
    assert (again.status_code, again.json()["id"], again.json()["added"]) == (200, sent.json()["id"], 1)
    assert engine.log.size == records
    other = editor.send({"documents": [memo(2)]})
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    emma = Bringer(asked, sub="emma@bank.example")
    hers = emma.send({"documents": [memo(3)]})
    assert (hers.status_code, hers.json()["id"] != sent.json()["id"]) == (202, True)
    assert emma.ended(hers)["added"] == 1


def test_another_person_s_job_looks_like_an_absent_one(asked: Asked, editor: Bringer) -> None:
    """An invalid id is refused."""
    sent = editor.send({"documents": [memo()]})
    emma = Bringer(asked, sub="emma@bank.example")
    absent, hers = emma.job("0" * 32), emma.job(sent.json()["id"])
    assert (hers.status_code, hers.content) == (404, absent.content)
    assert emma.job("no-id").status_code == 422


def test_without_the_duty_nothing_is_read_or_accepted(asked: Asked, engine: Engine) -> None:
    """The refusal comes before the body is read."""
    for person, code in (
        ({"groups": ["staff"]}, "TOKEN_DUTY"),
        ({"groups": ["auditors"]}, "TOKEN_DUTY"),
        ({"groups": []}, "TOKEN_DUTY"),
        ({"exp": 1}, "TOKEN_EXPIRED"),
    ):
        stranger = Bringer(asked, **person)
        refused = stranger.send("no object", key=None)
        assert (refused.status_code in (401, 403), refused.json()["code"]) == (True, code)
        assert stranger.job("0" * 32).json()["code"] == code
    assert not found(engine)


def test_an_invalid_document_is_refused_by_its_place(editor: Bringer, engine: Engine) -> None:
    """Before anything is stored, and without being quoted."""
    bodies: tuple[tuple[dict[str, Any], list[str] | None], ...] = (
        ({}, ["documents", "remove"]),
        ({"documents": [memo()], "remove": ["memo/2"]}, ["documents", "remove"]),
        ({"documents": [{**memo(), "bits": None}]}, ["documents.0"]),
        ({"documents": [memo(), {**memo(2), "public_at": "soon"}]}, ["documents.1.public_at"]),
        ({"documents": [{**memo(), "role": "employee"}]}, ["documents.0"]),
        ({"documents": [{**memo(), "metadata": {"id": []}}]}, ["documents.0.metadata"]),
        ({"documents": [{"id": "memo/1", "bits": []}]}, ["documents.0.text"]),
        ({"documents": [{**memo(), "pages": ["1"]}]}, ["documents.0.pages.0"]),
        ({"remove": [""]}, ["remove.0"]),
        ({"documents": [], "more": 1}, None),
    )
    for body, at in bodies:
        refused = editor.send(body)
        said = refused.json()
        assert (refused.status_code, said["code"], said.get("at")) == (422, "INVALID_REQUEST", at), body
        assert "memo" not in refused.text
    assert not found(engine)


def test_a_key_is_required(editor: Bringer) -> None:
    """Exactly one, of visible characters."""
    for key in (None, "", "two words", "a" * 129, '"half'):
        refused = editor.send({"documents": [memo()]}, key)
        assert (refused.status_code, refused.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")


def test_the_length_of_a_body_is_limited(engine: Engine, home: Path, files: Path) -> None:
    """By another limit than for questions."""
    service = Service(engine, home, stated(files, max_ingest=200_000, max_body=1024))
    try:
        editor = Bringer(Asked(application(service)))
        assert editor.send({"documents": [memo(1, "word " * 30_000)]}).status_code == 202
        refused = editor.send({"documents": [memo(1, "word " * 60_000)]}, "k2")
        assert (refused.status_code, refused.json()["code"]) == (413, "BODY_TOO_LARGE")
    finally:
        service.close()


def test_a_job_that_cannot_be_done_fails_with_a_code_and_keeps_no_text(
    editor: Bringer, engine: Engine, home: Path
) -> None:
    """An unknown bit, or an unknown document to supersede or remove: nothing is stored."""
    bodies = (
        {"documents": [{**memo(), "bits": ["NO_SUCH_BIT"]}]},
        {"documents": [{**memo(), "supersedes": "memo/9"}]},
        {"remove": ["memo/9"]},
    )
    for number, body in enumerate(bodies):
        done = editor.ended(editor.send(body, f"k{number}"))
        assert (done["state"], done["code"]) == ("failed", "INVALID_ARGUMENT")
    assert not found(engine)
    assert not leftovers(home)


def leftovers(home: Path) -> list[str]:
    """Return the files of the queue that contain a document's words."""
    return [path.name for path in home.glob("jobs.db*") if WORDS.encode() in path.read_bytes()]


def test_a_completed_job_leaves_no_text_in_the_queue(editor: Bringer, engine: Engine, home: Path) -> None:
    """Neither in the file nor in its write-ahead log; and only its owner can read it."""
    with engine._collection.writing("documents"):  # so that the job waits
        sent = editor.send({"documents": [memo()]})
        assert leftovers(home)
    editor.ended(sent)
    assert not leftovers(home)
    assert (home / "jobs.db").stat().st_mode & 0o077 == 0
    assert b"ed@bank.example" not in b"".join(path.read_bytes() for path in home.glob("jobs.db*"))


def test_questions_go_on_while_a_job_waits_and_the_queue_is_bounded(
    engine: Engine, home: Path, files: Path
) -> None:
    service = Service(engine, home, stated(files, max_jobs=2))
    asked = Asked(application(service))
    editor = Bringer(asked)
    try:
        with engine._collection.writing("documents"):
            sent = [editor.send({"documents": [memo(number)]}, f"k{number}") for number in range(3)]
            assert [one.status_code for one in sent] == [202, 202, 503]
            assert (sent[2].json()["code"], sent[2].headers["retry-after"]) == ("QUEUE_FULL", "30")
            answer = asked.post("retrieve", {"question": "Who may?"}, bearer=token(groups=["staff"]))
            assert (answer.status_code, answer.json()["passages"]) == (200, [])
            assert editor.job(sent[1].json()["id"]).json()["state"] == "queued"
            assert service.gauges()["jobs"] == 2
        assert [editor.ended(one)["added"] for one in sent[:2]] == [1, 1]
        assert editor.ended(editor.send({"documents": [memo(3)]}, "k9"))["added"] == 1
    finally:
        service.close()


def test_a_job_survives_the_end_of_the_service(engine: Engine, home: Path) -> None:
    """Also one that was interrupted; nothing is done twice."""
    ed = ("https://login.example", "ed@bank.example")
    body = IngestBody(documents=[DocumentBody.model_validate(memo(number)) for number in range(5)])
    with engine._collection.writing("documents"):
        jobs = Jobs(engine, home, most=9)
        first, _ = jobs.accept(ed, "k1", body)
        second, _ = jobs.accept(ed, "k2", IngestBody(remove=["memo/1"]))
        closing = threading.Thread(target=jobs.close)
        closing.start()
        while not jobs._ended.is_set():
            time.sleep(0.001)
    closing.join()
    assert leftovers(home)
    jobs = Jobs(engine, home, most=9)
    try:
        while jobs.waiting:
            time.sleep(0.005)
        assert jobs.job(ed, first.id).state == jobs.job(ed, second.id).state == "done"
        assert jobs.accept(ed, "k1", body) == (jobs.job(ed, first.id), False)
    finally:
        jobs.close()
    assert found(engine) == {f"memo/{number}:00000" for number in (0, 2, 3, 4)}


def test_a_removal_that_was_done_before_a_kill_is_not_a_failure(engine: Engine, home: Path) -> None:
    """It was marked as running; otherwise an absent document is a failure."""
    ed = ("https://login.example", "ed@bank.example")
    engine.add([Document(id="memo/1", text="Words.", bits=())])
    jobs = Jobs(engine, home, most=9)
    with engine._collection.writing("documents"):
        job, _ = jobs.accept(ed, "k1", IngestBody(remove=["memo/1"]))
        while jobs.job(ed, job.id).state != "running":
            time.sleep(0.001)
        engine.remove(["memo/1"])
        jobs._ended.set()
        jobs._journal.end = lambda *_, **__: None  # type: ignore[method-assign] # killed: its end is not noted
    jobs.close()
    jobs = Jobs(engine, home, most=9)
    while jobs.waiting:
        time.sleep(0.005)
    assert jobs.job(ed, job.id).state == "done"
    jobs.close()


def test_a_day_after_its_end_a_job_and_its_key_are_forgotten(engine: Engine, home: Path) -> None:
    """Not earlier, and never while it waits."""
    now = 10**15
    ed = ("https://login.example", "ed@bank.example")
    jobs = Jobs(engine, home, most=9, clock=lambda: now)
    try:
        job, _ = jobs.accept(ed, "k1", IngestBody(remove=["memo/1"]))
        while jobs.waiting:
            time.sleep(0.005)
        now += 24 * 3600 * 10**6
        assert jobs.job(ed, job.id).state == "failed"
        assert not jobs.accept(ed, "k1", IngestBody(remove=["memo/1"]))[1]
        now += 1
        with pytest.raises(Problem, match="NOT_FOUND"):
            jobs.job(ed, job.id)
        assert jobs.accept(ed, "k1", IngestBody(remove=["memo/2"]))[1]
    finally:
        jobs.close()


def test_a_job_in_a_backup_is_done_after_the_restore(engine: Engine, home: Path, tmp_path: Path) -> None:
    """An accepted job is acknowledged, like a record."""
    ed = ("https://login.example", "ed@bank.example")
    engine.add([Document(id="memo/0", text="Words.", bits=["INTERNAL"])])
    jobs = Jobs(engine, home, most=9)
    with engine._collection.writing("documents"):
        job, _ = jobs.accept(ed, "k1", IngestBody(documents=[DocumentBody.model_validate(memo())]))
        back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
    jobs.close()
    restore(tmp_path / "backup", tmp_path / "keys", tmp_path / "again")
    with Engine.open(tmp_path / "again") as again:
        jobs = Jobs(again, tmp_path / "again", most=9)
        while jobs.waiting:
            time.sleep(0.005)
        assert jobs.job(ed, job.id).counts["added"] == 1
        jobs.close()
        assert found(again) == {"memo/0:00000", "memo/1:00000"}


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)


@settings(suppress_health_check=list(HealthCheck))
@given(
    said=st.fixed_dictionaries(
        {"id": st.text(max_size=20), "text": st.text(max_size=50)},
        optional={
            "bits": st.lists(st.sampled_from(["INTERNAL", "NO_SUCH"]), max_size=2),
            "facts": st.dictionaries(st.text(max_size=5), PLAIN, max_size=3),
            "metadata": st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), PLAIN, max_size=3),
            "public_at": st.sampled_from(
                ["2025-05-01", "2025-05-01T16:30:00-04:00", "2025-05-01T16:30", "x"]
            ),
            "names": st.lists(st.text(max_size=5), max_size=2),
            "acts": st.just([{"kind": "amends", "name": "n", "since": "2025-01-01"}]),
            "pages": st.lists(st.integers(-1, 60), max_size=3),
            "language": st.sampled_from(["de-CH", "no language"]),
        },
    )
)
def test_the_queue_keeps_a_document_unchanged(said: dict[str, Any]) -> None:
    """Whatever is accepted is the same document after it was stored as JSON."""
    body = IngestBody.model_validate({"documents": [said]})
    try:
        sent = body.documents[0].document()
    except InvalidArgument:
        with pytest.raises(Problem, match="INVALID_REQUEST"):
            body.checked()
        return
    kept = IngestBody.model_validate_json(
        json.dumps(body.checked().model_dump(mode="json", exclude_defaults=True))
    )
    assert kept.documents[0].document() == sent
