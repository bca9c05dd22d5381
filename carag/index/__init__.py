"""Search vectors and words for what a policy admits, with the native core in ``csrc``.

Only this package calls the C core. It knows policy words, terms of release and minutes, and nothing of what a text
means: terms are plain strings.
"""

from __future__ import annotations

from carag.index.hidden import HiddenRows
from carag.index.index import FILE_VERSION, Index
from carag.index.results import DType, Hits, Plan, SearchResult, SearchStats, Why
from carag.index.text_index import TextIndex
from carag.index.text_results import AdmissibleChunks, TermCounts, TextResult, TextStats
from carag.index.tokens import TOKENS_VERSION, tokenize
from carag.index.views import IndexStats

__all__ = [
    "FILE_VERSION",
    "TOKENS_VERSION",
    "AdmissibleChunks",
    "DType",
    "HiddenRows",
    "Hits",
    "Index",
    "IndexStats",
    "Plan",
    "SearchResult",
    "SearchStats",
    "TermCounts",
    "TextIndex",
    "TextResult",
    "TextStats",
    "Why",
    "tokenize",
]
