"""Responses to sessions that may not know wait for their slot, have a class of sizes, and never use a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from carag.audit import Access
from carag.engine.results import Answer
from carag.errors import AuditUnavailable
from carag.generation import Extractive
from carag.index import Index
from carag.service.app import application
from carag.service.client import AnswerBody, answer_of
from carag.service.release import OPERATIONS, Asker, Schedule
from carag.service.service import Service
from tests.service import conftest
from tests.service.conftest import AS_OFFICER, CHUNK, OFFICER, QUESTION, Asked, events, token
from tests.service.test_release import CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag import Engine


class Recording(Schedule):
    """Remember what waits."""

    found: list[tuple[str, str | None, bool]]

    def release(self, operation: str, arrival: float, ready: float, asker: Asker | None = None) -> float:
        self.found.append((operation, asker.role if asker else None, bool(asker and asker.person)))
        return min(super().release(operation, arrival, ready, asker), ready)


@pytest.fixture
def held(engine: Engine, home: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A service with slots, and what waited."""
    monkeypatch.setattr("carag.service.app.Schedule", Recording)
    monkeypatch.setattr(Recording, "found", [], raising=False)
    service = Service(engine, home, conftest.settings(files, slots={}))
    yield Asked(application(service)), Recording.found
    service.close()


def test_every_way_out_of_a_route_has_its_slot_and_a_class(held: Any) -> None:
    """Answers, refusals, declines, refused tokens, wrong bodies and methods, unknown addresses."""
    asked, found = held
    bearer, expired = token(), token(exp=1)
    ways: list[tuple[str, int, Callable[[], Any]]] = [
        ("ask", 200, lambda: asked.post("ask", {"question": QUESTION}, bearer=bearer)),
        ("ask", 200, lambda: asked.post("ask", {"question": "zwyq blorp"}, bearer=bearer)),
        (
            "ask",
            200,
            lambda: asked.post("ask", {"question": QUESTION, "narrow": {"intents": ["NO"]}}, bearer=bearer),
        ),
        ("ask", 200, lambda: asked.post("ask/stream", {"question": QUESTION}, bearer=bearer)),
        ("ask", 405, lambda: asked("GET", "/v1/ask")),
        ("ask", 415, lambda: asked("POST", "/v1/ask", content=b"q", bearer=bearer)),
        ("ask", 413, lambda: asked.post("ask", {"question": "q" * 70_000}, bearer=bearer)),
        ("retrieve", 401, lambda: asked.post("retrieve", {"question": QUESTION}, bearer=expired)),
        ("retrieve", 401, lambda: asked.post("retrieve", {"question": QUESTION})),
        (
            "retrieve",
            403,
            lambda: asked.post("retrieve", {"question": QUESTION, **AS_OFFICER}, bearer=bearer),
        ),
        ("retrieve", 422, lambda: asked.post("retrieve", {"question": QUESTION, "k": 401}, bearer=bearer)),
        ("retrieve", 200, lambda: asked.post("retrieve", {"question": QUESTION, "k": 50}, bearer=bearer)),
        ("explain", 200, lambda: asked.post("explain", {"chunk_id": CHUNK}, bearer=bearer)),
        ("receipts", 404, lambda: asked("GET", "/v1/receipts/0", bearer=bearer)),
        ("receipts", 404, lambda: asked("GET", "/v1/receipts/99999", bearer=bearer)),
        ("policy", 200, lambda: asked("GET", "/v1/policy", bearer=bearer)),
        ("other", 404, lambda: asked("GET", "/v1/nothing", bearer=bearer)),
    ]
    for operation, status, way in ways:
        found.clear()
        answer = way()
        assert (status, [operation]) == (answer.status_code, [one for one, *_ in found])
        assert str(len(answer.content)) == answer.headers["content-length"]
        assert len(answer.content) in CLASSES or not len(answer.content) % (64 << 10)
        assert not {"transfer-encoding", "etag", "last-modified", "date"} & {*answer.headers}


def test_only_a_cell_that_may_know_does_not_wait(held: Any) -> None:
    """For requests that name it; other requests of the same person wait, and the public log never does."""
    asked, found = held
    officer = token(**OFFICER)
    body = {"question": QUESTION}
    free = asked.post("ask", {**body, **AS_OFFICER}, bearer=officer)
    asked.post("ask/stream", {**body, **AS_OFFICER}, bearer=officer)
    refused = asked.post("ask", {**body, **AS_OFFICER, "narrow": {"intents": ["NO"]}}, bearer=officer)
    asked.post("explain", {"chunk_id": CHUNK, **AS_OFFICER}, bearer=officer)
    asked("GET", "/log/checkpoint", bearer=officer)
    asked("GET", "/openapi.json")
    assert (200, 200, []) == (free.status_code, refused.status_code, found)
    assert len(free.content) not in CLASSES
    public = {"role": "public", "purpose": "public_qa"}
    asked.post("ask", {**body, **public}, bearer=officer)
    asked("GET", "/v1/policy", bearer=officer)
    asked.post("ask", {**body, **AS_OFFICER, "k": 1}, bearer=officer)
    asked.post("ask", {**body, **AS_OFFICER}, bearer=token(**OFFICER, exp=1))
    assert [
        ("ask", "public", True),
        ("policy", "compliance", True),
        ("ask", "compliance", True),
        ("ask", None, False),
    ] == found


def test_a_dead_log_keeps_the_schedule(held: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure waits, too."""
    asked, found = held

    def fails(_: Any) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(engine.log._appender, "submit", fails)
    answer = asked.post("ask", {"question": QUESTION}, bearer=token())
    assert (503, 1024) == (answer.status_code, len(answer.content))
    assert [("ask", "buy_side", True)] == found


def test_a_padded_answer_is_read_as_usual(held: Any) -> None:
    """By the client, and as a stream."""
    asked, _ = held
    answer = asked.post("ask", {"question": QUESTION}, bearer=token())
    assert isinstance(answer_of(AnswerBody.model_validate_json(answer.content)), Answer)
    stream = asked.post("ask/stream", {"question": QUESTION}, bearer=token()).text.split("\n\n")
    assert stream[0].startswith("event: record\n")
    assert [""] == [one.lstrip(":").strip(" ") for one in stream[-2:-1]]
    assert stream[-3].startswith("event: done\n")


def test_with_slots_no_graph_answers_a_session_that_may_not_know(
    held: Any, engine: Engine, home: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It walks past hidden rows; it may answer sessions that may know, and all sessions without slots."""
    search = Index.search

    def large(*arguments: Any, plan: str, **more: Any) -> Any:
        """Plan as if a graph were the cheapest."""
        if plan == "auto":
            return search(*arguments, plan="graph", **{**more, "fallback": False})
        return search(*arguments, plan=plan, **more)

    monkeypatch.setattr(Index, "search", large)
    monkeypatch.setattr(engine.requests.retriever, "_exact_limit", 0)

    def plans(asked: Asked) -> list[str]:
        before = len(events(engine))
        asked.post("ask", {"question": QUESTION}, bearer=token())
        asked.post("retrieve", {"question": QUESTION}, bearer=token())
        asked.post("retrieve", {"question": QUESTION, **AS_OFFICER}, bearer=token(**OFFICER))
        return [one.index.plan for one in events(engine)[before:] if isinstance(one, Access) and one.index]

    assert ["certified", "certified", "graph"] == plans(held[0])
    engine.requests.retriever.certifies = False
    off = Service(engine, home, conftest.settings(files))
    assert ["graph", "graph", "graph"] == plans(Asked(application(off)))
    off.close()


def test_the_slots_are_shown_to_those_who_may_ask(held: Any, engine: Engine, home: Path, files: Path) -> None:
    """A constant of the deployment; null if they are off."""
    asked, _ = held
    said = asked("GET", "/v1/policy", bearer=token()).json()["slots"]
    assert {"ask": 50, **dict.fromkeys(("retrieve", "explain", "receipts", "policy", "other"), 25)} == said
    off = Service(engine, home, conftest.settings(files))
    assert Asked(application(off))("GET", "/v1/policy", bearer=token()).json()["slots"] is None
    off.close()


# --- settings ---


@pytest.mark.parametrize(
    ("paces", "ask", "retrieve"),
    [
        (("quick", "quick"), 0.05, 0.025),
        (("quick", "local"), 0.25, 0.025),
        (("local", "local"), 0.25, 0.25),
        (("remote", "remote"), 1.0, 1.0),
    ],
)
def test_the_models_in_use_choose_the_slots_that_are_not_configured(
    files: Path, paces: tuple[str, str], ask: float, retrieve: float
) -> None:
    """Slots are on unless switched off explicitly."""
    found = conftest.settings(files, slots={}).slot_seconds(*paces)
    assert found is not None
    assert {*OPERATIONS} == {*found}
    assert (ask, retrieve, 0.025) == (found["ask"], found["retrieve"], found["explain"])
    stated = conftest.settings(files, slots={"ask": 7, "other": 8}).slot_seconds(*paces)
    assert stated is not None
    assert (0.007, 0.008) == (stated["ask"], stated["other"])
    assert conftest.settings(files, slots="off").slot_seconds(*paces) is None


@pytest.mark.parametrize(
    "wrong", ["on", "", False, None, {"ask": 0}, {"ask": 2.5}, {"asks": 50}, {"ask": "50"}]
)
def test_slots_are_off_only_by_their_own_word(files: Path, wrong: Any) -> None:
    """Any other value is refused."""
    with pytest.raises(ValidationError):
        conftest.settings(files, slots=wrong)


def test_the_pace_is_that_of_the_slowest_model(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that search, and of all."""

    class Model:
        remote = False

    assert isinstance(engine.requests.guarded.generator, Extractive)
    assert ("quick", "quick") == engine.requests.paces
    monkeypatch.setattr(engine.requests.guarded, "generator", Model())
    assert ("quick", "local") == engine.requests.paces
    monkeypatch.setattr(engine.requests.retriever, "reranker", Model())
    assert ("local", "local") == engine.requests.paces
    monkeypatch.setattr(Model, "remote", True)
    assert ("remote", "remote") == engine.requests.paces
    monkeypatch.setattr(engine.requests.retriever, "reranker", None)
    assert ("quick", "remote") == engine.requests.paces
