"""Answer with a figure from tables in the passages, or with one that a formula in the question computes from them."""

from __future__ import annotations

from carag.generation.figures.gate import company_key, look_up, look_up_alone
from carag.generation.figures.quoting import Figure

__all__ = ["Figure", "company_key", "look_up", "look_up_alone"]
