"""The interface's description is the file in the reference, and the service conforms to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from bench.service.office import Office
from carag import Session
from carag.service.app import described
from carag.service.problems import TITLES
from carag.service.wire import AnswerBody, ExplanationBody, RetrievalBody
from tests.service.conftest import CHUNK, QUESTION, Asked, token

if TYPE_CHECKING:
    from carag import Engine

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_description_is_the_one_in_the_reference() -> None:
    """So a change of the interface is visible in a review."""
    assert json.loads(PAGE.read_text("utf-8")) == described().openapi()


def test_it_is_served_unchanged(asked: Asked) -> None:
    """Without a token, since it says nothing about a store."""
    assert json.loads(PAGE.read_text("utf-8")) == asked("GET", "/openapi.json").json()


def test_every_operation_names_every_status_that_it_may_answer() -> None:
    """Including all problems of a request with a token."""
    known = {str(status) for status, _ in TITLES.values()} | {"200", "202"}
    for path, methods in described().openapi()["paths"].items():
        for operation in methods.values():
            assert {"401", "403", "429", "500", "503", "504"} <= set(operation["responses"]) <= known, path
            assert [{"bearer": []}] == operation["security"]
            for status, response in operation["responses"].items():
                assert status in ("200", "202") or ["application/problem+json"] == list(response["content"])


def test_answers_have_what_is_described_and_what_the_engine_s_json_has(asked: Asked, engine: Engine) -> None:
    """No key of ``to_json`` is missing."""
    session = Session(role="buy_side", purpose="invest")
    cases: tuple[tuple[str, dict[str, Any], Any], ...] = (
        ("ask", {"question": QUESTION}, AnswerBody),
        ("retrieve", {"question": QUESTION}, RetrievalBody),
        ("explain", {"chunk_id": CHUNK}, ExplanationBody),
    )
    for operation, body, schema in cases:
        found = asked.post(operation, body, bearer=token()).json()
        TypeAdapter(schema).validate_json(json.dumps(found))
        of_engine = getattr(engine, operation)(*body.values(), session)
        if hasattr(of_engine, "to_json"):
            assert set(of_engine.to_json()) <= set(found)


@pytest.mark.parametrize(
    ("phases", "examples"),
    [
        pytest.param("fuzzing", 5, marks=pytest.mark.release),
        pytest.param("coverage,fuzzing", 500, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("with_token", [True, False])
def test_the_service_conforms_to_its_description(
    tmp_path: Path, phases: str, examples: int, with_token: bool
) -> None:
    """Over a real socket no check of schemathesis fails, for requests that the description allows and others.

    The checks include that a token is required, and that no other status, schema or media type is returned.
    """
    pytest.importorskip("schemathesis")
    office = Office(tmp_path)
    grants = (tmp_path / "grants.toml").read_text()
    duties = 'duties = ["admin", "audit", "operate"]\n'  # so that writes are done, too
    (tmp_path / "grants.toml").write_text(grants.replace("cells =", f"{duties}cells =", 1))
    with office.served() as served:
        words = [
            *("--config-file", str(Path(__file__).with_name("schemathesis.toml")), "--no-color", "run"),
            f"http://127.0.0.1:{served.port}/openapi.json",
            *(
                "--phases",
                phases,
                "--checks",
                "all",
                "--max-examples",
                str(examples),
                "--seed",
                "7",
                "--continue-on-failure",
            ),
            *("--generation-database", "none"),
            *(["--header", f"Authorization: Bearer {office.token()}"] if with_token else []),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words], cwd=tmp_path, capture_output=True, text=True
        )
    # Counterexamples may be 100 kB long.
    said = "\n".join(line[:300] for line in done.stdout.splitlines())
    assert done.returncode == 0, said + done.stderr[-2000:]
    tested = re.search(r"Selected: (\d+)/\1\s+Tested: \1\b", said)
    assert tested is not None, said
    assert int(tested[1]) == sum(map(len, described().openapi()["paths"].values()))
