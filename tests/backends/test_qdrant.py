"""Qdrant conforms, in its client's local mode; what a server would be sent is checked.

No package index has a Qdrant server, so nothing here tests replicas, or a machine that is killed.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
import traceback
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from carag.backends import Admitted, QdrantBackend
from carag.backends.versioned import Register
from carag.errors import BackendUnavailable
from carag.policy import policy_word
from tests.backends.conformance import Conformance
from tests.backends.loads import Loads
from tests.backends.rows import rows
from tests.backends.worlds import EVERYTHING
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

qdrant_client = pytest.importorskip(
    "qdrant_client", reason="needs a client of Qdrant: pip install qdrant-client"
)

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")
ONE, TWO = policy_word(1), policy_word(2)
NAMES = itertools.count()
STRONG = {"wait": ["true"], "ordering": ["strong"]}


class Local:
    """Qdrant in this process, with a lock, since its local mode is not thread-safe."""

    def __init__(self) -> None:
        self._client, self._lock = qdrant_client.QdrantClient(":memory:"), threading.Lock()

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any, **named: Any) -> Any:
            with self._lock:
                return getattr(self._client, name)(*words, **named)

        return call


@pytest.fixture(autouse=True)
def _paths_are_parsed_once(monkeypatch):
    """Local mode parses field names again for every point."""
    from qdrant_client.local import payload_value_extractor as extractor

    monkeypatch.setattr(extractor, "parse_json_path", lru_cache(extractor.parse_json_path))


class TestQdrant(Conformance):
    """Every epoch is kept; a second connection is a second backend over the client."""

    questions, relabels, flips, rows = examples(60), examples(60), examples(20), examples(1_000, least=100)
    lies, all_lies = examples(300), 4_000

    @pytest.fixture(autouse=True)
    def _started(self):
        self.client = Local()

    def new(self, dim):
        return QdrantBackend(self.client, collection=f"test{next(NAMES)}", keep=None)

    def another(self, backend):
        return QdrantBackend(self.client, collection=backend.state().collection, keep=None)

    def stored(self, backend, wanted):
        points, _ = self.client.scroll(backend.state().collection, limit=999, with_vectors=True)
        return wanted & {np.array(point.vector, "<f4").tobytes() for point in points}

    def stop(self, backend):
        backend.close()


class TestLoads(Loads):
    """A second connection is a second backend over the client."""

    @pytest.fixture(autouse=True)
    def _started(self):
        self.client = Local()

    def make(self):
        return QdrantBackend(self.client, collection=f"test{next(NAMES)}")

    def connect(self, backend):
        return QdrantBackend(self.client, collection=backend.state().collection)


def asked(*words: int, **more) -> Admitted:
    return Admitted(words, 0, 0, None, (), (0,), EVERYTHING)._replace(**more)


def test_what_was_deleted_leaves_the_engine(monkeypatch):
    """Once its epoch can no longer be asked for."""
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    client = Local()
    backend = QdrantBackend(client, keep=60)
    backend.add(rows(range(30), ONE), batch="first")
    backend.delete(range(10), batch="second")
    assert 30 == client.count("carag").count
    for number in range(4):
        clock[0] += 61
        backend.relabel([20], [TWO if number % 2 else ONE], batch=f"later {number}")
    kept = {point.payload["key"] for point in client.scroll("carag", limit=99)[0]}
    assert set(range(10, 30)) == kept
    assert 20 == backend.count(asked(ONE, TWO))


# ------------------------------------------------------------ what a server is sent


class Server:
    """Listens like a Qdrant server, and remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, list[str]], Any]] = []
        self.keys: set[str | None] = set()
        self.status, self.exists = 200, True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                parts = urlsplit(self.path)
                outer.keys.add(self.headers.get("api-key"))
                outer.sent.append(
                    (self.command, parts.path, parse_qs(parts.query), json.loads(body or b"null"))
                )
                answer = json.dumps(outer.answer(parts.path)).encode()
                self.send_response(outer.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - names of the base class

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.port = self._http.server_address[1]

    def answer(self, path: str) -> Any:
        """Confirm everything, and hold nothing."""
        if path == "/":
            return {"title": "qdrant", "version": "1.16.0"}
        method, result = self.sent[-1][0], {"operation_id": 1, "status": "completed"}
        answers: dict[str, Any] = {
            "exists": {"exists": self.exists},
            "count": {"count": 3},
            "batch": [{"points": []}],
            "scroll": {"points": [], "next_page_offset": None},
            "points": [] if method == "POST" else result,
            "carag": True,
            "carag__register": True,
        }
        return {"result": answers.get(path.rpartition("/")[2], result), "status": "ok", "time": 0.0}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def test_writes_wait_in_strong_order_and_reads_ask_all_replicas(server):
    """A search is exact, and all replicas of a collection confirm a write."""
    server.exists = False
    backend = QdrantBackend(f"qdrant://127.0.0.1:{server.port}", replicas=3)
    backend.add(rows([1, 2], ONE), batch="first")
    writes = [query for method, path, query, _ in server.sent if method == "PUT" and path.endswith("/points")]
    assert 4 == len(writes)  # the note, the rows, the batch and its epoch, and the register
    assert all(STRONG.items() <= query.items() for query in writes)
    made = [body for method, path, _, body in server.sent if method == "PUT" and path.count("/") == 2]
    assert [(3, 3)] * 2 == [(one["replication_factor"], one["write_consistency_factor"]) for one in made]
    assert "Dot" == made[0]["vectors"]["distance"]
    assert 0 == made[0]["hnsw_config"]["m"]
    server.sent.clear()
    register = Register.empty(1)._replace(epoch=1, dim=4)
    backend._nearest(np.ones((1, 4), np.float32), 5, asked(ONE), register)
    backend._live([1], register)
    backend._texts("now")
    reads = [query for _, _, query, _ in server.sent]
    assert 3 == len(reads)
    assert all(["all"] == query.get("consistency") for query in reads)
    (search,) = [body for _, path, _, body in server.sent if path.endswith("/query/batch")]
    assert search["searches"][0]["params"]["exact"] is True


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_failing_server_is_asked_again_a_few_times(server, status):
    """Then the failure is reported by its type alone, since its text may contain an address."""
    backend = QdrantBackend(f"http://127.0.0.1:{server.port}")
    server.status = status
    server.sent.clear()
    with pytest.raises(BackendUnavailable, match="after 4 tries"):
        backend.state()
    assert 4 == len(server.sent)


def test_a_refusal_is_not_repeated(server):
    """Such as of a client without a key."""
    server.status = 403
    with pytest.raises(BackendUnavailable, match="after one try"):
        QdrantBackend(f"http://127.0.0.1:{server.port}")
    assert 1 == len(server.sent)


def test_a_key_is_sent_and_never_shown(server, monkeypatch):
    """Neither in an error nor in a repr."""
    monkeypatch.setenv("CARAG_QDRANT_API_KEY", "hunter2")
    with pytest.warns(UserWarning, match="insecure"):
        backend = QdrantBackend(f"qdrant://127.0.0.1:{server.port}")
    assert {"hunter2"} == server.keys
    assert "hunter2" not in repr(backend)
    server.status = 500
    with pytest.raises(BackendUnavailable) as said:
        backend.state()
    assert "hunter2" not in "".join(traceback.format_exception(said.value))


def test_the_client_of_a_caller_is_not_closed():
    """Its owner can continue to use it."""
    client = Local()
    with QdrantBackend(client) as backend:
        backend.add(rows([1], ONE), batch="first")
    with pytest.raises(BackendUnavailable, match="is closed"):
        backend.state()
    assert 1 == QdrantBackend(client).state().epoch
