"""Find the tables of passages, and carry to a passage the head rows of the table that it was torn from."""

from __future__ import annotations

from carag.retrieval.tables.heads import BACK, head_of
from carag.retrieval.tables.torn import begins_in_a_table, torn_heads

__all__ = ["BACK", "begins_in_a_table", "head_of", "torn_heads"]
