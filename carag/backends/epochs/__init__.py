"""Keep epochs on an engine that has no transactions: what Redis, Qdrant and Milvus have in common."""

from __future__ import annotations

from carag.backends.epochs.register import Register
from carag.backends.epochs.versioned import KEEP, Nearest, VersionedBackend
from carag.backends.epochs.versions import NEVER, Versions, rows_from

__all__ = ["KEEP", "NEVER", "Nearest", "Register", "VersionedBackend", "Versions", "rows_from"]
