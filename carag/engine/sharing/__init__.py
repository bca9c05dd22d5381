"""Share one store between processes: set it up, move one there, and open it from each process's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.engine.sharing.corpus import has_store as has_store
    from carag.engine.sharing.corpus import open_corpus as open_corpus
    from carag.engine.sharing.moving import Moved as Moved
    from carag.engine.sharing.moving import move as move
    from carag.engine.sharing.share import share as share
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "corpus": "has_store open_corpus",
            "moving": "Moved move",
            "share": "share",
        },
    )
