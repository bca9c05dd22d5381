"""Bodies are read strictly and within limits, and no problem quotes a request."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import Access
from carag.service.admission import Admission
from carag.service.app import application
from carag.service.problems import Problem
from carag.service.requests import AskBody, Narrow, parsed
from carag.service.service import Service
from tests.service import conftest
from tests.service.conftest import QUESTION, Asked, events, token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag import Engine

CANARY = "zwyqcanary"
HOSTILE = {
    "a key twice": (f'{{"question": "{CANARY}", "question": "other"}}', 400, "JSON_DUPLICATE_KEY"),
    "a key twice within": (
        f'{{"question": "q", "narrow": {{"conversation": "{CANARY}", "conversation": "b"}}}}',
        400,
        "JSON_DUPLICATE_KEY",
    ),
    "a key twice in two spellings": (
        f'{{"question": "{CANARY}", "\\u0071uestion": "other"}}',
        400,
        "JSON_DUPLICATE_KEY",
    ),
    "no JSON": (CANARY, 400, "JSON_MALFORMED"),
    "no object": (f'["{CANARY}"]', 400, "JSON_MALFORMED"),
    "not UTF-8": (b'{"question": "' + CANARY.encode() + b'\xff"}', 400, "JSON_MALFORMED"),
    "UTF-16": (f'{{"question": "{CANARY}"}}'.encode("utf-16"), 400, "JSON_MALFORMED"),
    "a hundred thousand lists": ('{"question": ' + "[" * 60_000, 400, "JSON_MALFORMED"),
    "no number": (f'{{"question": "{CANARY}", "k": NaN}}', 400, "JSON_MALFORMED"),
    "a number of a thousand digits": (
        f'{{"question": "{CANARY}", "k": 1{"0" * 5000}}}',
        400,
        "JSON_MALFORMED",
    ),
    "an unknown key": (f'{{"question": "q", "{CANARY}": 1}}', 422, "INVALID_REQUEST"),
    "no question": ("{}", 422, "INVALID_REQUEST"),
    "a question that is not a string": (f'{{"question": ["{CANARY}"]}}', 422, "INVALID_REQUEST"),
    "an empty question": ('{"question": "  "}', 422, "INVALID_ARGUMENT"),
    "a question too long": (f'{{"question": "{CANARY * 1000}"}}', 422, "INVALID_REQUEST"),
    "half a surrogate pair": (f'{{"question": "{CANARY}\\ud800"}}', 422, "INVALID_REQUEST"),
    "a NUL": (f'{{"question": "{CANARY}\\u0000"}}', 422, "INVALID_ARGUMENT"),
    "half a cell": (f'{{"question": "{CANARY}", "role": "buy_side"}}', 422, "INVALID_REQUEST"),
    "k as a text": (f'{{"question": "{CANARY}", "k": "8"}}', 422, "INVALID_REQUEST"),
    "k as a truth": (f'{{"question": "{CANARY}", "k": true}}', 422, "INVALID_REQUEST"),
    "k too large": (f'{{"question": "{CANARY}", "k": 401}}', 422, "INVALID_REQUEST"),
    "a field that no document has": (
        f'{{"question": "q", "where": {{"{CANARY}": 1}}}}',
        422,
        "INVALID_ARGUMENT",
    ),
    "too large": (b"{" + b" " * (64 << 10), 413, "BODY_TOO_LARGE"),
}


def test_hostile_bodies_are_answered_by_a_code_alone(asked: Asked, engine: Engine) -> None:
    """Nothing is searched for them."""
    headers = {"Content-Type": "application/json"}
    for name, (body, status, code) in HOSTILE.items():
        answer = asked("POST", "/v1/retrieve", content=body, headers=headers, bearer=token())
        assert (status, code) == (answer.status_code, answer.json()["code"]), name
        assert answer.headers["content-type"] == "application/problem+json"
        assert CANARY not in answer.text
        if named := answer.json().get("at"):
            assert {*named} == {*answer.json()["wanted"]}
            assert all(answer.json()["wanted"].values())
    assert not [event for event in events(engine) if isinstance(event, Access)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["question", "k", "narrow", "where", "role", "purpose", "restricted"])
                | st.text(max_size=5),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_a_body_matches_the_schema_or_is_a_problem(value: Any) -> None:
    """There is no other error, and a problem names only fields of the interface."""
    try:
        body = parsed(AskBody, json.dumps(value).encode())
    except Problem as error:
        problem = error
    else:
        assert body.question == value["question"]
        return
    assert problem.status in (400, 422)
    named = {part for one in problem.at or () for part in one.split(".")}
    assert named <= {*AskBody.model_fields, *Narrow.model_fields}


def test_a_problem_says_what_is_wanted_of_an_invalid_field(asked: Asked) -> None:
    """In words of the schema, which quote nothing."""
    answer = asked("POST", "/v1/retrieve", json={"question": "q", "k": 401}, bearer=token())
    assert {"k": "Input should be less than or equal to 400"} == answer.json()["wanted"]


def test_what_is_not_served_is_a_problem(asked: Asked) -> None:
    """Another address, method or media type; addresses of the console are redirected."""
    for answer, status, code in (
        (asked("GET", "/v1/nothing"), 404, "NOT_FOUND"),
        (asked("GET", "/v1/ask"), 405, "METHOD_NOT_ALLOWED"),
        (asked("GET", f"/v1/receipts/{CANARY}", bearer=token()), 422, "INVALID_REQUEST"),
        (asked("GET", f"/log/tile/{CANARY}", bearer=token()), 404, "NOT_FOUND"),
        (asked("POST", "/v1/ask", content=b"q", bearer=token()), 415, "CONTENT_TYPE"),
    ):
        assert (status, code) == (answer.status_code, answer.json()["code"])
        assert answer.headers["content-type"] == "application/problem+json"
        assert CANARY not in answer.text
        assert "no-store" == answer.headers["cache-control"]
    assert "POST" == asked("GET", "/v1/ask").headers["allow"]
    for path in ("/", "/console"):
        answer = asked("GET", path)
        assert (303, "/console/") == (answer.status_code, answer.headers["location"])


def test_a_stranger_s_body_is_not_read(asked: Asked) -> None:
    """The token is checked first."""
    answer = asked("POST", "/v1/ask", content=b"{", headers={"Content-Type": "application/json"})
    assert 401 == answer.status_code


def test_a_refusal_by_the_policy_is_an_answer(asked: Asked) -> None:
    """It is recorded, and comes with a receipt."""
    answer = asked.post("ask", {"question": QUESTION, "narrow": {"intents": ["NO_SUCH"]}}, bearer=token())
    assert (200, "refuse") == (answer.status_code, answer.json()["outcome"])
    assert answer.json()["receipt"]


# --- limits ---


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_person_may_ask_in_bursts_and_then_at_a_rate() -> None:
    """Without effect on others."""
    clock = Clock()
    admission = Admission(rate=2, burst=3, most=100, most_each=100, clock=clock)

    def admitted(person: tuple[str, str], tries: int) -> int:
        count, told = 0, set()
        for _ in range(tries):
            try:
                admission.enter(person)
            except Problem as problem:
                told.add((problem.code, problem.retry_after))
            else:
                count += 1
                admission.leave(person)
        assert told <= {("RATE_LIMITED", 1)}
        return count

    assert (3, 3) == (admitted(("i", "ana"), 10), admitted(("i", "ben"), 10))
    clock.now = 2.0
    assert (3, 3) == (admitted(("i", "ana"), 10), admitted(("j", "ana"), 10))
    clock.now = 2.5
    assert 1 == admitted(("i", "ana"), 10)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200), st.integers(1, 10), st.integers(1, 10))
def test_never_is_more_admitted_than_the_rate_allows(waits: list[float], rate: int, burst: int) -> None:
    """At most ``burst + rate * seconds`` from any beginning."""
    clock, admitted = Clock(), 0
    admission = Admission(rate=rate, burst=burst, most=1, most_each=1, clock=clock)
    for wait in waits:
        clock.now += wait
        try:
            admission.enter(("i", "s"))
        except Problem:
            continue
        admission.leave(("i", "s"))
        admitted += 1
    assert admitted <= burst + rate * clock.now + 1e-6


def limited(engine: Engine, home: Path, files: Path, **changes: Any) -> Service:
    return Service(engine, home, conftest.settings(files, **changes))


@pytest.fixture
def slow(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[threading.Event, threading.Event]]:
    """An engine that waits for an event, and sets one when it begins."""
    begun, go_on, ask = threading.Event(), threading.Event(), engine.ask

    def waiting(*arguments: Any, **more: Any) -> Any:
        begun.set()
        go_on.wait(10)
        return ask(*arguments, **more)

    monkeypatch.setattr(engine, "ask", waiting)
    yield begun, go_on
    go_on.set()


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [({"concurrency": 1}, 503, "BUSY"), ({"concurrency_each": 1}, 429, "TOO_MANY_AT_ONCE")],
)
def test_the_number_of_requests_at_once_is_limited(
    engine: Engine, home: Path, files: Path, slow: Any, changes: dict[str, int], status: int, code: str
) -> None:
    """In all and for one person; the next one gets a time to come back, and the first its answer."""
    begun, go_on = slow
    service = limited(engine, home, files, **changes)
    app, body = application(service), {"question": QUESTION}

    async def asked() -> tuple[Any, Any]:
        transport = conftest.httpx.ASGITransport(app)
        async with conftest.httpx.AsyncClient(transport=transport, base_url="http://carag.test") as client:
            headers = {"Authorization": f"Bearer {token()}"}
            first = asyncio.create_task(client.post("/v1/ask", json=body, headers=headers))
            await asyncio.to_thread(begun.wait, 10)
            second = await client.post("/v1/ask", json=body, headers=headers)
            go_on.set()
            return await first, second

    first, second = asyncio.run(asked())
    assert (200, status, code) == (first.status_code, second.status_code, second.json()["code"])
    assert int(second.headers["retry-after"]) >= 1
    assert 0 == service.admission.working
    service.close()


def test_a_request_that_takes_too_long_is_still_recorded(
    engine: Engine, home: Path, files: Path, slow: Any
) -> None:
    """The client gets a problem; what was found for it is recorded."""
    _, go_on = slow
    service = limited(engine, home, files, seconds=1)
    answer = Asked(application(service)).post("ask", {"question": QUESTION}, bearer=token())
    assert (504, "TIME_LIMIT") == (answer.status_code, answer.json()["code"])
    go_on.set()
    service.close()
    assert 1 == len([event for event in events(engine) if isinstance(event, Access)])


def test_a_draining_service_accepts_nothing(service: Service, asked: Asked, watched: Asked) -> None:
    """The second listener reports it."""
    assert 200 == watched("GET", "/readyz").status_code
    service.close()
    answer = asked.post("ask", {"question": QUESTION}, bearer=token())
    assert (503, "DRAINING") == (answer.status_code, answer.json()["code"])
    assert (503, 200) == (watched("GET", "/readyz").status_code, watched("GET", "/livez").status_code)
