"""No text leaves without its record, and logs, metrics and errors contain no content."""

from __future__ import annotations

import io
import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from carag import Engine, Session
from carag.audit import Access, Outcome
from carag.audit.anchors import Exposure, Standing
from carag.errors import AuditUnavailable, CorruptFile, ModelUnavailable
from carag.policy import Profile
from carag.policy.shipped import SHIPPED
from carag.service.metrics import OPERATIONS, Metrics
from tests.service.conftest import AS_OFFICER, CHUNK, OFFICER, QUESTION, Asked, events, token

if TYPE_CHECKING:
    import pytest

    from carag.service.service import Service

CANARY = "zwyqcanary"
BODIES = {
    "ask": {"question": QUESTION},
    "ask/stream": {"question": QUESTION},
    "retrieve": {"question": QUESTION},
    "explain": {"chunk_id": CHUNK},
}


def passage_words(engine: Engine) -> set[str]:
    """Return the longest words of every passage in the store."""
    found = engine.retrieve(QUESTION, Session(role="compliance", purpose="surveil"), 400)
    return {word for one in found.passages for word in one.text.split() if len(word) > 9 and word.isalpha()}


def sse(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_stream_begins_with_the_record_and_ends_with_the_answer(asked: Asked, engine: Engine) -> None:
    """The record is in the log when its event arrives, and the pieces of text make up the answer."""
    answer = asked.post("ask/stream", {"question": QUESTION}, bearer=token())
    assert "text/event-stream" == answer.headers["content-type"].partition(";")[0]
    said = sse(answer.text)
    names = [name for name, _ in said]
    assert names == ["record", *["text"] * (len(said) - 2), "done"]
    assert len(said) > 2
    assert Outcome.ANSWER is events(engine)[said[0][1]["record"]].outcome
    assert "".join(data["text"] for name, data in said if name == "text") == said[-1][1]["text"]
    whole = asked.post("ask", {"question": QUESTION}, bearer=token()).json()
    differ = {"record", "receipt"}
    assert {name: one for name, one in whole.items() if name not in differ} == {
        name: one for name, one in said[-1][1].items() if name not in differ
    }


def test_the_record_is_written_before_the_first_byte(asked: Asked, engine: Engine) -> None:
    """At each message of the response the log already has the request."""
    seen: list[tuple[str, int]] = []
    app = asked._app

    async def watching(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            answers = [event for event in events(engine) if isinstance(event, Access)]
            seen.append((message["type"], len(answers)))
            await send(message)

        await app(scope, receive, sent)

    assert 200 == Asked(watching).post("ask/stream", {"question": QUESTION}, bearer=token()).status_code
    assert seen[0] == ("http.response.start", 1)
    assert len(seen) > 3


def test_a_dead_log_gives_no_text(
    asked: Asked, watched: Asked, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of a passage or an answer is sent, and the second listener reports that the service is not ready."""
    words, bearer = passage_words(engine), token(**OFFICER)

    def fails(_: Any) -> None:
        raise AuditUnavailable(f"the disk is full of {CANARY}")

    for operation, body in BODIES.items():
        body = {**body, **AS_OFFICER}
        usual = asked.post(operation, body, bearer=bearer).text
        assert operation == "explain" or any(word in usual for word in words)
        with monkeypatch.context() as dead:
            dead.setattr(engine.log._appender, "submit", fails)
            answer = asked.post(operation, body, bearer=bearer)
            assert (503, "AUDIT_UNAVAILABLE") == (answer.status_code, answer.json()["code"])
            assert not [word for word in words if word in answer.text]
            assert CANARY not in answer.text
            assert "not ready: LOG_UNWRITABLE\n" == watched("GET", "/readyz").text
        assert 200 == watched("GET", "/readyz").status_code  # without a request: a load balancer sends none
        assert 200 == asked.post(operation, body, bearer=bearer).status_code


def test_a_failure_is_answered_by_its_code_alone(
    asked: Asked, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has its type and place, for its message may contain what was asked."""
    caplog.set_level(logging.DEBUG)
    for error, status, code in (
        (ModelUnavailable(CANARY), 503, "MODEL_UNAVAILABLE"),
        (CorruptFile(CANARY), 500, "STORE_CORRUPT"),
        (KeyError(CANARY), 500, "INTERNAL"),
        (MemoryError(CANARY), 500, "INTERNAL"),
    ):

        def fails(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(engine, "ask", fails)
        answer = asked.post("ask", {"question": QUESTION}, bearer=token())
        assert (status, code) == (answer.status_code, answer.json()["code"])
        assert CANARY not in answer.text + caplog.text
        assert status != 500 or type(error).__name__ in caplog.text


def test_logs_metrics_and_errors_contain_no_content(asked: Asked, watched: Asked, engine: Engine) -> None:
    """With canaries wherever a caller can write, in answered and refused requests; only an answer has them."""
    words = passage_words(engine)
    stream = io.StringIO()
    handler, root = logging.StreamHandler(stream), logging.getLogger()
    level = root.level
    handler.addFilter(lambda record: not record.name.startswith("httpx"))  # the client's own
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    bearer = token(sub=f"{CANARY}@bank.example", groups=["analysts", CANARY], jti=CANARY)
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("ask", {"question": f"{CANARY} {QUESTION}", "narrow": {"conversation": CANARY}}),
        ("ask/stream", {"question": f"{CANARY} {QUESTION}"}),
        ("retrieve", {"question": CANARY, "where": {CANARY: CANARY}}),
        ("retrieve", {"question": CANARY, CANARY: CANARY}),
        ("retrieve", {"question": CANARY, "role": CANARY, "purpose": CANARY}),
        ("explain", {"chunk_id": CANARY}),
    ]
    try:
        for operation, body in bodies:
            answer = asked.post(operation, body, bearer=bearer, params={"q": CANARY}, headers={"X-C": CANARY})
            if answer.status_code != 200:
                assert CANARY not in answer.text + str(answer.headers)
        asked.post("ask", {"question": CANARY}, bearer=token(iss=CANARY))
        asked("GET", f"/{CANARY}")
        asked(CANARY.upper(), "/v1/ask")
        told = watched("GET", "/metrics").text
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    logged = stream.getvalue()
    assert "ask 200" in logged
    for text in (told, logged):
        assert CANARY not in text.lower()
        assert "bank.example" not in text
        assert not [word for word in words if word in text]


def test_metrics_have_names_from_fixed_lists(asked: Asked, watched: Asked, service: Service) -> None:
    """They count answers and refusals."""
    asked.post("ask", {"question": QUESTION}, bearer=token())
    asked.post("ask", {"question": QUESTION})
    asked("GET", "/elsewhere")
    text = watched("GET", "/metrics").text
    assert 'carag_requests_total{operation="ask",status="200"} 1\n' in text
    assert 'carag_requests_total{operation="ask",status="401"} 1\n' in text
    assert 'carag_problems_total{code="TOKEN_MISSING"} 1\n' in text
    assert f"carag_records {service.engine.log.size}\n" in text
    assert 'carag_request_seconds_count{operation="ask"} 2\n' in text
    named = {
        line.split('operation="')[1].split('"')[0] for line in text.splitlines() if 'operation="' in line
    }
    assert named <= {*OPERATIONS}


def test_answers_are_counted_by_cell_and_outcome(asked: Asked, watched: Asked) -> None:
    """In under 200 series for every shipped profile; an unknown cell does not make another."""
    asked.post("ask", {"question": QUESTION}, bearer=token())
    asked.post("explain", {"chunk_id": CHUNK, **AS_OFFICER}, bearer=token(**OFFICER))
    text = watched("GET", "/metrics").text
    answers = [line for line in text.splitlines() if line.startswith("carag_answers_total")]
    assert [
        'carag_answers_total{role="buy_side",purpose="invest",outcome="answer"} 1',
        'carag_answers_total{role="compliance",purpose="surveil",outcome="answer"} 1',
    ] == answers
    for name in SHIPPED:
        cells = [(cell.role, cell.purpose) for cell in Profile.shipped(name).table.cells]
        metrics = Metrics(partial(tuple, cells))
        for role, purpose in [*cells, (CANARY, CANARY), (cells[0][0], CANARY)]:
            for outcome in (*(one.value for one in Outcome), CANARY):
                metrics.answer(role, purpose, outcome)
        told = metrics.text()
        assert CANARY not in told
        assert told.count("carag_answers_total{") == 5 * (len(cells) + 1) < 200


def test_a_service_whose_log_cannot_continue_is_not_ready(
    watched: Asked, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second listener gives the reason as a code; what no anchor confirms is a gauge."""
    for code, standing in (
        ("ANCHOR_WINDOW", Standing.EXCEEDED),
        ("ANCHOR_CONTRADICTS", Standing.CONTRADICTED),
        ("", Standing.OPEN),
        ("", Standing.COVERED),
        ("LOG_DAMAGED", None),
    ):
        if standing is None:
            monkeypatch.setattr(engine.log._scrubber, "damage", f"record 7 holds {CANARY}")
        else:
            exposure = Exposure(standing, 9, records=7, seconds=1.5, failures=(("s3://bucket", CANARY),))
            monkeypatch.setattr(engine.anchoring, "exposure", lambda exposure=exposure: exposure)
        ready, told = watched("GET", "/readyz"), watched("GET", "/metrics").text
        wanted = (503, f"not ready: {code}\n") if code else (200, "ok\n")
        assert wanted == (ready.status_code, ready.text)
        assert f"carag_ready {0 if code else 1}\n" in told
        assert "\ncarag_unanchored_records 7\n" in told
        assert "\ncarag_unanchored_seconds 1.5\n" in told
        assert CANARY not in told


def test_the_first_listener_has_no_metrics_or_health(asked: Asked) -> None:
    """They are on the second one only."""
    for path in ("/metrics", "/livez", "/readyz", "/redoc"):
        assert 404 == asked("GET", path).status_code
