"""Hold every figure and name that a generator wrote against label, time and unit in the passages that it cites."""

from __future__ import annotations

from carag.generation.held.draft import Held, held

__all__ = ["Held", "held"]
