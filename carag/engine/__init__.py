"""Answer questions over one store, with every request on record: ``Engine`` and the results that it returns."""

from __future__ import annotations

from carag.engine.engine import Engine
from carag.engine.kept_embedder import NO_EMBEDDER
from carag.engine.named import made_by_name
from carag.engine.results import (
    AddReport,
    Answer,
    Explanation,
    GateReport,
    IngestReport,
    Retrieval,
    SyncReport,
)

__all__ = [
    "NO_EMBEDDER",
    "AddReport",
    "Answer",
    "Engine",
    "Explanation",
    "GateReport",
    "IngestReport",
    "Retrieval",
    "SyncReport",
    "made_by_name",
]
