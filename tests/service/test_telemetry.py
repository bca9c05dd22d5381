"""A span has only what an allow-list names: nothing that a person wrote or may find."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.trace import StatusCode

from carag.errors import AuditUnavailable, InvalidArgument
from carag.index import Plan
from carag.service import telemetry
from tests.service.conftest import AS_OFFICER, CHUNK, OFFICER, QUESTION, Asked, token
from tests.service.test_record import BODIES, CANARY

if TYPE_CHECKING:
    from carag import Engine

ROOT = Path(__file__).parents[2]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Spans:
    """The spans that an operator's exporter gets."""

    def __init__(self, ended: list[Any]) -> None:
        self._ended = ended

    def taken(self) -> list[Any]:
        found = [one for one in self._ended if one.instrumentation_scope.name == "carag.service"]
        self._ended.clear()
        return found

    def one(self) -> Any:
        (found,) = self.taken()
        return found


@pytest.fixture
def spans(ended_spans: list[Any]) -> Spans:
    return Spans(ended_spans)


def test_a_request_is_one_span_that_describes_its_record(asked: Asked, spans: Spans) -> None:
    """Role and purpose, outcome, plan, models and the record's number; there are no child spans."""
    for operation, body in BODIES.items():
        asked.post(operation, {**body, **AS_OFFICER}, bearer=token(**OFFICER))
        span = spans.one()
        name = operation.replace("/", "_")
        assert (name, "SERVER", StatusCode.UNSET) == (span.name, span.kind.name, span.status.status_code)
        told = dict(span.attributes)
        assert told.keys() <= telemetry.ALLOWED.keys()
        wanted = {
            "carag.role": "compliance",
            "carag.purpose": "surveil",
            "carag.outcome": "answer",
            "carag.operation": name,
            "http.request.method": "POST",
            "http.response.status_code": 200,
        }
        assert wanted.items() <= told.items()
        assert told["carag.record"] > 0
        if operation != "explain":
            assert "wordllama" == told["carag.embedder"]
            assert {*told["carag.plan"].split("/")} <= {plan.value for plan in Plan}
        assert ("carag.generator" in told) == operation.startswith("ask")
        assert "other" not in told.values()
        assert ((), ()) == (span.events, span.links)


def test_the_record_on_a_span_is_that_of_the_answer(asked: Asked, spans: Spans) -> None:
    """The number of passages asked for is given in a few steps."""
    for k, bound in ((1, 1), (2, 5), (8, 10), (11, 20), (400, 400)):
        said = asked.post("retrieve", {"question": QUESTION, "k": k}, bearer=token()).json()
        told = spans.one().attributes
        assert (said["record"], bound) == (told["carag.record"], told["carag.k"])


def test_a_problem_is_given_by_its_code(
    asked: Asked, engine: Engine, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span fails, by a code and without an event, if the service does, not if the client is at fault."""
    asked.post("ask", {"question": QUESTION})
    asked("GET", f"/{CANARY}?q={CANARY}")
    asked(CANARY.upper(), "/v1/ask")
    strange = spans.taken()
    assert ["TOKEN_MISSING", "NOT_FOUND", "METHOD_NOT_ALLOWED"] == [
        one.attributes["carag.code"] for one in strange
    ]
    assert {StatusCode.UNSET} == {one.status.status_code for one in strange}
    assert ["POST", "GET", "_OTHER"] == [one.attributes["http.request.method"] for one in strange]

    def fails(*_: Any, **__: Any) -> None:
        raise AuditUnavailable(CANARY)

    monkeypatch.setattr(engine, "ask", fails)
    asked.post("ask", {"question": QUESTION}, bearer=token())
    failed = spans.one()
    assert (StatusCode.ERROR, "AUDIT_UNAVAILABLE") == (failed.status.status_code, failed.status.description)
    assert not any(one.events for one in (*strange, failed))
    assert CANARY not in "".join(one.to_json() for one in (*strange, failed)).lower()


def test_nothing_that_a_client_writes_is_on_a_span(
    asked: Asked, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment: the switches of the GenAI conventions change nothing."""
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("ask", {"question": f"{CANARY} {QUESTION}", "narrow": {"conversation": CANARY}}),
        ("retrieve", {"question": CANARY, "role": CANARY, "purpose": CANARY}),
        ("explain", {"chunk_id": CANARY}),
        ("explain", {"chunk_id": CHUNK}),
    ]
    bearer = token(sub=f"{CANARY}@bank.example", groups=["analysts", CANARY], jti=CANARY)
    headers = {"traceparent": PARENT, "tracestate": f"a={CANARY}", "baggage": f"b={CANARY}"}

    def told() -> list[dict[str, Any]]:
        for operation, body in bodies:
            asked.post(operation, body, bearer=bearer, headers=headers, params={"q": CANARY})
        found = spans.taken()
        assert len(bodies) == len(found)
        for span in found:
            for text in (CANARY, CHUNK, "bank.example", "Lumenfield"):
                assert text not in span.to_json()
            assert not span.context.trace_state
        return [{**span.attributes, "carag.record": 0} for span in found]

    before = told()
    for name, value in (
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT"),
        ("OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST", ".*"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental"),
    ):
        monkeypatch.setenv(name, value)
    assert before == told()


def test_a_span_continues_the_trace_in_the_header(asked: Asked, spans: Spans) -> None:
    """If there is exactly one, and it is valid; otherwise it begins a trace."""
    asked("GET", "/v1/policy", headers={"traceparent": PARENT})
    span = spans.one()
    assert (TRACE, "00f067aa0ba902b7") == (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}")
    for wrong in (PARENT.replace("00-", "ff-", 1), PARENT[:-1], "x" * 9000, f"{PARENT},{PARENT}"):
        asked("GET", "/v1/policy", headers={"traceparent": wrong})
        assert spans.one().parent is None


@given(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats(), st.binary()))
def test_an_attribute_takes_only_values_on_its_list(name: str, value: object) -> None:
    """An unknown name is refused, an unknown value replaced."""
    if name not in telemetry.ALLOWED:
        with pytest.raises(InvalidArgument):
            telemetry.attribute(name, value)
    for one in telemetry.ALLOWED.keys() - {"carag.embedder", "carag.generator"}:
        found = telemetry.attribute(one, value)
        assert found == "other" or (type(found) is type(value) and found in telemetry.ALLOWED[one])
    for one in ("carag.embedder", "carag.generator"):
        found = telemetry.attribute(one, value)
        assert found in ("other", value)
        assert " " not in str(found)


def test_roles_and_purposes_are_those_of_the_table(engine: Engine) -> None:
    """And plans are those of the index."""
    table = engine.profile.table
    for name, known in (("carag.role", table.roles), ("carag.purpose", table.purposes)):
        assert {*known} == {telemetry.attribute(name, one, table) for one in known}
        assert "other" == telemetry.attribute(name, known[0]) == telemetry.attribute(name, "wizard", table)
    assert {plan.value for plan in Plan if plan is not Plan.AUTO} == telemetry._PLANS
    assert "exact/graph" == telemetry.attribute("carag.plan", "exact/graph")
    assert "other" == telemetry.attribute("carag.plan", "exact/9990000000-23-000077:00001")


def test_without_the_package_nothing_happens(
    asked: Asked, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is the same, and there is no span."""
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    telemetry._tracer.cache_clear()
    try:
        assert 200 == asked.post("ask", {"question": QUESTION}, bearer=token()).status_code
    finally:
        telemetry._tracer.cache_clear()
    assert [] == spans.taken()


def test_only_one_module_imports_opentelemetry() -> None:
    """And only its API: exporting spans is up to the deployer."""
    found = {}
    for path in (ROOT / "carag").rglob("*.py"):
        if "opentelemetry" not in (text := path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if any(name.startswith("opentelemetry") for name in names):
                found.setdefault(path.name, set()).update(names)
    assert {"telemetry.py"} == found.keys()
    assert not [name for name in found["telemetry.py"] if ".sdk" in name or "exporter" in name]
