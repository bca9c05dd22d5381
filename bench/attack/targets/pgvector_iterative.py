"""PostgreSQL with pgvector, its graph, and its iterative scans, which search on until enough rows pass the policy."""

from __future__ import annotations

from bench.attack.targets import pgvector_hnsw


class target(pgvector_hnsw.target):  # noqa: N801 - the factory that a command names
    """The same table, searched on in strict order."""

    scans = "strict_order"
