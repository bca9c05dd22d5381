"""Search vectors and words for what a policy admits; only this package calls the native core in ``csrc``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.index.hidden import HiddenRows as HiddenRows
    from carag.index.index import FILE_VERSION as FILE_VERSION
    from carag.index.index import Index as Index
    from carag.index.results import DType as DType
    from carag.index.results import Hits as Hits
    from carag.index.results import Plan as Plan
    from carag.index.results import SearchResult as SearchResult
    from carag.index.results import SearchStats as SearchStats
    from carag.index.results import Why as Why
    from carag.index.text_index import TextIndex as TextIndex
    from carag.index.text_results import AdmissibleChunks as AdmissibleChunks
    from carag.index.text_results import TermCounts as TermCounts
    from carag.index.text_results import TextResult as TextResult
    from carag.index.text_results import TextStats as TextStats
    from carag.index.tokens import TOKENS_VERSION as TOKENS_VERSION
    from carag.index.tokens import tokenize as tokenize
    from carag.index.views import IndexStats as IndexStats
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "hidden": "HiddenRows",
            "index": "FILE_VERSION Index",
            "results": "DType Hits Plan SearchResult SearchStats Why",
            "text_index": "TextIndex",
            "text_results": "AdmissibleChunks TermCounts TextResult TextStats",
            "tokens": "TOKENS_VERSION tokenize",
            "views": "IndexStats",
        },
    )
