"""Search vectors and words for what a policy admits; only this package calls the native core in ``csrc``."""

from __future__ import annotations

from carag.index.hidden import HiddenRows
from carag.index.index import FILE_VERSION, OLDEST_FILE_VERSION, Index
from carag.index.results import DType, Hits, Plan, SearchResult, SearchStats, Why
from carag.index.text_index import TextIndex
from carag.index.text_results import AdmissibleChunks, TermCounts, TextResult, TextStats
from carag.index.tokens import TOKENS_VERSION, tokenize
from carag.index.views import IndexStats

__all__ = [
    "FILE_VERSION",
    "OLDEST_FILE_VERSION",
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
