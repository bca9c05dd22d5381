"""The page that describes the interface shows all of it, and replies as text."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag.service.app import described
from carag.service.console.login import HEADERS
from carag.service.console.pages import ROUTES
from carag.service.console.view import STATIC
from carag.service.metrics import OPERATIONS
from carag.service.problems import TITLES
from carag.service.requests import AskBody, ExplainBody, IngestBody, RetrieveBody, validated
from tests.audit.receipts.page import node

if TYPE_CHECKING:
    from carag.service.service import Service
    from tests.service.conftest import Asked

HERE = Path(__file__).parent
REPLY = '{"text": "<script>alert(1)</script> \u202e\\u0007"}'


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script makes of the description, and of the reply to each form."""
    place = tmp_path_factory.mktemp("page")
    (place / "docs.js").write_bytes(STATIC["docs.js"][0])
    (place / "described.json").write_text(json.dumps(described().openapi()))
    (place / "reply.json").write_text(REPLY, "utf-8")
    files = [place / name for name in ("docs.js", "described.json", "reply.json")]
    done = subprocess.run(
        [node(), HERE / "docs_page.cjs", *files], capture_output=True, text=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, one)
        for path, methods in described().openapi()["paths"].items()
        for method, one in methods.items()
    ]


def test_the_page_is_public_and_has_the_strict_headers(asked: Asked, service: Service) -> None:
    """It needs no token, its script is a file of this host, and it is counted by its own name."""
    found = asked("GET", "/docs")
    assert 200 == found.status_code
    assert HEADERS == {name: found.headers[name] for name in HEADERS}
    (script,) = (part.partition('"')[0] for part in found.text.split('<script src="')[1:])
    assert STATIC["docs.js"][0] == asked("GET", script).content
    assert 'operation="docs",status="200"' in service.metrics.text()


def test_every_operation_and_schema_is_shown_and_linked(shown: dict[str, Any]) -> None:
    """With its whole description; a fragment is scrolled to, and every link has a target."""
    assert f"CARAG {described().version}" == shown["state"]
    assert ["retrieve"] == shown["scrolled"]
    for path, method, one in operations():
        assert one["operationId"] in shown["ids"]
        assert f"{method.upper()} {path}" in shown["text"]
        assert one["summary"] in shown["text"]
        assert one["description"].split("``")[0].split("\n\n")[0] in shown["text"]
        assert one["tags"][0] in shown["text"]
    for name, schema in described().openapi()["components"]["schemas"].items():
        assert name in shown["ids"]
        assert all(field in shown["text"] for field in schema["properties"])
    assert len(shown["ids"]) == len(set(shown["ids"]))
    assert {link.removeprefix("#") for link in shown["links"]} <= set(shown["ids"])
    assert 1 == shown["text"].count("undefined")  # a field of the report on groups


def test_every_form_sends_the_described_request_with_the_token_and_no_cookie(shown: dict[str, Any]) -> None:
    """The token is in the header; a parameter cannot leave its segment of the path."""
    tags = list(dict.fromkeys(one["tags"][0] for _, _, one in operations()))
    in_order = sorted(operations(), key=lambda it: tags.index(it[2]["tags"][0]))
    for (path, method, one), (address, sent) in zip(in_order, shown["sent"], strict=True):
        assert method.upper() == sent["method"]
        assert "Bearer secret" == sent["headers"]["Authorization"]
        assert "omit" == sent["credentials"]
        names = [it["name"] for it in one.get("parameters", []) if it["in"] == "path"]
        wanted = path
        for name in names:
            wanted = wanted.replace(f"{{{name}}}", "0/a%20b")
        assert wanted == address
        assert ("body" in sent) == ("requestBody" in one)


def test_a_reply_is_shown_as_text_whatever_it_holds(shown: dict[str, Any]) -> None:
    """Without making elements, and with invisible characters named; the script cannot create markup."""
    for text in shown["shown"]:
        assert "<script>alert(1)</script> \\u{202e}\\u0007" in text
    assert {"script", "img", "iframe", "style"}.isdisjoint(shown["names"])
    source = STATIC["docs.js"][0].decode()
    for word in ("HTML", "eval(", "Function(", "document.write", "Storage", "cookie =", "import("):
        assert word not in source, word


def test_examples_are_valid_requests_and_codes_have_their_status() -> None:
    """A form's example can be sent unchanged; every code of the interface is described with its status."""
    for schema in (AskBody, RetrieveBody, ExplainBody, IngestBody):
        (example,) = schema.model_json_schema()["examples"]
        validated(schema, example)
    told = {
        (code, int(status))
        for _, _, one in operations()
        for status, response in one["responses"].items()
        for code in response["description"].split("``")[1::2]
    }
    elsewhere = {"CROSS_SITE", "TOKEN_TOO_LONG", "METHOD_NOT_ALLOWED"}  # of the console only
    assert {(code, status) for code, (status, _) in TITLES.items() if code not in elsewhere} == told


def test_the_counted_operations_are_those_that_are_served() -> None:
    """A missing route would be counted as ``other``."""
    named = {route.endpoint.__name__ for route in (*described().routes, *ROUTES)}
    assert {*OPERATIONS} == {*named, "docs", "other"}
    assert len(OPERATIONS) == len(set(OPERATIONS))


def test_every_file_of_the_pages_is_shipped() -> None:
    """The globs of the package's configuration cover them."""
    configured = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text("utf-8"))
    globs = configured["tool"]["setuptools"]["package-data"]["carag.service.console"]
    home = HERE.parents[2] / "carag" / "service" / "console"
    kept = {
        path for folder in ("static", "templates") for path in (home / folder).rglob("*") if path.is_file()
    }
    assert kept == {path for one in globs for path in home.glob(one) if path.is_file()}
    assert {home / "static" / "docs.js", home / "templates" / "docs.html"} <= kept
