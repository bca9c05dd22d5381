"""``carag attack``: a target by name or behind HTTP, its exit codes, and the errors for what cannot be used."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from carag.cli.app import run
from carag.evaluation.attack import CHECKS, Where, attack
from carag.evaluation.attack.mapping import HttpTarget
from tests.attack.oracle import FakeClock, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAPPING = """\
people = { ann = "$ANN", bob = "of bob" }
headers = { X-Who = "token {whom}" }

[search]
path = "/search"
body = { query = "{query}", k = "{k}", vector = "{vector}" }
hits = "result.hits"
id = "0"
score = "1"
total = "result.total"
suggestions = "result.told"

[search_any]
path = "/search"
body = { query = "{query}", k = "{k}", any = "{names}" }
hits = "result.hits"
id = "0"

[search_none]
path = "/search"
body = { query = "{query}", k = "{k}", none = "{names}" }
hits = "result.hits"
id = "0"

[add]
method = "PUT"
path = "/documents/{id}"
body = { text = "{text}", audience = "{audience}" }

[relabel]
path = "/documents/{id}/label"
body = { audience = "{audience}" }

[delete]
method = "DELETE"
path = "/documents/{id}"

[get]
method = "GET"
path = "/documents/{id}"

[ask]
path = "/ask"
body = { question = "{query}" }
answer = "text"
citations = "citations"
"""


class Handler(BaseHTTPRequestHandler):
    """An oracle over HTTP, which knows two readers by their tokens."""

    oracle: Oracle
    nonsense: bytes | None = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        status, said = 200, None
        try:
            said = self.said(self.path.split("/")[1:], body)
        except PermissionError:
            status = 401
        except KeyError:
            status = 404
        data = json.dumps(said).encode() if self.nonsense is None else self.nonsense
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_PUT = do_DELETE = do_GET = do_POST  # noqa: N815 - as http.server wants them

    def said(self, path: list[str], body: Any) -> Any:
        from carag.evaluation.attack import Document

        oracle, whom = self.oracle, {"token of ann": "ann", "token of bob": "bob"}.get(self.headers["X-Who"])
        match self.command, path:
            case "PUT", [_, name]:
                return oracle.add([Document(name, body["text"], frozenset(body["audience"]))])
            case "POST", [_, name, "label"]:
                return oracle.relabel(name, frozenset(body["audience"]))
            case "DELETE", [_, name]:
                return oracle.delete([name])
        if whom is None:
            raise PermissionError
        match self.command, path:
            case "GET", [_, name]:
                return oracle.get(name, whom)
            case "POST", ["ask"]:
                return oracle.ask(body["question"], whom)._asdict()
        names = body.get("any", body.get("none"))
        where = None if names is None else Where(frozenset(names), negated="none" in body)
        found = oracle.searched(body["query"], body["k"], whom, where)
        return {"result": {"hits": found.hits, "total": found.total, "told": found.suggestions}}

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(oracle: Oracle, nonsense: bytes | None = None) -> Iterator[str]:
    handler = type("Served", (Handler,), {"oracle": oracle, "nonsense": nonsense})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANN", "of ann")
    (tmp_path / "mapping.toml").write_text(MAPPING)
    return tmp_path / "mapping.toml"


def test_a_sound_service_is_tested_through_its_mapping(mapping: Path) -> None:
    """All checks but that of unknown readers, of files and of time, which would take long."""
    with served(oracle := Oracle()) as address:
        report = attack(HttpTarget(address, mapping), address, clock=FakeClock(), checks=CHECKS[:-1])
    assert () == report.findings
    assert {"unknown", "files"} == {one.check for one in report.outcomes if one.not_tried}
    assert {} == oracle.rows


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (("no filter",), "closed"),
        (("counts all",), "count"),
        (("filters afterwards", 1), "fewer"),
        (("negation is or",), "inverted"),
    ],
)
def test_a_broken_service_is_found(mapping: Path, fault: tuple[Any, ...], check: str) -> None:
    checks = tuple(one for one in CHECKS if one.__name__ == check)
    with served(Oracle(*fault)) as address:
        report = attack(HttpTarget(address, mapping), address, checks=checks)
    assert [check] == [one.check for one in report.outcomes if one.findings]


@pytest.mark.parametrize(
    "nonsense", [b"<html>", b"[]", b'{"result": {"hits": 7}}', b'{"result": {"hits": [7]}}', b"\xff"]
)
def test_a_service_that_answers_nonsense_could_not_be_tested(
    mapping: Path, capsys: pytest.CaptureFixture[str], nonsense: bytes
) -> None:
    with served(Oracle(), nonsense) as address:
        assert 2 == run(["attack", address, "--mapping", str(mapping), "--requests", "30"])
    assert "not tried" in capsys.readouterr().out


def test_nor_one_that_does_not_answer(mapping: Path) -> None:
    with served(Oracle()) as address:
        pass
    assert 2 == run(["attack", address, "--mapping", str(mapping)])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[search]", "[serch]", "serch is unknown"),
        ("total =", "totals =", "search.totals is unknown"),
        ('"{query}"', '"{question}"', "has {question}"),
        ('"/ask"', '"ask"', "ask.path must begin with a slash"),
        ('hits = "result.hits"\n', "", "search.hits is missing"),
        ('bob = "of bob"', 'bob = "of bob", cy = "1"', "people names 3 readers"),
        ('"$ANN"', '"$NO_SUCH_VARIABLE"', "NO_SUCH_VARIABLE, which the environment does not set"),
        ("[search]", "[search", "mapping.toml: "),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused(
    mapping: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    """Before anything is sent."""
    mapping.write_text(MAPPING.replace(old, new))
    assert 65 == run(["attack", "http://127.0.0.1:9", "--mapping", str(mapping)])
    assert said in capsys.readouterr().err


MODULE = """
from tests.attack.oracle import Oracle

def sound():
    return Oracle()

def leaking():
    return Oracle("no filter")

def failing():
    raise RuntimeError("no server")

def ending():
    raise SystemExit(0)

def bare():
    return object()

number = 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "attacked_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "attacked_module", raising=False)
    return "attacked_module"


def test_exit_codes_and_forms(module: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = ["--requests", "60"]
    assert 0 == run(["attack", f"{module}:sound", *few])
    assert "nothing found closed" in capsys.readouterr().out
    badge = tmp_path / "badge.svg"
    assert 1 == run(["attack", f"{module}:leaking", *few, "--format", "json", "--badge", str(badge)])
    assert 1 == json.loads(capsys.readouterr().out)["exit_code"]
    assert "found a leak" in badge.read_text()
    assert 1 == run(["attack", f"{module}:leaking", *few, "--format", "markdown", "--seed", "3"])
    assert capsys.readouterr().out.startswith(f"# Attack on {module}:leaking")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:target", "No module named 'no_such_module'"),
        ("attacked_module:missing", "has no callable missing"),
        ("attacked_module:number", "has no callable number"),
        ("attacked_module", "want MODULE:FUNCTION"),
        ("attacked_module:failing", "the factory raised RuntimeError"),
        ("attacked_module:ending", "the factory raised SystemExit"),
        ("attacked_module:bare", "want `add` and `search`"),
        ("http://127.0.0.1:9", "an address and --mapping"),
    ],
)
def test_a_target_that_cannot_be_made_is_refused(
    module: str, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    assert 65 == run(["attack", target])
    assert said in capsys.readouterr().err
