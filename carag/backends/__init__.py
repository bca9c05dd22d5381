"""Search vectors where they already are: the native index, PostgreSQL, Milvus, Qdrant or Redis, under one contract.

The engine holds a :class:`Checked` and nothing else from this package; :mod:`carag.backends.protocol` defines the
contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.backends.checked import AnyIndex as AnyIndex
    from carag.backends.checked import Checked as Checked
    from carag.backends.current import Words as Words
    from carag.backends.milvus import MilvusBackend as MilvusBackend
    from carag.backends.moving import Copied as Copied
    from carag.backends.moving import copy_rows as copy_rows
    from carag.backends.moving import load_rows as load_rows
    from carag.backends.native import NativeBackend as NativeBackend
    from carag.backends.postgres.backend import PostgresBackend as PostgresBackend
    from carag.backends.protocol import Admitted as Admitted
    from carag.backends.protocol import Capabilities as Capabilities
    from carag.backends.protocol import Found as Found
    from carag.backends.protocol import GraphBackend as GraphBackend
    from carag.backends.protocol import IndexState as IndexState
    from carag.backends.protocol import LoadingBackend as LoadingBackend
    from carag.backends.protocol import Rows as Rows
    from carag.backends.protocol import ShardState as ShardState
    from carag.backends.protocol import VectorBackend as VectorBackend
    from carag.backends.qdrant import QdrantBackend as QdrantBackend
    from carag.backends.redis import RedisBackend as RedisBackend
    from carag.backends.results import CheckedResult as CheckedResult
    from carag.backends.results import CheckedStats as CheckedStats
    from carag.backends.root import StateRoot as StateRoot
    from carag.backends.root import state_root as state_root
    from carag.backends.rows import rows_of as rows_of
    from carag.backends.urls import backend_by_url as backend_by_url
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "checked": "AnyIndex Checked",
            "current": "Words",
            "milvus": "MilvusBackend",
            "moving": "Copied copy_rows load_rows",
            "native": "NativeBackend",
            "postgres.backend": "PostgresBackend",
            "protocol": "Admitted Capabilities Found GraphBackend IndexState LoadingBackend Rows ShardState "
            "VectorBackend",
            "qdrant": "QdrantBackend",
            "redis": "RedisBackend",
            "results": "CheckedResult CheckedStats",
            "root": "StateRoot state_root",
            "rows": "rows_of",
            "urls": "backend_by_url",
        },
    )
