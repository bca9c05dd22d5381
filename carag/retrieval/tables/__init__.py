"""Find the tables in passages, and give a passage the head rows of the table that continues in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.retrieval.tables.heads import BACK as BACK
    from carag.retrieval.tables.heads import head_of as head_of
    from carag.retrieval.tables.table import torn_row as torn_row
    from carag.retrieval.tables.torn import torn_heads as torn_heads
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "heads": "BACK head_of",
            "table": "torn_row",
            "torn": "torn_heads",
        },
    )
