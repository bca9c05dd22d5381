"""Back up a store while it is in use, and restore it, reporting what the backup lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.engine.backup.back_up import BackedUp as BackedUp
    from carag.engine.backup.back_up import back_up as back_up
    from carag.engine.backup.manifest import Manifest as Manifest
    from carag.engine.backup.restore import Behind as Behind
    from carag.engine.backup.restore import Restored as Restored
    from carag.engine.backup.restore import restore as restore
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "back_up": "BackedUp back_up",
            "manifest": "Manifest",
            "restore": "Behind Restored restore",
        },
    )
