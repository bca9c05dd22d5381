"""Keep epochs on an engine without transactions: what Redis, Qdrant and Milvus have in common."""

from __future__ import annotations

from carag.backends.versioned.backend import KEEP, Nearest, VersionedBackend
from carag.backends.versioned.loads import VersionedLoads
from carag.backends.versioned.register import Register
from carag.backends.versioned.versions import NEVER, NUMBERS, Versions, rows_from, version_item

__all__ = [
    "KEEP",
    "NEVER",
    "NUMBERS",
    "Nearest",
    "Register",
    "VersionedBackend",
    "VersionedLoads",
    "Versions",
    "rows_from",
    "version_item",
]
