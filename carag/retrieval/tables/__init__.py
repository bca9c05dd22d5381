"""Find the tables in passages, and give a passage the head rows of the table that continues in it."""

from __future__ import annotations

from carag.retrieval.tables.heads import BACK, head_of
from carag.retrieval.tables.table import torn_row
from carag.retrieval.tables.torn import torn_heads

__all__ = ["BACK", "head_of", "torn_heads", "torn_row"]
