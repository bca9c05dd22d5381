"""Search vectors for the nearest rows that a policy admits, with the native core in ``csrc``.

Only this package calls the C core. It knows words, terms and minutes, and nothing of documents or text.
"""

from __future__ import annotations

from carag.index.index import Index
from carag.index.results import DType, Hits, Plan, SearchResult, SearchStats, Why

__all__ = ["DType", "Hits", "Index", "Plan", "SearchResult", "SearchStats", "Why"]
