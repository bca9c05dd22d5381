"""Mirror the documents that an authority publishes on the web into a folder, which ``carag ingest`` then reads.

This package knows nothing of stores, profiles or engines. What it needs comes with the extra ``web``.
"""

from __future__ import annotations

from carag.sources.mirror import FetchReport, Gone, Limits, fetch

__all__ = ["FetchReport", "Gone", "Limits", "fetch"]
