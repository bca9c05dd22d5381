"""One law for every field of every request: any value is answered and recorded, or is a problem that says why.

tests/test_any_argument.py states it for Python; its values are used here as JSON.
"""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from carag import Document, Engine
from carag.service.app import application
from carag.service.requests import (
    ActBody,
    ApprovedBody,
    AskBody,
    BreakGlassBody,
    DocumentBody,
    EraseBody,
    ExplainBody,
    GroupsBody,
    HeldBody,
    HoldBody,
    IngestBody,
    Narrow,
    RetrieveBody,
    SubjectReportBody,
    WriteBody,
)
from carag.service.service import Service
from carag.service.writes import WRITES
from tests.engine.test_break_glass import with_glass
from tests.service import conftest
from tests.service.conftest import token
from tests.sizes import examples
from tests.test_any_argument import ANY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

GRANTS = """\
schema = 1

[[grant]]
group = "staff"
cells = ["employee/work", "employee/emergency"]
duties = ["operate", "admin", "audit"]
"""
RAW = [
    "1" + "0" * 5000,
    "1e999",
    "-1e999",
    "-0",
    "1E+400",
    "0.1e-400",
    "[" * 5000,
    '"\\ud800"',
    '"\\u0000"',
    "01",
    "",
]
VALUE = ANY.map(lambda value: json.dumps(value, default=str)) | st.sampled_from(RAW)
NARROW = {
    "allow_entities": [7],
    "principals": [],
    "restricted": [8],
    "watched": [7],
    "residency": [],
    "cooling_minutes": 60,
    "intents": [],
    "conversation": "c",
}
SESSION = {"role": "employee", "purpose": "work", "subject": "ed@bank.example"}
ASKED = {**SESSION, "narrow": NARROW, "glass": None}
QUESTION = {
    **ASKED,
    "question": "When does the canteen open?",
    "where": {"year": {"gte": 2024}, "department": ["a"]},
}
DOCUMENT: dict[str, Any] = {
    "id": "a",
    "text": "The canteen opens at noon.",
    "bits": ["INTERNAL"],
    "metadata": {"year": 2024, "department": "a"},
    "entities": [7],
    "allow": ["user:ana"],
    "deny": [],
    "public_at": "2024-06-01",
    "expires_at": "2034-06-01",
    "retain_until": "2034-06-01",
    "erase_after": "2034-06-02",
    "supersedes": None,
    "names": ["Memo 7"],
    "acts": [{"kind": "replaces", "name": "Memo 6", "since": "2024-06-01"}],
    "in_force_at": "2024-06-01",
    "language": "en",
    "pages": [],
    "read_by": "pdf/2",
}
BY_FACTS = {**DOCUMENT, "id": "b", "bits": None, "facts": {"x": ["y", 2024, 0.5, True, None], "y": "z"}}
BODIES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "ask": (AskBody, QUESTION),
    "ask/stream": (AskBody, QUESTION),
    "retrieve": (RetrieveBody, {**QUESTION, "k": 3}),
    "explain": (ExplainBody, {**ASKED, "chunk_id": "a:00000"}),
    "break-glass": (
        BreakGlassBody,
        {**SESSION, "purpose": "emergency", "reason": "fire", "minutes": 5, "approver": None},
    ),
    "erase": (
        EraseBody,
        {
            "subject": "ed@bank.example",
            "approver": token(groups=["staff"], sub="carl"),
            "ids": ["a"],
            "basis": "GDPR_17_1_D",
            "dry_run": True,
        },
    ),
    "erase-due": (ApprovedBody, {"subject": None, "approver": token(groups=["staff"], sub="carl")}),
    "due": (WriteBody, {"subject": None}),
    "held": (HeldBody, {"subject": None, "ids": ["a"]}),
    "subject-report": (SubjectReportBody, {"subject": None, "person": ["user:ana"], "why": "REQUEST-3"}),
    "groups": (
        GroupsBody,
        {"subject": None, "groups": '{"group": "group:a", "members": []}', "dry_run": True},
    ),
    "hold": (
        HoldBody,
        {"subject": None, "matter": "M-1", "ids": [], "words": [], "entity": 7, "where": {"year": 2024}},
    ),
    "ingest": (IngestBody, {"documents": [DOCUMENT, BY_FACTS], "subject": None}),
}
Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield every place in a body, and the body itself."""
    yield at
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, one in entries:
        yield from places(one, (*at, name))


FIELDS = [
    (name, place)
    for name, (_, body) in BODIES.items()
    for place in (*places(body), *([("remove",), ("remove", 0)] if name == "ingest" else []))
]


def body_with(name: str, place: Place, value: str) -> bytes:
    """Return a usual body as JSON, with a literal value in one place."""
    mark = "any value"
    whole: Any = {"body": copy.deepcopy(BODIES[name][1])}
    if place[:1] == ("remove",):
        whole["body"] = {"remove": ["a"]}
    into = whole
    *way, last = ("body", *place)
    for part in way:
        into = into[part]
    into[last] = mark
    return json.dumps(whole["body"]).replace(f'"{mark}"', value).encode()


class Door:
    """A service that is asked in this process, one request at a time; :meth:`job` waits for the job's end."""

    def __init__(self, service: Service) -> None:
        self.service, self._app, self._loop = service, application(service), asyncio.new_event_loop()
        self._bearer, self._count, self._ended = (
            token(groups=["staff"], sub="ed@bank.example"),
            0,
            threading.Event(),
        )
        journal = service.jobs._journal
        end = journal.end

        def ended(*arguments: Any, **named: Any) -> None:
            end(*arguments, **named)
            self._ended.set()

        journal.end = ended  # type: ignore[method-assign]

    def close(self) -> None:
        self._loop.close()

    def answer(self, name: str, body: bytes) -> tuple[int, bytes]:
        return self._loop.run_until_complete(self._answer("POST", f"/v1/{name}", body))

    def job(self, id_: str) -> dict[str, Any]:
        assert self._ended.wait(30)
        self._ended.clear()
        found: dict[str, Any] = json.loads(
            self._loop.run_until_complete(self._answer("GET", f"/v1/jobs/{id_}"))[1]
        )
        return found

    async def _answer(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._count += 1
        said = {
            "authorization": f"Bearer {self._bearer}",
            "content-type": "application/json",
            "idempotency-key": str(self._count),
        }
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(key.encode(), value.encode()) for key, value in said.items()],
        }
        pending, told = [{"type": "http.request", "body": body}], []

        async def receive() -> dict[str, Any]:
            return pending.pop() if pending else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: dict[str, Any]) -> None:
            told.append(message)

        await self._app(scope, receive, send)
        return told[0]["status"], b"".join(one.get("body", b"") for one in told)


@pytest.fixture
def door(tmp_path: Path, files: Path) -> Iterator[Door]:
    (files / "grants.toml").write_text(GRANTS)
    home = tmp_path / "store"
    with Engine.open(home, profile=with_glass(tmp_path / "profile"), embedder="wordllama") as engine:
        text = "The canteen opens at noon."
        known: dict[str, Any] = {"year": 2024, "department": "a"}
        engine.add([Document(id="a", text=text, bits=["INTERNAL"], metadata=known, entities=[7])])
        service = Service(engine, home, conftest.settings(files))
        made = Door(service)
        yield made
        service.close()
        made.close()


def holds(door: Door, name: str, body: bytes, *, is_usual: bool = False) -> None:
    """Assert a recorded result, a job that has ended as expected, or a problem that says what is wanted."""
    engine = door.service.engine
    before = engine.log.size
    status, found = door.answer(name, body)
    assert status in (200, 202) or not is_usual, found
    if status in (200, 202) and name == "ingest":
        job = door.job(json.loads(found)["id"])
        assert job["state"] in ("done", "failed")
        assert job["code"] in (None, "INVALID_ARGUMENT"), job
    elif status == 200 and name in {one.path for one in WRITES.values()}:
        json.loads(found)  # tests/service/test_writes.py says what is on record
    elif status == 200:
        told = json.loads(found.split(b"data: ")[1].partition(b"\n")[0] if name == "ask/stream" else found)
        assert before < engine.log.size
        assert engine.log.size - 1 == told["record"]
    else:
        problem = json.loads(found)
        assert status == problem["status"]
        assert problem["code"] in (
            "JSON_MALFORMED",
            "INVALID_REQUEST",
            "INVALID_ARGUMENT",
            "TOKEN_CELL",
            "TOKEN_SUBJECT",
            "APPROVER_REQUIRED",
            "BREAK_GLASS_LIMIT",
            "BREAK_GLASS_UNKNOWN",
            "LEGAL_HOLD",
            "RETENTION",
            "NOT_BREAK_GLASS",
        )
        if status == 422:
            assert problem.get("wanted"), problem
            assert all(problem["wanted"].values())
        if status != 403:
            assert before == engine.log.size


def test_every_field_is_tried() -> None:
    """So that the law also covers new fields."""
    assert Narrow.model_fields.keys() == NARROW.keys()
    assert DocumentBody.model_fields.keys() == BY_FACTS.keys()
    assert ActBody.model_fields.keys() == DOCUMENT["acts"][0].keys()
    for schema, body in BODIES.values():
        assert schema.model_fields.keys() - {"remove"} == body.keys()


def test_the_usual_bodies_are_answered(door: Door) -> None:
    """Otherwise the law would not cover the fields that are read last."""
    for name, (_, body) in BODIES.items():
        holds(door, name, json.dumps(body).encode(), is_usual=True)


@pytest.mark.parametrize("count", [examples(600), pytest.param(100_000, marks=pytest.mark.full)])
def test_a_field_takes_any_value(door: Door, count: int) -> None:
    """Or refuses it with a problem that says what is wanted."""

    @settings(max_examples=count, suppress_health_check=list(HealthCheck))
    @example(("explain", ("chunk_id",)), '" "')
    @given(st.sampled_from(FIELDS), VALUE)
    def run(field: tuple[str, Place], value: str) -> None:
        holds(door, field[0], body_with(*field, value))

    run()
