"""CARAG's service in a process of its own, asked over HTTP with a signed token for each reader."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import carag
from bench.service.office import Office
from carag.evaluation.attack import Answer, Document
from carag.http import Server, send

if TYPE_CHECKING:
    from collections.abc import Sequence

_GRANTS = """schema = 1
[[grant]]
group = "readers"
cells = ["public/read"]
[[grant]]
group = "operators"
duties = ["operate"]
"""


class target:  # noqa: N801 - the factory that a command names
    """A service with its defaults, over a store with the generic profile."""

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._texts: dict[str, str] = {}
        home = Path(self._undo.enter_context(tempfile.TemporaryDirectory()))
        carag.Engine.open(home / "store", profile="generic", embedder="wordllama").close()
        self._office = Office(home)
        (home / "grants.toml").write_text(_GRANTS)
        with (home / "office.toml").open("a") as settings:
            settings.write('[service.principals]\nsub = "user"\n')
        self._port = self._undo.enter_context(self._office.served()).port

    def _sent(self, whom: str | None, path: str, body: Any = None, group: str = "readers") -> Any:
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        if whom:
            headers["Authorization"] = f"Bearer {self._office.token(whom, group)}"
        way = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        server = Server("http", "127.0.0.1", self._port)
        reply = send(way[0], server, path, headers, way[1], seconds=60, most=1 << 24)
        if reply.status >= 400:
            raise PermissionError(f"{reply.status} {(reply.body or b'').decode()}")
        return json.loads(reply.body or b"null")

    def _ingest(self, body: Any) -> None:
        said = self._sent("operator", "/v1/ingest", body, "operators")
        while said["state"] not in ("done", "failed"):
            time.sleep(0.02)
            said = self._sent("operator", f"/v1/jobs/{said['id']}", None, "operators")
        assert said["state"] == "done", said

    def add(self, documents: Sequence[Document]) -> None:
        """Bring documents, and wait until they are in."""
        self._texts |= {one.id: one.text for one in documents}
        rows = [{"id": one.id, "text": one.text, "bits": [], "allow": _users(one)} for one in documents]
        self._ingest({"documents": rows})

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Bring the same text again, for others."""
        self.add([Document(name, self._texts[name], audience)])

    def delete(self, ids: Sequence[str]) -> None:
        """Remove documents."""
        self._ingest({"remove": list(ids)})

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Retrieve with a reader's token; without a reader, without a token."""
        said = self._sent(as_whom, "/v1/retrieve", {"question": query, "k": k})
        return [(one["document_id"], one["similarity"]) for one in said["passages"]]

    def get(self, name: str, as_whom: str) -> Any:
        """Explain the document's passage, which tells whether the reader may see it."""
        said = self._sent(as_whom, "/v1/explain", {"chunk_id": f"{name}:00000"})
        return {key: value for key, value in said.items() if key not in ("record", "receipt")}

    def ask(self, question: str, as_whom: str) -> Answer:
        """Ask; the answer quotes."""
        said = self._sent(as_whom, "/v1/ask", {"question": question})
        return Answer(said["text"] or said["why"], [one["document_id"] for one in said["citations"]])

    def close(self) -> None:
        """Stop the service, and remove the store."""
        self._undo.close()


def _users(one: Document) -> list[str]:
    return [f"user:{name}" for name in sorted(one.audience)]
