"""Keep the rows that are searched, copies of a store's open labels: in an index file, or in a backend."""

from __future__ import annotations

from carag.engine.rows.backend import KeptBackend
from carag.engine.rows.file import KeptFile
from carag.engine.rows.kept import Change, KeptRows
from carag.engine.rows.settled import NATIVE, settle_backend

__all__ = ["NATIVE", "Change", "KeptBackend", "KeptFile", "KeptRows", "settle_backend"]
