"""Keep vectors in PostgreSQL with pgvector, and the epochs of sharded collections."""

from __future__ import annotations

from carag.backends.postgres.backend import PostgresBackend
from carag.backends.postgres.epochs import PostgresEpochs

__all__ = ["PostgresBackend", "PostgresEpochs"]
