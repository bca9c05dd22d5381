"""Redis: a vector set with names as attributes, and ``FILTER`` in each search."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carag.evaluation.attack import Document, Where, vector_of
from tests.backends.redis_cluster import RedisCluster

if TYPE_CHECKING:
    from collections.abc import Sequence


class target:  # noqa: N801 - the factory that a command names
    """One set in a server of its own."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._server = RedisCluster(Path(self._home.name), 1)
        (self._client,) = self._server.clients()

    def add(self, documents: Sequence[Document]) -> None:
        """Add elements with their attributes, or replace them."""
        for one in documents:
            said = json.dumps({"text": one.text, "audience": sorted(one.audience)})
            vector = vector_of(one.text).tobytes()
            self._client.execute_command("VADD", "rows", "FP32", vector, one.id, "NOQUANT", "SETATTR", said)

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Search with a filter on the audience; without a reader, as a caller who gives none."""
        return self._found(query, k, "" if as_whom is None else _has(as_whom))

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Join the caller's filter to the one on the audience with ``and``."""
        theirs = f"({' or '.join(map(_has, sorted(where.names)))})"
        return self._found(query, k, f"{_has(as_whom)} and {'not ' if where.negated else ''}{theirs}")

    def _found(self, query: str, k: int, allowed: str) -> list[tuple[str, float]]:
        words: list[Any] = ["VSIM", "rows", "FP32", vector_of(query).tobytes(), "WITHSCORES", "COUNT", k]
        found = self._client.execute_command(*words, *(["FILTER", allowed] if allowed else []))
        pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
        return [(name.decode() if isinstance(name, bytes) else name, float(score)) for name, score in pairs]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Set the attributes."""
        self._client.execute_command("VSETATTR", "rows", name, json.dumps({"audience": sorted(audience)}))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove elements."""
        for one in ids:
            self._client.execute_command("VREM", "rows", one)

    def files(self) -> list[Path]:
        """Have the append-only file written again, and return the files."""
        self._wait()
        self._client.bgrewriteaof()
        self._wait()
        self._server.wait_for_removals()
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def _wait(self) -> None:
        while (said := self._client.info("persistence"))["aof_rewrite_in_progress"] or said[
            "aof_rewrite_scheduled"
        ]:
            time.sleep(0.01)

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()
        self._home.cleanup()


def _has(name: str) -> str:
    return f"{json.dumps(name)} in .audience"
