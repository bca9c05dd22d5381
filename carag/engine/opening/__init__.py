"""Open what a store directory holds, in one order, and close it, in one order, however it ends."""

from __future__ import annotations

from carag.engine.opening.ending import Ending, close_dropped
from carag.engine.opening.store import Opened, Upgraded, opened, undone_if_empty, upgrade

__all__ = ["Ending", "Opened", "Upgraded", "close_dropped", "opened", "undone_if_empty", "upgrade"]
