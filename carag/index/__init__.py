"""The index room: nearest rows among those a policy admits, found by the native core in ``csrc``.

Only this room touches the C core. It knows words, terms and minutes, and nothing of documents or text.
"""

from __future__ import annotations

from carag.index.index import Index
from carag.index.results import DType, Hits, Plan, SearchResult, SearchStats, Why

__all__ = ["DType", "Hits", "Index", "Plan", "SearchResult", "SearchStats", "Why"]
