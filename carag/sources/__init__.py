"""Mirror documents from where an authority publishes them into a folder, which ``carag ingest`` then reads.

This room knows nothing of stores, profiles or engines. Its packages are the extra ``web``.
"""

from __future__ import annotations

from carag.sources.mirror import FetchReport, Gone, Limits, fetch

__all__ = ["FetchReport", "Gone", "Limits", "fetch"]
