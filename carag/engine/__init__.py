"""Answer questions over one store, with every request on record: ``Engine`` and the results that it returns."""

from __future__ import annotations

from carag.engine.engine import Engine
from carag.engine.results import AddReport, Answer, Explanation, IngestReport, Retrieval

__all__ = ["AddReport", "Answer", "Engine", "Explanation", "IngestReport", "Retrieval"]
