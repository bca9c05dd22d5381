"""Indexes that rows are erased from, each by the strongest means that it offers to a caller."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.ann.engine import optional
from carag.index import Index, Plan
from carag.policy import Mask

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.backends.postgres_servers import Server

K: Final = 10
_WORD: Final = 0x0800_0000
"""A row that every policy may admit."""


class Hits(NamedTuple):
    """What an attacker sees of some searches."""

    ids: NDArray[np.int64]
    """(n, K), nearest first; padded with -1."""
    scores: NDArray[np.float32]
    """(n, K)."""


class Kept(ABC):
    """Unit vectors in files below a directory of their own; settings are the library's defaults."""

    name: str
    means: str
    """How rows are erased."""
    replaces = False
    """Whether other rows take the places of those that are erased."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @abstractmethod
    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert rows in this order."""

    @abstractmethod
    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase rows."""

    @abstractmethod
    def save(self) -> None:
        """Have everything in files below the directory."""

    def files(self) -> list[Path]:
        """Return the files that hold it, once it was saved."""
        return [one for one in self.home.rglob("*") if one.is_file()]

    def close(self) -> None:
        """Let go of it."""
        self.__dict__.clear()


class Peer(Kept):
    """The same, searched."""

    views: tuple[str, ...] = ("",)
    """Ways of searching one index."""

    @abstractmethod
    def search(self, probes: NDArray[np.float32], view: str) -> Hits:
        """Return the nearest rows of each probe."""


class Carag(Peer):
    """CARAG's index."""

    name, means = "carag", "delete, consolidate"
    views = ("exact", "certified", "scan", "graph", "graph alone")

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._index: Any = None

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        if self._index is None:
            self._index = Index(vectors.shape[1])
        self._index.add(vectors, np.full(len(ids), _WORD, np.uint32), ids)

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._index.delete(ids)
        self._index.consolidate()

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:
        """Search."""
        plan = view.removesuffix(" alone")
        found = self._index.search(probes, K, Mask(), plan=Plan(plan), threads=1, fallback=plan == view)
        return Hits(found.keys, found.similarities)

    def save(self) -> None:
        """Save."""
        self._index.save(self.home / "index.carag")


class Hnswlib(Peer):
    """hnswlib: rows that are marked stay in the graph."""

    name, means = "hnswlib", "mark_deleted"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        if not hasattr(self, "_index"):
            self._index = optional("hnswlib").Index("ip", vectors.shape[1])
            self._index.init_index(2 * len(ids), allow_replace_deleted=self.replaces)
            self._index.add_items(vectors, ids, num_threads=1)
        else:
            self._index.add_items(vectors, ids, num_threads=1, replace_deleted=self.replaces)

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        for one in ids.tolist():
            self._index.mark_deleted(one)

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        ids, distances = self._index.knn_query(probes, K, num_threads=1)
        return Hits(ids.astype(np.int64), 1 - distances)

    def save(self) -> None:
        """Save."""
        self._index.save_index(str(self.home / "index.bin"))


class HnswlibReplaced(Hnswlib):
    """hnswlib, with new rows in the places of those that were marked."""

    name, means, replaces = "hnswlib, replaced", "mark_deleted, then as many rows with replace_deleted", True


class FaissHnsw(Peer):
    """FAISS's graph, which cannot remove a row: a selector hides it."""

    name, means = "faiss-hnsw", "none (`remove_ids` is not implemented); hidden by an IDSelector"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        self._faiss = optional("faiss")
        self._faiss.omp_set_num_threads(1)
        self._hidden = np.empty(0, np.int64)
        self._index = self._made(vectors)
        self._index.add_with_ids(vectors, ids)

    def _made(self, vectors: NDArray[np.float32]) -> Any:
        graph = self._faiss.IndexHNSWFlat(vectors.shape[1], 32, self._faiss.METRIC_INNER_PRODUCT)
        return self._faiss.IndexIDMap2(graph)

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._hidden = ids

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        selector = self._faiss.IDSelectorNot(self._faiss.IDSelectorBatch(self._hidden))
        scores, ids = self._index.search(
            probes, K, params=self._faiss.SearchParametersHNSW(sel=selector, efSearch=16)
        )
        return Hits(ids, scores)

    def save(self) -> None:
        """Save."""
        self._faiss.write_index(self._index, str(self.home / "index.faiss"))


class FaissIvf(FaissHnsw):
    """FAISS's lists, around centroids that were trained on all rows."""

    name, means = "faiss-ivf", "remove_ids"

    def _made(self, vectors: NDArray[np.float32]) -> Any:
        faiss, dim = self._faiss, vectors.shape[1]
        self._quantizer = faiss.IndexFlatIP(dim)  # the index does not own it
        index = faiss.IndexIVFFlat(self._quantizer, dim, 45, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.nprobe = 4
        return index

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._index.remove_ids(ids)

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        scores, ids = self._index.search(probes, K)
        return Hits(ids, scores)


class FaissFlat(FaissIvf):
    """FAISS's plain rows."""

    name = "faiss-flat"

    def _made(self, vectors: NDArray[np.float32]) -> Any:
        return self._faiss.IndexIDMap2(self._faiss.IndexFlatIP(vectors.shape[1]))


def _hits(found: list[Any]) -> Hits:
    ids, scores = (
        np.array([[getattr(hit, one) for hit in hits] for hits in found]) for one in ("id", "score")
    )
    return Hits(ids, scores)


class QdrantLocal(Peer):
    """The local mode of Qdrant's client: NumPy, in memory."""

    name, means = "qdrant-local", "delete"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        client = optional("qdrant_client")
        self._models, self._client = client.models, self._opened(client)
        size = self._models.VectorParams(size=vectors.shape[1], distance=self._models.Distance.COSINE)
        self._client.create_collection("rows", size)
        self._client.upload_collection("rows", vectors, ids=ids.tolist())

    def _opened(self, client: Any) -> Any:
        return client.QdrantClient(":memory:")

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._client.delete("rows", ids.tolist())

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        found = [self._client.query_points("rows", probe.tolist(), limit=K).points for probe in probes]
        return _hits(found)

    def save(self) -> None:
        """Save."""
        self._client.close()


class QdrantEdge(Peer):
    """Qdrant's core in this process, with a graph."""

    name, means = "qdrant-edge", "delete_points, optimize"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        qdrant = self._qdrant = optional("qdrant_edge")
        config = qdrant.EdgeConfig(
            vectors=qdrant.EdgeVectorParams(size=vectors.shape[1], distance=qdrant.Distance.Dot),
            hnsw_config=qdrant.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10),
            optimizers=qdrant.EdgeOptimizersConfig(
                default_segment_number=1,
                indexing_threshold=10,
                deleted_threshold=0.001,
                vacuum_min_vector_number=100,
            ),
            max_search_threads=1,
        )
        home = self.home / "edge"
        home.mkdir()
        self._shard = qdrant.EdgeShard.create(str(home), config)
        points = [qdrant.Point(one, row.tolist(), {}) for one, row in zip(ids.tolist(), vectors, strict=True)]
        self._shard.update(qdrant.UpdateOperation.upsert_points(points))
        self._optimize()

    def _optimize(self) -> None:
        while self._shard.optimize():
            pass

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._shard.update(self._qdrant.UpdateOperation.delete_points(ids.tolist()))
        self._optimize()

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        nearest, request = self._qdrant.Query.Nearest, self._qdrant.SearchRequest
        found = [self._shard.search(request(nearest(probe.tolist()), K)) for probe in probes]
        return _hits(found)

    def save(self) -> None:
        """Save."""
        self._shard.close()


@cache
def server() -> Server:
    """Start a server with pgvector, for as long as this process runs."""
    undo = ExitStack()
    atexit.register(undo.close)
    server: Server = undo.enter_context(optional("tests.backends.postgres_servers").postgres_servers(1))[0]
    with optional("psycopg").connect(server.url, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
    return server


class PgVector(Peer):
    """PostgreSQL with pgvector's graph."""

    name, means = "pgvector", "DELETE, VACUUM"

    def add(self, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Insert them."""
        self._db = optional("psycopg").connect(server().url, autocommit=True)
        for statement in (
            "DROP TABLE IF EXISTS rows, probes",
            f"CREATE TABLE rows (id int PRIMARY KEY, v vector({vectors.shape[1]}))",
            f"CREATE TABLE probes (id int, v vector({vectors.shape[1]}))",
            "CREATE INDEX ON rows USING hnsw (v vector_ip_ops)",
            "SET enable_seqscan = off",  # so that so few rows are searched through the graph
        ):
            self._db.execute(statement)
        self._copy("rows", vectors, ids)

    def _copy(self, table: str, vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        with self._db.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for one, vector in zip(ids.tolist(), vectors, strict=True):
                copy.write_row((one, str(vector.tolist())))

    def erase(self, ids: NDArray[np.int64]) -> None:
        """Erase them."""
        self._db.execute("DELETE FROM rows WHERE id = ANY(%s)", (ids.tolist(),))
        self._db.execute("VACUUM rows")

    def search(self, probes: NDArray[np.float32], view: str) -> Hits:  # noqa: ARG002 - one way
        """Search."""
        self._copy("probes", probes, np.arange(len(probes)))
        found = self._db.execute(
            "SELECT hit.id, hit.score FROM (SELECT * FROM probes ORDER BY id OFFSET 0) AS probe CROSS JOIN LATERAL "
            "(SELECT id, -(v <#> probe.v) AS score FROM rows ORDER BY v <#> probe.v LIMIT %s) AS hit",
            (K,),
        ).fetchall()
        ids, scores = (np.array(column).reshape(-1, K) for column in zip(*found, strict=True))
        return Hits(ids, scores)

    def save(self) -> None:
        """Save."""
        self._db.execute("CHECKPOINT")

    def files(self) -> list[Path]:
        """Return those of the table and its indexes, without the journal."""
        paths = self._db.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = 'rows'::regclass UNION "
            "SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = 'rows'::regclass"
        ).fetchall()
        return [server().directory / "data" / path for (path,) in paths]

    def close(self) -> None:
        """Hang up."""
        self._db.close()
        super().close()
