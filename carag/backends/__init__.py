"""Search vectors where they already are: the native index, PostgreSQL, Milvus, Qdrant or Redis, under one contract.

The engine holds a :class:`Checked` and nothing else of this package; :mod:`carag.backends.protocol` defines the
contract.
"""

from __future__ import annotations

from carag.backends.checked import AnyIndex, Checked
from carag.backends.current import Words
from carag.backends.milvus import MilvusBackend
from carag.backends.moving import Copied, copy_rows, load_rows
from carag.backends.native import NativeBackend
from carag.backends.postgres.backend import PostgresBackend
from carag.backends.protocol import (
    Admitted,
    Capabilities,
    Found,
    GraphBackend,
    IndexState,
    LoadingBackend,
    Rows,
    ShardState,
    VectorBackend,
)
from carag.backends.qdrant import QdrantBackend
from carag.backends.redis import RedisBackend
from carag.backends.results import CheckedResult, CheckedStats
from carag.backends.root import StateRoot, state_root
from carag.backends.rows import rows_of
from carag.backends.urls import backend_by_url

__all__ = [
    "Admitted",
    "AnyIndex",
    "Capabilities",
    "Checked",
    "CheckedResult",
    "CheckedStats",
    "Copied",
    "Found",
    "GraphBackend",
    "IndexState",
    "LoadingBackend",
    "MilvusBackend",
    "NativeBackend",
    "PostgresBackend",
    "QdrantBackend",
    "RedisBackend",
    "Rows",
    "ShardState",
    "StateRoot",
    "VectorBackend",
    "Words",
    "backend_by_url",
    "copy_rows",
    "load_rows",
    "rows_of",
    "state_root",
]
