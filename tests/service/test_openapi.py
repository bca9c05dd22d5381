"""The interface's description is the file in the reference, and the service keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from carag.service.app import described
from carag.service.problems import TITLES
from carag.service.wire import AnswerBody, ExplanationBody, RetrievalBody
from tests.service.conftest import CHUNK, QUESTION, Asked, token

if TYPE_CHECKING:
    from carag import Engine
    from carag.service.service import Service

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_description_is_that_of_the_reference() -> None:
    """A change of the interface is seen in a review."""
    assert json.loads(PAGE.read_text("utf-8")) == described().openapi()


def test_it_is_served_as_it_stands_there(asked: Asked) -> None:
    """Without a token: it tells nothing of a store."""
    assert json.loads(PAGE.read_text("utf-8")) == asked("GET", "/openapi.json").json()


def test_every_address_names_every_status_that_it_may_answer() -> None:
    """All problems of a request with a token, each as a problem."""
    known = {str(status) for status, _ in TITLES.values()} | {"200", "202"}
    for path, methods in described().openapi()["paths"].items():
        for operation in methods.values():
            assert {"401", "403", "429", "500", "503", "504"} <= set(operation["responses"]) <= known, path
            assert [{"bearer": []}] == operation["security"]
            for status, response in operation["responses"].items():
                assert status in ("200", "202") or ["application/problem+json"] == list(response["content"])


@pytest.mark.parametrize(
    ("operation", "body", "schema"),
    [
        ("ask", {"question": QUESTION}, AnswerBody),
        ("retrieve", {"question": QUESTION}, RetrievalBody),
        ("explain", {"chunk_id": CHUNK}, ExplanationBody),
    ],
)
def test_answers_hold_what_is_described_and_what_the_engine_s_json_has(
    asked: Asked, engine: Engine, operation: str, body: dict[str, Any], schema: Any
) -> None:
    """No key of ``to_json`` is missing."""
    from carag import Session

    found = asked.post(operation, body, bearer=token()).json()
    TypeAdapter(schema).validate_json(json.dumps(found))
    session = Session(role="buy_side", purpose="invest")
    call: Any = getattr(engine, operation)
    of_engine = call(*body.values(), session)
    if hasattr(of_engine, "to_json"):
        assert set(of_engine.to_json()) <= set(found)


@pytest.mark.release
@pytest.mark.filterwarnings("ignore")  # of schemathesis' own
@pytest.mark.parametrize("with_token", [True, False])
def test_the_service_keeps_to_its_description(service: Service, with_token: bool) -> None:
    """Whatever the description allows, and much that it does not: no other status, form or media type comes back."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi import checks

    from carag.service.app import application

    schema = schemathesis.openapi.from_dict(described().openapi())
    schema.app = application(service)
    headers = {"Authorization": f"Bearer {token()}"} if with_token else {}
    chosen = (
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    )
    tried = 0
    for operation in schema.get_all_operations():

        @settings(
            max_examples=60,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.ok().as_strategy())
        def conforms(case: Any) -> None:
            nonlocal tried
            tried += 1
            case.call_and_validate(headers=headers, checks=chosen)

        conforms()
    assert tried > 300
