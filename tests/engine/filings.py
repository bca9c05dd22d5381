"""Ingest filings into a collection without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.engine.contents import filings_kind
from carag.engine.writer import write
from carag.profiles.edgar.documents import labelled_filings

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine import IngestReport
    from carag.engine.collection import Collection


def ingest_filings(collection: Collection, path: Path) -> IngestReport:
    return write(collection, filings_kind(), labelled_filings(path)).of_store(
        collection.store.documents.counts()
    )
