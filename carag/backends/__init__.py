"""Search vectors where they already are: the native index, PostgreSQL, Milvus, Qdrant or Redis, under one contract.

The engine holds a :class:`Checked` and nothing else of this room. What a backend is, is in
:mod:`carag.backends.protocol`.
"""

from __future__ import annotations

from carag.backends.protocol import Admitted, Capabilities, Found, IndexState, Rows, ShardState, VectorBackend

__all__ = ["Admitted", "Capabilities", "Found", "IndexState", "Rows", "ShardState", "VectorBackend"]
