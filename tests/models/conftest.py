"""A double of an OpenAI-compatible model server on the loopback interface, which checks every request."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.documents import Counting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRET = "sk-nobodys-9f2c71"  # noqa: S105 # opens nothing
KEY_ENV = "MODEL_SERVER_KEY"
BODIES = {
    "/v1/embeddings": {"model", "input", "encoding_format"},
    "/v1/chat/completions": {"model", "messages", "temperature", "seed", "max_tokens", "stream"},
    "/v1/rerank": {"model", "query", "documents"},
}


@dataclass
class Reply:
    """One answer: a body made from the request, with status and headers; or what a handler does by itself."""

    make: Callable[[dict[str, Any]], bytes] = lambda _: b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    by_hand: Callable[[Any, threading.Event], None] | None = None


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def embeddings(body: dict[str, Any]) -> bytes:
    rows = Counting().embed_documents(body["input"])
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return as_json({"object": "list", "data": data[::-1], "model": body["model"]})  # any order will do


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else as_json(value)) + b"\n\n"


def delta(text: str | None, reason: str | None = None) -> dict[str, Any]:
    content = {} if text is None else {"content": text}
    return {"choices": [{"index": 0, "delta": content, "finish_reason": reason}]}


def says(*parts: str, reason: str = "stop") -> Callable[[dict[str, Any]], bytes]:
    chunks = [*(delta(part) for part in parts), delta(None, reason), {"choices": [], "usage": {}}]
    return lambda _: b": ping\n\n" + b"".join(map(event, chunks)) + event(b"[DONE]")


def scores(body: dict[str, Any]) -> bytes:
    """The longest is best."""
    found = [{"index": at, "relevance_score": float(len(text))} for at, text in enumerate(body["documents"])]
    return as_json({"results": sorted(found, key=lambda one: -one["relevance_score"])})


DEFAULTS = {"/v1/embeddings": embeddings, "/v1/chat/completions": says("By May [1]."), "/v1/rerank": scores}


@dataclass
class Server:
    """The other end: a script of replies, after which it answers as it should, and the requests in order."""

    url: str = ""
    script: list[Reply] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    on_request: Callable[[str], None] = lambda _: None
    released: threading.Event = field(default_factory=threading.Event)

    def gives(self, make: Callable[[dict[str, Any]], bytes] | bytes, **changes: Any) -> None:
        self.script.append(Reply(make if callable(make) else (lambda _: make), **changes))

    def fails(self, status: int, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.script.append(Reply(lambda _: as_json({"error": {"message": "said the double"}}), status, named))

    def does(self, by_hand: Callable[[Any, threading.Event], None]) -> None:
        self.script.append(Reply(by_hand=by_hand))


def handler_for(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                extra = {"dimensions"} if "dimensions" in body else set()
                assert set(body) == BODIES[self.path] | extra, f"{self.path} with {sorted(body)}"
                assert self.headers["Content-Type"] == "application/json"
                assert self.headers["Authorization"] in (None, f"Bearer {SECRET}"), "Authorization"
            except (AssertionError, KeyError) as fault:
                server.faults.append(str(fault).partition("\n")[0])
            server.requests.append((self.path, body))
            server.on_request(self.path)
            reply = server.script.pop(0) if server.script else Reply(DEFAULTS.get(self.path, lambda _: b"{}"))
            if reply.by_hand is not None:
                reply.by_hand(self, server.released)
                self.close_connection = True
                return
            content = reply.make(body)
            kind = "text/event-stream" if body.get("stream") else "application/json"
            self.send_response(reply.status)
            for name, value in {"Content-Type": kind, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the test output clean."""

    return Handler


class Quiet(ThreadingHTTPServer):
    """A client that hangs up is what many tests are about."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        return None


def serving() -> Iterator[Server]:
    server = Server()
    http = Quiet(("127.0.0.1", 0), handler_for(server))
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A running double, and the secret in the environment; every request that came had the form of the API."""
    monkeypatch.setenv(KEY_ENV, SECRET)
    for one in serving():
        yield one
        assert [] == one.faults


@pytest.fixture
def other(server: Server) -> Iterator[Server]:
    """A second server, on another port."""
    yield from serving()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, which are not slept."""
    from carag.retrieval import model_server

    slept: list[float] = []
    monkeypatch.setattr(model_server.time, "sleep", slept.append)
    return slept
