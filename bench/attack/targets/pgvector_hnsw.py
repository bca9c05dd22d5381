"""PostgreSQL with pgvector and row-level security, and with pgvector's graph at its defaults."""

from __future__ import annotations

from bench.attack.targets import pgvector


class target(pgvector.target):  # noqa: N801 - the factory that a command names
    """The same table with an index."""

    indexed = True
