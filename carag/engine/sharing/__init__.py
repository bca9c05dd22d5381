"""Share one store between processes: set it up, move one there, and open it from each process's directory."""

from __future__ import annotations

from carag.engine.sharing.corpus import has_store, open_corpus
from carag.engine.sharing.moving import Moved, move
from carag.engine.sharing.share import share

__all__ = ["Moved", "has_store", "move", "open_corpus", "share"]
