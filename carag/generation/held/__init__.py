"""Hold what a generator wrote against what the passages that it cites state: every figure with its label, time and unit."""

from __future__ import annotations

from carag.generation.held.draft import Held, held
from carag.generation.held.judge import Unheld

__all__ = ["Held", "Unheld", "held"]
